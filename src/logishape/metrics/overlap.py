"""Overlap of two masks, counted in voxels, and their volumes.

What has no answer is None, never a number made up: the precision of an empty prediction, the recall of an empty
truth, the relative error of a volume that should be zero. Two empty masks agree: their Dice is one.
"""

from typing import Any

import numpy as np

from logishape.core.errors import InputError
from logishape.metrics.masks import as_mask, as_mask_pair


def dice(prediction: Any, truth: Any) -> float:
    """2 |A and B| / (|A| + |B|): one for equal masks, also for two empty ones, zero where nothing is shared."""
    both, size_a, size_b = _counts(prediction, truth)
    return 2 * both / (size_a + size_b) if size_a + size_b else 1.0


def jaccard(prediction: Any, truth: Any) -> float:
    """|A and B| / |A or B|, which is dice / (2 - dice); one for two empty masks."""
    both, size_a, size_b = _counts(prediction, truth)
    either = size_a + size_b - both
    return both / either if either else 1.0


def precision(prediction: Any, truth: Any) -> float | None:
    """The share of the prediction that is true; None for an empty prediction."""
    both, size, _ = _counts(prediction, truth)
    return both / size if size else None


def recall(prediction: Any, truth: Any) -> float | None:
    """The share of the truth that was predicted; None for an empty truth."""
    both, _, size = _counts(prediction, truth)
    return both / size if size else None


def mask_volume(mask: Any, voxel_size: float = 1.0) -> float:
    """The volume (mm^3) of a mask whose voxels have the volume `voxel_size` (mm^3, as in `Volume.voxel_size`)."""
    if not 0 < voxel_size < np.inf:
        raise InputError(f"the volume of a voxel must be positive and finite but is {voxel_size}; give mm^3.")
    return float(np.count_nonzero(as_mask(mask, "the mask")) * voxel_size)


def relative_volume_error(prediction: Any, truth: Any) -> float | None:
    """(predicted - true volume) / true volume: 0.1 is a tenth too large; None for an empty truth."""
    _, size_a, size_b = _counts(prediction, truth)
    return (size_a - size_b) / size_b if size_b else None


def _counts(prediction: Any, truth: Any) -> tuple[int, int, int]:
    """Voxels that both masks hold, and the sizes of each."""
    a, b = as_mask_pair(prediction, truth)
    return int(np.count_nonzero(a & b)), int(np.count_nonzero(a)), int(np.count_nonzero(b))
