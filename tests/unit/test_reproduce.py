"""The study of the paper's comparisons: what is kept, where cases come from, the page, and the small pieces."""

import json
import re

import equinox as eqx
import jax
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - its own documentation calls it so
from matplotlib.figure import Figure

from logishape import shapes
from logishape.cochlea import Cochlea
from logishape.cochlea.reformat import SHAPE, Crop, grid_points
from logishape.core.errors import InputError
from logishape.inference.model import Model
from logishape.report.evolution import chosen_steps
from logishape.reproduce import paper
from logishape.reproduce.atlas import Demons, look_at, register
from logishape.reproduce.blocks import Picture, Section, Table, duration, mean_of, mean_sd
from logishape.reproduce.cases import FOLDS, Source, find_source, fold_of
from logishape.reproduce.efficiency import ByDerivatives
from logishape.reproduce.page import write
from logishape.reproduce.robustness import SPREAD_MM, SPREAD_RAD, draw_start
from logishape.reproduce.run import SECTIONS, run
from logishape.reproduce.store import Store
from logishape.reproduce.study import Study
from tests.problems import assert_one_sentence

# What is finished is not done again.


def counted(values):
    """A function that gives one value after another, so that a second call shows."""
    rest = list(values)
    return lambda: rest.pop(0)


def test_a_finished_part_is_read_and_other_settings_make_another(tmp_path):
    make = counted([{"dice": 0.9}, {"dice": 0.8}, {"dice": 0.7}, {"dice": 0.6}])
    assert Store(tmp_path, {"version": "1"}).get("a", make, {"length": (0.1, 0.2)}) == {"dice": 0.9}
    again = Store(tmp_path, {"version": "1"})
    assert again.get("a", make, {"length": (0.1, 0.2)}) == {"dice": 0.9}
    assert again.get("a", make, {"length": (0.1, 0.3)}) == {"dice": 0.8}
    assert Store(tmp_path, {"version": "2"}).get("a", make, {"length": (0.1, 0.3)}) == {"dice": 0.7}
    assert Store(tmp_path, {"version": "2"}, is_fresh=True).get("a", make, {"length": (0.1, 0.3)}) == {"dice": 0.6}


def test_a_part_that_fails_leaves_nothing_and_a_broken_one_is_named(tmp_path):
    store = Store(tmp_path, {})
    with pytest.raises(ZeroDivisionError):
        store.get("a", lambda: 1 / 0)
    assert list(tmp_path.iterdir()) == []
    for text in ("{", "[]", '{"settings": {}}', "nothing"):
        (tmp_path / "a.json").write_text(text)
        assert_one_sentence(lambda: store.get("a", lambda: 1), "a.json")


def test_numbers_that_json_cannot_hold_are_not_kept(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        Store(tmp_path, {}).get("a", lambda: float("nan"))
    assert list(tmp_path.iterdir()) == []


def refuse():
    raise InputError("the CT has no cochlea; give one that has.")


def test_a_case_that_is_refused_is_a_part_with_its_reason(tmp_path):
    told = []
    study = Study(Source(None, ("phantom-1",)), Store(tmp_path, {}), told.append)
    assert study.part("one", refuse) == {"refused": "the CT has no cochlea; give one that has."}
    assert study.part("one", lambda: {}) == {"refused": "the CT has no cochlea; give one that has."}
    assert told == ["one"]


# Where cases come from.


def test_cases_are_phantoms_unless_specimens_are_there(tmp_path, monkeypatch):
    monkeypatch.delenv("LOGISHAPE_DATA", raising=False)
    assert find_source(None, 2).names == ("phantom-1", "phantom-2")
    assert_one_sentence(lambda: find_source(tmp_path), "F01")
    (tmp_path / "bony_labyrinth" / "F01").mkdir(parents=True)
    monkeypatch.setenv("LOGISHAPE_DATA", str(tmp_path))
    found = find_source(None)
    assert found.folder == tmp_path / "bony_labyrinth"
    assert sorted(found.names) == sorted(sum(FOLDS.values(), ()))
    assert [fold_of(name) for name in found.names[:4]] == ["1", "1", "1", "2"]


def test_some_of_the_cases_are_of_every_fold(tmp_path):
    names = tuple(sum(FOLDS.values(), ()))
    study = Study(Source(tmp_path, names), Store(tmp_path, {}), print)
    assert {fold_of(name) for name in study.some(6)} == set(FOLDS)
    assert len(set(study.some(6))) == 6
    assert study.some(99) == names


def test_phantoms_of_the_study_have_a_truth_and_no_region():
    case = Source(None, ("phantom-1",)).load("phantom-1")
    assert case.region is None
    np.testing.assert_array_equal(case.inside(case.truth), case.truth.data > 0)
    assert 40 < np.count_nonzero(case.truth.data) * case.truth.voxel_size < 140  # mm^3, of a cochlea


# The page.


def sections():
    figure = Figure()
    figure.subplots().plot([0, 1])
    table = Table("Dice <by> way", ("way", "Dice"), (("a | b", "0.9"), ("c", "-")))
    return [
        Section("First & second", "What was done.", (table,), (Picture("dots", figure, "Dots."),), ("Mind <this>.",))
    ]


def test_the_page_holds_everything_and_needs_no_network(tmp_path):
    write(tmp_path, sections(), "An introduction.", "Version 1.")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dots.png", "reproduce.html", "reproduce.md"]
    html, text = ((tmp_path / f"reproduce.{kind}").read_text() for kind in ("html", "md"))
    assert (tmp_path / "dots.png").read_bytes().startswith(b"\x89PNG")
    assert "Dice &lt;by&gt; way" in html
    assert "Mind &lt;this&gt;." in html
    assert html.count('src="data:image/png;base64,') == 1
    assert re.findall(r"(?:src|href)=[\"'](?!data:|#)|url\(|https?:", html) == []
    assert "| a \\| b | 0.9 |" in text


def test_the_page_is_the_same_every_time(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / name, sections(), "", "")
    one, two = ((tmp_path / name / "reproduce.html").read_bytes() for name in ("a", "b"))
    assert one == two


def test_numbers_in_words():
    assert mean_sd([0.8, 0.9, None]) == "0.850 ± 0.071"
    assert mean_sd([0.8]) == "0.800"
    assert mean_sd([]) == mean_of([None]) == "-"
    assert mean_of([0.1, 0.3, None]) == "0.20"
    assert [duration(s) for s in (0.123, 16.2, 200, 44100)] == ["0.12 s", "16 s", "3 min", "12.2 h"]
    assert duration(paper.SECONDS["newton-mesh"]) == "43 min"


def test_a_section_that_does_not_exist_is_refused(tmp_path):
    assert_one_sentence(lambda: run(tmp_path, only=("efficacy",)), "efficacy")
    assert list(tmp_path.iterdir()) == []
    assert len(SECTIONS) == 8


# The pieces.


def test_iterations_shown_are_the_first_the_last_and_some_between():
    assert chosen_steps(1) == [0, 1]  # of a fit that ended where it began the caller has one more
    for count in (2, 5, 10, 200):
        steps = chosen_steps(count)
        assert steps[0] == 0
        assert steps[-1] == count - 1
        assert len(steps) <= 6


def test_random_starts_are_in_the_box_and_around_the_located_pose():
    cochlea = Cochlea(free=("theta_max",))
    model = Model(cochlea, cochlea.prior(), 0.1)
    starts = np.array([draw_start(model, number, 0) for number in range(200)])
    assert np.all((starts > model.prior.lower) & (starts < model.prior.upper))
    offset = np.abs(starts[:, :6] - cochlea.mean()[:6])
    assert np.all(offset.max(axis=0) <= np.repeat([SPREAD_MM, SPREAD_RAD], 3))
    assert np.all(offset.max(axis=0) > 0.8 * np.repeat([SPREAD_MM, SPREAD_RAD], 3))
    form = (starts[:, 6:] - model.prior.lower[6:]) / model.prior.widths[6:]
    np.testing.assert_allclose(form.mean(axis=0), 0.5, atol=0.1)  # uniform: SD of a mean of 200 is 0.02
    np.testing.assert_array_equal(starts[7], draw_start(model, 7, 0))
    assert not np.array_equal(starts[7], draw_start(model, 7, 1))


def test_a_gradient_through_the_level_is_that_of_the_derivatives(x64):
    """Differences with a step that is far too large, so that one cannot be taken for the other."""
    coarse = shapes.FiniteDifferences(shapes.Ellipsoid(3), [0.5, 0.5, 0.5])
    shape, theta = ByDerivatives(coarse), np.array([2.0, 1.5, 1.0])
    points = np.random.default_rng(0).uniform(-3, 3, (50, 3))
    found = coarse.derivatives(theta, points)

    def total(one, theta):
        return one.level(theta, points).sum()

    by_level, true = (eqx.filter_jit(jax.grad(lambda t, s=s: total(s, t)))(theta) for s in (shape, coarse))
    np.testing.assert_allclose(by_level, np.asarray(found.jacobian).sum(axis=0), rtol=1e-9)
    assert np.abs(by_level - true).max() > 0.1
    np.testing.assert_allclose(shape.level(theta, points), coarse.level(theta, points))


def blob(shift):
    """A bright ball in a crop, as a look at it sees it."""
    points = grid_points()
    values = 1000 * np.exp(-np.sum((points - [0.8 + shift, 0.2, 0.6]) ** 2, axis=1) / 8)
    return Crop(points, values.astype(np.float32), np.ones(len(points), bool))


def test_demons_follow_a_ball_that_moved():
    options = Demons(look="hu", match="none", smoothing=1.5, iterations=(20, 20, 10))
    fixed, moving = (look_at(blob(shift), options) for shift in (0.0, 0.6))
    field = np.asarray(sitk.GetArrayFromImage(register(fixed, moving, options)))
    field = field.transpose(2, 1, 0, 3).reshape(-1, 3)
    assert len(field) == np.prod(SHAPE)
    near = np.linalg.norm(grid_points() - [0.8, 0.2, 0.6], axis=1) < 2
    # Displacements lead from the fixed image to the moving one, whose ball is 0.6 mm further along x.
    np.testing.assert_allclose(field[near].mean(axis=0), [0.6, 0, 0], atol=0.1)


def test_the_papers_numbers_are_its_own():
    assert paper.SEGMENTATION["posterior", "micro-CT"] == ("0.91 ± 0.019", "0.36", "1.68")
    assert paper.SECONDS["bfgs-mesh"] == 12.25 * 3600
    json.dumps(paper.ROBUSTNESS)
