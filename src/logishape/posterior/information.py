"""How much the image says about shape and appearance: information matrices and the score of each voxel."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from logishape.core.arrays import AnyArray, like, over_chunks, total
from logishape.core.observation import Observation
from logishape.inference.labels import e_step, log_marginal, prior_logit_and_jacobian
from logishape.inference.model import Model, State
from logishape.inference.objective import evaluate_densities
from logishape.inference.problem import weighted_gram, weighted_rows


class Information(eqx.Module):
    """Information matrices of the data alone, per parameter unit, at one state; no prior is in them.

    complete: D' diag(mu (1 - mu)) D, what the paper inverts; it counts labels nobody saw.
    observed: minus the Hessian of the log likelihood, exact (Louis).
    outer: sum of (u - mu)^2 d d', positive semi-definite always.
    score: gradient of the log likelihood.
    """

    complete: Float[AnyArray, "p p"]
    observed: Float[AnyArray, "p p"]
    outer: Float[AnyArray, "p p"]
    score: Float[AnyArray, " p"]


class AppearanceInformation(eqx.Module):
    """Minus second derivatives of the log likelihood in the appearances' k free parameters.

    cross: -sum w u (1 - u) d (d rho / d phi)', shape and appearance; own: appearance alone; prior: of log p(theta_I).
    """

    cross: Float[AnyArray, "p k"]
    own: Float[AnyArray, "k k"]
    prior: Float[AnyArray, "k k"]


class VoxelScores(NamedTuple):
    """What each voxel adds to the gradient of the log likelihood, and its generalised residual.

    shape: w (u - mu) d; appearance: w d log p(I) / d phi; residual: d log p(I) / d I, whatever the densities.
    """

    shape: Float[AnyArray, "n p"]
    appearance: Float[AnyArray, "n k"]
    residual: Float[AnyArray, " n"]


def information(model: Model, observation: Observation, state: State) -> Information:
    """The shape's information matrices in one pass over the voxels, in pieces of bounded memory.

    I_obs = D' diag(mu (1 - mu) - u (1 - u)) D - sum (u - mu) grad^2 V, with the second derivatives of the
    shape exact by forward over reverse mode. Under the model the last sum is noise about zero; it is left out where
    the surface is faceted, for there it would count one side of the surface and not the other.
    """
    rho = evaluate_densities(observation, state).log_odds
    theta, length = like((state.theta, model.reference_length), observation.points)

    def piece(points: jax.Array, log_odds: jax.Array, weights: jax.Array) -> Information:
        V, D = prior_logit_and_jacobian(model, state.theta, points)
        mu, u = jax.nn.sigmoid(V), e_step(V, log_odds)
        pull = weights * (u - mu)

        def weighted_level(theta: jax.Array) -> jax.Array:
            return total(pull * model.shape.level(theta, points) / length)

        bending = 0.0 if model.shape.is_faceted else jax.hessian(weighted_level)(theta)
        complete = weighted_gram(D, weights * mu * (1 - mu))
        seen = weighted_gram(D, pull * (u + mu - 1))  # mu (1 - mu) - u (1 - u), without cancellation
        outer = weighted_gram(D, weights * jnp.square(u - mu))
        return Information(complete, seen - bending, outer, weighted_rows(D, pull))

    return over_chunks(piece, (observation.points, rho, observation.weights), reduce=True)


def appearance_information(model: Model, observation: Observation, state: State) -> AppearanceInformation:
    """What shape and appearance know of each other, and the appearance of itself, in one pass over the voxels."""
    phi = jnp.asarray(state.regions.free_parameters(), jnp.result_type(float))

    def piece(points: jax.Array, intensity: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
        V, D = prior_logit_and_jacobian(model, state.theta, points)

        def shape_score(phi: jax.Array) -> jax.Array:
            log_odds = state.regions.with_free_parameters(phi).log_odds(intensity)
            return weighted_rows(D, weights * e_step(V, log_odds))

        def log_likelihood(phi: jax.Array) -> jax.Array:
            return total(weights * _log_density(state.with_appearance(phi), V, intensity))

        return -jax.jacfwd(shape_score)(phi), -jax.hessian(log_likelihood)(phi)

    arrays = (observation.points, observation.intensities, observation.weights)
    cross, own = over_chunks(piece, arrays, reduce=True)
    prior = -jax.hessian(lambda phi: state.regions.with_free_parameters(phi).log_prior())(phi)
    return AppearanceInformation(cross, own, prior)


def voxel_scores(model: Model, observation: Observation, state: State) -> VoxelScores:
    """The score of every voxel, shape and appearance, in the precision of the observation."""
    phi = state.regions.free_parameters()

    def piece(points: jax.Array, intensity: jax.Array, weights: jax.Array) -> VoxelScores:
        V, D = prior_logit_and_jacobian(model, state.theta, points)
        pull = e_step(V, state.regions.log_odds(intensity)) - jax.nn.sigmoid(V)
        by_appearance = jax.jacfwd(lambda phi: _log_density(state.with_appearance(phi), V, intensity))(phi)
        _, residual = jax.jvp(lambda x: _log_density(state, V, x), (intensity,), (jnp.ones_like(intensity),))
        weighted = like(weights[:, None] * by_appearance, points)
        return VoxelScores((weights * pull)[:, None] * D, weighted, residual)

    arrays = (observation.points, observation.intensities, observation.weights)
    return over_chunks(piece, arrays, reduce=False)


def _log_density(state: State, V: jax.Array, intensity: jax.Array) -> jax.Array:
    """log p(I | theta) of each voxel."""
    regions = state.regions
    return log_marginal(V, regions.inside.log_prob(intensity), regions.outside.log_prob(intensity))
