"""A map of probabilities from somebody's own network, in place of a model of intensities."""

import dataclasses

import numpy as np
from jaxtyping import Float

from logishape.appearance import ProbabilityMap
from logishape.cochlea.evaluation import level_at
from logishape.cochlea.frame import Frame
from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.reformat import Crop, world_sample
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.vestibule import is_beyond
from logishape.core.errors import InputError
from logishape.core.volume import Volume

UNKNOWN = 0.5  # where the map ends: log odds of zero, the shape decides alone
ROUNDING = 1e-5  # beyond 0 and 1, as single precision leaves it
LEAST_MAPPED = 0.75  # of the mean cochlea: with less the map is of something else
NOT_MODELLED = "The probability map took the place of intensities, which are not modelled."
NOT_MATCHED = (
    "The probability map took the place of intensities: what blur does to sizes cannot be taken off, and intervals "
    "are those of the observed information."
)
_NUM_LOOKED_AT = 24  # points along each axis that tell whether two grids overlap


def check_map(probability: Volume, volume: Volume) -> Volume:
    """The map, if it holds probabilities that vary and shares a part of the world with the CT."""
    if not isinstance(probability, Volume):
        raise InputError(
            f"the probability map should be a Volume but is a {type(probability).__name__}; read_volume gives one, "
            "and volume.with_data puts an array on the CT's grid."
        )
    values = probability.data
    if probability.ndim != 3:
        raise InputError(f"the probability map should have three axes but has {probability.ndim}; give one channel.")
    if not np.all(np.isfinite(values)):
        count = int(np.count_nonzero(~np.isfinite(values)))
        raise InputError(f"the probability map should hold finite numbers but {count} voxels are not; replace them.")
    low, high = float(values.min()), float(values.max())
    if low < -ROUNDING or high > 1 + ROUNDING:
        hint = "apply the sigmoid to logits" if low < -ROUNDING else "divide by the largest possible value"
        raise InputError(
            f"the probability map should hold p(inside) from 0 to 1 but its values go from {low:g} to {high:g}; "
            f"{hint}."
        )
    if low == high:
        raise InputError(
            f"the probability map should tell inside from outside but every voxel is {low:g}; export it again."
        )
    if not (_holds_some_of(volume, probability) or _holds_some_of(probability, volume)):
        raise InputError(
            "the probability map should lie where the CT does but shares no part of the world with it; check the "
            "origin and the axes in its header."
        )
    return probability


def options_with_map(options: SegmentOptions) -> tuple[SegmentOptions, str]:
    """The same without a correction for blur, which renders intensities; and what was done, in a sentence."""
    if options.intervals == "matched":
        return dataclasses.replace(options, intervals="observed"), NOT_MATCHED
    return options, NOT_MODELLED


def map_at(probability: Volume, world: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, " n"]:
    """p(inside) at points of the world (mm) by linear interpolation; `UNKNOWN` beyond the map's voxels."""
    values, is_mapped = world_sample(probability, world, margin=0.5)
    return np.where(is_mapped, np.clip(values, 0, 1), UNKNOWN).astype(np.float32)


def crop_with_map(crop: Crop, probability: Volume, frame: Frame, cochlea: Cochlea) -> Crop:
    """The crop with the map's values at its voxels; an error where the map misses the cochlea of this frame.

    `cochlea` is one without a frame.
    """
    world = crop.points @ np.asarray(frame.axes) + np.asarray(frame.origin)
    _, is_mapped = world_sample(probability, world, margin=0.5)
    inside = (level_at(cochlea.by_level(), cochlea.mean(), crop.points) > 0) & ~is_beyond(crop.points)
    share = float(np.mean(is_mapped[inside]))
    if share < LEAST_MAPPED:
        raise InputError(
            f"the probability map should cover the cochlea but holds {100 * share:.0f} % of it; give one with a "
            "larger field of view, or check its origin and axes."
        )
    return dataclasses.replace(crop, probability=map_at(probability, world), is_mapped=is_mapped)


def log_odds_of(probability: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """What the map says for the inside, nats, as the fit reads it."""
    inside, outside = ProbabilityMap(True), ProbabilityMap(False)
    return np.asarray(inside.log_prob(probability)) - np.asarray(outside.log_prob(probability))


def _holds_some_of(one: Volume, other: Volume) -> bool:
    """Whether some of the points of a coarse lattice on the other grid lie within the voxels of this one."""
    axes = [np.linspace(0, n - 1, min(n, _NUM_LOOKED_AT)) for n in other.shape]
    points = other.to_world(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3))
    index = one.to_index(points)
    return bool(np.any(np.all((index >= -0.5) & (index <= np.array(one.shape) - 0.5), axis=1)))
