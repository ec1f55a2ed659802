"""Quadratic programs in a box: the exact step where clipping a Newton step would be wrong."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from logishape.core.arrays import AnyArray


class _Progress(eqx.Module):
    x: Float[Array, " p"]
    held: Bool[Array, " p"]  # coordinates fixed at a bound for now
    is_done: Bool[Array, ""]
    count: Int[Array, ""]


def minimise_in_box(
    hessian: Float[AnyArray, "p p"],
    gradient: Float[AnyArray, " p"],
    lower: Float[AnyArray, " p"],
    upper: Float[AnyArray, " p"],
) -> Float[jax.Array, " p"]:
    """x in [lower, upper] that minimises gradient . x + x' hessian x / 2, for a positive definite Hessian.

    Active set: go to the minimum over the free coordinates or to the first bound on the way, which is then held;
    at a minimum, let go of the held coordinate that gains most. Every move of some length lowers the value, so it
    ends at the exact solution; a cap ends degenerate cycles at a point of the box. Zero must lie in the box.
    """
    p = gradient.shape[0]
    # A direction that nothing determines gets a step of zero, not NaN.
    hessian = hessian + jnp.eye(p) * (1e-13 * jnp.trace(hessian) / p + 1e-30)
    scale = jnp.sqrt(jnp.diag(hessian))

    def advance(now: _Progress) -> _Progress:
        slope = gradient + hessian @ now.x
        free = (~now.held).astype(hessian.dtype)
        reduced = hessian * free[:, None] * free + jnp.diag(now.held * scale**2)
        step = -jnp.linalg.solve(reduced, slope * free)
        target = jnp.where(step < 0, lower, upper)
        room = jnp.where(now.held | (step == 0), jnp.inf, (target - now.x) / jnp.where(step == 0, 1.0, step))
        length = jnp.clip(jnp.min(room), 0.0, 1.0)
        is_blocking = (room <= length) & (length < 1)
        x = jnp.where(is_blocking, target, jnp.clip(now.x + length * step, lower, upper))
        # Only at the minimum over the free coordinates does a held one tell whether it wants to leave.
        slope = (gradient + hessian @ x) / scale
        gain = jnp.where(now.held & (x <= lower), -slope, jnp.where(now.held & (x >= upper), slope, -jnp.inf))
        wants_out = (length >= 1) & (jnp.max(gain) > 1e-12 * jnp.max(jnp.abs(gradient / scale)))
        leaving = wants_out & (jnp.arange(p) == jnp.argmax(gain))
        is_done = (length >= 1) & ~wants_out | ~jnp.all(jnp.isfinite(x))
        return _Progress(
            jnp.where(jnp.isfinite(x), x, now.x), (now.held | is_blocking) & ~leaving, is_done, now.count + 1
        )

    zero = jnp.zeros_like(gradient)
    start = _Progress(zero, (zero <= lower) | (zero >= upper), jnp.array(False), jnp.array(0))
    return jax.lax.while_loop(lambda now: ~now.is_done & (now.count < 10 * p + 20), advance, start).x
