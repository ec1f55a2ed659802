"""From a binary mask to a level: signed distances in millimetres, and what can be wrong with a mask."""

from typing import Any

import numpy as np
import scipy.ndimage
from scipy.spatial import KDTree

from logishape.core.arrays import as_vector
from logishape.core.errors import InputError
from logishape.core.observation import as_mask
from logishape.core.volume import Volume

_SMOOTHING = 0.7  # voxels: of 0.5 to 1.5 the one with the least error on digitised balls
_LEAST_CONTRAST = 0.05  # of the smoothed mask, so that no voxel changes sides


def signed_distance(mask: Any, spacing: Any = 1.0) -> np.ndarray:
    """Distance (mm) of each voxel centre to the border between object and background, positive inside.

    The border crosses between neighbours of different class, where the lightly smoothed mask crosses one half: exact
    for planes across an axis, and on digitised balls two to three times closer to the ball than the staircase of
    voxel faces. Distances are to the tangent plane at the nearest crossing.
    """
    mask = as_mask(mask, np.shape(mask))
    spacing = as_vector(spacing, mask.ndim, "spacing")
    if not np.all((spacing > 0) & np.isfinite(spacing)):
        raise InputError(f"the spacing must be positive but is {spacing.tolist()}; give the voxel size in mm.")
    if mask.all() or not mask.any():
        found = "all" if mask.size and mask.all() else "none"
        raise InputError(
            f"a mask needs voxels inside and outside the object but {found} of {mask.size} are inside; check the "
            "label and the crop."
        )
    crossings, normals = _border(mask, spacing)
    centres = np.indices(mask.shape).reshape(mask.ndim, -1).T * spacing
    length, nearest = KDTree(crossings).query(centres)
    along = np.sum((centres - crossings[nearest]) * normals[nearest], axis=-1)
    # A crossing lies less than a voxel from the foot of the perpendicular; one farther off is on an edge or corner.
    # A plane is crossed along its steepest axis first: a shorter perpendicular has the normal of a single odd voxel.
    shortest = np.maximum(length**2 - (0.75 * spacing.max()) ** 2, length**2 / mask.ndim)
    distance = np.sqrt(np.maximum(along**2, shortest)).reshape(mask.shape)
    return np.where(mask, distance, -distance)


def mask_level(mask: Volume) -> Volume:
    """The signed distance of a mask on its own grid, whose axes must be at right angles."""
    d = mask.ndim
    directions = mask.affine[:d, :d] / mask.spacing
    if not np.allclose(directions.T @ directions, np.eye(d), atol=1e-3):
        raise InputError(
            "distances need a grid with axes at right angles but these axes are sheared; resample the mask."
        )
    return mask.with_data(signed_distance(mask.data, mask.spacing))


def check_border(level: np.ndarray, name: str) -> None:
    """Raises if the object reaches the border of its grid, beyond which nobody knows where it ends."""
    interior = np.zeros(level.shape, dtype=bool)
    interior[(slice(1, -1),) * level.ndim] = True
    num_cut = int(np.count_nonzero(level[~interior] >= 0))
    if num_cut:
        raise InputError(
            f"{name} must end within its grid but touches the border in {num_cut} voxels; pad the grid with "
            "background."
        )


def _border(mask: np.ndarray, spacing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (mm from the first voxel) where the border crosses between neighbours, and unit normals there."""
    smooth = scipy.ndimage.gaussian_filter(mask.astype(float), _SMOOTHING, mode="nearest") - 0.5
    smooth = np.where(mask, np.maximum(smooth, _LEAST_CONTRAST), np.minimum(smooth, -_LEAST_CONTRAST))
    slopes = [np.gradient(smooth, h, axis=axis) if n > 1 else 0 * smooth for axis, (h, n) in _axes(mask, spacing)]
    columns = np.stack([*np.indices(mask.shape) * spacing.reshape(-1, *[1] * mask.ndim), *slopes], axis=-1)
    pieces = []
    for axis in range(mask.ndim):
        one, two = (np.moveaxis(array, axis, 0) for array in (mask, smooth))
        both = np.moveaxis(columns, axis, 0)
        is_cut = one[:-1] != one[1:]
        before, after = two[:-1][is_cut], two[1:][is_cut]
        share = (before / (before - after))[:, None]
        pieces.append((1 - share) * both[:-1][is_cut] + share * both[1:][is_cut])
    points, normals = np.split(np.concatenate(pieces), 2, axis=1)
    return points, normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)


def _axes(mask: np.ndarray, spacing: np.ndarray) -> list:
    return list(enumerate(zip(spacing, mask.shape, strict=True)))
