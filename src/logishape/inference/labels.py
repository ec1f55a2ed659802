"""Labels given shape and appearance: prior and posterior probabilities, in log odds until asked otherwise.

The one idea of the library: posterior logit = log p(I | inside) - log p(I | outside) + level / reference length.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from logishape.core.arrays import AnyArray, like, over_chunks
from logishape.inference.model import Model
from logishape.shapes import level_and_jacobian


def prior_logit(model: Model, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
    """V = level / reference length: the log odds of being inside before looking at the intensity."""
    theta, length = like((theta, model.reference_length), points)
    return over_chunks(lambda x: model.shape.level(theta, x) / length, (points,), reduce=False)


def prior_logit_and_jacobian(
    model: Model, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]
) -> tuple[Float[jax.Array, " n"], Float[jax.Array, "n p"]]:
    """V and D = dV/dtheta at each point."""
    theta, length = like((theta, model.reference_length), points)

    def piece(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        level, jacobian = level_and_jacobian(model.shape, theta, x)
        return level / length, jacobian / length

    return over_chunks(piece, (points,), reduce=False)


def e_step(V: Float[AnyArray, " n"], rho: Float[AnyArray, " n"]) -> Float[jax.Array, " n"]:
    """u = p(Z = 1 | I, theta) = sigmoid(V + rho)."""
    return jax.nn.sigmoid(V + rho)


def log_marginal(
    V: Float[AnyArray, " n"], log_inside: Float[AnyArray, " n"], log_outside: Float[AnyArray, " n"] | float
) -> Float[jax.Array, " n"]:
    """log p(I | theta) of each voxel with its label summed out (eq. 4 of the paper, one term a voxel).

    log(mu f1 + (1 - mu) f0) with log mu = -softplus(-V): neither over- nor underflows. Give densities relative to
    the larger of the two where steps of V are compared: a term of 1e7 would swallow them in single precision.
    """
    return jnp.logaddexp(log_inside - jax.nn.softplus(-V), log_outside - jax.nn.softplus(V))


def expected_label(distance_ratio: Float[AnyArray, "..."]) -> Float[jax.Array, "..."]:
    """Expected posterior label at signed distance d = ratio * l under a uniform appearance probability.

    E(D) = (1 - D e^-D - e^-D)/(1 - e^-D)^2, and 1/2 + D/6 - D^3/180 + D^5/5040 near zero. 95 % needs
    D = 4.19, not the paper's 4.
    """
    D = jnp.asarray(distance_ratio)
    # Below the limit the series is exact to D^7/151200, beyond it the closed form to rounding over D^2.
    is_small = jnp.abs(D) < (0.5 if jnp.finfo(jnp.result_type(D, jnp.float32)).eps > 1e-10 else 0.05)
    safe = jnp.where(is_small, 1.0, D)
    away = jnp.abs(safe)  # E(-D) = 1 - E(D); with D > 0 no exponential overflows
    decay = jnp.exp(-away)
    value = (1 - away * decay - decay) / jnp.square(jnp.expm1(-away))
    return jnp.where(is_small, 0.5 + D / 6 - D**3 / 180 + D**5 / 5040, jnp.where(D < 0, 1 - value, value))
