"""Volumes: indices, millimetres and blocks on straight, flipped, oblique and sheared grids."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import logishape as ls
from logishape.core.arrays import like


def _affine(axes, spacing, origin):
    d = len(spacing)
    affine = np.eye(d + 1)
    affine[:d, :d] = np.asarray(axes) @ np.diag(spacing)
    affine[:d, d] = origin
    return affine


_TURN_2D = Rotation.from_rotvec([0, 0, 0.4]).as_matrix()[:2, :2]
_TURN_3D = Rotation.from_rotvec([0.5, -0.3, 0.8]).as_matrix()
# Name: shape, affine, spacing. A negative entry of the diagonal flips an axis; the spacing stays positive.
GRIDS = {
    "straight 2D": ((7, 5), _affine(np.eye(2), (0.5, 2.0), (3.0, -1.0)), (0.5, 2.0)),
    "flipped 2D": ((7, 5), _affine(np.diag([-1, 1]), (0.5, 2.0), (3.0, -1.0)), (0.5, 2.0)),
    "oblique 2D": ((9, 8), _affine(_TURN_2D, (0.7, 0.4), (-2.0, 5.0)), (0.7, 0.4)),
    "permuted 3D": ((4, 6, 5), _affine(np.eye(3)[[2, 0, 1]], (1.0, 0.5, 3.0), (1.0, 2.0, 3.0)), (1.0, 0.5, 3.0)),
    "oblique 3D": ((8, 7, 6), _affine(_TURN_3D, (0.5, 0.8, 1.2), (-60.0, 20.0, 4.0)), (0.5, 0.8, 1.2)),
    "oblique flipped 3D": (
        (8, 7, 6),
        _affine(_TURN_3D @ np.diag([1, -1, -1]), (0.5, 0.8, 1.2), (-60.0, 20.0, 4.0)),
        (0.5, 0.8, 1.2),
    ),
}


@pytest.fixture(params=GRIDS)
def grid(request):
    return GRIDS[request.param]


def numbered(shape, affine):
    """A volume whose voxels hold their own number in memory order."""
    return ls.Volume(np.arange(np.prod(shape), dtype=np.float64).reshape(shape), affine)


def voxel_centres(shape, affine):
    """World positions of all voxels in memory order, by the definition and one at a time."""
    return np.array([(affine @ np.array([*index, 1.0]))[:-1] for index in np.ndindex(*shape)])


def box_about(centres, share):
    """A world box about the middle of the grid that spans this share of its extent."""
    middle = (centres.min(axis=0) + centres.max(axis=0)) / 2
    half = share * np.ptp(centres, axis=0) / 2
    return (middle - half).tolist(), (middle + half).tolist()


def test_world_is_the_affine_and_index_undoes_it(grid):
    shape, affine, _ = grid
    volume = numbered(shape, affine)
    index = np.moveaxis(np.indices(shape), 0, -1)
    # Rounding of coordinates of some ten millimetres: a few times 1e-15 each.
    np.testing.assert_allclose(
        volume.to_world(index).reshape(-1, volume.ndim), voxel_centres(shape, affine), rtol=0, atol=1e-13
    )
    fractional = np.random.default_rng(0).uniform(-20, 20, (3, 4, volume.ndim))
    np.testing.assert_allclose(volume.to_index(volume.to_world(fractional)), fractional, rtol=0, atol=1e-12)


def test_spacing_and_voxel_size(grid):
    shape, affine, spacing = grid
    volume = numbered(shape, affine)
    np.testing.assert_allclose(volume.spacing, spacing, rtol=1e-14)
    assert volume.voxel_size == pytest.approx(np.prod(spacing), rel=1e-14)
    assert (volume.shape, volume.ndim) == (shape, len(shape))


def test_voxel_of_a_sheared_grid_is_a_parallelogram():
    # Axes (2, 0) and (1, 3): lengths 2 and sqrt(10), but the area is base times height, 6.
    volume = ls.Volume(np.zeros((3, 3)), np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 1.0]]))
    np.testing.assert_allclose(volume.spacing, [2.0, np.sqrt(10)], rtol=1e-15)
    assert volume.voxel_size == pytest.approx(6.0, rel=1e-15)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.45])
def test_index_bounds_are_the_smallest_block_around_the_box(grid, share):
    shape, affine, _ = grid
    volume = numbered(shape, affine)
    lower, upper = box_about(voxel_centres(shape, affine), share)
    block = volume.index_bounds(lower, upper)
    corners = volume.to_index(np.array(list(itertools.product(*zip(lower, upper, strict=True)))))
    first = np.array([s.start for s in block])
    last = np.array([s.stop - 1 for s in block])
    # A corner may lie on a voxel to within rounding. Unless the grid ends, each face is within one voxel of the box.
    low, high = corners.min(axis=0), corners.max(axis=0)
    at_start, at_end = first == 0, last == np.array(shape) - 1
    assert np.all((first <= low + 1e-9) | at_start)
    assert np.all((high - 1e-9 <= last) | at_end)
    assert np.all((low < first + 1 + 1e-9) & (last - 1 - 1e-9 < high))


def test_index_bounds_end_with_the_grid(grid):
    shape, affine, _ = grid
    volume = numbered(shape, affine)
    centres = voxel_centres(shape, affine)
    assert volume.index_bounds(*box_about(centres, 5.0)) == tuple(slice(0, n) for n in shape)
    far = centres.max(axis=0) + 1000.0
    assert volume.data[volume.index_bounds(far, far + 1.0)].size == 0
    assert volume.data[volume.index_bounds(-far - 1.0, -far)].size == 0


def test_from_spacing_puts_the_first_voxel_at_the_origin():
    volume = ls.Volume.from_spacing([[1, 2, 3], [4, 5, 6]], spacing=(0.5, 2.0), origin=(10.0, -3.0))
    np.testing.assert_array_equal(volume.to_world([1, 2]), [10.5, 1.0])
    cube = ls.Volume.from_spacing(np.zeros((2, 2, 2)), 0.25, origin=1.0)
    np.testing.assert_array_equal(cube.to_world([0, 1, 2]), [1.0, 1.25, 1.5])


def test_data_is_neither_copied_nor_converted():
    data = np.zeros((3, 4, 5), np.int16)
    volume = ls.Volume.from_spacing(data)
    assert np.shares_memory(volume.data, data)
    assert volume.data.dtype == np.int16


def test_with_data_keeps_the_grid():
    volume = numbered(*GRIDS["oblique 3D"][:2])
    labels = volume.with_data(volume.data > 10)
    assert labels.data.dtype == bool
    np.testing.assert_array_equal(labels.affine, volume.affine)


_SINGULAR = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("data", "affine", "message"),
    [
        (np.zeros(4), np.eye(2), r"2 or 3 axes but this one has 1 \(shape \(4,\)\)"),
        (np.zeros((2, 2, 2, 3)), np.eye(5), r"has 4 \(shape .*pick one channel"),
        (np.zeros((0, 3)), np.eye(3), r"at least one voxel but the shape is \(0, 3\)"),
        (np.zeros((3, 3)), np.eye(4), r"2D image needs an affine of shape \(3, 3\) but it is \(4, 4\)"),
        (np.zeros((3, 3, 3)), np.eye(3), r"3D image needs .* \(3, 3\); use Volume.from_spacing"),
        (np.zeros((3, 3)), np.diag([1.0, np.nan, 1.0]), "must be finite but is not; check spacing"),
        (np.zeros((3, 3)), np.diag([1.0, 0.0, 1.0]), "must be invertible but .*; check spacing and axes"),
        (np.zeros((3, 3)), _SINGULAR, "must be invertible but .*; check spacing and axes"),
    ],
)
def test_what_is_no_image(data, affine, message):
    with pytest.raises(ls.InputError, match=message):
        ls.Volume(data, affine)


def test_data_of_another_shape_does_not_fit_the_grid():
    volume = ls.Volume.from_spacing(np.zeros((4, 5, 6)))
    with pytest.raises(ls.InputError, match=r"data has shape \(4, 5, 5\) but the grid is \(4, 5, 6\); resample"):
        volume.with_data(np.zeros((4, 5, 5)))


@pytest.mark.parametrize("d", [2, 3])
def test_voxels_may_be_tiny(d):
    volume = ls.Volume.from_spacing(np.zeros((3,) * d), 1e-5)
    assert volume.voxel_size == pytest.approx(1e-5**d)
    np.testing.assert_allclose(volume.to_index(volume.to_world([1, 2, 0][:d])), [1, 2, 0][:d], rtol=0, atol=1e-12)


def test_volumes_may_be_compared():
    # Equal means the same volume; comparing the data of two would ask for the truth of an array.
    volume = numbered(*GRIDS["straight 2D"][:2])
    copy = ls.Volume(volume.data.copy(), volume.affine.copy())
    assert volume != copy
    assert len({volume, copy, volume}) == 2


def test_constants_next_to_whole_numbers_keep_their_fractions():
    assert like(np.array([0.5]), np.array([2, 3])).tolist() == [0.5]
