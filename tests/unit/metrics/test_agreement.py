"""One record of all measures: what is in it, which grids it takes, and what JSON makes of it."""

import dataclasses
import json

import numpy as np
import pytest

from logishape import Volume
from logishape.metrics import Agreement, compare
from tests.problems import assert_one_sentence
from tests.unit.metrics.test_overlap import cube

SPACING = (0.3, 0.5, 0.7)
DISTANCES = ("hd95", "hd100", "hd95_max", "hd100_max", "mean_surface_distance")


def volume(mask, spacing=SPACING, origin=(10, -20, 30)):
    return Volume.from_spacing(mask, spacing, origin)


A, B = volume(cube((4, 4, 4))), volume(cube((6, 4, 4)))
NOTHING = A.with_data(np.zeros(A.shape, bool))


def test_shifted_cubes():
    found = compare(A, B)
    size = 216 * 0.3 * 0.5 * 0.7
    assert found.dice == found.precision == found.recall == pytest.approx(4 / 6)
    assert found.hd100 == found.hd100_max == pytest.approx(0.6)
    assert found.volume_prediction_mm3 == found.volume_truth_mm3 == pytest.approx(size)
    assert found.volume_error == found.spill_mm3 == 0


def test_what_lies_outside_the_region_is_spill():
    region = np.zeros(A.shape, np.uint8)
    region[:10] = 1
    prediction = A.data.copy()
    prediction[12:14, 2, 3] = True  # two voxels far away
    found = compare(A.with_data(prediction), A, A.with_data(region))
    assert found.dice == 1
    assert found.hd100 == 0
    assert found.spill_mm3 == pytest.approx(2 * 0.3 * 0.5 * 0.7)
    assert compare(A.with_data(prediction), A).spill_mm3 == 0


def test_a_turned_grid_has_the_numbers_of_a_straight_one():
    q, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))
    affine = A.affine.copy()
    affine[:3, :3] = q * SPACING
    straight, turned = compare(A, B), compare(Volume(A.data, affine), Volume(B.data, affine))
    for name, value in dataclasses.asdict(straight).items():
        assert getattr(turned, name) == pytest.approx(value), name


def test_exchange():
    there, back = compare(A, B), compare(B, A)
    assert there.precision == back.recall
    for name in ("dice", *DISTANCES):
        assert getattr(there, name) == pytest.approx(getattr(back, name)), name


@pytest.mark.parametrize(("prediction", "truth"), [(NOTHING, A), (A, NOTHING), (NOTHING, NOTHING)])
def test_empty_masks_never_crash_and_fit_into_json(prediction, truth):
    found = compare(prediction, truth)
    assert [getattr(found, name) for name in DISTANCES] == [None] * 5
    assert found.dice == (1 if prediction is truth else 0)
    record = json.loads(json.dumps(dataclasses.asdict(found), allow_nan=False))
    assert Agreement(**record) == found


def test_numbers_are_plain():
    for name, value in dataclasses.asdict(compare(A, B, A.with_data(np.ones(A.shape, bool)))).items():
        assert type(value) is float, name


def test_flat_images():
    mask = np.zeros((9, 9), bool)
    mask[2:5, 2:6] = True
    found = compare(volume(mask, 0.5, 0.0), volume(mask, 0.5, 0.0))
    assert found.dice == 1
    assert found.volume_truth_mm3 == pytest.approx(3.0)


def test_headers_may_round():
    moved = A.affine.copy()
    moved[:3, 3] += 0.005 * np.array(SPACING)
    assert compare(Volume(A.data, moved), A).dice == 1


def other_grids():
    off, turned = A.affine.copy(), A.affine.copy()
    off[0, 3] += 0.1
    turned[0, 1] = 0.001  # small, but twenty voxels away it is 0.06 of one
    yield "shape", A.data[:-1], A.affine
    yield "origin", A.data, off
    yield "turned", A.data, turned
    yield "spacing", A.data, A.affine @ np.diag([1, 1, 1.01, 1])
    yield "flipped", A.data, A.affine @ np.diag([-1, 1, 1, 1])
    yield "plane", A.data[0], np.eye(3)


@pytest.mark.parametrize(("data", "affine"), [pytest.param(*rest, id=name) for name, *rest in other_grids()])
def test_another_grid_is_refused(data, affine):
    assert_one_sentence(lambda: compare(Volume(data, affine), A), "the prediction")
    assert_one_sentence(lambda: compare(A, A, Volume(data, affine)), "the region")


def test_a_map_of_probabilities_is_refused():
    soft = A.with_data(A.data * 0.7)
    assert_one_sentence(lambda: compare(soft, A), "the prediction")
    assert_one_sentence(lambda: compare(A, soft), "the truth")
    assert_one_sentence(lambda: compare(A, A, soft), "the region")
