"""The MS-step: directions, step lengths accepted by the true log joint, and when to stop."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from logishape.inference.direction import Direction, Memory, bfgs, gauss_newton
from logishape.inference.options import FitOptions
from logishape.inference.problem import Phi, ShapeProblem

_LONGEST, _SHORTEST = 64.0, 2.0**-8  # step lengths
_LEAST_DAMPING, _MOST_DAMPING = 1e-8, 1e4


class ShapeProgress(eqx.Module):
    """Where the MS-step stands. `reference` holds the logits that the band was chosen for."""

    phi: Float[Array, " p"]
    logits: Float[Array, " k"]
    value: Float[Array, ""]
    reference: Float[Array, " k"]
    damping: Float[Array, ""]
    memory: Memory
    rise: Float[Array, ""]
    num_steps: Int[Array, ""]
    is_converged: Bool[Array, ""]
    is_stuck: Bool[Array, ""]
    has_moved: Bool[Array, ""]


class StepMemory(eqx.Module):
    """What one MS-step hands to the next: damping, BFGS's memory, and how far a band may be trusted.

    `reach` is the largest drift of a prior logit in one MS-step: unlimited until a band misjudged a step.
    """

    damping: Float[Array, ""]
    bfgs: Memory
    reach: Float[Array, ""]


def ms_step(
    problem: ShapeProblem,
    phi: Phi,
    V: Float[Array, " k"],
    memory: StepMemory,
    options: FitOptions,
    is_on: Bool[Array, ""],
) -> ShapeProgress:
    """Shape parameters after steps on one band: until converged, stuck, or moved so far that the band is stale.

    V are the prior logits on the band at phi. The value never falls. `has_moved` asks for a fresh band, nothing more.
    Without `is_on` no step is taken.
    """

    def goes_on(now: ShapeProgress) -> jax.Array:
        is_over = now.is_converged | now.is_stuck | now.has_moved
        return is_on & ~is_over & (now.num_steps < options.max_shape_steps)

    def advance(now: ShapeProgress) -> ShapeProgress:
        return _advance(problem, now, memory.reach, options, goes_on(now))

    no = jnp.array(False)
    start = ShapeProgress(
        phi=jnp.asarray(phi),
        logits=V,
        value=problem.value(phi, V),
        reference=V,
        damping=memory.damping,
        memory=memory.bfgs,
        rise=jnp.zeros(()),
        num_steps=jnp.array(0),
        is_converged=no,
        is_stuck=no,
        has_moved=no,
    )
    return jax.lax.while_loop(goes_on, advance, start)


def _advance(
    problem: ShapeProblem,
    now: ShapeProgress,
    reach: Float[Array, ""],
    options: FitOptions,
    is_on: Bool[Array, ""],
) -> ShapeProgress:
    """Progress after one step along a direction."""
    if options.method == "bfgs":
        direction, memory = bfgs(problem, now.phi, now.memory)
    else:
        direction, memory = gauss_newton(problem, now.phi, now.damping, is_on), now.memory
    length, value, logits = search_length(problem, now, direction, reach, is_on)
    has_failed = length == 0
    is_small = (direction.decrement < options.decrement_tolerance) & (value - now.value < options.rise_tolerance)
    # A failed BFGS step is blamed on its Hessian, a failed Gauss-Newton step on too little damping.
    damping = now.damping * jnp.where(length >= 1, 0.2, jnp.where(has_failed, 10.0, 2.0))
    is_out_of_ideas = ~now.memory.has_hessian if options.method == "bfgs" else damping > _MOST_DAMPING
    return ShapeProgress(
        phi=now.phi + length * direction.delta,
        logits=logits,
        value=value,
        reference=now.reference,
        damping=jnp.clip(damping, _LEAST_DAMPING, _MOST_DAMPING),
        memory=eqx.tree_at(lambda m: m.has_hessian, memory, memory.has_hessian & ~has_failed),
        rise=now.rise + value - now.value,
        num_steps=now.num_steps + 1,
        is_converged=is_small,
        is_stuck=has_failed & is_out_of_ideas & ~is_small,
        has_moved=_drift(problem, now, logits) > jnp.minimum(options.band_drift, reach / 2),
    )


def _drift(problem: ShapeProblem, now: ShapeProgress, logits: Float[Array, " k"]) -> Float[Array, ""]:
    """The largest change of a prior logit since the band was chosen."""
    return jnp.max(jnp.where(problem.band.weights > 0, jnp.abs(logits - now.reference), 0.0))


def search_length(
    problem: ShapeProblem,
    now: ShapeProgress,
    direction: Direction,
    reach: Float[Array, ""],
    is_on: Bool[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, " k"]]:
    """A step length at which the true log joint rises, its value and logits there; zero if there is none.

    From one it doubles while the log joint keeps rising and box and reach allow it, or halves until it rises.
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
        is_better = (value > best[1]) & (_drift(problem, now, logits) <= reach)
        best = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), (length, value, logits), best)
        grows = is_better & (length >= 1) & (length < longest)
        shrinks = (best[0] == 0) & (length > _SHORTEST)
        return jnp.where(grows, jnp.minimum(2 * length, longest), length / 2), best, grows | shrinks

    start = (jnp.ones(()), (jnp.zeros(()), now.value, now.logits), is_on)
    return jax.lax.while_loop(lambda c: c[2], attempt, start)[1]
