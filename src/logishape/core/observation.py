"""What the engine sees of an image: points in millimetres, an intensity and a weight for each."""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray
from logishape.core.errors import InputError
from logishape.core.volume import Volume

LARGEST_INTENSITY = 1e9  # its square still fits into single precision


class Observation(eqx.Module):
    """Points (mm), intensities and weights. The order of voxels carries no meaning.

    A weight of zero removes a voxel; padding uses that. The precision of the arrays is the
    precision of all work per voxel.
    """

    points: Float[AnyArray, "n d"]
    intensities: Float[AnyArray, " n"]
    weights: Float[AnyArray, " n"]

    @classmethod
    def from_arrays(
        cls, points: Any, intensities: Any, weights: Any = None, dtype: Any = np.float32
    ) -> "Observation":
        """An observation from loose points `(n, d)`, with weights of one unless given; checked."""
        if np.dtype(dtype) not in (np.float32, np.float64):
            name = np.dtype(dtype).name
            raise InputError(f"an observation is single or double precision but dtype is {name}; use np.float32.")
        for name, given in (("points", points), ("intensities", intensities), ("weights", weights)):
            if np.ma.isMaskedArray(given) or np.iscomplexobj(given):
                raise InputError(f"{name} must be plain real numbers, not masked or complex; use weights of zero.")
        with np.errstate(over="ignore"):  # what overflows in single precision is found below
            intensities, points = np.asarray(intensities, dtype), np.asarray(points, dtype)
            weights = np.asarray(np.ones(intensities.shape) if weights is None else weights, dtype)
        _check(points, intensities, weights)
        return cls(points, intensities, weights)

    @classmethod
    def from_volume(
        cls,
        volume: Volume,
        box: Any = None,
        mask: Any = None,
        dtype: Any = np.float32,
    ) -> "Observation":
        """The voxels of a volume whose centres lie in a world box (lower, upper corner in mm) and a mask.

        Only the block around the box is touched, so a large scan costs no more than its crop.
        """
        block, keep = select_voxels(volume, box, mask)
        index = np.stack(np.nonzero(keep), axis=-1) + np.array([s.start for s in block])
        return cls.from_arrays(volume.to_world(index), volume.data[block][keep], dtype=dtype)

    def checked(self) -> "Observation":
        """Itself, if every number in it can be used."""
        _check(np.asarray(self.points), np.asarray(self.intensities), np.asarray(self.weights))
        return self

    @property
    def num_voxels(self) -> int:
        """Rows, padding included."""
        return self.points.shape[0]

    @property
    def ndim(self) -> int:
        """The dimension of space."""
        return self.points.shape[1]

    def padded(self, size: int) -> "Observation":
        """The same observation with rows of weight zero appended up to `size`."""
        missing = size - self.num_voxels
        if missing < 0:
            raise InputError(f"cannot pad {self.num_voxels} voxels to {size}; choose a larger size.")
        return Observation(
            np.pad(self.points, ((0, missing), (0, 0)), mode="edge"),
            np.pad(self.intensities, (0, missing), mode="edge"),
            np.pad(self.weights, (0, missing)),
        )


def select_voxels(volume: Volume, box: Any = None, mask: Any = None) -> tuple[tuple[slice, ...], np.ndarray]:
    """The grid block and, within it, the voxels that lie in the world box and in the mask.

    The voxels come in the order of `Observation.from_volume`: `values` of an observation go back to the
    image by `result[block][keep] = values`.
    """
    if box is None:
        block = tuple(slice(0, n) for n in volume.shape)
        keep = np.ones(volume.shape, dtype=bool)
    else:
        block, keep = _select_box(volume, box)
    if mask is not None:
        keep &= as_mask(mask, volume.shape)[block]
    if not keep.any():
        raise InputError(
            "no voxel is left after applying box and mask; check that the box is in world millimetres "
            "and that the mask is not empty."
        )
    return block, keep


def _select_box(volume: Volume, box: Any) -> tuple[tuple[slice, ...], np.ndarray]:
    if len(box) != 2:
        raise InputError(f"a box has two corners but this one has {len(box)}; give (lower, upper) in mm.")
    lower, upper = (np.asarray(corner, dtype=np.float64) for corner in box)
    block = volume.index_bounds(lower, upper)
    grid = np.indices(tuple(s.stop - s.start for s in block))
    world = volume.to_world(np.moveaxis(grid, 0, -1) + np.array([s.start for s in block]))
    slack = 1e-6 * volume.spacing.min()  # a voxel on the border belongs, whatever the rounding
    return block, np.all((world >= lower - slack) & (world <= upper + slack), axis=-1)


def as_mask(mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The mask as true and false, after checking that it has this shape and holds nothing else."""
    mask = np.asarray(mask)
    if mask.shape != shape:
        raise InputError(f"mask has shape {mask.shape} but the image is {shape}; resample one of them.")
    if mask.dtype == bool:
        return mask
    if mask.dtype.kind not in "iuf" or not np.all(mask == np.round(mask)):
        raise InputError(
            f"a mask holds true and false, or whole numbers with zero outside, but this one is {mask.dtype} "
            "with other values; threshold it first."
        )
    return mask != 0


def _check(points: np.ndarray, intensities: np.ndarray, weights: np.ndarray) -> None:
    n = intensities.size
    if points.ndim != 2 or intensities.shape != (n,) or weights.shape != (n,) or len(points) != n:
        raise InputError(
            f"points, intensities and weights must have one row a voxel but have shapes {points.shape}, "
            f"{intensities.shape} and {weights.shape}; flatten the image and keep the order."
        )
    if points.shape[1] not in (2, 3):
        raise InputError(f"points must have 2 or 3 coordinates but have {points.shape[1]}; give (x, y) or (x, y, z).")
    if n == 0:
        raise InputError("an observation needs at least one voxel but none was given; check the region.")
    num_bad = int(np.count_nonzero(~np.isfinite(intensities)))
    if num_bad:
        raise InputError(f"{num_bad} of {n} intensities are not finite; replace them or leave them out with a mask.")
    if np.abs(intensities).max() > LARGEST_INTENSITY:
        raise InputError(
            f"intensities reach {np.abs(intensities).max():.3g}, beyond {LARGEST_INTENSITY:g}; rescale the image."
        )
    if not np.all(np.isfinite(points)):
        raise InputError("some points are not finite; check the affine.")
    if np.any(~np.isfinite(weights)) or np.any(weights < 0) or not np.any(weights > 0):
        raise InputError(
            f"weights must be finite, not negative and not all zero but lie in [{weights.min()}, {weights.max()}]; "
            "use one for voxels that count and zero for the others."
        )
