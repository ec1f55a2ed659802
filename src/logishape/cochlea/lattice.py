"""Bone codes of a whole CT on a coarse lattice along its own axes, made slab by slab so that memory stays small."""

from typing import NamedTuple

import numpy as np
from scipy import ndimage

from logishape.cochlea.frame import Frame
from logishape.cochlea.template import SMOOTHING_MM, bone_code
from logishape.core.volume import Volume

PITCH = 0.8  # mm
_FINE = 2  # samples of a cell along each axis
_SLAB_SIZE = 8e6  # voxels, and samples, that are looked at in one go


class Lattice(NamedTuple):
    """Codes at points `PITCH` mm apart, not a number outside the CT.

    `place` is the frame of the lattice: its rows point along the CT's own axes (mirrored where those are), so that a
    CT turned or mirrored in the world has the very same codes.
    """

    codes: np.ndarray
    place: Frame


def make_lattice(volume: Volume, scale: tuple[float, float] = (1.0, 0.0)) -> Lattice:
    """The lattice of a CT whose values are `gain * HU + offset`."""
    place, shape = _place(volume)
    codes = np.empty(shape, np.float32)
    per_row = max(volume.data.size / shape[0], shape[1] * shape[2] * _FINE**3)
    rows = int(np.clip(_SLAB_SIZE / per_row, 1, shape[0]))
    for first in range(0, shape[0], rows):
        codes[first : first + rows] = _slab(volume, place, (first, min(first + rows, shape[0])), shape, scale)
    return Lattice(codes, place)


def _place(volume: Volume) -> tuple[Frame, tuple[int, int, int]]:
    """Where the lattice lies, and its size: it covers the CT, sheared ones too."""
    columns = volume.affine[:3, :3]
    q, r = np.linalg.qr(columns)
    axes = (q * np.sign(np.diag(r))).T
    ends = np.stack(np.meshgrid(*[(0, n - 1) for n in volume.shape], indexing="ij"), axis=-1).reshape(-1, 3)
    corners = volume.to_world(ends) @ axes.T
    lower, upper = corners.min(axis=0), corners.max(axis=0)
    shape = np.maximum(np.floor((upper - lower) / PITCH).astype(int) + 1, 1)
    first = lower + 0.5 * (upper - lower - PITCH * (shape - 1))
    return Frame(axes, first @ axes), (int(shape[0]), int(shape[1]), int(shape[2]))


def _slab(
    volume: Volume, place: Frame, rows: tuple[int, int], shape: tuple[int, ...], scale: tuple[float, float]
) -> np.ndarray:
    """Codes of some rows: each the mean over a cell of `_FINE` samples along each axis."""
    inner = (np.arange(_FINE) + 0.5) / _FINE - 0.5
    fine = [
        (np.arange(a, b)[:, None] + inner).ravel() * PITCH
        for a, b in zip((rows[0], 0, 0), (rows[1], *shape[1:]), strict=True)
    ]
    points = np.stack(np.meshgrid(*fine, indexing="ij"), axis=-1)
    index = volume.to_index(points @ np.asarray(place.axes) + np.asarray(place.origin)).astype(np.float32)
    flat = index.reshape(-1, 3)
    size = np.array(volume.shape)
    margin = np.ceil(4 * SMOOTHING_MM / volume.spacing).astype(int)
    first = np.clip(np.floor(flat.min(axis=0)).astype(int) - margin, 0, size - 1)
    last = np.clip(np.ceil(flat.max(axis=0)).astype(int) + margin + 1, first + 1, size)
    block = volume.data[tuple(slice(a, b) for a, b in zip(first, last, strict=True))].astype(np.float32)
    smooth = np.asarray(ndimage.gaussian_filter(block, SMOOTHING_MM / volume.spacing))
    values = ndimage.map_coordinates(smooth, (flat - first.astype(np.float32)).T, order=1, mode="nearest")
    codes = bone_code((np.asarray(values, np.float32) - np.float32(scale[1])) / np.float32(scale[0]))
    is_covered = np.all((flat >= -0.5) & (flat <= size - 0.5), axis=1)
    codes = np.where(is_covered, codes, np.nan)
    cells = codes.reshape(len(fine[0]) // _FINE, _FINE, len(fine[1]) // _FINE, _FINE, len(fine[2]) // _FINE, _FINE)
    return cells.mean(axis=(1, 3, 5)).astype(np.float32)
