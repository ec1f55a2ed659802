"""The calibrations that come with the library, the files they are read from, and what is wrong with other files."""

import copy
import json
import sys

import equinox as eqx
import jaxtyping
import numpy as np
import pytest

import logishape as ls
from logishape.cochlea import (
    Calibration,
    Cochlea,
    Frame,
    coordinates,
    load_calibration,
    load_folds,
    paper_calibration,
    path,
    surface,
)
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.cochlea.duct import FREE
from logishape.cochlea.surface import wall_radius
from logishape.core.arrays import double_precision
from tests.problems import assert_one_sentence

FOLDS = ("1", "2", "3", "4")
TEN = ("tx", "ty", "tz", "rx", "ry", "rz", "a", "b", "alpha", "phi")
NAN, INF = np.nan, np.inf


def test_the_default_cochlea_has_ten_parameters():
    cochlea = Cochlea()
    assert cochlea.parameter_names == TEN
    assert Cochlea(preset="paper").parameter_names == TEN
    assert cochlea.frame.side == "right"
    assert not cochlea.is_faceted


@pytest.mark.parametrize(
    ("free", "num"),
    [(("section_scale",), 11), (("apex_offset", "theta_max"), 12), (FREE[:3], 13), (FREE[::-1], 15)],
)
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_parameters_are_freed_in_one_order_whatever_is_asked(preset, free, num):
    cochlea = Cochlea(free=free, preset=preset)
    assert cochlea.num_parameters == num
    assert cochlea.parameter_names == TEN + tuple(name for name in FREE if name in free)
    np.testing.assert_array_equal(cochlea.check(cochlea.mean()), cochlea.mean())
    model = ls.Model(cochlea, cochlea.prior(), 0.2)
    with double_precision():
        at_mean = float(model.prior.log_prob(cochlea.mean()))
        assert np.isfinite(at_mean)
        assert float(model.prior.log_prob(cochlea.mean() + 0.1 * model.prior.widths)) <= at_mean
        assert float(model.prior.log_prob(np.asarray(model.prior.upper) + 0.1)) == -np.inf


def test_free_parameters_start_where_the_fixed_ones_are():
    """More parameters at their means say the same as fewer: models with and without them are comparable."""
    points = np.random.default_rng(0).uniform(-5, 5, (50, 3))
    with double_precision():
        few, many = (
            np.asarray(eqx.filter_jit(one.level)(one.mean(), points)) for one in (Cochlea(), Cochlea(free=FREE))
        )
    np.testing.assert_allclose(many, few, atol=1e-4)  # the file rounds the mean of theta_max to five digits


def test_the_paper_prior_is_its_box():
    prior = Cochlea(preset="paper").prior()
    assert np.all(np.asarray(prior.precision) == 0)
    np.testing.assert_array_equal(prior.lower[6:], [2.8, 0.09, 0.05, -1.5])
    np.testing.assert_array_equal(prior.upper[6:], [5.2, 0.22, 1.3, 1.5])
    boxed, gaussian = Cochlea().prior(gaussian=False), Cochlea().prior()
    assert np.all(np.asarray(boxed.precision) == 0)
    assert np.all(np.linalg.eigvalsh(np.asarray(gaussian.precision)) > 0)
    np.testing.assert_array_equal(boxed.upper, gaussian.upper)


def test_folds_hold_out_all_twelve_specimens_once():
    assert set(load_folds()) == set(FOLDS)
    held_out = list(load_folds().values())
    assert [len(names) for names in held_out] == [3, 3, 3, 3]
    assert len(set().union(*held_out)) == 12
    means = [load_calibration(fold=fold).mean for fold in FOLDS]
    assert all(np.abs(a - b).max() > 1e-4 for k, a in enumerate(means) for b in means[:k])


@pytest.mark.parametrize("fold", [None, *FOLDS])
def test_the_mean_cochlea_keeps_its_anatomy(fold):
    """Published means: lateral wall by angle (within 0.15 mm), turns, length of the organ of Corti."""
    cochlea = Cochlea(calibration=load_calibration(fold=fold))
    theta = cochlea.mean()
    with double_precision():
        form = cochlea.form(theta)
        wall = wall_radius(form, np.radians([90, 180, 270, 360, 540, 720, 900]))
        radius = np.asarray(form.section(np.linspace(0, float(form.end), 200)).radius.value)
    np.testing.assert_allclose(wall, [4.3, 3.3, 2.6, 2.2, 1.85, 1.75, 1.35], atol=0.15)
    assert 2.5 <= float(form.end) / (2 * np.pi) <= 2.75
    assert 28 < path(cochlea, theta, "organ_of_corti").length[-1] < 38
    assert np.all(radius > -0.05)  # the centreline winds about the axis; a twentieth of a millimetre is no voxel
    assert np.all(np.diff(radius) < 0.02)


# What users get wrong.

RECORD = json.loads(DEFAULT_FILE.read_text(encoding="utf-8"))
COCHLEA = Cochlea(preset="paper")
THETA = COCHLEA.mean()


@pytest.fixture
def _as_a_user_runs_it(monkeypatch):
    """Without the suite's run-time type checks, which would speak first where a user has none."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def changed(**values):
    """The mean with other values, by name."""
    return COCHLEA.theta(dict(zip(TEN, THETA, strict=True)) | values)


OPTIONS = {
    "unknown free parameter": (lambda: Cochlea(free=("beta",)), "free must be among .* but has 'beta'; "),
    "free parameter as a word": (
        lambda: Cochlea(free="theta_max"),
        "free must be a tuple of names but is 'theta_max'",
    ),
    "unknown preset": (lambda: Cochlea(preset="wimmer"), "preset must be default or paper but is 'wimmer'"),
    "preset and calibration": (
        lambda: Cochlea(preset="paper", calibration=paper_calibration()),
        "a calibration was given too; leave one out",
    ),
    "path for a calibration": (
        lambda: Cochlea(calibration="all.json"),
        "must come from load_calibration but is a str",
    ),
    "unknown distance": (lambda: Cochlea(distance="euclid"), "must be level, exact, mesh or learned but is 'euclid'"),
    "unknown side": (lambda: Frame.identity("up"), "side must be left or right but is 'up'; say which"),
    "apex at the centre": (
        lambda: Frame.from_landmarks([1, 2, 3], [1, 2, 3], [5, 0, 0], "left"),
        "landmarks must be .*; mark them again",
    ),
    "landmarks on a line": (
        lambda: Frame.from_landmarks([0, 0, 0], [0, 0, 4], [0, 0, -3], "right"),
        "from one line but are .*; mark them again",
    ),
    "landmark not a number": (
        lambda: Frame.from_landmarks([0, 0, NAN], [0, 0, 4], [5, 0, 0], "right"),
        "landmarks must be finite",
    ),
    "landmark in the plane": (
        lambda: Frame.from_landmarks([0, 0], [0, 0, 4], [5, 0, 0], "right"),
        r"three numbers \(RAS mm\) for the landmark centre but found shape \(2,\)",
    ),
    "skewed axes": (lambda: Frame(np.eye(3) + 0.1, np.zeros(3)), "three orthogonal rows of length one; use"),
    "origin not a number": (lambda: Frame(np.eye(3), [0, NAN, 0]), "origin must be finite but is .*; check it"),
    "too few parameters": (
        lambda: surface(COCHLEA, THETA[:4]),
        r"has 10 parameters .* but numbers of shape \(4,\) were given; give one",
    ),
    "a table of parameters": (lambda: path(COCHLEA, THETA[None]), "has 10 parameters"),
    "parameter not a number": (lambda: surface(COCHLEA, changed(b=NAN)), "parameter b must be finite but is nan"),
    "infinite parameter": (lambda: path(COCHLEA, changed(tz=INF)), "parameter tz must be finite but is inf"),
    "degrees for radians": (
        lambda: coordinates(COCHLEA, changed(rx=20.0), np.zeros((1, 3))),
        r"parameter rx must lie in \[-0.6, 0.6\] but is 20; .*check its unit",
    ),
    "below the box": (lambda: path(COCHLEA, changed(a=2.0)), r"parameter a must lie in \[2.8, 5.2\] but is 2"),
    "angles in degrees": (
        lambda: path(COCHLEA, THETA, angles=[0, 90, 180]),
        r"rise within \[0.00, 15.71\] rad; leave them out",
    ),
    "angles before the start": (lambda: path(COCHLEA, THETA, angles=[-0.5, 1.0]), "angles must be two or more"),
    "falling angles": (lambda: path(COCHLEA, THETA, angles=[2.0, 1.0]), "angles must be two or more that rise"),
    "one angle": (lambda: path(COCHLEA, THETA, angles=[2.0]), "angles must be two or more that rise"),
    "a number for angles": (lambda: path(COCHLEA, THETA, angles=2.0), "angles must be two or more that rise"),
    "angles not numbers": (lambda: path(COCHLEA, THETA, angles=[0.0, NAN]), "angles must be two or more that rise"),
    "unknown path": (lambda: path(COCHLEA, THETA, "scala"), "along must be one of centre, .* but is 'scala'"),
    "edge of nothing": (lambda: surface(COCHLEA, THETA, 0.0), "edge length must be 0.02 to 1 mm but is 0.0; try"),
    "edge of metres": (lambda: surface(COCHLEA, THETA, 150), "edge length must be 0.02 to 1 mm but is 150"),
    "edge not a number": (lambda: surface(COCHLEA, THETA, NAN), "edge length must be 0.02 to 1 mm but is nan"),
    "points not a number": (
        lambda: coordinates(COCHLEA, THETA, np.full((2, 3), NAN)),
        "points",
    ),
    "points in the plane": (lambda: coordinates(COCHLEA, THETA, np.zeros((2, 2))), "points"),
    "missing file": (
        lambda: load_calibration("nowhere/else.json"),
        "else.json should be a calibration but is not there; check the path",
    ),
    "unknown fold": (lambda: load_calibration(fold="5"), "has no fold '5' but 1, 2, 3, 4; choose"),
    "fold as a wrong number": (lambda: load_calibration(fold=7), "has no fold 7 but 1, 2, 3, 4; choose"),
    "words for parameters": (lambda: surface(COCHLEA, "abc"), "expected numbers for the parameters but found 'abc'"),
    "words for angles": (lambda: path(COCHLEA, THETA, angles=["a", "b"]), "expected numbers for the angles"),
    "words for a landmark": (
        lambda: Frame.from_landmarks("x", [0, 0, 4], [5, 0, 0], "right"),
        "expected numbers for the landmark centre but found 'x'",
    ),
    "one number for a landmark": (lambda: Frame.from_landmarks(0, [0, 0, 4], [5, 0, 0], "right"), "three numbers"),
    "an edge as a word": (lambda: surface(COCHLEA, THETA, "0.1"), "edge length must be 0.02 to 1 mm but is '0.1'"),
    "parameters of another model": (
        lambda: COCHLEA.level(THETA[:9], np.zeros((1, 3))),
        "expected the parameters a, b",
    ),
}


@pytest.mark.usefixtures("_as_a_user_runs_it")
@pytest.mark.parametrize("name", OPTIONS)
def test_mistakes_meet_one_sentence(name):
    assert_one_sentence(*OPTIONS[name])


@pytest.mark.usefixtures("_as_a_user_runs_it")
def test_a_missing_scikit_image_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.measure", None)
    assert_one_sentence(lambda: surface(COCHLEA, THETA), "needs scikit-image, which is missing; pip install")


def without(*keys):
    def change(record):
        parent = record
        for key in keys[:-1]:
            parent = parent[key]
        del parent[keys[-1]]

    return change


def put(value, *keys):
    def change(record):
        parent = record
        for key in keys[:-1]:
            parent = parent[key]
        parent[keys[-1]] = value

    return change


A = ("tables", "all")
PRIOR = (*A, "prior")
IDENTITY = RECORD["tables"]["all"]["prior"]["mean"]
CHANGES = {
    "foreign": (put("a shopping list", "format"), "is no calibration of a cochlea; make one"),
    "no format": (without("format"), "is no calibration of a cochlea; make one"),
    "later version": (put(2, "version"), "has version 2 of the format but this logishape reads 1; make it anew"),
    "no version": (without("version"), "has version None of the format"),
    "no tables": (without("tables"), "lacks 'tables'; it is damaged"),
    "tables as a list": (put([1], "tables"), "lacks 'tables'"),
    "no table": (put({}, "tables"), "has no .*; choose|lacks"),
    "no spiral": (without(*A, "spiral"), "lacks 'spiral'"),
    "no prior": (without(*PRIOR), "lacks 'prior'"),
    "no beta": (
        without(*A, "spiral", "beta"),
        "'beta' in .* must be one finite numbers below a million; it is damaged",
    ),
    "no sections": (without(*A, "sections"), "lacks 'sections'"),
    "no column": (without(*A, "sections", "chebyshev", "dz"), "'dz' in .* must be n finite numbers"),
    "no range": (without(*A, "sections", "angle_range"), "'angle_range' in .* must be 2 finite"),
    "no start": (without(*A, "theta_start"), "'theta_start' in .* must be one finite"),
    "no parameter names": (without(*PRIOR, "names"), "lacks 'names'"),
    "no mean": (without(*PRIOR, "mean"), "'mean' in .* must be 15 finite"),
    "words for numbers": (put("three", *A, "spiral", "rise"), "'rise' in .* must be one finite"),
    "rows of different lengths": (
        put([1.0, 2.0], *A, "sections", "chebyshev", "c2"),
        "sections in .* differ in degree",
    ),
    "empty row": (put([], *A, "sections", "chebyshev", "c2"), "'c2' in .* must be n finite"),
    "reversed range": (put([3.0, 1.0], *A, "sections", "angle_range"), "have no range; make the file anew"),
    "other parameter names": (put(["tx"], *PRIOR, "names"), "must name the parameters tx, .*; make it anew"),
    "three cap depths": (put([1, 1, 1], *A, "cap_depths"), "'cap_depths' in .* must be 2 finite"),
    "centre in the plane": (put([0, 0], *A, "centre"), "'centre' in .* must be 3 finite"),
    "mean of ten": (put([0.0] * 10, *PRIOR, "mean"), "'mean' in .* must be 15 finite"),
    "ragged covariance": (
        put([[1.0], [1.0, 2.0]], *PRIOR, "covariance"),
        "'covariance' in .* must be 15 x 15 finite",
    ),
    "infinite bound": (put([-INF] * 15, *PRIOR, "lower"), "'lower' in .* must be 15 finite"),
    "end not a number": (put(NAN, *A, "theta_max"), "'theta_max' in .* must be one finite"),
    "coefficient without bound": (
        put([1e308] * 12, *A, "sections", "chebyshev", "c0"),
        "'c0' in .* must be n finite numbers below a million",
    ),
    "coefficient not a number": (put([NAN] * 12, *A, "sections", "chebyshev", "c0"), "'c0' in .* must be n finite"),
    "end before the start": (put(-1.0, *A, "theta_max"), "contradict each other .*; make the file anew"),
    "four turns": (put(25.0, *A, "theta_max"), "contradict each other .*less than three turns"),
    "no cap": (put([0.0, 1.0], *A, "cap_depths"), "contradict each other"),
    "mean outside the box": (
        put([99.0, *IDENTITY[1:]], *PRIOR, "mean"),
        "contradict each other .*mean lie in the box",
    ),
    "box turned round": (
        put(RECORD["tables"]["all"]["prior"]["upper"], *PRIOR, "lower"),
        "contradict each other",
    ),
    "negative variance": (put((-np.eye(15)).tolist(), *PRIOR, "covariance"), "contradict .*covariance be positive"),
    "asymmetric covariance": (
        put((np.eye(15) + np.eye(15, k=1) / 2).tolist(), *PRIOR, "covariance"),
        "contradict each other",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_damaged_calibrations_meet_one_sentence(name, tmp_path):
    change, pattern = CHANGES[name]
    record = copy.deepcopy(RECORD)
    change(record)
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(record), encoding="utf-8")
    assert_one_sentence(lambda: load_calibration(file), pattern)


@pytest.mark.parametrize("content", [b'{"format": ', b"\xff\xfe\x00", b"", b"[1, 2]", b"null"])
def test_files_that_are_no_calibration_meet_one_sentence(content, tmp_path):
    file = tmp_path / "broken.json"
    file.write_bytes(content)
    assert_one_sentence(lambda: load_calibration(file), "broken.json")


def test_folders_are_no_calibration(tmp_path):
    assert_one_sentence(
        lambda: load_calibration(tmp_path), "should be a calibration but is no plain file; check the path"
    )


def test_an_untouched_copy_of_the_file_says_the_same(tmp_path):
    """The record that the tests above damage is sound before they do."""
    file = tmp_path / "copy.json"
    file.write_text(json.dumps(RECORD), encoding="utf-8")
    found, shipped = load_calibration(file, "2"), load_calibration(fold="2")
    assert isinstance(found, Calibration)
    np.testing.assert_array_equal(found.table.powers, shipped.table.powers)
