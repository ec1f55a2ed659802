"""The exact distance against libigl, differences and what a distance must do.

Its one program takes most of a minute to compile: all its tests are here, one after the other, and slow.
"""

import jax
import numpy as np
import pytest

from logishape.cochlea import surface
from logishape.core.arrays import double_precision
from tests.cochleae import PRESETS, SIZE, awkward_points, derivatives, draw, level, likely, make, random_points

igl = pytest.importorskip("igl")
pytestmark = pytest.mark.slow
each_preset = pytest.mark.parametrize("preset", PRESETS)


@each_preset
def test_the_distance_is_that_to_its_mesh(preset):
    analytic, exact = make(preset), make(preset, distance="exact")
    for k, theta in enumerate(likely(analytic, 3, 0)):
        with double_precision():
            points = np.asarray(analytic.to_world(theta, random_points(600, k)))
        mesh = surface(analytic, theta, 0.08)
        faces = mesh.faces.astype(np.int64)
        away = np.sqrt(igl.point_mesh_squared_distance(points, mesh.vertices, faces)[0])
        is_inside = igl.winding_number(mesh.vertices, faces, points) > 0.5
        found = derivatives(exact, theta, points).level
        # The mesh's triangles of 0.08 mm dip a few micrometres below the surface and round its creases off.
        assert np.quantile(np.abs(found - np.where(is_inside, away, -away)), 0.99) < 0.02


@each_preset
def test_derivatives_are_differences(preset):
    exact, step = make(preset, distance="exact"), 1e-5
    theta = likely(exact, 1, 1)[0]
    with double_precision():
        points = np.asarray(exact.to_world(theta, random_points(SIZE // 4, 2, 5.0)))
    found = derivatives(exact, theta, points)
    for k in range(exact.num_parameters):
        delta = step * np.eye(exact.num_parameters)[k]
        up, down = (derivatives(exact, theta + sign * delta, points).level for sign in (1, -1))
        error = np.abs(found.jacobian[:, k] - (up - down) / (2 * step)) / (1 + np.abs(found.jacobian[:, k]))
        # Between two closest points, on the medial axis, there is no derivative; a step may cross it.
        assert np.mean(error < 1e-3) > 0.97, exact.parameter_names[k]
    for k in range(3):
        up, down = (derivatives(exact, theta, points + sign * step * np.eye(3)[k]).level for sign in (1, -1))
        assert np.mean(np.abs(found.gradient[:, k] - (up - down) / (2 * step)) < 1e-3) > 0.97
    np.testing.assert_allclose(np.linalg.norm(found.gradient, axis=1), 1.0, atol=1e-6)


@each_preset
def test_derivatives_are_finite_everywhere(preset):
    exact = make(preset, distance="exact")
    for theta in [exact.mean(), *draw(exact, 4, 5)]:
        for values in derivatives(exact, theta, awkward_points(exact, theta)):
            assert np.all(np.isfinite(values))


@each_preset
def test_both_distances_have_one_sign_and_one_surface(preset):
    analytic, exact = make(preset), make(preset, distance="exact")
    for k, theta in enumerate(draw(analytic, 8, 6)):
        points = random_points(SIZE, 10 + k)
        first, second = level(analytic, theta, points), derivatives(exact, theta, points).level
        is_off = np.abs(first) > 1e-9
        np.testing.assert_array_equal(np.sign(first)[is_off], np.sign(second)[is_off])
        vertices = surface(analytic, theta, 0.5).vertices[:SIZE]
        near = np.abs(level(analytic, theta, vertices)) < 1e-6
        assert near.mean() > 0.8
        away = np.abs(derivatives(exact, theta, vertices[near]).level)
        assert np.quantile(away, 0.998) < 1e-5
        assert away.max() < 0.02  # a vertex in ten thousand, on the rim of an end, misses its closest point


@each_preset
def test_the_exact_distance_changes_no_faster_than_one_moves(preset):
    exact, rng = make(preset, distance="exact"), np.random.default_rng(7)
    half = SIZE // 2
    for theta in draw(exact, 6, 7):
        a = random_points(half, 20)
        close = a[: half // 2] + rng.normal(0, 0.05, (half // 2, 3))
        b = np.concatenate([close, random_points(half - half // 2, 21)])
        da, db = derivatives(exact, theta, np.concatenate([a, b])).level.reshape(2, -1)
        excess = np.abs(da - db) - np.linalg.norm(a - b, axis=1)
        # Closest points are found to BURIED = 0.001 mm where turns meet.
        assert np.quantile(excess, 0.999) < 2e-3
        assert excess.max() < 0.1  # one point in ten thousand deep inside a strange shape finds another point


def test_jit_equals_eager_and_vmap_equals_a_loop_for_the_exact_distance():
    exact = make("calibrated", distance="exact")
    thetas, points = likely(exact, 3, 8), random_points(SIZE, 30)[:256]
    looped = np.stack([derivatives(exact, theta, points).level for theta in thetas])
    with double_precision():
        eager = np.asarray(exact.level(thetas[0], points))
        batched = jax.jit(jax.vmap(exact.level, in_axes=(0, None)))(thetas, points)
    # Rivals are visited some at a time, which rounds differently.
    np.testing.assert_allclose(eager, looped[0], atol=1e-8)
    np.testing.assert_allclose(batched, looped, atol=1e-8)
