"""Distances by way of a mesh made anew, against libigl, closed forms and the cochlea's own level."""

import equinox as eqx
import numpy as np
import pytest

import logishape as ls
from logishape import shapes
from logishape.cochlea import Cochlea
from logishape.core.arrays import double_precision
from logishape.shapes.mesh_checks import edge_neighbours
from logishape.shapes.tetrahedra import zero_level
from tests.problems import assert_one_sentence, draw_intensities, grid, two_gaussians

level = eqx.filter_jit(lambda shape, theta, points: shape.level(theta, points))
all_derivatives = eqx.filter_jit(shapes.derivatives)
BALL = np.array([0.1, -0.2, 0.05, 2.0])


def balls(spacing=0.3, nearest=shapes.nearest_by_tree):
    return shapes.Remeshed(shapes.Ball(3), -2.6, 2.6, spacing, nearest)


def some_points(num=500):
    return np.random.default_rng(0).uniform(-3, 3, (num, 3))


def test_the_zero_level_is_a_closed_surface_that_looks_outward():
    values = np.random.default_rng(3).normal(size=(9, 8, 7))
    values[[0, -1]] = values[:, [0, -1]] = values[:, :, [0, -1]] = -1.0  # so that nothing leaves the lattice
    edges = zero_level(values)
    names, numbers = np.unique(edges.reshape(-1, 2), axis=0, return_inverse=True)
    edge_neighbours(numbers.reshape(-1, 3))  # raises unless each edge has a face on both sides
    corners = np.stack(np.unravel_index(names, values.shape), axis=-1).mean(axis=1)[numbers.reshape(-1, 3)]
    volume = np.sum(corners[:, 0] * np.cross(corners[:, 1], corners[:, 2])) / 6
    assert 0 < volume < values.size
    assert np.all(values.ravel()[names[:, 0]] > 0)
    assert np.all(values.ravel()[names[:, 1]] <= 0)


def test_the_level_is_the_distance_that_libigl_finds(x64):
    igl = pytest.importorskip("igl")
    shape, points = balls(), some_points()
    vertices, faces = shape.mesh(BALL)
    vertices, names = np.unique(vertices.round(12), axis=0, return_inverse=True)
    faces = names.reshape(-1)[faces]
    away = np.sqrt(igl.point_mesh_squared_distance(points, vertices, faces)[0])
    is_inside = igl.winding_number(vertices, faces, points) > 0.5
    found = np.asarray(level(shape, BALL, points))
    np.testing.assert_allclose(found, np.where(is_inside, away, -away), atol=1e-9)
    np.testing.assert_allclose(level(balls(nearest=shapes.nearest_by_libigl), BALL, points), found, atol=1e-9)


@pytest.mark.slow  # libigl, above, holds the same lattice to 1e-9
def test_a_finer_lattice_comes_nearer_to_the_true_distance(x64):
    points = some_points()
    true = np.asarray(shapes.Ball(3).level(BALL, points))
    coarse, fine = (np.abs(level(balls(spacing), BALL, points) - true).max() for spacing in (0.6, 0.3))
    assert coarse < 0.6**2 / 2.0  # chords of a circle of this radius, at most a lattice's diagonal long
    assert fine < coarse / 3  # the square of the spacing


def test_derivatives_are_about_those_of_the_true_distance(x64):
    points = some_points()
    points = points[np.linalg.norm(points - BALL[:3], axis=1) > 0.7]  # far from the middle, where there are none
    found, true = (all_derivatives(shape, BALL, points) for shape in (balls(0.15), shapes.Ball(3)))
    # A facet leans by up to its length over twice the radius.
    np.testing.assert_allclose(found.gradient, true.gradient, atol=0.15)
    np.testing.assert_allclose(found.jacobian, true.jacobian, atol=0.15)
    assert np.abs(np.asarray(found.jacobian) - true.jacobian).mean() < 0.03


def test_finite_differences_are_the_derivatives(x64):
    shape, points, theta = shapes.Ellipsoid(3), some_points(), np.array([2.0, 1.5, 1.0])
    differences = shapes.FiniteDifferences(shape, [1e-4, 1e-4, 2e-4])
    found, true = (all_derivatives(one, theta, points) for one in (differences, shape))
    for a, b in zip(found, true, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    assert differences.is_faceted
    assert_one_sentence(lambda: shapes.FiniteDifferences(shape, [1e-3, 1e-3]), "finite differences")


@pytest.mark.slow  # above, the mesh's derivatives are compared with a ball's, and differences with an ellipsoid's
def test_finite_differences_of_a_mesh_are_its_derivatives(x64):
    found, true = (
        all_derivatives(one, BALL, some_points(200)) for one in (shapes.FiniteDifferences(balls(), 1e-6), balls())
    )
    np.testing.assert_allclose(found.jacobian, true.jacobian, atol=1e-5)


def test_no_surface_in_the_lattice_is_no_number_and_a_bad_lattice_is_refused(x64):
    assert np.all(np.isnan(level(balls(), np.array([9.0, 0, 0, 1]), some_points(10))))
    assert_one_sentence(lambda: shapes.Remeshed(shapes.Ball(3), 2, -2), "lower one below")
    assert_one_sentence(lambda: shapes.Remeshed(shapes.Ball(3), -2, 2, 1e-3), "at most")
    assert_one_sentence(lambda: Cochlea(distance="vtk"), "level, exact, mesh or learned")


@pytest.mark.slow
def test_a_fit_through_the_mesh_ends_where_the_true_distance_does():
    points, truth = grid(16, 3, 0.35), np.array([0.2, -0.1, 0.1, 1.8])
    fits = []
    for shape in (shapes.Ball(3), balls()):
        bounds = {"x": (-0.6, 0.6), "y": (-0.6, 0.6), "z": (-0.6, 0.6), "radius": (1.0, 2.0)}
        model = ls.Model(shape, ls.Prior.named(shape, bounds), 0.15)
        seen = draw_intensities(ls.Model(shapes.Ball(3), model.prior, 0.15), truth, points, 20.0, 0)
        start = ls.State(np.array([0.0, 0.1, -0.1, 1.5]), two_gaussians(20.0))
        fits.append(ls.fit(model, ls.Observation.from_arrays(points, seen), start))
    smooth, meshed = (np.asarray(one.state.theta) for one in fits)
    assert fits[1].status.is_usable
    np.testing.assert_allclose(smooth[:3], meshed[:3], atol=0.01)
    # Chords make a ball of this radius smaller by up to 0.02 mm.
    np.testing.assert_allclose(smooth[3], meshed[3], atol=0.02)


@pytest.mark.slow
def test_the_cochleas_mesh_is_near_its_level_and_exact_distance():
    meshed, plain, exact = Cochlea(distance="mesh"), Cochlea(), Cochlea(distance="exact")
    points = np.random.default_rng(1).uniform([-5, -5, -2], [6, 5, 4], (4096, 3))
    with double_precision():
        theta = meshed.mean()
        points = points[np.abs(np.asarray(plain.level(theta, points))) < 1]
        found, true = (np.asarray(level(shape, theta, points)) for shape in (meshed, exact))
        jacobians = [np.asarray(all_derivatives(shape, theta, points).jacobian) for shape in (meshed, exact)]
    assert np.mean(np.abs(found - true)) < 0.004  # chords of 0.15 mm, and creases that they round off
    assert np.quantile(np.abs(found - true), 0.95) < 0.01
    assert np.median(np.abs(jacobians[0] - jacobians[1])) < 0.02
    assert meshed.by_level().parameter_names == meshed.parameter_names
    assert not meshed.by_level().is_faceted
