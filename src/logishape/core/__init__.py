"""Images, observations, rotations, status codes and errors: what every other room stands on."""

from logishape.core.errors import FitError, InputError, LogishapeError
from logishape.core.observation import Observation, select_voxels
from logishape.core.rotations import (
    apply_matrix,
    cross_matrix,
    right_jacobian,
    rotation_matrix,
    rotation_matrix_2d,
    rotation_vector,
)
from logishape.core.status import Status
from logishape.core.volume import Volume

__all__ = [
    "FitError",
    "InputError",
    "LogishapeError",
    "Observation",
    "Status",
    "Volume",
    "apply_matrix",
    "cross_matrix",
    "right_jacobian",
    "rotation_matrix",
    "rotation_matrix_2d",
    "rotation_vector",
    "select_voxels",
]
