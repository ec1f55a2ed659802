"""Shapes: the interface, the analytic families, shapes on grids, meshes and the rigid wrapper."""

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
from logishape.shapes.differences import FiniteDifferences
from logishape.shapes.distance_map import signed_distance
from logishape.shapes.first_order import FirstOrder
from logishape.shapes.grid import GridField
from logishape.shapes.levelset import LevelSetModes
from logishape.shapes.libigl_query import LibiglQuery, nearest_by_libigl
from logishape.shapes.mesh import AbstractSurface, MeshShape, StretchedMesh
from logishape.shapes.mesh_makers import icosphere, polygon_faces, torus
from logishape.shapes.mesh_modes import MeshModes, from_meshes
from logishape.shapes.mesh_query import AbstractQuery, DenseQuery, TreeQuery, default_query, nearest_by_tree
from logishape.shapes.posed import Posed
from logishape.shapes.remeshed import Remeshed
from logishape.shapes.softness import FreeLength
from logishape.shapes.template import Template

__all__ = [
    "AbstractDeformation",
    "AbstractQuery",
    "AbstractShape",
    "AbstractShapeWithDerivatives",
    "AbstractSurface",
    "Affine",
    "Ball",
    "Cosines",
    "DenseQuery",
    "Derivatives",
    "Ellipsoid",
    "FiniteDifferences",
    "FirstOrder",
    "FreeLength",
    "GridField",
    "LevelSetModes",
    "LibiglQuery",
    "LowRank",
    "MeshModes",
    "MeshShape",
    "Posed",
    "Remeshed",
    "StretchedMesh",
    "Superellipsoid",
    "Template",
    "TreeQuery",
    "default_query",
    "derivatives",
    "first_order_level",
    "from_meshes",
    "icosphere",
    "level_and_jacobian",
    "nearest_by_libigl",
    "nearest_by_tree",
    "polygon_faces",
    "safe_norm",
    "signed_distance",
    "torus",
]
