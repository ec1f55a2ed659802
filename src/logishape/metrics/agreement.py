"""All measures of a segmentation against the truth, in one record."""

import dataclasses

import numpy as np

from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.metrics import overlap
from logishape.metrics.masks import as_mask
from logishape.metrics.surface_distance import surface_distances

_TOLERANCE = 1e-2  # of a voxel: what headers of different formats round off


@dataclasses.dataclass(frozen=True)
class Agreement:
    """How a prediction agrees with the truth, both clipped to the region in which they are compared.

    hd95 and hd100 are the mean of the two directed percentiles of the surface distance, as the paper has them,
    hd95_max and hd100_max the larger of the two, as most others do; mm. volume_error is relative: 0.1 is a tenth too
    large. spill_mm3 is what the prediction has outside the region; zero without one. For 2D images read mm^2.

    None stands for what has no answer: distances if either mask is empty in the region (or fills it, so that it has
    no border), precision if the prediction is empty, recall and volume_error if the truth is. Dice is always a
    number: zero if one mask is empty, one if both are. `dataclasses.asdict` gives a record that JSON takes.
    """

    dice: float
    precision: float | None
    recall: float | None
    hd95: float | None
    hd100: float | None
    hd95_max: float | None
    hd100_max: float | None
    mean_surface_distance: float | None
    volume_prediction_mm3: float
    volume_truth_mm3: float
    volume_error: float | None
    spill_mm3: float


def compare(prediction: Volume, truth: Volume, region: Volume | None = None) -> Agreement:
    """The agreement of two masks on one grid, within `region` if there is one.

    Grids are one if the shapes are equal and no voxel centre lies more than a hundredth of a voxel away from its
    twin; nothing is resampled.
    """
    _check_grid(prediction, truth, "prediction")
    a, b = as_mask(prediction.data, "the prediction"), as_mask(truth.data, "the truth")
    spill, allowed = 0.0, None
    if region is not None:
        _check_grid(region, truth, "region")
        allowed = as_mask(region.data, "the region")
        spill = overlap.mask_volume(a & ~allowed, truth.voxel_size)
        a, b = a & allowed, b & allowed
    distances = surface_distances(a, b, truth.affine[: truth.ndim, : truth.ndim], allowed)
    return Agreement(
        dice=overlap.dice(a, b),
        precision=overlap.precision(a, b),
        recall=overlap.recall(a, b),
        hd95=distances.percentile(95),
        hd100=distances.percentile(100),
        hd95_max=distances.max_percentile(95),
        hd100_max=distances.max_percentile(100),
        mean_surface_distance=distances.mean(),
        volume_prediction_mm3=overlap.mask_volume(a, truth.voxel_size),
        volume_truth_mm3=overlap.mask_volume(b, truth.voxel_size),
        volume_error=overlap.relative_volume_error(a, b),
        spill_mm3=spill,
    )


def _check_grid(volume: Volume, truth: Volume, name: str) -> None:
    if volume.shape != truth.shape:
        raise InputError(
            f"the {name} has shape {volume.shape} but the truth {truth.shape}; resample one of them to the other's "
            "grid."
        )
    corners = np.stack(np.meshgrid(*((0, size - 1) for size in truth.shape), indexing="ij"), axis=-1)
    off = float(np.max(np.abs(truth.to_index(volume.to_world(corners)) - corners)))
    if off > _TOLERANCE:
        raise InputError(
            f"the {name} must lie on the truth's grid but is off by {off:.3g} voxels; resample one of them to the "
            "other's grid."
        )
