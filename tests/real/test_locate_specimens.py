"""Real specimens found in their CTs by a template that never saw them."""

import sys
from pathlib import Path

import pytest

from logishape.cochlea import load_folds, load_template
from logishape.cochlea.landmarks import frame_from_points
from logishape.cochlea.locate import locate
from logishape.cochlea.vestibule import frame_offset
from logishape.core.errors import InputError
from logishape.io import read_landmarks, read_volume

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from specimens import data_folder

pytestmark = pytest.mark.real_data


@pytest.mark.parametrize(
    "name", ["T01", *(pytest.param(one, marks=pytest.mark.slow) for one in ("F01", "F02", "T03"))]
)
def test_a_specimen_is_found(name):
    try:
        folder = data_folder() / name
    except InputError as error:
        pytest.skip(str(error))
    (fold,) = (fold for fold, names in load_folds().items() if name in names)
    marks = read_landmarks(folder / "landmarks.json")
    (found,) = locate(read_volume(folder / "ct.nii.gz"), template=load_template(fold))
    assert found.side == marks.side
    away, turned = frame_offset(found.frame, frame_from_points(marks.points, marks.side))
    assert away < 1.0  # mm; people place landmarks to half a millimetre
    assert turned < 15.0  # degrees
