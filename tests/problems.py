"""The shapes, appearances and small images that the contract, law and oracle tests run through.

Add a class here first: every check of the contract then applies to it.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import logishape as ls
from logishape import appearance, cochlea, shapes
from tests.grids import rod_modes, rod_template
from tests.meshes import star, training_meshes


@dataclasses.dataclass(frozen=True)
class ShapeCase:
    """A shape with parameters at which its surface passes well inside [-6, 6]^d."""

    name: str
    shape: shapes.AbstractShape
    theta: np.ndarray
    dimension: int
    slope_tolerance: float = 1e-5  # of the slope at the surface; the ellipsoid's floor at the centre costs 1e-6


def _posed_theta(pose, theta):
    return np.array([*pose, *theta], dtype=float)


POSE_2D, POSE_3D = (0.4, -0.3, 0.5), (0.4, -0.3, 0.2, 0.3, -0.2, 0.4)
AFFINE_3D = (0.4, -0.3, 0.2, -0.2, 0.1, 0.05, -0.1, 0.15, 0.1, 0.0, -0.1, 0.2)
SHAPES = [
    ShapeCase("ball2", shapes.Ball(2), np.array([0.3, -0.5, 3.0]), 2),
    ShapeCase("ball3", shapes.Ball(3), np.array([0.3, -0.5, 0.2, 3.0]), 3),
    ShapeCase("ellipse", shapes.Ellipsoid(2), np.array([4.0, 2.5]), 2),
    ShapeCase("ellipsoid", shapes.Ellipsoid(3), np.array([4.0, 2.5, 3.0]), 3),
    ShapeCase("superellipse", shapes.Superellipsoid(2), np.array([4.0, 2.5, 3.5]), 2),
    ShapeCase("superellipsoid", shapes.Superellipsoid(3), np.array([4.0, 2.5, 3.0, 3.5, 2.5]), 3),
    ShapeCase("free length", shapes.FreeLength(shapes.Ellipsoid(2)), np.array([4.0, 2.5, 0.0]), 2),
    ShapeCase("posed ellipse", shapes.Posed(shapes.Ellipsoid(2), np.zeros(2)), _posed_theta(POSE_2D, (4.0, 2.5)), 2),
    ShapeCase(
        "posed superellipsoid",
        shapes.Posed(shapes.Superellipsoid(3), np.zeros(3), np.array([0.1, 0.2, -0.1])),
        _posed_theta(POSE_3D, (4.0, 2.5, 3.0, 3.5, 2.5)),
        3,
    ),
    # Half-millimetre grids know the rod's slope to a hundredth; its modes themselves bend the level by up to a tenth.
    ShapeCase("level-set modes", rod_modes(3), np.array([1.5, -0.8]), 3, 0.12),
    ShapeCase(
        "posed level-set modes",
        shapes.Posed(rod_modes(2), np.zeros(2)),
        _posed_theta(POSE_2D, (1.5, -0.8)),
        2,
        0.12,
    ),
    ShapeCase("affine template", rod_template(shapes.Affine(np.zeros(3)), 3), np.array(AFFINE_3D), 3, 0.03),
    ShapeCase(
        "posed waving template",
        shapes.Posed(rod_template(shapes.Cosines((-6, -6), (6, 6), 1, 0.5), 2), np.zeros(2)),
        _posed_theta(POSE_2D, (0.8, -0.5, 0.3, 0.4, -0.9, 0.6)),
        2,
        0.03,
    ),
    ShapeCase("mesh", shapes.MeshShape(shapes.StretchedMesh(*shapes.icosphere(0)), 1.0), np.array([4.0, 2.5, 3]), 3),
    ShapeCase("star", shapes.MeshShape(shapes.StretchedMesh(*star()), 1.0), np.array([4.5, 3.5]), 2),
    ShapeCase(
        "posed mesh modes",
        shapes.Posed(shapes.from_meshes(*training_meshes(2), 2, query=shapes.TreeQuery()), np.zeros(2)),
        _posed_theta(POSE_2D, (0.7, -1.2)),
        2,
    ),
    # The surface may lie half-way between facets; its slope there is one all the same.
    ShapeCase("remeshed", shapes.Remeshed(shapes.Ellipsoid(3), -5, 5, 0.6), np.array([4.0, 2.5, 3.0]), 3),
    # Next to the axis a section's change by angle is not resolved, which bends the slope there.
    ShapeCase("cochlea", cochlea.Cochlea(), _posed_theta(POSE_3D, (3.0, 0.14, 1.5, -0.5)), 3, 0.02),
    # A network's slope is one only as well as it was learnt.
    ShapeCase("learned", cochlea.Cochlea(distance="learned"), _posed_theta(POSE_3D, (3.0, 0.14, 1.5, -0.5)), 3, 0.1),
]

_COUNTS = appearance.PseudoCounts(weights=20.0, means=15.0, scales=30.0, dofs=25.0)
_STUDENT = ([0.3, 0.7], [20.0, 90.0], [12.0, 20.0], [4.0, 9.0])
APPEARANCES = {
    "gaussian": appearance.gaussian(50.0, 20.0),
    "gaussian mixture": appearance.GaussianMixture([0.3, 0.7], [20.0, 90.0], [12.0, 20.0]),
    "gaussian mixture, MAP": appearance.GaussianMixture([0.3, 0.7], [20.0, 90.0], [12.0, 20.0], _COUNTS),
    "student mixture": appearance.StudentMixture(*_STUDENT),
    "student mixture, held dofs": appearance.StudentMixture(*_STUDENT, estimate_dofs=False),
    "student mixture, MAP": appearance.StudentMixture(*_STUDENT, counts=_COUNTS),
    "fixed": appearance.Fixed(appearance.gaussian(50.0, 20.0)),
}


@dataclasses.dataclass(frozen=True)
class FitCase:
    """A small image with everything a fit needs, and the parameters it was drawn with."""

    model: ls.Model
    observation: ls.Observation
    start: ls.State
    truth: np.ndarray


def grid(size: int, dimension: int, spacing: float = 1.0) -> np.ndarray:
    """Centres of a cube of voxels about the origin, mm."""
    axis = (np.arange(size) - (size - 1) / 2) * spacing
    return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)


def draw_intensities(model: ls.Model, theta, points, noise: float, seed: int) -> np.ndarray:
    """Intensities drawn from the model itself: labels by the logistic prior, 100 inside, 0 outside."""
    rng = np.random.default_rng(seed)
    logits = np.asarray(model.shape.level(theta, points), dtype=float) / model.reference_length
    labels = rng.random(len(points)) < 1 / (1 + np.exp(-logits))
    return np.where(labels, 100.0, 0.0) + rng.normal(0, noise, len(points))


def two_gaussians(noise: float = 30.0) -> ls.Regions:
    return ls.Regions(appearance.gaussian(110.0, 1.3 * noise), appearance.gaussian(-10.0, 1.3 * noise))


def ellipse_case(noise: float = 30.0, seed: int = 0, dtype=np.float64, reference_length: float = 0.8) -> FitCase:
    """A tilted ellipse of five parameters in a 40 x 40 image, started a little off."""
    shape = shapes.Posed(shapes.Ellipsoid(2), np.zeros(2))
    bounds = {"tx": (-8, 8), "ty": (-8, 8), "angle": (-1.2, 1.2), "semi_axis_x": (4, 18), "semi_axis_y": (3, 15)}
    model = ls.Model(shape, ls.Prior.named(shape, bounds), reference_length)
    truth = np.array([1.0, -2.0, 0.3, 12.0, 8.0])
    points = grid(40, 2)
    intensities = draw_intensities(model, truth, points, noise, seed)
    start = ls.State(truth + np.array([1.5, 1.0, 0.2, -2.0, 1.0]), two_gaussians(noise))
    return FitCase(model, ls.Observation.from_arrays(points, intensities, dtype=dtype), start, truth)


def ball_case(noise: float = 30.0, seed: int = 0, dtype=np.float64) -> FitCase:
    """A ball of four parameters in a 16^3 image."""
    shape = shapes.Ball(3)
    bounds = {"x": (-5, 5), "y": (-5, 5), "z": (-5, 5), "radius": (1.5, 9)}
    model = ls.Model(shape, ls.Prior.named(shape, bounds), 0.6)
    truth = np.array([0.5, -0.8, 0.3, 5.0])
    points = grid(16, 3)
    intensities = draw_intensities(model, truth, points, noise, seed)
    start = ls.State(truth + np.array([1.0, 1.0, -1.0, -1.0]), two_gaussians(noise))
    return FitCase(model, ls.Observation.from_arrays(points, intensities, dtype=dtype), start, truth)


def assert_one_sentence(call: Callable[[], object], pattern: str) -> None:
    """The call is refused with one sentence: what was expected and found; what to try."""
    with pytest.raises(ls.InputError, match=pattern) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert ". " not in message
    assert "; " in message
