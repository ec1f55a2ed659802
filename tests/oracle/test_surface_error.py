"""The average surface error: its field against loops and a linear solver, mixtures and distances against truths."""

import numpy as np
import pytest
from scipy import ndimage, stats

from logishape.metrics import average_surface_error as maybe_error
from logishape.metrics.surface_error import (
    _pairs,
    inside_probability,
    near_border,
    smooth_labels,
    update_field,
)
from tests.problems import assert_one_sentence


def average_surface_error(*arguments, **choice) -> float:
    """The error where there is one."""
    found = maybe_error(*arguments, **choice)
    assert found is not None
    return found


SHAPE = (5, 6, 4)


def neighbours(domain: np.ndarray) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    """Each voxel of a domain with those two steps away along an axis, by loops."""
    found = {}
    for index in map(tuple, np.argwhere(domain)):
        found[index] = []
        for axis in range(domain.ndim):
            for step in (-2, 2):
                other = tuple(i + step * (k == axis) for k, i in enumerate(index))
                if all(0 <= i < n for i, n in zip(other, domain.shape, strict=True)) and domain[other]:
                    found[index].append(other)
    return found


@pytest.fixture
def some():
    rng = np.random.default_rng(0)
    domain = rng.random(SHAPE) < 0.8
    near = neighbours(domain)
    pairs = [_pairs(domain, axis) for axis in range(3)]
    count = np.zeros(SHAPE)
    for index, others in near.items():
        count[index] = len(others)
    return rng, domain, near, pairs, count


def test_a_step_of_the_field_is_that_of_loops(some):
    rng, domain, near, pairs, count = some
    labels, field, variance, alpha = rng.random(SHAPE), rng.normal(size=SHAPE), rng.random(SHAPE) + 0.1, 0.7
    field = np.where(domain, field, 0)
    mean, spread = update_field(labels, field, variance, alpha, pairs, count)
    for index, others in near.items():
        xi = np.sqrt(variance[index] + field[index] ** 2)
        lam = np.tanh(xi / 2) / (4 * xi)
        s = 1 / (2 * lam + alpha * len(others) / 2)
        w = s * ((labels[index] - 0.5) + alpha / 2 * sum(field[other] for other in others))
        assert spread[index] == pytest.approx(s)
        assert mean[index] == pytest.approx(w)


def test_the_field_settles_where_a_linear_solver_puts_it(some):
    """With the bound held (xi chosen so that it is), the fixed point is a linear system, solved densely by NumPy."""
    rng, domain, near, pairs, count = some
    labels, alpha, xi = rng.random(SHAPE), 1.3, 1.0
    lam = np.tanh(xi / 2) / (4 * xi)
    index = {voxel: k for k, voxel in enumerate(near)}
    matrix, right = np.zeros((len(index), len(index))), np.zeros(len(index))
    for voxel, others in near.items():
        matrix[index[voxel], index[voxel]] = 2 * lam + alpha * len(others) / 2
        for other in others:
            matrix[index[voxel], index[other]] -= alpha / 2
        right[index[voxel]] = labels[voxel] - 0.5
    solved = np.linalg.solve(matrix, right)
    field = np.zeros(SHAPE)
    for _ in range(400):
        field, _ = update_field(labels, field, xi**2 - field**2, alpha, pairs, count)
        field = np.where(domain, field, 0)
    np.testing.assert_allclose([field[voxel] for voxel in near], solved, atol=1e-9)


@pytest.mark.parametrize(("odd", "is_flipped"), [(0.45, True), (0.001, False)])
def test_neighbours_outvote_a_doubtful_voxel_but_not_a_sure_one(odd, is_flipped):
    seen = np.full((9, 9, 9), 0.99)
    seen[:, :, 6:] = 0.01
    expected = seen >= 0.5
    seen[4, 4, 2] = odd
    found = smooth_labels(seen, np.ones(seen.shape, bool)) >= 0.5
    expected[4, 4, 2] = is_flipped
    np.testing.assert_array_equal(found, expected)


def test_probabilities_are_those_of_the_true_densities():
    """Two t densities, one twice; seven components on a histogram come near where there are values enough."""
    rng = np.random.default_rng(2)
    inside, outside = stats.t(5, 200, 150), stats.t(5, 2000, 300)
    values = np.concatenate([inside.rvs(20_000, rng), outside.rvs(20_000, rng)])
    side = np.arange(40_000) < 20_000
    found = inside_probability(values, side)
    expected = inside.pdf(values) / (inside.pdf(values) + outside.pdf(values))
    assert np.abs(found - expected).mean() < 0.02
    assert np.mean((found > 0.5) != (expected > 0.5)) < 0.01


def scene(noise: float, size: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An image of a dark ball in bright surroundings (0.2 mm voxels), its mask, and each voxel's distance from it."""
    grid = np.indices((size,) * 3) - (size - 1) / 2
    level = (0.27 * size - np.linalg.norm(grid, axis=0)) * 0.2
    image = ndimage.gaussian_filter(np.where(level > 0, 200.0, 2000.0), 0.6)
    return image + np.random.default_rng(0).normal(0, noise, image.shape), level > 0, level


def test_the_right_mask_has_nearly_no_error():
    image, mask, _ = scene(100.0)
    assert average_surface_error(image, mask, 0.2) < 0.02


def test_the_error_grows_with_what_is_wrong():
    """A mask moved by d has points 0 to d off. Mixtures learn from the wrong labels: less is found than is wrong."""
    image, mask, level = scene(100.0)
    moved = [average_surface_error(image, np.roll(mask, k, axis=0), 0.2) for k in range(5)]
    assert np.all(np.diff(moved) > 0.05)
    np.testing.assert_allclose(moved, 0.1 * np.arange(5), atol=0.05)
    for sign in (-1, 1):  # too large, too small
        wrong = [average_surface_error(image, level > sign * off, 0.2) for off in (0.2, 0.4, 0.6)]
        assert np.all(np.diff([0, *wrong]) > 0.03)
        assert wrong[-1] < 0.7


def test_millimetres_and_turned_grids():
    image, mask, _ = scene(100.0, 30)
    mask = np.roll(mask, 2, axis=1)
    one = average_surface_error(image, mask, 0.2)
    assert average_surface_error(image, mask, 0.4, band_mm=2.4) == pytest.approx(2 * one, abs=0.02)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    # The edge of the band runs through voxel centres: rounding moves a few of them in or out.
    assert average_surface_error(image, mask, 0.2 * turn) == pytest.approx(one, abs=0.01)
    assert average_surface_error(-2 * image + 7, mask, 0.2) == pytest.approx(one, abs=0.02)


def test_what_lies_beyond_the_region_says_nothing():
    """Half of the ball is cut away by the region; rubbish there, and the cut's own faces, change nothing."""
    image, mask, _ = scene(100.0)
    region = np.ones(mask.shape, bool)
    region[20:] = False
    first = average_surface_error(image, mask & region, 0.2, region)
    assert first < 0.02
    spoilt = np.where(region, image, 9000.0)
    assert average_surface_error(spoilt, mask & region, 0.2, region) == first
    band = near_border(mask & region, region, 0.2, 1.0)
    assert not band[~region].any()
    assert not band[19, 20, 20]  # at the cut, in the ball's middle


def test_without_borders_there_is_no_error():
    image, mask, _ = scene(100.0, 20)
    assert maybe_error(image, np.zeros_like(mask), 0.2) is None
    assert maybe_error(image, np.ones_like(mask), 0.2) is None
    assert_one_sentence(lambda: maybe_error(image, mask[1:], 0.2), "the mask has shape")
