"""The human cochlea: a spiral tube with ten parameters, its calibration, surface and coordinates."""

from logishape.cochlea.calibration import Calibration, load_calibration, load_folds, paper_calibration
from logishape.cochlea.frame import Frame
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.surface import Coordinates, DuctPath, Mesh, coordinates, mesh_volume, path, surface, volume

__all__ = [
    "Calibration",
    "Cochlea",
    "Coordinates",
    "DuctPath",
    "Frame",
    "Mesh",
    "coordinates",
    "load_calibration",
    "load_folds",
    "mesh_volume",
    "paper_calibration",
    "path",
    "surface",
    "volume",
]
