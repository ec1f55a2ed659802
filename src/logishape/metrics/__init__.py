"""How well a segmentation agrees with the truth."""

from logishape.metrics.agreement import Agreement, compare
from logishape.metrics.overlap import dice, jaccard, mask_volume, precision, recall, relative_volume_error
from logishape.metrics.surface_distance import SurfaceDistances, boundary, surface_distances
from logishape.metrics.surface_error import average_surface_error

__all__ = [
    "Agreement",
    "SurfaceDistances",
    "average_surface_error",
    "boundary",
    "compare",
    "dice",
    "jaccard",
    "mask_volume",
    "precision",
    "recall",
    "relative_volume_error",
    "surface_distances",
]
