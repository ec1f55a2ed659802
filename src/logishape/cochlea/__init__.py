"""The human cochlea: a spiral tube with ten parameters, its calibration, surface and coordinates."""

from logishape.cochlea.calibration import Calibration, load_calibration, load_folds, paper_calibration
from logishape.cochlea.frame import Frame
from logishape.cochlea.insertion import frequency, insertion_angle, insertion_depth
from logishape.cochlea.locate import Located, locate
from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.phantom import Phantom, PhantomEar, PhantomOptions, make_phantom
from logishape.cochlea.pose import Point
from logishape.cochlea.result import CaseResult
from logishape.cochlea.segment import segment
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.surface import Coordinates, DuctPath, Mesh, coordinates, mesh_volume, path, surface, volume
from logishape.cochlea.template import Template, load_template

__all__ = [
    "Calibration",
    "CaseResult",
    "Cochlea",
    "Coordinates",
    "DuctPath",
    "Frame",
    "Located",
    "Mesh",
    "Phantom",
    "PhantomEar",
    "PhantomOptions",
    "Point",
    "SegmentOptions",
    "Template",
    "coordinates",
    "frequency",
    "insertion_angle",
    "insertion_depth",
    "load_calibration",
    "load_folds",
    "load_template",
    "locate",
    "make_phantom",
    "mesh_volume",
    "paper_calibration",
    "path",
    "segment",
    "surface",
    "volume",
]
