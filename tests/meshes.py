"""Meshes that several tests share."""

from typing import Any

import equinox as eqx
import numpy as np

from logishape import shapes
from logishape.core.arrays import like


class BallMesh(shapes.AbstractSurface):
    """A ball by centre and radius, as an icosphere (a regular polygon in the plane): the twin of `shapes.Ball`."""

    faces: Any
    unit: Any
    dimension: int = eqx.field(static=True)

    def __init__(self, resolution: int, dimension: int = 3):
        self.unit, self.faces = shapes.icosphere(resolution) if dimension == 3 else regular_polygon(resolution)
        self.dimension = dimension

    @property
    def parameter_names(self):
        return shapes.Ball(self.dimension).parameter_names

    def vertices(self, theta):
        return theta[:-1] + theta[-1] * like(self.unit, theta)


def regular_polygon(num_vertices):
    angle = 2 * np.pi * np.arange(num_vertices) / num_vertices
    return np.stack([np.cos(angle), np.sin(angle)], axis=1), shapes.polygon_faces(num_vertices)


def star(num_tips=5, inner=0.4):
    """A star of outer radius one: sharp tips, and re-entrant corners between them."""
    vertices, faces = regular_polygon(2 * num_tips)
    return vertices * np.where(np.arange(2 * num_tips) % 2, inner, 1.0)[:, None], faces


def training_meshes(dimension=3, num=12, seed=0, resolution=2, noise=0.0):
    """Ellipsoids of random semi-axes and a bump of random height, each turned and moved."""
    rng = np.random.default_rng(seed)
    unit, faces = shapes.icosphere(resolution) if dimension == 3 else regular_polygon(40)
    meshes = []
    for _ in range(num):
        axes = np.array([4.0, 3.0, 2.5])[:dimension] * np.exp(0.08 * rng.normal(size=dimension))
        bump = 1 + 0.15 * rng.normal() * np.exp(-4 * np.sum((unit - np.eye(dimension)[0]) ** 2, axis=1))
        turn = np.linalg.qr(np.eye(dimension) + 0.2 * rng.normal(size=(dimension, dimension)))[0]
        turn *= np.sign(np.diag(turn))  # near the identity, no reflection
        mesh = unit * axes * bump[:, None] + noise * rng.normal(size=unit.shape)
        meshes.append(mesh @ turn + rng.normal(size=dimension))
    return np.array(meshes), faces
