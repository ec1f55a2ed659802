"""Distances from masks: exact for planes, close for balls, and the same from either side."""

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt

from logishape import shapes

SPACING = np.array([0.5, 1.0, 2.0])


def centred_positions(shape, spacing):
    index = np.moveaxis(np.indices(shape), 0, -1)
    return (index - (np.array(shape) - 1) / 2) * spacing


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_planes_across_an_axis_are_exact(axis):
    x = centred_positions((12, 9, 8), SPACING)[..., axis]
    border = 0.5 * (np.unique(x)[4] + np.unique(x)[5])
    np.testing.assert_allclose(shapes.signed_distance(x > border, SPACING), x - border, atol=1e-12)


@pytest.mark.parametrize("spacing", [(1.0, 1.0), (0.4, 0.4, 0.4), (0.5, 0.5, 1.0)])
def test_balls_are_met_within_a_fraction_of_a_voxel(spacing):
    spacing = np.array(spacing)
    x = centred_positions((31,) * len(spacing), spacing) - 0.13
    truth = 9.4 * spacing.min() - np.linalg.norm(x, axis=-1)
    error = (shapes.signed_distance(truth > 0, spacing) - truth)[np.abs(truth) < 4 * spacing.max()]
    # Voxels are all that is known of the ball: a flat cap of it is off by up to half a voxel. The faces between
    # voxels, without smoothing, would be 0.35 voxels off (root mean square).
    assert np.sqrt(np.mean(error**2)) < 0.2 * spacing.max()
    assert np.abs(error).max() < 0.6 * spacing.max()


def test_boxes_have_corners():
    x = centred_positions((25, 25), np.ones(2))
    inside_by = np.array([6.5, 4.5]) - np.abs(x)
    nearest_face, past = inside_by.min(axis=-1), np.linalg.norm(np.minimum(inside_by, 0), axis=-1)
    error = shapes.signed_distance(nearest_face > 0) - np.where(nearest_face > 0, nearest_face, -past)
    assert np.abs(error).max() < 0.6  # smoothing rounds a corner by half a voxel
    np.testing.assert_allclose(error[12], 0.0, atol=1e-9)  # across the middle of a face nothing is rounded


def test_thin_and_small_objects_keep_their_voxels():
    mask = np.random.default_rng(0).random((9, 8, 7)) < 0.3  # single voxels, holes and bridges
    distance = shapes.signed_distance(mask, SPACING)
    np.testing.assert_array_equal(distance > 0, mask)
    assert np.all(np.abs(distance) > 0.05 * SPACING.min())
    to_other_class = sum(np.asarray(distance_transform_edt(side, SPACING)) for side in (mask, ~mask))
    assert np.all(np.abs(distance) < to_other_class)


def test_either_side_and_any_unit_say_the_same():
    x = centred_positions((13, 12, 8), SPACING)
    first, second = np.linalg.norm(x - 0.7, axis=-1), np.linalg.norm(x + np.array([1.1, 1.3, 2.9]), axis=-1)
    mask = np.minimum(first, second) < 2.2
    distance = shapes.signed_distance(mask, SPACING)
    np.testing.assert_allclose(shapes.signed_distance(~mask, SPACING), -distance, atol=1e-12)
    np.testing.assert_allclose(shapes.signed_distance(mask, 2 * SPACING), 2 * distance, atol=1e-12)
    np.testing.assert_allclose(shapes.signed_distance(mask.astype(np.uint8), SPACING), distance)
