"""Distances between borders in closed form, on grids of all kinds, and their laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from logishape.metrics import SurfaceDistances, boundary, surface_distances
from tests.problems import assert_one_sentence
from tests.unit.metrics.test_overlap import EMPTY, FULL, cube, mask_pairs

SHEARED = np.array([[0.5, 0.2, 0.0], [0.0, 0.6, 0.1], [0.0, 0.0, 0.8]])


def ball(radius, spacing, size=12.0, centre=0.0):
    """A ball (mm) on a grid over [-size/2, size/2]^3."""
    axes = [np.arange(-size / 2, size / 2 + step / 2, step) for step in np.broadcast_to(spacing, 3)]
    x, y, z = np.meshgrid(*axes, indexing="ij")
    return (x - centre) ** 2 + y**2 + z**2 < radius**2


def turned(spacing):
    """Steps of this length along axes that are turned, and one of them flipped."""
    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    return q * spacing


def number(value: float | None) -> float:
    assert value is not None
    return value


def all_pairs(a, b, steps):
    """Distances from every border voxel to every other, written out."""
    at_a, at_b = np.argwhere(boundary(a)) @ steps.T, np.argwhere(boundary(b)) @ steps.T
    return np.linalg.norm(at_a[:, None] - at_b[None], axis=-1)


def test_the_border_of_a_cube():
    a = cube((4, 4, 4), 6)
    assert boundary(a).sum() == 6**3 - 4**3
    assert not boundary(a)[5:9, 5:9, 5:9].any()


def test_the_image_and_the_region_make_no_border():
    a = np.zeros((10, 10, 10), bool)
    a[:4] = True  # touches five faces of the image
    assert np.array_equal(np.unique(np.argwhere(boundary(a))[:, 0]), [3])
    region = np.ones_like(a)
    region[:, 7:] = False
    border = boundary(a, region)
    assert border.sum() == 7 * 10
    assert not border[:, 7:].any()
    assert not boundary(FULL).any()


def test_shifted_cubes():
    spacing = np.array([0.3, 0.5, 0.7])
    found = surface_distances(cube((4, 4, 4)), cube((6, 4, 4)), spacing)
    assert found.percentile(100) == found.max_percentile(100) == pytest.approx(2 * 0.3)
    assert found.percentile(0) == 0
    found = surface_distances(cube((4, 4, 4)), cube((4, 4, 12)), spacing)  # 8 voxels apart, the far faces too
    assert found.percentile(100) == pytest.approx(8 * 0.7)
    assert min(found.there.min(), found.back.min()) == pytest.approx(3 * 0.7)


def test_one_voxel():
    a, b = np.zeros((9, 9, 9), bool), np.zeros((9, 9, 9), bool)
    a[1, 2, 3], b[5, 5, 3] = True, True
    found = surface_distances(a, b, (0.5, 1.0, 2.0))
    expected = np.hypot(4 * 0.5, 3 * 1.0)
    assert found.percentile(95) == found.max_percentile(100) == found.mean() == pytest.approx(expected)
    assert found.there.shape == found.back.shape == (1,)


@pytest.mark.parametrize("spacing", [0.25, (0.2, 0.3, 0.4)])
def test_balls_in_each_other(spacing):
    """Every distance is the difference of the radii, to within a voxel's diagonal."""
    found = surface_distances(ball(4, spacing), ball(2.5, spacing), spacing)
    voxel = np.linalg.norm(np.broadcast_to(spacing, 3))
    for distances in (found.there, found.back):
        np.testing.assert_allclose(distances, 1.5, atol=voxel)
    assert found.mean() == pytest.approx(1.5, abs=voxel / 4)


def test_directed_percentiles_differ_and_are_averaged():
    """A ball and the same ball with a spike: one direction sees it."""
    plain = ball(3, 0.25)
    spiked = plain.copy()
    spiked[24, 24, 24:44] = True
    found = surface_distances(plain, spiked, 0.25)
    assert found.there.max() <= 0.5
    assert found.back.max() == pytest.approx(43 * 0.25 - 6 - 2.75)
    assert found.percentile(100) == pytest.approx((found.there.max() + found.back.max()) / 2)
    assert found.max_percentile(100) == found.back.max()
    assert number(found.percentile(95)) < number(found.percentile(100))


@pytest.mark.parametrize("axes", [1.0, (0.2, 0.5, 0.9), turned((0.2, 0.5, 0.9)), SHEARED], ids=str)
def test_equal_masks_have_no_distance(axes):
    found = surface_distances(cube((3, 5, 6)), cube((3, 5, 6)), axes)
    assert found.percentile(100) == found.mean() == 0


@pytest.mark.parametrize("axes", [np.diag([0.2, 0.5, 0.9]), turned((0.2, 0.5, 0.9)), SHEARED], ids=str)
def test_any_grid_has_the_distances_of_its_positions(axes):
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 7, 8, 9)) < 0.1
    table = all_pairs(a, b, axes)
    found = surface_distances(a, b, axes)
    np.testing.assert_allclose(found.there, table.min(axis=1), atol=1e-9)
    np.testing.assert_allclose(found.back, table.min(axis=0), atol=1e-9)


def test_a_sheared_grid_is_not_taken_for_its_spacing():
    a, b = cube((4, 4, 4)), cube((4, 6, 4))
    spacing = np.linalg.norm(SHEARED, axis=0)
    assert surface_distances(a, b, SHEARED).mean() != pytest.approx(surface_distances(a, b, spacing).mean(), rel=1e-3)


def test_a_large_image_costs_what_its_masks_do():
    """The same numbers as in the cut-out; the empty surroundings take no part."""
    small_a, small_b = cube((2, 2, 2), shape=(12, 12, 12)), cube((3, 4, 2), shape=(12, 12, 12))
    a, b = np.zeros((200, 200, 200), bool), np.zeros((200, 200, 200), bool)
    a[90:102, 50:62, 150:162], b[90:102, 50:62, 150:162] = small_a, small_b
    found, expected = surface_distances(a, b), surface_distances(small_a, small_b)
    np.testing.assert_array_equal(found.there, expected.there)
    np.testing.assert_array_equal(found.back, expected.back)


def test_clipping_by_a_region():
    """Two slabs that differ below the region's edge alone agree within it; the edge itself is no border."""
    a, b = np.zeros((12, 12, 12), bool), np.zeros((12, 12, 12), bool)
    a[2:7], b[2:7] = True, True
    b[2:7, :, :3] = False
    region = np.zeros_like(a)
    region[:, :, 4:] = True
    assert surface_distances(a, b, 0.5, region).percentile(100) == 0
    assert number(surface_distances(a, b, 0.5).percentile(100)) > 0


@pytest.mark.parametrize(("a", "b"), [(EMPTY, FULL), (FULL, EMPTY), (EMPTY, EMPTY), (FULL, FULL)])
def test_without_a_border_there_is_no_distance(a, b):
    found = surface_distances(a, b, 0.5)
    assert not found.is_defined
    assert found.percentile(95) is found.max_percentile(100) is found.mean() is None


@given(mask_pairs(), st.integers(0, 2**32 - 1))
def test_laws(pair, seed):
    a, b = pair
    steps = np.random.default_rng(seed).uniform(0.2, 2, a.ndim)
    found, back = surface_distances(a, b, steps), surface_distances(b, a, steps)
    np.testing.assert_array_equal(found.there, back.back)
    assert found.percentile(95) == back.percentile(95)
    assert found.mean() == pytest.approx(back.mean())
    if not found.is_defined:
        return
    low, high = (number(found.percentile(level)) for level in (50, 100))
    largest, mean = number(found.max_percentile(100)), number(found.mean())
    assert 0 <= low <= high <= largest <= 2 * high
    assert mean <= largest + 1e-12
    assert surface_distances(a, b, 2 * steps).mean() == pytest.approx(2 * mean)


@given(hnp.arrays(bool, (4, 5, 3)), hnp.arrays(bool, (4, 5, 3)), hnp.arrays(bool, (4, 5, 3)))
def test_voxels_outside_the_region_do_not_matter(a, b, region):
    found = surface_distances(a, b, 1.0, region)
    other = surface_distances(a & region, b | ~region, 1.0, region)
    np.testing.assert_array_equal(found.there, other.there)
    np.testing.assert_array_equal(found.back, other.back)


@pytest.mark.parametrize(
    "axes", [0.0, np.nan, (1, 2), np.ones((3, 3)), np.ones((2, 2)), "thin", (1.0, 0.0, 1.0), (1, np.inf, 1)], ids=str
)
def test_bad_axes(axes):
    assert_one_sentence(lambda: surface_distances(FULL, FULL, axes), "voxel size")


def test_bad_regions_and_levels():
    assert_one_sentence(lambda: surface_distances(FULL, FULL, 1.0, np.ones((2, 2, 2))), "the region has shape")
    assert_one_sentence(lambda: SurfaceDistances(np.ones(1), np.ones(1)).percentile(101), "level")
