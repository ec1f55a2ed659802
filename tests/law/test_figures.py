"""Figures of a stored result: whole files, the same bytes for the same result, and something to see on each."""

import dataclasses
import io
import json
import re
import shutil
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from logishape import cli
from logishape.cochlea import load_calibration
from logishape.report import KINDS, Stored, figure, read_stored, results_in, save, write_figures
from logishape.report.evolution import chosen_steps
from logishape.report.facts import cochlea_of, cut_of, parameters_of, path_of, regions_of, window_of
from tests.problems import assert_one_sentence
from tests.segmentations import request, run_case, write_case


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    write_case(folder / "phantom")
    run_case(request(folder / "phantom", folder / "out"))
    return folder / "out"


@pytest.fixture(scope="module")
def stored(out) -> Stored:
    return read_stored(out / "right")


def share_drawn(content: bytes) -> float:
    """The share of pixels that are not the background's, which the first pixel has."""
    pixels = imread(io.BytesIO(content))[..., :3]
    return float(np.mean(np.any(np.abs(pixels - pixels[0, 0]) > 0.02, axis=2)))


def _mean_of(histogram) -> float:
    heights, edges, _ = histogram.get_data()
    return float(np.average(0.5 * (edges[1:] + edges[:-1]), weights=heights))


# The curves of effects take seconds; what is on them is looked at below.
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow if k == "effects" else ()) for k in KINDS])
def test_each_kind_is_written_whole_and_the_same_twice(out, tmp_path, kind):
    first = write_figures(out, kind, tmp_path / "first.png")
    again = write_figures(out / "right", kind, tmp_path / "again")
    assert [path.name for path in first] == ["first.png", "first.svg"]
    assert [path.name for path in again] == [f"{kind}.png", f"{kind}.svg"]
    png, svg = (path.read_bytes() for path in first)
    assert [path.read_bytes() for path in again] == [png, svg]
    assert share_drawn(png) > 0.05
    assert b"Software" not in png
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert sum(1 for one in root.iter() if one.tag.endswith(("path", "image", "use"))) > 20
    assert not re.search(rb"<dc:(date|creator)>", svg)


def test_figures_lie_beside_the_result_unless_told_otherwise(out, tmp_path):
    place = tmp_path / "copy" / "right"
    shutil.copytree(out / "right", place)
    (tmp_path / "copy" / "left").mkdir()
    assert results_in(tmp_path / "copy") == (place,)  # the other is no result
    assert write_figures(tmp_path / "copy", "densities") == tuple(
        place / "figures" / f"densities.{ending}" for ending in ("png", "svg")
    )
    shutil.copytree(place, tmp_path / "copy" / "left", dirs_exist_ok=True)
    named = write_figures(tmp_path / "copy", "densities", tmp_path / "paper.png")
    assert {path.name for path in named} == {f"paper-{s}.{e}" for s in ("left", "right") for e in ("png", "svg")}
    placed = write_figures(tmp_path / "copy", "densities", tmp_path / "paper")
    assert {path.parent.name for path in placed} == {"left", "right"}
    (tmp_path / "copy").rename(tmp_path / "scan")
    (tmp_path / "several").mkdir()
    (tmp_path / "scan").rename(tmp_path / "several" / "scan")
    many = write_figures(tmp_path / "several", "densities", tmp_path / "all")
    assert {path.parent.name for path in many} == {"scan-left", "scan-right"}


def test_a_figure_that_fails_leaves_the_older_one(stored, tmp_path):
    drawn = figure(stored, "densities")
    save(drawn, tmp_path / "one")
    older = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    class _Broken:
        def get_facecolor(self):
            return "white"

        def savefig(self, file, format, **_):
            file.write(b"half")
            if format == "svg":
                raise MemoryError

    with pytest.raises(MemoryError):
        save(_Broken(), tmp_path / "one")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == older


def test_the_evolution_shows_the_way_of_the_fit(stored):
    path = path_of(stored.record)
    drawn = figure(stored, "evolution")
    top, bottom = drawn.subfigs
    assert len(top.axes) == 3
    assert len(bottom.axes) == len(chosen_steps(len(path), 4))
    assert bottom.axes[0].get_title() == "start"
    assert bottom.axes[-1].get_title() == f"after {len(path) - 1} rounds"
    contours = [one for one in top.axes[0].collections if len(one.get_paths()[0].vertices)]
    assert len(contours) > 1


def test_uncertainty_has_both_maps_above_one_another(stored):
    drawn = figure(stored, "uncertainty")
    titles = [panel.get_title() for panel in drawn.axes if panel.get_title()]
    assert [title.split("\n")[1] for title in titles] == ["at the best shape"] * 3 + ["shape integrated out"] * 3
    shown = [np.ma.asarray(panel.images[-1].get_array()) for panel in drawn.axes[:6]]
    assert all(0.9 < one.max() <= 1 for one in shown)
    assert any(not np.ma.allclose(a, b) for a, b in zip(shown[:3], shown[3:], strict=True))


def test_the_overlay_has_six_planes_with_both_contours(stored):
    drawn = figure(stored, "overlay")
    assert len(drawn.axes) == 6
    assert all(len(panel.collections) >= 2 for panel in drawn.axes)
    assert drawn.axes[0].images[0].get_clim() == pytest.approx(window_of(stored.record))


def test_densities_hold_the_voxels_near_the_surface(stored):
    drawn = figure(stored, "densities")
    regions = regions_of(stored.record)
    for panel, mixture in zip(drawn.axes, (regions.inside, regions.outside), strict=True):
        heights, edges, _ = panel.patches[0].get_data()
        assert np.sum(heights * np.diff(edges)) == pytest.approx(1, abs=0.02)  # all but the farthest voxels
        values, density = panel.lines[0].get_data()
        assert np.trapezoid(density, values) == pytest.approx(1, abs=0.05)  # but for what lies beyond the axis
        parts = np.sum([line.get_ydata() for line in panel.lines[1:]], axis=0)
        np.testing.assert_allclose(parts, density, rtol=1e-4, atol=1e-9)
        assert len(panel.lines) == 1 + len(mixture.components.means)
    inside, outside = (_mean_of(panel.patches[0]) for panel in drawn.axes)
    seen = stored.record["appearance"]
    assert inside < 0.5 * (seen["lumen_value"] + seen["bone_value"]) < outside


def test_effects_are_of_this_results_parameters(stored):
    drawn = figure(stored, "effects")
    names = tuple(stored.record["parameters"])[6:]
    views = [panel for panel in drawn.axes if panel.get_title()]
    assert tuple(panel.get_title() for panel in views) == names
    theta = parameters_of(stored.record)[6:]
    heights = [panel for panel in drawn.axes if panel.get_xlabel()]
    for panel, height, value in zip(views, heights, theta, strict=True):
        less, own, more = (float(text.get_text().split()[0]) for text in legend_of(panel))
        assert own == pytest.approx(value, abs=0.006)
        assert less < own < more
        assert max(_apart(panel.lines[0], panel.lines[4]), _apart(height.lines[0], height.lines[2])) > 0.05  # mm
    apex = heights[names.index("apex_offset")]
    less, more = (np.asarray(apex.lines[k].get_xydata())[-1, 1] for k in (0, 2))
    assert less < more - 0.05


def legend_of(panel) -> list:
    legend = panel.get_legend()
    assert legend is not None
    return legend.get_texts()


def _apart(one, other) -> float:
    return float(np.abs(one.get_xydata() - other.get_xydata()).max())


def test_the_shape_is_that_of_the_record(stored):
    cochlea = cochlea_of(stored.record)
    assert cochlea.parameter_names == tuple(stored.record["parameters"])
    axes = np.asarray(cochlea.frame.axes)
    np.testing.assert_allclose(axes, stored.record["pose"]["frame"]["axes"])
    cut = cut_of(stored.record)
    assert cut is not None
    assert cut.side == "right"
    assert cut_of({"pose": {"cut": None}}) is None


def test_another_calibration_is_refused(stored):
    other = dataclasses.replace(load_calibration(), mean=1.001 * load_calibration().mean)
    assert_one_sentence(lambda: figure(stored, "evolution", other), "another")
    assert_one_sentence(lambda: figure(stored, "effects", other), "another")


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("appearance", {"lumen_value": "much", "bone_value": 1}, "overlay"),
        ("pose", {"frame": None}, "uncertainty"),
        ("centreline", {"angle_degrees": []}, "overlay"),
        ("fit", {"path": [[1.0]]}, "evolution"),
        ("fit", {}, "evolution"),
        ("options", None, "effects"),
        ("reference_lengths_mm", {}, "densities"),
    ],
)
def test_a_damaged_record_is_one_sentence(stored, field, value, kind):
    broken = dataclasses.replace(stored, record={**stored.record, field: value})
    assert_one_sentence(lambda: figure(broken, kind), field)


def test_wrong_words_are_one_sentence(out, tmp_path, stored):
    assert_one_sentence(lambda: write_figures(out, "pie"), "overlay, uncertainty")
    assert_one_sentence(lambda: figure(stored, "pie"), "choose one")
    assert_one_sentence(lambda: write_figures(out, "overlay", tmp_path / "one.pdf"), "one.pdf")
    assert_one_sentence(lambda: write_figures(tmp_path, "overlay"), "result.json is there")
    assert_one_sentence(lambda: write_figures(tmp_path / "nowhere", "overlay"), "is not there; check the path")
    place = tmp_path / "older"
    place.mkdir()
    (place / "result.json").write_text(json.dumps({"format": "logishape result", "version": 1}))
    assert_one_sentence(lambda: write_figures(place, "overlay"), "version")
    assert list(tmp_path.rglob("*.png")) == []


def test_the_command_says_where_the_files_are(out, tmp_path, monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["logishape", "figure", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, capsys.readouterr()

    code, said = run(out, "densities", "--out", tmp_path / "one.svg")
    assert code == 0
    assert said.out.split() == [str(tmp_path / "one.png"), str(tmp_path / "one.svg")]
    for words in ((out, "pie"), (tmp_path, "overlay"), (out,)):
        code, said = run(*words)
        assert code == 2
        assert said.err.startswith("logishape: ")
        assert len(said.err.splitlines()) == 1
