"""Shapes: the interface, the analytic families, shapes on grids and the rigid wrapper."""

from logishape.shapes.analytic import Ball, Ellipsoid, Superellipsoid
from logishape.shapes.base import (
    AbstractShape,
    AbstractShapeWithDerivatives,
    Derivatives,
    derivatives,
    first_order_level,
    level_and_jacobian,
    safe_norm,
)
from logishape.shapes.deformation import AbstractDeformation, Affine, Cosines, LowRank
from logishape.shapes.distance_map import signed_distance
from logishape.shapes.grid import GridField
from logishape.shapes.levelset import LevelSetModes
from logishape.shapes.posed import Posed
from logishape.shapes.template import Template

__all__ = [
    "AbstractDeformation",
    "AbstractShape",
    "AbstractShapeWithDerivatives",
    "Affine",
    "Ball",
    "Cosines",
    "Derivatives",
    "Ellipsoid",
    "GridField",
    "LevelSetModes",
    "LowRank",
    "Posed",
    "Superellipsoid",
    "Template",
    "derivatives",
    "first_order_level",
    "level_and_jacobian",
    "safe_norm",
    "signed_distance",
]
