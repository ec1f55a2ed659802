"""The paper's crop: 60 x 50 x 50 voxels of 0.2 mm in the cochlea's own frame, whatever the CT's grid."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

from logishape.cochlea.frame import Frame
from logishape.core.errors import InputError
from logishape.core.volume import Volume

LOWER, SHAPE, SPACING = np.array([-4.8, -5.0, -4.5]), (60, 50, 50), 0.2
UPPER = LOWER + SPACING * np.array(SHAPE)
LEAST_COVERED = 0.5  # of the crop: less is a field of view that cuts the cochlea


@dataclasses.dataclass(frozen=True)
class Crop:
    """The image around a cochlea: voxel centres in its frame (mm), intensities, and which of them the CT covers.

    probability: p(inside) by a map that was given, and which voxels it covers (`is_mapped`); None without a map.
    """

    points: Float[np.ndarray, "n 3"]
    intensities: Float[np.ndarray, " n"]
    is_covered: Bool[np.ndarray, " n"]
    probability: Float[np.ndarray, " n"] | None = None
    is_mapped: Bool[np.ndarray, " n"] | None = None

    @property
    def seen(self) -> Float[np.ndarray, " n"]:
        """What the appearances read: probabilities where a map was given, else intensities."""
        return self.intensities if self.probability is None else self.probability

    @property
    def share_covered(self) -> float:
        """How much of the crop lies within the CT."""
        return float(np.mean(self.is_covered))


def grid_points() -> Float[np.ndarray, "n 3"]:
    """Centres of the crop's voxels in the cochlea's frame (mm)."""
    axes = [low + SPACING * (np.arange(n) + 0.5) for low, n in zip(LOWER, SHAPE, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def reformat(volume: Volume, frame: Frame) -> Crop:
    """The crop of a CT by linear interpolation; only the block of the CT around it is touched."""
    points = grid_points()
    intensities, is_covered = sample(volume, frame, points)
    crop = Crop(points, intensities, is_covered)
    if crop.share_covered < LEAST_COVERED:
        raise InputError(
            f"the CT should cover the cochlea but holds only {100 * crop.share_covered:.0f} % of the 12 x 10 x 10 mm "
            "around its pose; use a scan with a larger field of view, or check the landmarks if you gave any."
        )
    return crop


def sample(volume: Volume, frame: Frame, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intensities at points of the cochlea's frame by linear interpolation, and whether the CT covers them."""
    return world_sample(volume, points @ np.asarray(frame.axes) + np.asarray(frame.origin))


def world_sample(volume: Volume, world: np.ndarray, margin: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The same at points of the world (mm); up to `margin` voxels beyond the outermost centres count as covered."""
    index = volume.to_index(world)
    shape = np.array(volume.shape)
    is_covered = np.all((index >= -margin) & (index <= shape - 1 + margin), axis=1)
    first = np.clip(np.floor(index.min(axis=0)), 0, shape - 1).astype(int)
    last = np.clip(np.ceil(index.max(axis=0)) + 1, first + 1, shape).astype(int)
    block = volume.data[tuple(slice(a, b) for a, b in zip(first, last, strict=True))].astype(np.float32)
    values = ndimage.map_coordinates(block, (index - first).T, order=1, mode="nearest")
    return np.asarray(values, np.float32), is_covered
