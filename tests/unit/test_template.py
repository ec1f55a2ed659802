"""Templates: what a deformation may and may not change about a level."""

import equinox as eqx
import jax
import numpy as np
import pytest

import logishape as ls
from logishape import shapes
from tests.grids import rod_distance, rod_template, sample

POINTS = np.random.default_rng(1).uniform(-5, 5, (200, 3))


def evaluate(shape, theta, points=POINTS):
    return np.asarray(eqx.filter_jit(shape.level)(np.asarray(theta, dtype=float), points))


def affine(matrix, shift=(0.0, 0.0, 0.0)):
    return np.concatenate([shift, (np.asarray(matrix) - np.eye(3)).ravel()])


@pytest.fixture
def rod():
    return rod_template(shapes.Affine(np.array([0.5, 0.0, -0.5])), 3)


def test_undeformed_it_is_the_level_itself(rod, x64):
    # Half-millimetre voxels round the kink at the rod's axis, by a quarter of a voxel; elsewhere by less.
    error = evaluate(rod, np.zeros(12)) - rod_distance(POINTS)
    assert np.abs(error).max() < 0.12
    assert np.median(np.abs(error)) < 1e-3


def test_a_similarity_scales_the_level_exactly(rod, x64):
    """The medial axis included, where the gradient is no unit vector."""
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_rotvec([0.3, -0.2, 0.5]).as_matrix()
    theta, centre = affine(1.6 * turn, (0.2, 0.1, -0.3)), np.array([0.5, 0.0, -0.5])
    moved = (POINTS - centre) @ (1.6 * turn).T + centre + theta[:3]
    np.testing.assert_allclose(evaluate(rod, theta), evaluate(rod, np.zeros(12), moved) / 1.6, atol=1e-12)


def test_a_stretched_ball_is_the_ellipsoid(x64):
    """Sign, and the distance to first order, of an ellipsoid whose formula nobody sampled."""
    ball = shapes.Template(sample(lambda x: 3.0 - np.linalg.norm(x, axis=-1), 3), shapes.Affine(np.zeros(3)))
    level = evaluate(ball, affine(np.diag([0.75, 1.5, 1.0])))
    ellipsoid = evaluate(shapes.Ellipsoid(3), [4.0, 2.0, 3.0])
    clear = np.abs(ellipsoid) > 1e-3
    np.testing.assert_array_equal((level > 0)[clear], (ellipsoid > 0)[clear])
    near = np.abs(ellipsoid) < 0.3
    assert near.sum() > 10
    # Two first-order distances differ by curvature times distance squared, 0.09 mm^2 / (2 mm).
    np.testing.assert_allclose(level[near], ellipsoid[near], atol=0.03)


def test_a_deformation_that_flattens_space_leaves_finite_levels(rod, x64):
    for matrix in (np.zeros((3, 3)), np.diag([1.0, 1.0, 0.0]), np.diag([-1.0, 1.0, 1.0])):
        level, jacobian = eqx.filter_jit(ls.level_and_jacobian)(rod, affine(matrix), POINTS)
        assert np.all(np.isfinite(level))
        assert np.all(np.isfinite(jacobian))


def test_modes_on_a_grid_are_the_cosines_they_were_sampled_from(x64):
    """Two ways to the same displacement; mirrored at its border, a spline holds a cosine well."""
    waves = shapes.Cosines((-6, -6, -6), (6, 6, 6), (1, 0, 1), 0.8)
    nodes = np.stack(np.meshgrid(*[np.linspace(-6, 6, 13)] * 3, indexing="ij"), axis=-1)
    p = len(waves.parameter_names)
    assert waves.parameter_names == tuple(f"mode_{k + 1}" for k in range(9))
    move = jax.jit(jax.vmap(lambda theta, x: waves(theta, x) - x, in_axes=(0, None)))
    fields = np.asarray(move(np.eye(p), nodes.reshape(-1, 3))).reshape(p, 13, 13, 13, 3)
    sampled = shapes.LowRank(fields, ls.Volume.from_spacing(nodes[..., 0], 1.0, -6.0).affine)
    assert sampled.parameter_names == waves.parameter_names
    theta = np.random.default_rng(2).normal(size=p)
    beyond = np.concatenate([POINTS, 2.5 * POINTS])  # displacements keep their value outside
    np.testing.assert_allclose(sampled(theta, beyond), waves(theta, beyond), atol=2e-4)  # spline error (pi/12)^4/384
    levels = [evaluate(rod_template(one, 3), theta) for one in (sampled, waves)]
    np.testing.assert_allclose(*levels, atol=5e-3)  # through derivatives of the displacement, one order less


def test_waves_are_small_where_they_are_fast(x64):
    waves = shapes.Cosines((0, 0), (10, 4), 2, 1.5)
    corner = np.zeros((1, 2))  # where every cosine is one
    sizes = np.abs([waves(np.eye(16)[k], corner)[0] for k in range(16)]).max(axis=1)
    expected = 1.5 / (1 + np.repeat([1, 1, 2, 4, 4, 5, 5, 8], 2))
    np.testing.assert_allclose(sizes, expected)


def test_from_a_mask_of_unequal_voxels(x64):
    volume = ls.Volume.from_spacing(np.zeros((32, 28, 14)), (0.5, 0.5, 1.0), (-7.75, -6.75, -6.5))
    at = volume.to_world(np.moveaxis(np.indices(volume.shape), 0, -1))
    template = shapes.Template.from_mask(volume.with_data(rod_distance(at) > 0), shapes.Affine(np.zeros(3)))
    near = np.abs(rod_distance(POINTS)) < 1.0
    error = evaluate(template, np.zeros(12))[near] - rod_distance(POINTS)[near]
    assert np.abs(error).mean() < 0.15  # of voxels up to a millimetre long
