"""Shapes: the interface, the analytic families and the rigid wrapper."""

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
from logishape.shapes.posed import Posed

__all__ = [
    "AbstractShape",
    "AbstractShapeWithDerivatives",
    "Ball",
    "Derivatives",
    "Ellipsoid",
    "Posed",
    "Superellipsoid",
    "derivatives",
    "first_order_level",
    "level_and_jacobian",
    "safe_norm",
]
