"""The MI-step: both appearances learn from the current labels."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from logishape.appearance import Regions
from logishape.core.arrays import AnyArray
from logishape.core.observation import Observation
from logishape.inference.labels import e_step
from logishape.inference.model import State
from logishape.inference.objective import Densities, evaluate_densities, log_likelihood
from logishape.inference.options import FitOptions


class AppearanceProgress(eqx.Module):
    """Where the MI-step stands; value is likelihood plus the appearances' log prior."""

    regions: Regions
    densities: Densities
    value: Float[Array, ""]
    is_settled: Bool[Array, ""]


def mi_step(
    observation: Observation,
    V: Float[AnyArray, " n"],
    state: State,
    densities: Densities,
    options: FitOptions,
    is_on: Bool[Array, ""],
) -> AppearanceProgress:
    """Both appearances after E and MI sweeps at a fixed shape, until the log joint stops rising.

    Without `is_on` they stay as they are. The paper stops on the relative change of the means, which depends on where
    zero lies; a rise in nats does not. A sweep that rounding makes fall is not taken.
    """

    def sweep(carry: tuple[AppearanceProgress, jax.Array]) -> tuple[AppearanceProgress, jax.Array]:
        now, count = carry
        u = e_step(V, now.densities.log_odds)
        regions = now.regions.update(observation.intensities, u, observation.weights)
        new = _progress(observation, V, State(state.theta, regions), options, now.value)
        rises = new.value > now.value
        kept = jax.tree.map(lambda a, b: jnp.where(rises, a, b), new, now)
        return eqx.tree_at(lambda p: p.is_settled, kept, new.is_settled | ~rises), count + 1

    regions = jax.tree.map(jnp.asarray, state.regions)
    value = log_likelihood(observation, V, densities) + regions.log_prior()
    start = AppearanceProgress(regions, densities, value, ~is_on)
    if regions.is_fixed:
        return start

    def goes_on(carry: tuple[AppearanceProgress, jax.Array]) -> jax.Array:
        return ~carry[0].is_settled & (carry[1] < options.max_appearance_steps)

    return jax.lax.while_loop(goes_on, sweep, (start, jnp.array(0)))[0]


def _progress(
    observation: Observation, V: Float[AnyArray, " n"], state: State, options: FitOptions, before: jax.Array
) -> AppearanceProgress:
    densities = evaluate_densities(observation, state)
    value = log_likelihood(observation, V, densities) + state.regions.log_prior()
    return AppearanceProgress(state.regions, densities, value, value - before < options.rise_tolerance)
