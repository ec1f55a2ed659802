"""Overlap in closed form, its laws, and what happens to empty masks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from logishape.metrics import dice, jaccard, mask_volume, precision, recall, relative_volume_error
from tests.problems import assert_one_sentence

EMPTY, FULL = np.zeros((3, 4, 5), bool), np.ones((3, 4, 5), bool)


def cube(start, size=6, shape=(20, 20, 20)):
    mask = np.zeros(shape, bool)
    mask[tuple(slice(k, k + size) for k in start)] = True
    return mask


@st.composite
def mask_pairs(draw):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=5))
    return draw(hnp.arrays(bool, shape)), draw(hnp.arrays(bool, shape))


def test_shifted_cubes():
    a, b = cube((4, 4, 4)), cube((6, 4, 4))  # 4 of 6 layers shared
    assert dice(a, b) == pytest.approx(4 / 6)
    assert jaccard(a, b) == pytest.approx(4 / 8)
    assert precision(a, b) == pytest.approx(4 / 6)
    assert recall(a, b) == pytest.approx(4 / 6)
    assert relative_volume_error(a, b) == 0


def test_a_cube_in_a_larger_one():
    small, large = cube((5, 5, 5), 4), cube((4, 4, 4), 8)
    assert precision(small, large) == 1
    assert recall(small, large) == pytest.approx(1 / 8)
    assert dice(small, large) == pytest.approx(2 * 64 / (64 + 512))
    assert relative_volume_error(small, large) == pytest.approx(-7 / 8)
    assert mask_volume(large, 0.5 * 0.5 * 0.8) == pytest.approx(512 * 0.2)


def test_empty_masks_have_answers_or_none():
    assert dice(EMPTY, EMPTY) == jaccard(EMPTY, EMPTY) == 1
    assert dice(EMPTY, FULL) == dice(FULL, EMPTY) == jaccard(EMPTY, FULL) == 0
    assert precision(EMPTY, FULL) is None
    assert precision(FULL, EMPTY) == 0
    assert recall(FULL, EMPTY) is None
    assert recall(EMPTY, FULL) == 0
    assert relative_volume_error(FULL, EMPTY) is None
    assert relative_volume_error(EMPTY, FULL) == -1
    assert mask_volume(EMPTY) == 0


@given(mask_pairs())
def test_laws(pair):
    a, b = pair
    assert dice(a, b) == dice(b, a)
    assert jaccard(a, b) == pytest.approx(dice(a, b) / (2 - dice(a, b)))
    assert 0 <= jaccard(a, b) <= dice(a, b) <= 1
    assert precision(a, b) == recall(b, a)
    assert dice(a, a) == 1
    p, r = precision(a, b), recall(a, b)
    if p and r:  # Dice is their harmonic mean
        assert dice(a, b) == pytest.approx(2 / (1 / p + 1 / r))


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("value", [1, 255])
def test_masks_of_files_are_welcome(kind, value):
    a, b = cube((4, 4, 4)), cube((6, 4, 4))
    assert dice(a.astype(kind) * kind(value), b) == dice(a, b)


@pytest.mark.parametrize(
    ("wrong", "pattern"),
    [
        (np.full((3, 4, 5), 0.37), "0.37"),  # a map of probabilities
        (np.arange(60).reshape(3, 4, 5), "both 1 and 2"),  # several labels
        (np.full((3, 4, 5), -1), "-1"),
        (np.full((3, 4, 5), np.nan), "nan"),
        (np.full((3, 4, 5), "inside"), "true and false"),
        (np.full((3, 4, 5), 1j), "true and false"),
        (np.ones((3, 4, 6)), "has shape"),
    ],
)
def test_what_is_no_mask_is_refused(wrong, pattern):
    assert_one_sentence(lambda: dice(wrong, FULL), pattern)
    assert_one_sentence(lambda: dice(FULL, wrong), pattern)


@pytest.mark.parametrize("size", [0, -1, np.nan, np.inf])
def test_a_voxel_has_a_volume(size):
    assert_one_sentence(lambda: mask_volume(FULL, size), "volume of a voxel")
