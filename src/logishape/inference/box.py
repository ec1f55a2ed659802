"""Quadratic programs in a box: the exact step where clipping a Newton step would be wrong."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray

_HALVINGS = 2.0 ** -np.arange(0, 24)


def minimise_in_box(
    hessian: Float[AnyArray, "p p"],
    gradient: Float[AnyArray, " p"],
    lower: Float[AnyArray, " p"],
    upper: Float[AnyArray, " p"],
) -> Float[jax.Array, " p"]:
    """x in [lower, upper] that minimises gradient . x + x' hessian x / 2, for a positive definite Hessian.

    Projected Newton (Bertsekas): coordinates held by a bound drop out, the rest take a Newton step along
    the projected path. It ends at the exact solution after finitely many changes of the held set. Zero
    must lie in the box.
    """
    p = gradient.shape[0]
    # A direction that nothing determines gets a step of zero, not NaN.
    hessian = hessian + jnp.eye(p) * (1e-13 * jnp.trace(hessian) / p + 1e-30)

    def value(x: jax.Array) -> jax.Array:
        return gradient @ x + 0.5 * x @ hessian @ x

    def improve(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        x, _, count = carry
        slope = gradient + hessian @ x
        held = ((x <= lower) & (slope > 0)) | ((x >= upper) & (slope < 0))
        free = (~held).astype(hessian.dtype)
        reduced = hessian * free[:, None] * free + jnp.diag(held.astype(hessian.dtype))
        step = -jnp.linalg.solve(reduced, slope * free)
        trials = jnp.clip(x + _HALVINGS[:, None] * step, lower, upper)
        falls = jax.vmap(value)(trials) <= value(x) + 1e-4 * (trials - x) @ slope
        new = jnp.where(jnp.any(falls), trials[jnp.argmax(falls)], x)
        is_done = jnp.all(jnp.abs(new - x) <= 1e-12 * (upper - lower)) | jnp.any(~jnp.isfinite(new))
        return jnp.where(jnp.isfinite(new), new, x), is_done, count + 1

    start = (jnp.zeros_like(gradient), jnp.array(False), jnp.array(0))
    return jax.lax.while_loop(lambda c: ~c[1] & (c[2] < 6 * p + 20), improve, start)[0]
