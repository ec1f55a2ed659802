"""Shapes on grids for the tests: a rod with round ends, its modes and its deformations, all by formula."""

import numpy as np

import logishape as ls
from logishape import shapes


def sample(function, dimension: int, spacing: float = 0.5) -> ls.Volume:
    """A function of points on a grid over [-7, 7]^d that is turned a little: its axes are not the world's."""
    size = round(14 / spacing) + 1
    affine = np.eye(dimension + 1)
    affine[:2, :2] = [[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]]
    affine[:dimension, :dimension] *= spacing
    affine[:dimension, dimension] = -affine[:dimension, :dimension] @ np.full(dimension, (size - 1) / 2)
    volume = ls.Volume(np.zeros((size,) * dimension), affine)
    return volume.with_data(function(volume.to_world(np.moveaxis(np.indices(volume.shape), 0, -1))))


def rod_distance(x, half_length: float = 1.5, radius: float = 2.0):
    """The exact signed distance (mm) of a rod with round ends along the first axis."""
    beyond = np.maximum(np.abs(x[..., 0]) - half_length, 0.0)
    return radius - np.sqrt(beyond**2 + np.sum(x[..., 1:] ** 2, axis=-1))


def rod_modes(dimension: int, spacing: float = 0.5) -> shapes.LevelSetModes:
    """A rod that grows with the first mode and becomes a club with the second."""
    grow, club = (lambda x: 0.2 + 0.0 * x[..., 0]), (lambda x: 0.3 * np.sin(x[..., 0] / 3))
    modes = [sample(function, dimension, spacing).data for function in (grow, club)]
    return shapes.LevelSetModes(sample(rod_distance, dimension, spacing), modes)


def rod_template(deformation: shapes.AbstractDeformation, dimension: int) -> shapes.Template:
    return shapes.Template(sample(rod_distance, dimension), deformation)
