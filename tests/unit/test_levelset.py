"""Modes of level sets from masks, and the prior that modes imply."""

import equinox as eqx
import numpy as np
import pytest

import logishape as ls
from logishape import shapes

GRID = ls.Volume.from_spacing(np.zeros((28, 24)), (1.0, 1.2), (-13.5, -13.8))
AT = GRID.to_world(np.moveaxis(np.indices(GRID.shape), 0, -1))


def disc_masks(radii):
    return [np.linalg.norm(AT, axis=-1) < radius for radius in radii]


RADII = np.array([5.0, 6.0, 6.5, 7.0, 8.0])


def test_discs_of_several_sizes_have_one_mode_their_radius(x64):
    shape = shapes.LevelSetModes.from_masks(disc_masks(RADII), GRID.affine)
    assert shape.parameter_names == ("mode_1",)
    assert shape.explained_variance[0] > 0.95
    evaluate = eqx.filter_jit(shape.level)
    ring = np.stack([np.cos(np.linspace(0, 6, 40)), np.sin(np.linspace(0, 6, 40))], axis=-1)
    for theta in (-1.0, 0.0, 1.0):
        radius = RADII.mean() + theta * RADII.std(ddof=1)
        # A voxel is 1.2 mm long; masks know a radius to a tenth of that on average.
        assert abs(np.mean(evaluate(np.array([theta]), radius * ring))) < 0.12


def test_all_modes_give_the_training_shapes_back(x64):
    rng = np.random.default_rng(3)
    masks = [np.linalg.norm((AT - rng.normal(0, 1, 2)) / rng.uniform(5, 8, 2), axis=-1) < 1 for _ in range(5)]
    shape = shapes.LevelSetModes.from_masks(np.stack(masks), GRID.affine, num_modes=4)
    assert shape.explained_variance.sum() == pytest.approx(1.0)
    assert np.all(np.diff(shape.explained_variance) <= 0)
    points = AT.reshape(-1, 2)
    found = eqx.filter_jit(shape.derivatives)(np.zeros(4), points)
    levels = np.stack([shapes.signed_distance(mask, GRID.spacing).ravel() for mask in masks])
    np.testing.assert_allclose(found.level, levels.mean(axis=0), atol=1e-9)
    modes = np.asarray(found.jacobian)
    theta = np.linalg.lstsq(modes, (levels - levels.mean(axis=0)).T, rcond=None)[0]
    np.testing.assert_allclose(modes @ theta, (levels - levels.mean(axis=0)).T, atol=1e-9)
    np.testing.assert_allclose(np.cov(theta), np.eye(4), atol=1e-9)  # the prior they imply is N(0, 1) each
    assert np.all(modes.sum(axis=0) > 0)  # positive parameters make the object larger


def test_fewer_modes_for_a_smaller_share():
    masks = disc_masks(RADII) + [np.roll(mask, 2, axis=0) for mask in disc_masks(RADII)]
    counts = [
        shapes.LevelSetModes.from_masks(masks, GRID.affine, explained=e).num_parameters for e in (0.5, 0.95, 1.0)
    ]
    assert counts[0] < counts[1] < counts[2] <= 9


def test_modes_have_their_standard_normal_prior_posed_or_not():
    shape = shapes.LevelSetModes.from_masks(disc_masks(RADII), GRID.affine, num_modes=2)
    prior = ls.Prior.of_modes(shape, limit=3.0)
    np.testing.assert_array_equal([prior.lower, prior.upper], [[-3, -3], [3, 3]])
    np.testing.assert_allclose(prior.precision, np.eye(2))
    np.testing.assert_array_equal(prior.mean, [0, 0])
    posed = ls.Prior.of_modes(shapes.Posed(shape, np.zeros(2)), {"tx": (-5, 5), "ty": (-4, 6), "angle": (-1, 1)})
    np.testing.assert_array_equal(posed.lower, [-5, -4, -1, -4, -4])
    np.testing.assert_allclose(posed.precision, np.diag([0, 0, 0, 1, 1]))
