"""The voxels that can move the shape: all others have u = mu = 0 or 1 to within exp(-8)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from logishape.core.arrays import AnyArray
from logishape.core.observation import Observation

# Six would be enough for one step, but thousands of voxels at exp(-6) move the optimum by a tenth of a standard
# deviation; at exp(-8) it is a hundredth, for a third more voxels.
HALF_WIDTH = 8.0


class Band(eqx.Module):
    """Points, log odds and weights of a fixed number of rows; unused rows have weight zero."""

    points: Float[AnyArray, "k d"]
    log_odds: Float[AnyArray, " k"]
    weights: Float[AnyArray, " k"]


def is_active(
    V: Float[AnyArray, " n"], rho: Float[AnyArray, " n"], weights: Float[AnyArray, " n"]
) -> Bool[jax.Array, " n"]:
    """Whether a voxel may pull the shape.

    It may be dropped only when prior and posterior agree: V and V + rho both beyond +-8 on the same side. Far
    from the surface alone is not enough where the appearance contradicts the shape.
    """
    is_inside = (V > HALF_WIDTH) & (V + rho > HALF_WIDTH)
    is_outside = (V < -HALF_WIDTH) & (V + rho < -HALF_WIDTH)
    return (weights > 0) & ~is_inside & ~is_outside


def choose_active(
    observation: Observation, V: Float[AnyArray, " n"], rho: Float[AnyArray, " n"], use_band: bool
) -> Bool[AnyArray, " n"]:
    """The voxels a shape step looks at: those of the band, or all."""
    return is_active(V, rho, observation.weights) if use_band else observation.weights > 0


def gather(observation: Observation, rho: Float[AnyArray, " n"], active: Bool[AnyArray, " n"], capacity: int) -> Band:
    """The active voxels in `capacity` rows; the caller makes sure that they fit."""
    if capacity >= observation.num_voxels:
        return Band(observation.points, rho, observation.weights * active)
    rows = chosen_rows(active, capacity)
    is_used = jnp.arange(capacity) < jnp.sum(active)
    points, weights = jnp.asarray(observation.points), jnp.asarray(observation.weights)
    return Band(points[rows], jnp.asarray(rho)[rows], weights[rows] * is_used)


def chosen_rows(active: Bool[AnyArray, " n"], capacity: int) -> Int[jax.Array, " k"]:
    """Where the active voxels are, and the first voxel for the rows that are left over."""
    return jnp.nonzero(active, size=capacity, fill_value=0)[0]


def padded_size(count: int, smallest: int = 256) -> int:
    """A size at least `count`, from a short list: every new array size costs a compilation."""
    step = max(smallest, 2 ** max(int(count - 1).bit_length() - 3, 0))
    return -(-count // step) * step
