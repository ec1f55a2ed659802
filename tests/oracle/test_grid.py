"""Splines on grids against SciPy's, and what lies beyond a grid against its definition."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.ndimage import map_coordinates

import logishape as ls
from logishape import shapes

RNG = np.random.default_rng(5)
AFFINES = {  # turned, unequally spaced and sheared
    2: np.array([[0.8, 0.3, -2.0], [-0.2, 1.4, 1.0], [0, 0, 1]]),
    3: np.array([[0.8, 0.3, 0.1, -2.0], [-0.2, 1.4, 0.0, 1.0], [0.1, 0.2, 0.6, 0.5], [0, 0, 0, 1]]),
}


def random_field(d, components=2):
    rng = np.random.default_rng(5)  # of its own: the same field whichever tests ran before
    values = rng.normal(size=(*(6, 5, 7)[:d], components))
    volume = ls.Volume(values[..., 0], AFFINES[d])
    index = rng.uniform(0, 1, (40, d)) * (np.array(volume.shape) - 1)
    return values, volume, index


@pytest.mark.parametrize("d", [2, 3])
def test_values_are_scipys(d, x64):
    values, volume, index = random_field(d)
    field = shapes.GridField(values, volume.affine)
    found = eqx.filter_jit(field)(volume.to_world(index))
    expected = np.stack([map_coordinates(values[..., c], index.T, order=3, mode="mirror") for c in range(2)], axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    nodes = np.indices(volume.shape).reshape(d, -1).T  # border nodes and corners included
    np.testing.assert_allclose(eqx.filter_jit(field)(volume.to_world(nodes)), values.reshape(-1, 2), atol=1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_derivatives_are_those_of_scipys_values(d, x64):
    values, volume, index = random_field(d, 1)
    # Away from the knots, where the third derivative jumps and differences of second order would be off by its size.
    index = np.floor(index) + np.clip(index % 1, 0.05, 0.95)
    points, step = volume.to_world(index), 5e-4
    field = shapes.GridField(values, volume.affine)

    def scipys(x):
        return map_coordinates(values[..., 0], volume.to_index(x).T, order=3, mode="mirror")

    def at(x):
        return field(x[None])[0, 0]

    gradient, hessian = jax.jit(lambda x: (jax.vmap(jax.grad(at))(x), jax.vmap(jax.hessian(at))(x)))(points)
    for axis in range(d):
        up, down = (points + sign * step * np.eye(d)[axis] for sign in (1, -1))
        # Central differences miss step^2/6 times a third and step^2/12 times a fourth derivative, all below 100.
        np.testing.assert_allclose(gradient[:, axis], (scipys(up) - scipys(down)) / (2 * step), atol=2e-5)
        second = (scipys(up) - 2 * scipys(points) + scipys(down)) / step**2
        np.testing.assert_allclose(hessian[:, axis, axis], second, atol=2e-5)
    np.testing.assert_allclose(hessian, np.swapaxes(hessian, 1, 2), atol=1e-10)


def test_beyond_the_grid_fields_stay_and_levels_fall(x64):
    values, volume = random_field(3)[0], ls.Volume.from_spacing(np.zeros((6, 5, 7)), (1.0, 2.0, 0.5))
    values[..., 0] -= 20.0  # a level that is negative on its border
    outside = volume.to_world(RNG.uniform(-4, 11, (60, 3)))
    nearest = np.clip(volume.to_index(outside), 0, np.array(volume.shape) - 1)
    away = np.linalg.norm(outside - volume.to_world(nearest), axis=-1)
    mean, mode = (map_coordinates(values[..., c], nearest.T, order=3, mode="mirror") for c in range(2))
    shape = shapes.LevelSetModes(volume.with_data(values[..., 0]), values[None, ..., 1])
    found = eqx.filter_jit(shape.derivatives)(np.array([0.7]), outside)
    np.testing.assert_allclose(found.level, mean + 0.7 * mode - away, atol=1e-12)
    np.testing.assert_allclose(found.jacobian[:, 0], mode, atol=1e-12)
    total = jax.jit(jax.grad(lambda x: jnp.sum(shape.level(np.array([0.7]), x))))
    np.testing.assert_allclose(found.gradient, total(outside), atol=1e-11)
    field = shapes.GridField(values, volume.affine)
    np.testing.assert_allclose(eqx.filter_jit(field)(outside)[:, 1], mode, atol=1e-12)


def test_level_falls_steadily_on_the_way_out(x64):
    """No jump where the grid ends, and a finite slope: the level on a line through the border."""
    ball = ls.Volume.from_spacing(np.zeros((17, 17)), 1.0, -8.0)
    distance = 4.0 - np.linalg.norm(ball.to_world(np.moveaxis(np.indices(ball.shape), 0, -1)), axis=-1)
    shape = shapes.LevelSetModes(ball.with_data(distance), np.ones((1, 17, 17)))
    way = np.linspace(4.0, 14.0, 2001)
    level = np.asarray(eqx.filter_jit(shape.level)(np.zeros(1), np.stack([way, 0.3 * way], axis=-1)))
    steps = np.diff(level) / np.diff(way)
    # Mirrored at the border, the spline is level there; everywhere else the slope is that of a distance.
    assert steps.max() < 0
    assert steps.min() > -1.6
