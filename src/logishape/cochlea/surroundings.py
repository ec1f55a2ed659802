"""The part of a CT around a cochlea that pictures show."""

import numpy as np

from logishape.cochlea.labels import placed
from logishape.cochlea.result import CaseResult
from logishape.core.volume import Volume

MIDDLE = np.array([0.9, 0.2, 0.8])  # of the pictures, in the cochlea's frame, mm
RADIUS = 8.2  # mm: holds 12.4 x 10.4 mm about the middle, lying any way
_LEAST_STEP = 500.0  # from lumen to bone, of values that are whole numbers but for what nobody sees


def block_around(volume: Volume, result: CaseResult) -> tuple[slice, ...]:
    """The voxels of a ball around the cochlea, and all that have labels."""
    middle = volume.to_index(MIDDLE @ np.asarray(result.cochlea.frame.axes) + np.asarray(result.cochlea.frame.origin))
    reach = RADIUS * np.linalg.norm(np.linalg.inv(volume.affine[:3, :3]), axis=1)
    found = []
    for m, r, size, own in zip(middle, reach, volume.shape, result.labels.block, strict=True):
        first, last = int(np.floor(m - r)), int(np.ceil(m + r)) + 1
        found.append(slice(min(max(first, 0), own.start), max(min(last, size), own.stop)))
    return tuple(found)


def ct_around(volume: Volume, block: tuple[slice, ...], step: float) -> Volume:
    """The CT's own voxels in a block, where they lie; as whole numbers (int16) where they are Hounsfield units.

    `step`: from lumen to bone; a scale on which that is small keeps its fractions.
    """
    values = np.asarray(volume.data[block])
    is_whole = step >= _LEAST_STEP and np.abs(values).max() <= np.iinfo(np.int16).max
    stored = np.rint(values).astype(np.int16) if is_whole else values.astype(np.float32)
    return Volume(stored, placed(volume.affine, block))
