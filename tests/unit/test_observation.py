"""Observations against a selection that looks at every voxel."""

import tracemalloc

import numpy as np
import pytest

import logishape as ls
from tests.unit.test_volume import GRIDS, box_about, numbered, voxel_centres


@pytest.fixture(params=GRIDS)
def grid(request):
    return GRIDS[request.param][:2]


def _mask(shape):
    return np.random.default_rng(1).random(shape) < 0.4


def _brute_force(shape, affine, box, mask):
    """Rows of all voxels in memory order, and whether each lies in the box and the mask."""
    centres = voxel_centres(shape, affine)
    chosen = np.ones(len(centres), bool) if mask is None else mask.ravel()
    if box is not None:
        chosen = chosen & np.all((centres >= box[0]) & (centres <= box[1]), axis=1)
    return centres, chosen


@pytest.mark.parametrize(("share", "use_mask"), [(None, False), (None, True), (0.53, False), (0.53, True)])
def test_box_and_mask_choose_the_voxels_that_a_look_at_each_chooses(grid, share, use_mask):
    shape, affine = grid
    volume = numbered(shape, affine)
    mask = _mask(shape) if use_mask else None
    box = None if share is None else box_about(voxel_centres(shape, affine), share)
    centres, chosen = _brute_force(shape, affine, box, mask)
    assert chosen.sum() > 0  # the case is worth its name
    observation = ls.Observation.from_volume(volume, box, mask, dtype=np.float64)
    np.testing.assert_allclose(observation.points, centres[chosen], rtol=0, atol=1e-13)  # rounding of some 60 mm
    np.testing.assert_array_equal(observation.intensities, volume.data.ravel()[chosen])
    np.testing.assert_array_equal(observation.weights, 1.0)
    assert (observation.num_voxels, observation.ndim) == (chosen.sum(), len(shape))


def test_values_are_painted_back_where_they_came_from(grid):
    shape, affine = grid
    volume = numbered(shape, affine)
    box, mask = box_about(voxel_centres(shape, affine), 0.53), _mask(shape)
    observation = ls.Observation.from_volume(volume, box, mask)
    block, keep = ls.select_voxels(volume, box, mask)
    painted = np.full(shape, -1.0)
    painted[block][keep] = observation.intensities
    _, chosen = _brute_force(shape, affine, box, mask)
    np.testing.assert_array_equal(painted, np.where(chosen.reshape(shape), volume.data, -1.0))


@pytest.mark.parametrize("reach", [1e3, 1e18, 1e300])
def test_a_box_may_reach_far_beyond_the_image(grid, reach):
    volume = numbered(*grid)
    box = ([-reach] * volume.ndim, [reach] * volume.ndim)
    np.testing.assert_array_equal(ls.Observation.from_volume(volume, box).intensities, volume.data.ravel())


@pytest.mark.parametrize("off", [-1e-9, 0.0, 1e-9])
def test_voxels_on_the_border_of_the_box_belong_whatever_the_rounding(grid, off):
    shape, affine = grid
    volume = numbered(shape, affine)
    corner = voxel_centres(shape, affine)[len(volume.data.ravel()) // 2]
    observation = ls.Observation.from_volume(volume, ((corner + off).tolist(), (corner + off).tolist()))
    np.testing.assert_array_equal(observation.intensities, [volume.data.size // 2])


def test_a_small_box_in_a_large_scan_costs_no_more_than_its_block():
    # One value and one True seen as 400^3 voxels: any copy of the whole grid takes 64 MB at least.
    shape = (400, 400, 400)
    volume = ls.Volume.from_spacing(np.broadcast_to(np.float32(7), shape), 0.5)
    mask = np.broadcast_to(True, shape)
    box = ((100.0, 50.0, 20.0), (102.0, 53.0, 21.0))
    tracemalloc.start()
    observation = ls.Observation.from_volume(volume, box, mask)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    block, _ = ls.select_voxels(volume, box, mask)
    assert [(s.start, s.stop) for s in block] == [(200, 205), (100, 107), (40, 43)]
    assert observation.num_voxels == 5 * 7 * 3
    assert peak < 1e6


def test_work_is_in_single_precision_unless_asked_otherwise():
    volume = numbered(*GRIDS["oblique 3D"][:2])
    single, double = ls.Observation.from_volume(volume), ls.Observation.from_volume(volume, dtype=np.float64)
    assert {single.points.dtype, single.intensities.dtype, single.weights.dtype} == {np.dtype(np.float32)}
    assert {double.points.dtype, double.intensities.dtype, double.weights.dtype} == {np.dtype(np.float64)}


def test_only_the_chosen_voxels_have_to_be_finite():
    data = np.ones((4, 4))
    data[1, 2] = np.nan
    observation = ls.Observation.from_volume(ls.Volume.from_spacing(data), mask=np.isfinite(data))
    assert observation.num_voxels == 15
    np.testing.assert_array_equal(observation.intensities, 1.0)


def test_padding_adds_finite_rows_of_no_weight():
    points, weights = np.arange(6.0).reshape(3, 2), np.array([0.5, 0.0, 2.0])
    observation = ls.Observation.from_arrays(points, [4.0, 5.0, 6.0], weights)
    padded = observation.padded(7)
    assert padded.num_voxels == 7
    np.testing.assert_array_equal(padded.points[:3], points)
    np.testing.assert_array_equal(padded.intensities[:3], [4.0, 5.0, 6.0])
    np.testing.assert_array_equal(padded.weights, [0.5, 0.0, 2.0, 0, 0, 0, 0])
    assert np.all(np.isfinite(padded.points))
    assert np.all(np.isfinite(padded.intensities))
    assert padded.points.dtype == padded.weights.dtype == np.float32
    with pytest.raises(ls.InputError, match="cannot pad 7 voxels to 6; choose a larger size"):
        padded.padded(6)


_VOLUME = ls.Volume.from_spacing(np.zeros((6, 5, 4)))


@pytest.mark.parametrize(
    ("box", "mask", "message"),
    [
        (((0.0, 0.0), (1.0, 1.0)), None, r"3D image needs two corners of 3 numbers but has shapes \(2,\) and \(2,\)"),
        (((0.0, 0.0, 0.0), (1.0, 1.0)), None, r"shapes \(3,\) and \(2,\); give \(lower, upper\) in mm"),
        (
            ((0.0, 3.0, 0.0), (1.0, 1.0, 1.0)),
            None,
            r"from \[0.0, 3.0, 0.0\] to \[1.0, 1.0, 1.0\] mm; lower must not exceed",
        ),
        (((0.0, 0.0, 0.0), (1.0, 1.0, np.nan)), None, "to .*nan"),
        (((0.0, 0.0, -np.inf), (1.0, 1.0, 1.0)), None, "from .*-inf"),
        (None, np.ones((6, 5, 3)), r"mask has shape \(6, 5, 3\) but the image is \(6, 5, 4\); resample"),
        (None, np.zeros((6, 5, 4)), "no voxel is left .* the mask is not empty"),
        (((90.0, 90.0, 90.0), (95.0, 95.0, 95.0)), None, "no voxel is left .* the box is in world millimetres"),
        (((0.2, 0.2, 0.2), (0.4, 0.4, 0.4)), None, "no voxel is left"),  # between voxel centres
    ],
)
def test_boxes_and_masks_that_choose_nothing(box, mask, message):
    with pytest.raises(ls.InputError, match=message):
        ls.select_voxels(_VOLUME, box, mask)
    with pytest.raises(ls.InputError, match=message):
        ls.Observation.from_volume(_VOLUME, box, mask)


_POINTS, _VALUES = np.zeros((4, 2)), np.arange(4.0)


@pytest.mark.parametrize(
    ("points", "intensities", "weights", "message"),
    [
        (_POINTS, _VALUES[:3], None, r"shapes \(4, 2\), \(3,\) and \(3,\); flatten the image"),
        (_POINTS, _VALUES, np.ones(5), r"\(4, 2\), \(4,\) and \(5,\)"),
        (_POINTS, _VALUES.reshape(2, 2), None, r"\(4, 2\), \(2, 2\) and \(2, 2\); flatten"),
        (_VALUES, _VALUES, None, r"\(4,\), \(4,\) and \(4,\)"),
        (np.zeros((0, 2)), [], None, "at least one voxel but none was given"),
        (_POINTS, [0, np.nan, np.inf, 1], None, "2 of 4 intensities are not finite; replace them"),
        (_POINTS, [0, 1, 2, -2e9], None, r"intensities reach 2e\+09, beyond 1e\+09; rescale"),
        (_POINTS + np.inf, _VALUES, None, "points are not finite; check the affine"),
        (_POINTS, _VALUES, [1, 1, 1, np.nan], "weights must be finite"),
        (_POINTS, _VALUES, [1, 1, 1, -0.1], "weights must be finite, not negative"),
        (_POINTS, _VALUES, np.zeros(4), r"not all zero but lie in \[0.0, 0.0\]; use one for voxels"),
    ],
)
def test_loose_voxels_that_are_no_observation(points, intensities, weights, message):
    with pytest.raises(ls.InputError, match=message):
        ls.Observation.from_arrays(points, intensities, weights)
