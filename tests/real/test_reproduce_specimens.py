"""The study's specimens: read with all their truths, and scored as an independent yardstick scores them."""

import sys
from pathlib import Path

import numpy as np
import pytest

from logishape.core.errors import InputError
from logishape.reproduce.cases import Case, find_source, fold_of
from logishape.reproduce.segmented import score

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from specimens import data_folder

pytestmark = pytest.mark.real_data
NAMES = ("F01", "T01", "T06")


def load(name: str) -> Case:
    try:
        return find_source(data_folder()).load(name)
    except InputError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_the_yardstick(name):
    case = load(name)
    if not (data_folder().parents[1] / "eval" / "score.py").is_file():
        pytest.skip("the yardstick score.py is not beside the data")
    yardstick = pytest.importorskip("atlas_baseline").load_yardstick()
    assert list(case.truths) == ["CT by hand", "micro-CT"]
    assert case.region is not None
    region = case.region.data > 0
    hand, fine = case.truths.values()
    moved = hand.with_data(np.roll(hand.data, 2, axis=0))  # spills out of the region, too
    for prediction in (hand, moved):
        found = score(case, prediction, fine)
        true = yardstick.compare(prediction.data > 0, fine.data > 0, region, hand.spacing)
        assert found["dice"] == pytest.approx(true["dice"], abs=1e-12)
        assert found["spill_mm3"] == pytest.approx(true["spill"], abs=1e-6)
        # Percentiles of distances between the same voxels; spacing in headers is rounded.
        assert found["hd95"] == pytest.approx(true["hd95"], abs=1e-3)
        assert found["hd100"] == pytest.approx(true["hd100"], abs=1e-3)


def test_a_specimen_comes_with_what_was_made_without_its_fold():
    one, two = load("F01"), load("F02")
    assert fold_of(one.name) != fold_of(two.name)
    assert not np.array_equal(one.calibration.mean, two.calibration.mean)
    assert not np.array_equal(one.template.values, two.template.values)
