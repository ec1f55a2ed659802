"""What tells a good result from a bad one, as numbers: quality.py says which values are usual."""

import dataclasses

import numpy as np

from logishape.cochlea.evaluation import level_at
from logishape.cochlea.frame import Frame
from logishape.cochlea.labels import Labels
from logishape.cochlea.probability import log_odds_of
from logishape.cochlea.search import Found
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.vestibule import is_beyond
from logishape.core.volume import Volume
from logishape.metrics.surface_error import average_surface_error

_INSIDE_MM, _OUTSIDE_MM = 0.2, (0.2, 0.8)  # from the surface: what is nearer holds both lumen and bone


@dataclasses.dataclass(frozen=True)
class Signs:
    """Numbers that speak for or against a result; None where there is none.

    score, margin: of the search (`Located`). likeness: correlation with the template at the fitted pose. contrast: of
    bone to lumen across the fitted surface, in standard deviations. rival_gap: how far (nats) the best start is ahead
    of those that ended elsewhere. surface_error_mm, shape_surface_error_mm: the average surface error
    of the segmentation and of the fitted shape. map_contrast: of a given probability map's log odds across the fitted
    surface, nats.
    """

    likeness: float
    score: float | None = None
    margin: float | None = None
    contrast: float | None = None
    rival_gap: float | None = None
    surface_error_mm: float | None = None
    shape_surface_error_mm: float | None = None
    map_contrast: float | None = None


def surface_errors(volume: Volume, labels: Labels, cut: Frame | None) -> dict[str, float | None]:
    """The average surface error (mm) of segmentation and shape, on the CT's own voxels before the cut."""
    image = np.asarray(volume.data[labels.block], np.float64)
    region = np.ones(image.shape, bool)
    if cut is not None:
        index = np.stack([axis.ravel() for axis in np.indices(image.shape)], axis=1)
        world = volume.to_world(index + np.array([s.start for s in labels.block]))
        local = (world - np.asarray(cut.origin)) @ np.asarray(cut.axes).T
        region = ~is_beyond(local).reshape(image.shape)
    masks = {"surface_error_mm": labels.segmentation, "shape_surface_error_mm": labels.shape}
    return {name: average_surface_error(image, mask, volume.affine[:3, :3], region) for name, mask in masks.items()}


def contrast(found: Found) -> float | None:
    """How much brighter it is outside the fitted surface than inside, in standard deviations of either side."""
    inside, outside = _across(found, found.crop.intensities)
    if min(inside.size, outside.size) < 100:
        return None
    step = np.median(outside) - np.median(inside)
    return float(step / max(np.hypot(_spread(inside), _spread(outside)) / np.sqrt(2), 1e-6))


def map_contrast(found: Found) -> float | None:
    """How much higher the log odds of a given map are inside the fitted surface than outside, nats; None: no map."""
    if found.crop.probability is None:
        return None
    inside, outside = _across(found, log_odds_of(found.crop.probability))
    return float(np.median(inside) - np.median(outside)) if min(inside.size, outside.size) >= 100 else 0.0


def _across(found: Found, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of the crop's voxels inside the fitted surface, and of those close outside."""
    shape, crop = found.model.shape, found.crop
    assert isinstance(shape, Cochlea)
    levels = level_at(shape.by_level(), found.theta, crop.points)
    in_use = crop.is_covered & ~is_beyond(crop.points)
    is_outside = (levels < -_OUTSIDE_MM[0]) & (levels > -_OUTSIDE_MM[1])
    return values[in_use & (levels > _INSIDE_MM)], values[in_use & is_outside]


def _spread(values: np.ndarray) -> float:
    """A standard deviation that outliers do not move."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))
