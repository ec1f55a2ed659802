"""The study of the paper's comparisons, run from end to end on phantoms: small, but nothing left out."""

import dataclasses
import json

import numpy as np
import pytest

from logishape.cochlea.reformat import Crop
from logishape.reproduce.cases import Source
from logishape.reproduce.efficiency import WAYS
from logishape.reproduce.efficiency_table import efficiency
from logishape.reproduce.run import run
from logishape.reproduce.store import Store
from logishape.reproduce.study import Study


def cells(section, table=0):
    """The rows of a table by their first two words."""
    return {row[:2]: row[2:] for row in section.tables[table].rows}


def test_the_ellipse_has_an_optimal_length_between_circle_and_intensities(tmp_path, monkeypatch):
    monkeypatch.delenv("LOGISHAPE_DATA", raising=False)
    told = []
    (section,) = run(tmp_path, only=("ellipse",), tell=told.append)
    assert told == ["ellipse"]
    assert "phantoms" in (tmp_path / "reproduce.html").read_text()
    for row in section.tables[0].rows:
        length, share, short, optimal, long = float(row[1]), *map(float, row[3:])
        assert 0.004 < length < 0.2
        assert share == pytest.approx(1, abs=0.1)  # the circle is as large as the ellipse, as the paper found
        assert optimal > short
        assert optimal > long
    kept = json.loads((tmp_path / "parts" / "ellipse.json").read_text())["value"]
    found = kept["distance"]
    heights = [-np.inf if height is None else height for height in found["heights"]]
    assert found["lengths"][int(np.argmax(heights))] == pytest.approx(found["best_length"], rel=0.5)
    again = []
    run(tmp_path, only=("ellipse",), tell=again.append)
    assert again == []  # what is finished is read


@pytest.mark.slow  # two phantoms, each segmented twice and fitted from many starts
def test_the_study_runs_from_end_to_end_and_again_from_what_it_kept(tmp_path, monkeypatch):
    monkeypatch.delenv("LOGISHAPE_DATA", raising=False)
    names = ("segmentation", "lengths", "robustness", "atlas", "uncertainty", "evolution")
    told = []
    found = dict(zip(names, run(tmp_path, only=names, is_quick=True, tell=told.append), strict=True))
    scores = cells(found["segmentation"])
    dice = {words: float(row[1].split()[0]) for (words, _), row in scores.items()}
    assert dice["segmentation, default"] > 0.95
    assert dice["fitted shape, default"] > 0.93
    assert dice["segmentation, default"] > dice["segmentation, paper's settings"] > 0.5
    by_length = {row[0]: [float(cell.split()[0]) for cell in row[1:4]] for row in found["lengths"].tables[0].rows}
    assert len(by_length) == 6
    assert by_length["0.05 mm"][1] > by_length["0.3 mm"][1]  # a long length blurs the shape
    robust = {row[0]: row[1:] for row in found["robustness"].tables[0].rows}
    assert len(robust) == 5
    several = robust["Gauss-Newton, several starts, 0.07 mm"]
    assert several[3] == "4 of 4"
    assert all(float(several[1].split()[0]) >= float(row[1].split()[0]) - 0.02 for row in robust.values())
    atlas = {row[0]: float(row[3]) for row in found["atlas"].tables[0].rows}
    assert 0.5 < atlas["atlas phantom-1, demons"] < 1
    assert atlas["our segmentation"] == pytest.approx(dice["segmentation, default"], abs=0.03)
    heights = [float(row[1]) for row in found["evolution"].tables[0].rows]
    assert heights == sorted(heights)  # no iteration lowers the log joint
    assert "converged" in found["evolution"].text
    for name in ("robustness", "uncertainty", "evolution"):
        assert (tmp_path / f"{name}.png").stat().st_size > 20_000
    assert len(told) == len(set(told)) > 40
    run(tmp_path, only=names, is_quick=True, tell=told.append)
    assert len(told) == len(set(told))


@pytest.mark.slow  # compiling fits by the distance to a mesh takes minutes
def test_the_ways_of_the_efficiency_table_take_turns(tmp_path):
    study = Study(Source(None, ("phantom-1",)), Store(tmp_path, {}), print, is_quick=True)
    scene = study.scene("phantom-1")
    rows = slice(None, None, 7)  # of the crop, in no plane of its grid
    crop = Crop(scene.crop.points[rows], scene.crop.intensities[rows], scene.crop.is_covered[rows])
    study._loaded["scene"] = ("phantom-1", dataclasses.replace(scene, crop=crop))
    ways, shares = efficiency(study).tables
    made = json.loads((tmp_path / "efficiency-phantom-1.json").read_text())["value"]
    assert made["voxels"] == len(crop.points)
    assert made["parameters"] == 10
    assert set(made["iteration_seconds"]) | set(made["skipped"]) == set(WAYS)
    steps = json.loads((tmp_path / "efficiency-phantom-1-steps.json").read_text())["value"]
    newton, bfgs = steps["gauss-newton"], steps["bfgs"]
    assert newton["status"] == "converged"
    assert bfgs["steps"] > newton["steps"]
    assert made["fit_log_joint"] == pytest.approx(newton["log_joint"], abs=0.5)
    assert bfgs["log_joint"] == pytest.approx(newton["log_joint"], abs=2)
    assert len(ways.rows) == len(WAYS) + 1
    assert all(float(row[-1]) > 3 for row in shares.rows[1:])  # times ours, each from its own measurement
