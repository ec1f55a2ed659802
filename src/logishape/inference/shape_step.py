"""The MS-step: directions, step lengths accepted by the true log joint, and when to stop."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from logishape.inference.direction import Direction, Memory, bfgs, gauss_newton
from logishape.inference.options import FitOptions
from logishape.inference.problem import Phi, ShapeProblem

_LONGEST, _SHORTEST = 64.0, 2.0**-8
_MOST_DAMPING = 1e8


class ShapeProgress(eqx.Module):
    """Where the MS-step stands."""

    phi: Float[Array, " p"]
    logits: Float[Array, " k"]
    value: Float[Array, ""]
    damping: Float[Array, ""]
    memory: Memory
    decrement: Float[Array, ""]
    num_steps: Int[Array, ""]
    is_converged: Bool[Array, ""]
    is_stuck: Bool[Array, ""]
    has_moved: Bool[Array, ""]


def ms_step(
    problem: ShapeProblem, phi: Phi, damping: Float[Array, ""], memory: Memory, options: FitOptions
) -> ShapeProgress:
    """Shape parameters after steps on one band: until converged, stuck, or moved so far that the band is stale.

    The value never falls. `has_moved` asks for a fresh band, nothing more.
    """
    reference = problem.logits(phi)
    in_use = problem.band.weights > 0

    def advance(now: ShapeProgress) -> ShapeProgress:
        if options.method == "bfgs":
            direction, memory = bfgs(problem, now.phi, now.memory)
        else:
            direction, memory = gauss_newton(problem, now.phi, now.damping), now.memory
        length, value, logits = search_length(problem, now, direction)
        rise = value - now.value
        is_small = (direction.decrement < options.decrement_tolerance) & (rise < options.rise_tolerance)
        factor = jnp.where(length >= 1, 0.2, jnp.where(length > 0, 2.0, 10.0))
        damping = jnp.clip(now.damping * factor, 1e-8, _MOST_DAMPING)
        # A failed BFGS step is blamed on its Hessian, a failed Gauss-Newton step on too little damping.
        memory = eqx.tree_at(lambda m: m.has_hessian, memory, memory.has_hessian & (length > 0))
        is_stuck = (length == 0) & (damping > 1e4 if options.method != "bfgs" else ~now.memory.has_hessian)
        drift = jnp.max(jnp.where(in_use, jnp.abs(logits - reference), 0.0))
        return ShapeProgress(
            phi=now.phi + length * direction.delta,
            logits=logits,
            value=value,
            damping=damping,
            memory=memory,
            decrement=direction.decrement,
            num_steps=now.num_steps + 1,
            is_converged=is_small,
            is_stuck=is_stuck & ~is_small,
            has_moved=drift > options.band_drift,
        )

    def goes_on(now: ShapeProgress) -> jax.Array:
        is_over = now.is_converged | now.is_stuck | now.has_moved
        return ~is_over & (now.num_steps < options.max_shape_steps)

    no = jnp.array(False)
    start = ShapeProgress(
        jnp.asarray(phi),
        reference,
        problem.value(phi, reference),
        jnp.asarray(damping),
        memory,
        jnp.array(jnp.inf),
        jnp.array(0),
        no,
        no,
        no,
    )
    return jax.lax.while_loop(goes_on, advance, start)


def search_length(
    problem: ShapeProblem, now: ShapeProgress, direction: Direction
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, " k"]]:
    """A step length at which the true log joint rises, its value and logits there; zero if there is none.

    From one it doubles while the log joint keeps rising and the box allows it, or halves until it rises.
    An EM step is short by the share of missing information; doubling gives that back.
    """
    delta = direction.delta
    room = jnp.where(delta > 0, (1 - now.phi) / jnp.where(delta > 0, delta, 1.0), jnp.inf)
    room = jnp.minimum(room, jnp.where(delta < 0, now.phi / jnp.where(delta < 0, -delta, 1.0), jnp.inf))
    longest = jnp.clip(jnp.min(room), 1.0, _LONGEST)

    def attempt(carry: tuple) -> tuple:
        length, best, _ = carry
        phi = now.phi + length * delta
        logits = problem.logits(phi)
        value = problem.value(phi, logits)
        is_better = value > best[1]
        best = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), (length, value, logits), best)
        grows = is_better & (length >= 1) & (length < longest)
        shrinks = (best[0] == 0) & (length > _SHORTEST)
        return jnp.where(grows, jnp.minimum(2 * length, longest), length / 2), best, grows | shrinks

    start = (jnp.ones(()), (jnp.zeros(()), now.value, now.logits), jnp.array(True))
    return jax.lax.while_loop(lambda c: c[2], attempt, start)[1]
