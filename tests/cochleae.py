"""Cochleae to test with: random ones from all over their box, and programs that are compiled once for all of them."""

import functools

import equinox as eqx
import jax
import numpy as np

from logishape.cochlea import Calibration, Cochlea, Frame, load_calibration, paper_calibration
from logishape.cochlea.duct import FREE
from logishape.core.arrays import double_precision
from logishape.shapes.base import Derivatives

SIZE = 4096  # points in one call of a compiled program
PRESETS = ("calibrated", "paper")


@functools.cache
def calibration(preset: str) -> Calibration:
    """Both calibrations with arrays of the same sizes and no constant compiled in: one program serves both."""
    plain, larger = paper_calibration() if preset == "paper" else load_calibration(), load_calibration()
    found = jax.tree.map(np.asarray, plain)
    degree = larger.table.powers.shape[1]
    powers = np.pad(plain.table.powers, ((0, 0), (degree - plain.table.powers.shape[1], 0)))
    return eqx.tree_at(lambda one: one.table.powers, found, powers)


def make(preset: str, frame: Frame | None = None, distance="level") -> Cochlea:
    """A cochlea with all fifteen parameters free."""
    return Cochlea(frame, FREE, calibration(preset), distance=distance)


def draw(cochlea: Cochlea, num: int, seed: int) -> np.ndarray:
    """Parameters from all over the box."""
    prior = cochlea.prior()
    return np.random.default_rng(seed).uniform(prior.lower, prior.upper, (num, cochlea.num_parameters))


def likely(cochlea: Cochlea, num: int, seed: int) -> np.ndarray:
    """Parameters as specimens have them: a standard deviation or so about the mean, in the box."""
    prior = cochlea.prior()
    sd = np.minimum(np.sqrt(np.diag(cochlea.calibration.covariance)), prior.widths / 8)
    steps = np.random.default_rng(seed).normal(size=(num, cochlea.num_parameters))
    return np.clip(cochlea.mean() + sd * steps, prior.lower, prior.upper)


def random_points(num: int, seed: int, reach: float = 6.0) -> np.ndarray:
    """All over the cochlea's box and around it, in its own frame (mm)."""
    return np.random.default_rng(seed).uniform([-reach, -reach, -3], [reach, reach, 7], (num, 3))


def awkward_points(cochlea, theta):
    """On the axis, on seams, at the very centres of sections, at corners of voxels, far away: world mm."""
    heights = np.linspace(-3, 6, 40)
    start, end = float(cochlea.calibration.start), theta[13]
    with double_precision():
        form = cochlea.form(theta)
        angle = np.linspace(start, end, 60)
        section = form.section(angle)
        radius, height = np.asarray(section.radius.value), np.asarray(section.height.value)
    centres = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    planes = [[r * np.cos(az), r * np.sin(az), z] for az in (start, end, 0.0, np.pi) for r in (1, 4) for z in (0, 2)]
    far = 10.0 ** np.arange(2, 7)[:, None] * np.array([1.0, -1.0, 1.0])
    axis = np.stack([0 * heights, 0 * heights, heights], axis=1)
    tiny = axis + np.array([1e-9, -1e-12, 0.0])
    model = np.concatenate([axis, tiny, centres, planes, far, np.zeros((1, 3))])
    with double_precision():
        return np.concatenate([model, np.asarray(cochlea.to_world(theta, model))])


@eqx.filter_jit
def _level(shape, theta, points):
    return shape.level(theta, points)


@eqx.filter_jit
def _derivatives(shape, theta, points):
    return shape.derivatives(theta, points)


def level(shape, theta, points: np.ndarray) -> np.ndarray:
    """The level at any number of points, double precision."""
    return _padded(_level, shape, theta, points)[0]


def derivatives(shape, theta, points: np.ndarray) -> Derivatives:
    """The level and its derivatives at any number of points, double precision."""
    return Derivatives(*_padded(_derivatives, shape, theta, points))


def _padded(function, shape, theta, points):
    points = np.asarray(points, dtype=float)
    padded = np.pad(points, ((0, -len(points) % SIZE), (0, 0)), mode="edge").reshape(-1, SIZE, 3)
    with double_precision():
        found = [function(shape, theta, part) for part in padded]
        columns = [found] if isinstance(found[0], jax.Array) else zip(*found, strict=True)
        return tuple(np.concatenate([np.asarray(one) for one in column])[: len(points)] for column in columns)
