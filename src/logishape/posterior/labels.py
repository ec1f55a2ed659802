"""Label maps: at the best parameters, and with the uncertainty of the shape integrated out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logishape.core.arrays import AnyArray, double_precision, to_host
from logishape.core.errors import InputError
from logishape.core.observation import Observation
from logishape.inference.band import padded_size
from logishape.inference.checks import check_state
from logishape.inference.labels import e_step, prior_logit
from logishape.inference.model import Model, State
from logishape.inference.objective import evaluate_densities
from logishape.posterior.laplace import ShapePosterior


def label_probability(
    model: Model, observation: Observation, state: State, reference_length: float | None = None
) -> Float[np.ndarray, " n"]:
    """p(Z = 1 | I, best parameters) of each voxel; its half level is the segmented region.

    `reference_length` (mm) may differ from the model's: the length that is best for finding the shape
    is not always the best for drawing labels.
    """
    return mean_label_probability(model, observation, state, np.asarray(state.theta)[None], reference_length)


def marginal_label_probability(
    model: Model,
    observation: Observation,
    state: State,
    posterior: ShapePosterior,
    key: jax.Array,
    num_draws: int = 100,
    reference_length: float | None = None,
) -> Float[np.ndarray, " n"]:
    """p(Z = 1 | I) with the shape's uncertainty integrated out: the mean of u over draws of the posterior."""
    return mean_label_probability(model, observation, state, posterior.sample(key, num_draws), reference_length)


def mean_label_probability(
    model: Model, observation: Observation, state: State, draws: np.ndarray, reference_length: Any = None
) -> Float[np.ndarray, " n"]:
    """The mean of u over the given draws of the shape's parameters `(s, p)`, one at a time."""
    num_voxels = observation.num_voxels
    observation = observation.padded(padded_size(num_voxels))
    check_state(model, observation, state)
    if reference_length is not None:
        model = model.with_reference_length(reference_length)
    with double_precision():
        labels = to_host(_average(model, observation, state, draws))
    if not np.all(np.isfinite(labels)):
        raise InputError("the label probabilities are not finite; check the scales of the appearances.")
    return labels[:num_voxels]


@eqx.filter_jit
def _average(
    model: Model, observation: Observation, state: State, draws: Float[AnyArray, "s p"]
) -> Float[Array, " n"]:
    """Sums one draw at a time: memory does not grow with the number of draws."""
    rho = evaluate_densities(observation, state).log_odds
    draws = jnp.asarray(draws)

    def add(so_far: jax.Array, theta: jax.Array) -> tuple[jax.Array, None]:
        return so_far + e_step(prior_logit(model, theta, observation.points), rho), None

    return jax.lax.scan(add, jnp.zeros_like(rho), draws)[0] / draws.shape[0]
