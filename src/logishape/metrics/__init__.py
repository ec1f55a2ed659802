"""How well a segmentation agrees with the truth, and whether probabilities hold."""

from logishape.metrics.agreement import Agreement, compare
from logishape.metrics.overlap import dice, jaccard, mask_volume, precision, recall, relative_volume_error
from logishape.metrics.reliability import Reliability, expected_calibration_error, reliability
from logishape.metrics.surface_distance import SurfaceDistances, boundary, surface_distances
from logishape.metrics.surface_error import average_surface_error

__all__ = [
    "Agreement",
    "Reliability",
    "SurfaceDistances",
    "average_surface_error",
    "boundary",
    "compare",
    "dice",
    "expected_calibration_error",
    "jaccard",
    "mask_volume",
    "precision",
    "recall",
    "relative_volume_error",
    "reliability",
    "surface_distances",
]
