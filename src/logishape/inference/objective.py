"""The log joint: the one quantity that every step must not lower."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from logishape.core.arrays import AnyArray, over_chunks, total
from logishape.core.observation import Observation
from logishape.inference.labels import log_marginal, prior_logit
from logishape.inference.model import Model, State


class Densities(eqx.Module):
    """Log densities of each voxel's intensity inside and outside."""

    log_inside: Float[AnyArray, " n"]
    log_outside: Float[AnyArray, " n"]

    @property
    def log_odds(self) -> Float[AnyArray, " n"]:
        """rho."""
        return self.log_inside - self.log_outside


def evaluate_densities(observation: Observation, state: State) -> Densities:
    """Log densities of all intensities under both regions."""

    def piece(intensity: jax.Array) -> Densities:
        return Densities(state.regions.inside.log_prob(intensity), state.regions.outside.log_prob(intensity))

    return over_chunks(piece, (observation.intensities,), reduce=False)


def log_likelihood(observation: Observation, V: Float[AnyArray, " n"], densities: Densities) -> Float[jax.Array, ""]:
    """sum_n w_n log p(I_n | theta), with the labels summed out."""
    # Relative to the larger density, which does not depend on the shape, so that its changes are not rounded away.
    top = jnp.maximum(densities.log_inside, densities.log_outside)
    terms = log_marginal(V, densities.log_inside - top, densities.log_outside - top)
    return total(observation.weights * terms) + total(observation.weights * top)


def log_joint(model: Model, observation: Observation, state: State) -> Float[jax.Array, ""]:
    """log p(I, theta, theta_I): likelihood and log priors over one fixed set of voxels."""
    return log_joint_at(model, observation, state, prior_logit(model, state.theta, observation.points))


def log_joint_at(
    model: Model, observation: Observation, state: State, V: Float[AnyArray, " n"]
) -> Float[jax.Array, ""]:
    """The same for a state whose prior logits are known."""
    data = log_likelihood(observation, V, evaluate_densities(observation, state))
    return data + model.prior.log_prob(state.theta) + state.regions.log_prior()
