"""The cochlea's shape on masks of real specimens, with tables calibrated without them."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from logishape.cochlea import load_folds
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.core.arrays import double_precision
from logishape.core.errors import InputError

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import adequacy
from specimens import FOLDS, data_folder, load_specimens

pytestmark = pytest.mark.real_data


@pytest.fixture
def specimen():
    try:
        data_folder()
    except InputError as error:
        pytest.skip(str(error))
    return load_specimens(("T01",))[0]


@pytest.mark.slow  # a fit and its compilation
def test_a_shape_that_never_saw_it_fits_a_specimen(specimen):
    cochlea, fit = adequacy.fit_mask(specimen, specimen.reference, ("section_scale",), DEFAULT_FILE)
    found = adequacy.score(specimen, specimen.reference, cochlea, fit)
    assert found.dice > 0.88
    assert 28 < found.corti < 38


def test_the_frame_stands_on_the_landmarks(specimen):
    marks = json.loads((data_folder() / specimen.name / "landmarks.json").read_text())["landmarks_ras_mm"]
    with double_precision():
        apex, window, base = np.asarray(specimen.frame.to_cochlea(np.array([marks[k] for k in ("A", "RW", "C")])))
    np.testing.assert_allclose(base, 0, atol=1e-5)
    np.testing.assert_allclose(apex[:2], 0, atol=1e-5)
    np.testing.assert_allclose(window[1], 0, atol=1e-5)
    assert apex[2] > 1
    assert window[0] > 1
    # The basal turn runs towards +y in left and right ears alike.
    assert specimen.points[specimen.manual][:, 1].max() > 3


def test_the_folds_in_the_file_are_those_of_the_specimens():
    assert load_folds() == FOLDS
