"""How much the image says about the shape: complete, observed and outer-product information."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from logishape.core.arrays import like, over_chunks, total
from logishape.core.observation import Observation
from logishape.inference.labels import e_step, prior_logit_and_jacobian
from logishape.inference.model import Model, State
from logishape.inference.objective import evaluate_densities
from logishape.inference.problem import weighted_gram, weighted_rows


class Information(eqx.Module):
    """Information matrices of the data alone, per parameter unit, at one state; the prior is not in them.

    complete: D' diag(mu (1 - mu)) D, what the paper inverts; it counts labels nobody saw.
    observed: minus the Hessian of the log likelihood, exact (Louis).
    outer: sum of (u - mu)^2 d d', positive semi-definite always.
    score: gradient of the log likelihood.
    """

    complete: Float[Array, "p p"]
    observed: Float[Array, "p p"]
    outer: Float[Array, "p p"]
    score: Float[Array, " p"]


def information(model: Model, observation: Observation, state: State) -> Information:
    """All information matrices in one pass over the voxels, in pieces of bounded memory.

    I_obs = D' diag(mu (1 - mu) - u (1 - u)) D - sum (u - mu) grad^2 V, with the second derivatives of the
    shape exact by forward over reverse mode.
    """
    rho = evaluate_densities(observation, state).log_odds
    theta, length = like((state.theta, model.reference_length), observation.points)

    def piece(points: jax.Array, log_odds: jax.Array, weights: jax.Array) -> Information:
        V, D = prior_logit_and_jacobian(model, state.theta, points)
        mu, u = jax.nn.sigmoid(V), e_step(V, log_odds)
        pull = weights * (u - mu)

        def weighted_level(theta: jax.Array) -> jax.Array:
            return total(pull * model.shape.level(theta, points) / length)

        bending = jax.hessian(weighted_level)(theta)
        complete = weighted_gram(D, weights * mu * (1 - mu))
        seen = weighted_gram(D, pull * (u + mu - 1))  # mu (1 - mu) - u (1 - u), without cancellation
        outer = weighted_gram(D, weights * jnp.square(u - mu))
        return Information(complete, seen - bending, outer, weighted_rows(D, pull))

    return over_chunks(piece, (observation.points, rho, observation.weights), reduce=True)
