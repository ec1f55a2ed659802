"""Distances between the borders of two masks, in millimetres.

The border of a mask is made of its voxels that have a face in common with a voxel outside, and a distance is that of
two voxels' centres. What lies beyond the image, or beyond the region in which masks are compared, is unknown: faces
that such a cut makes are no border.
"""

import dataclasses
from typing import Any

import numpy as np
from scipy import ndimage
from scipy.spatial import KDTree

from logishape.core.arrays import as_numbers
from logishape.core.errors import InputError
from logishape.metrics.masks import as_mask, as_mask_pair

_RIGHT_ANGLE = 1e-4  # cosine below which axes count as orthogonal: 1 mm is off by 0.1 micrometres at most


@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceDistances:
    """From each border voxel of one mask to the nearest of the other (mm), and back.

    Both are empty if one of the masks has no border, because it is empty or fills all that is compared; there is no
    distance then and every summary is None.
    """

    there: np.ndarray
    back: np.ndarray

    @property
    def is_defined(self) -> bool:
        """Whether both masks have a border."""
        return self.there.size > 0 and self.back.size > 0

    def percentile(self, level: float) -> float | None:
        """The mean of the two directed percentiles: the paper's HD95 at level 95 and its HD100 at 100."""
        return float(np.mean(self._directed(level))) if self.is_defined else None

    def max_percentile(self, level: float) -> float | None:
        """The larger of the two directed percentiles: the usual HD95, and at 100 the Hausdorff distance itself."""
        return float(np.max(self._directed(level))) if self.is_defined else None

    def mean(self) -> float | None:
        """The mean over the voxels of both borders: the average symmetric surface distance."""
        return float(np.mean(np.concatenate([self.there, self.back]))) if self.is_defined else None

    def _directed(self, level: float) -> tuple[float, float]:
        if not 0 <= level <= 100:
            raise InputError(f"a percentile's level must lie in [0, 100] but is {level}; try 95.")
        return float(np.percentile(self.there, level)), float(np.percentile(self.back, level))


def boundary(mask: Any, region: Any = None) -> np.ndarray:
    """The mask's voxels that share a face with a voxel of the region (or the image) that is not in the mask."""
    inside = as_mask(mask, "the mask")
    kept = inside
    if region is not None:
        allowed = _as_region(region, inside.shape)
        inside, kept = inside & allowed, inside | ~allowed
    return inside & ~np.asarray(ndimage.binary_erosion(kept, border_value=1), bool)


def surface_distances(prediction: Any, truth: Any, axes: Any = 1.0, region: Any = None) -> SurfaceDistances:
    """The distances (mm) between the borders of two masks, both clipped to the region if there is one.

    `axes` is the voxel size, one number or one an axis, or for a turned or sheared grid the matrix whose columns are
    the steps from voxel to voxel (`volume.affine[:3, :3]`). Orthogonal steps take a distance transform of the box
    that holds both masks, others a tree of positions.
    """
    a, b = as_mask_pair(prediction, truth)
    steps = _as_steps(axes, a.ndim)
    allowed = np.ones(a.shape, bool) if region is None else _as_region(region, a.shape)
    a, b = a & allowed, b & allowed
    box = _common_box(a, b)
    clip = allowed[box]
    border_a, border_b = boundary(a[box], clip), boundary(b[box], clip)
    if not border_a.any() or not border_b.any():
        return SurfaceDistances(np.zeros(0), np.zeros(0))
    if _is_orthogonal(steps):
        spacing = np.linalg.norm(steps, axis=0)
        return SurfaceDistances(
            _by_transform(border_a, border_b, spacing), _by_transform(border_b, border_a, spacing)
        )
    points_a, points_b = np.argwhere(border_a) @ steps.T, np.argwhere(border_b) @ steps.T
    return SurfaceDistances(KDTree(points_b).query(points_a)[0], KDTree(points_a).query(points_b)[0])


def _by_transform(start: np.ndarray, goal: np.ndarray, spacing: np.ndarray) -> np.ndarray:
    return np.asarray(ndimage.distance_transform_edt(~goal, sampling=spacing))[start]


def _common_box(a: np.ndarray, b: np.ndarray) -> tuple[slice, ...]:
    """The box of both masks and one voxel more, which their borders need: all distances are found within it."""
    ranges = []
    for axis in range(a.ndim):
        others = tuple(k for k in range(a.ndim) if k != axis)
        used = np.flatnonzero(a.any(axis=others) | b.any(axis=others))
        if not used.size:
            return (slice(0, 0),) * a.ndim
        ranges.append(slice(max(int(used[0]) - 1, 0), int(used[-1]) + 2))
    return tuple(ranges)


def _is_orthogonal(steps: np.ndarray) -> bool:
    unit = steps / np.linalg.norm(steps, axis=0)
    return bool(np.all(np.abs(unit.T @ unit - np.eye(len(steps))) < _RIGHT_ANGLE))


def _as_steps(axes: Any, dimension: int) -> np.ndarray:
    """The matrix whose columns are the steps from voxel to voxel (mm)."""
    steps = as_numbers(axes, "the voxel size")
    if steps.shape in ((), (dimension,)):
        steps = np.diag(np.broadcast_to(steps, (dimension,)))
    if steps.shape != (dimension, dimension):
        raise InputError(
            f"expected a voxel size of one number, {dimension} numbers or {dimension} x {dimension} but found shape "
            f"{steps.shape}; give mm."
        )
    lengths = np.linalg.norm(steps, axis=0)
    if not np.all(np.isfinite(steps)) or abs(np.linalg.det(steps)) <= 1e-9 * np.prod(lengths):
        raise InputError(f"the voxel size must be finite and not vanish but is {steps.tolist()}; give mm.")
    return steps


def _as_region(region: Any, shape: tuple[int, ...]) -> np.ndarray:
    allowed = as_mask(region, "the region")
    if allowed.shape != shape:
        raise InputError(f"the region has shape {allowed.shape} but the masks {shape}; resample one of them.")
    return allowed
