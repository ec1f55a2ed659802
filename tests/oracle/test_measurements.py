"""Measurements against quadrature, meshes, published formulas and populations; and laws that they obey."""

import csv
import io

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline

from logishape.cochlea import (
    Cochlea,
    Frame,
    coordinates,
    frequency,
    insertion_angle,
    insertion_depth,
    mesh_volume,
    path,
    surface,
)
from logishape.cochlea.coloured import angles_along
from logishape.cochlea.draws import as_draws
from logishape.cochlea.insertion import greenwood
from logishape.cochlea.measurements import (
    DEPTHS_MM,
    FREQUENCY_ANGLES,
    LENGTH_ANGLES,
    QUANTITIES,
    Measurement,
    measure,
    measure_all,
    plain_rows,
    table_of,
)
from logishape.cochlea.spread import population_of, surface_sd
from logishape.core.arrays import double_precision
from tests.cochleae import derivatives, likely, make
from tests.oracle.test_cochlea import PlainCochlea
from tests.problems import assert_one_sentence

RIGHT = Frame.from_landmarks([3, -2, 5], [4, 1, 6], [9, -3, 4], "right")
SHARES = {"organ_of_corti": 0.69, "lateral_wall": 1.0}
NUM = 3  # of cochleae


@pytest.fixture(scope="module")
def cochlea() -> Cochlea:
    return make("calibrated", RIGHT)


@pytest.fixture(scope="module")
def thetas(cochlea) -> np.ndarray:
    return likely(cochlea, NUM, 5)


@pytest.fixture(scope="module")
def measured(cochlea, thetas):
    return [measure(cochlea, theta, None) for theta in thetas]


@pytest.fixture(scope="module")
def meshes(cochlea, thetas):
    return [surface(cochlea, theta, 0.1) for theta in thetas]


def ends(one: Measurement) -> tuple[float, float, float]:
    """Lower end, median and upper end, which are there."""
    assert one.lower is not None
    assert one.median is not None
    assert one.upper is not None
    return one.lower, one.median, one.upper


def length_by_quadrature(cochlea, theta, share: float, degrees: float) -> float:
    """The path's length from splines through points of the formulas written anew, by SciPy's quadrature."""
    angle = np.linspace(0, theta[13], 3001)
    radius, height = PlainCochlea(cochlea.calibration, theta).path(angle, share)
    splines = [
        CubicSpline(angle, row).derivative() for row in (radius * np.cos(angle), radius * np.sin(angle), height)
    ]
    end = min(np.radians(degrees), theta[13])
    return quad(
        lambda x: float(np.sqrt(sum(one(x) ** 2 for one in splines))), 0, end, limit=400, epsabs=1e-3, epsrel=1e-5
    )[0]


@pytest.mark.parametrize("along", SHARES)
def test_lengths_are_those_of_quadrature(cochlea, thetas, measured, along):
    for theta, found in zip(thetas[:2], measured, strict=False):
        wanted = {f"length_{along}_{angle}": float(angle) for angle in LENGTH_ANGLES} | {f"duct_length_{along}": 1e9}
        for name, degrees in wanted.items():
            # Formulas written anew look for the wall every half degree: some 1e-4 of a length.
            expected = length_by_quadrature(cochlea, theta, SHARES[along], degrees)
            assert found[name].value == pytest.approx(expected, rel=3e-4), name


def test_sizes_are_those_of_the_mesh(cochlea, thetas, measured, meshes):
    """A in a thin slab of the surface, H and the volume of all of it: edges of 0.1 mm leave some hundredths."""
    for theta, found, mesh in zip(thetas, measured, meshes, strict=True):
        with double_precision():
            points = np.asarray(cochlea.to_model(theta, mesh.vertices))
        assert found["H"].value == pytest.approx(np.ptp(points[:, 2]), abs=0.05)
        assert found["volume"].value == pytest.approx(mesh_volume(mesh), rel=0.015)
        for name, axis in (("A", 0), ("B", 1)):
            slab = points[np.abs(points[:, 1 - axis]) < 0.08]
            ends = slab[slab[:, axis] > 0, axis].max(), -slab[slab[:, axis] < 0, axis].min()
            assert found[name].value == pytest.approx(sum(ends), abs=0.06), name


def test_the_axis_is_that_of_the_model(cochlea, thetas, measured):
    for theta, found in zip(thetas, measured, strict=True):
        axis = np.array([found[f"axis_{x}"].value for x in "xyz"])
        assert np.linalg.norm(axis) == pytest.approx(1)
        with double_precision():
            moved = np.asarray(cochlea.to_model(theta, np.array([[1.0, 2, 3], np.array([1.0, 2, 3]) + axis])))
        np.testing.assert_allclose(moved[1] - moved[0], [0, 0, 1], atol=1e-9)


def test_a_mirror_changes_nothing_but_the_axis(cochlea, thetas):
    mirror = np.diag([-1.0, 1.0, 1.0])
    left = Cochlea(Frame(np.asarray(RIGHT.axes) @ mirror, mirror @ np.asarray(RIGHT.origin)), cochlea.duct.free)
    right = Cochlea(RIGHT, cochlea.duct.free)
    assert (left.frame.side, right.frame.side) == ("left", "right")
    one, other = (measure(shape, thetas[0], thetas) for shape in (left, right))
    for name in QUANTITIES:
        sign = -1 if name == "axis_x" else 1
        assert one[name].value == pytest.approx(sign * other[name].value, rel=1e-6, abs=1e-9), name
        assert ends(one[name])[1] == pytest.approx(sign * ends(other[name])[1], rel=1e-6, abs=1e-9), name
    np.testing.assert_allclose(
        insertion_angle(left, thetas, depth_mm=[5.0, 20.0]), insertion_angle(right, thetas, depth_mm=[5.0, 20.0])
    )


def test_the_interval_is_that_of_the_draws_whatever_their_number(cochlea, thetas):
    draws = likely(cochlea, 40, 9)  # more than one piece of the compiled program
    found = measure(cochlea, thetas[0], draws)
    each = np.array([[one.value for one in measure(cochlea, draw, None).values()] for draw in draws[[0, 35, 39]]])
    every = measure(cochlea, draws[0], draws[[0, 35, 39]])
    for k, (name, one) in enumerate(every.items()):
        assert one.median == pytest.approx(np.median(each[:, k]), rel=5e-3, abs=1e-6), name  # cells of the volume
        assert sorted(ends(one)) == list(ends(one))
    assert found["A"].lower < np.median(insertion_depth(cochlea, draws, angle_degrees=180.0)) < 20
    assert measure(cochlea, thetas[0], None)["A"].lower is None


def test_depth_and_angle_go_back_and_forth(cochlea, thetas):
    angles = np.array([0.0, 33.0, 270.0, 640.0])
    for along in (*SHARES, "centre"):
        depths = insertion_depth(cochlea, thetas, angle_degrees=angles, along=along)
        assert depths.shape == (NUM, 4)
        assert np.all(np.diff(depths, axis=1) > 0)
        for theta, row in zip(thetas, depths, strict=True):
            np.testing.assert_allclose(insertion_angle(cochlea, theta, depth_mm=row, along=along), angles, atol=1e-9)


def test_the_functions_say_what_the_table_says(cochlea, thetas, measured):
    theta, found = thetas[0], measured[0]
    for along in SHARES:
        depths = insertion_depth(cochlea, theta, angle_degrees=LENGTH_ANGLES, along=along)
        np.testing.assert_allclose(depths, [found[f"length_{along}_{angle}"].value for angle in LENGTH_ANGLES])
    angles = insertion_angle(cochlea, theta, depth_mm=DEPTHS_MM)
    np.testing.assert_allclose(angles, [found[f"insertion_angle_{depth}_mm"].value for depth in DEPTHS_MM])
    heard = frequency(cochlea, theta, angle_degrees=FREQUENCY_ANGLES)
    np.testing.assert_allclose(heard, [found[f"frequency_{angle}"].value for angle in FREQUENCY_ANGLES])
    assert frequency(cochlea, theta, depth_mm=20.0) == pytest.approx(
        frequency(cochlea, theta, angle_degrees=angles[2])
    )
    # At relative place x the formula, written out.
    share = 1 - insertion_depth(cochlea, theta, angle_degrees=360, along="organ_of_corti") / (
        found["duct_length_organ_of_corti"].value
    )
    assert frequency(cochlea, theta, angle_degrees=360) == pytest.approx(165.4 * (10 ** (2.1 * share) - 0.88))


def test_the_curves_say_what_the_functions_say(cochlea, thetas):
    draws = likely(cochlea, 40, 9)
    _, curves = measure_all(cochlea, thetas[0], draws)
    angles = curves.angle[curves.angle < 900]  # the shortest duct of the draws goes on
    heard = frequency(cochlea, draws, angle_degrees=angles)
    for name, ask in {
        "frequency_hz": lambda theta: frequency(cochlea, theta, angle_degrees=angles),
        "length_lateral_wall_mm": lambda theta: insertion_depth(cochlea, theta, angle_degrees=angles),
    }.items():
        band, each = curves.bands[name], ask(draws)[:, : len(angles)]
        np.testing.assert_allclose(band.value[: len(angles)], ask(thetas[0]), rtol=1e-9, atol=1e-9)
        assert band.upper is not None
        np.testing.assert_allclose(band.upper[: len(angles)], np.quantile(each, 0.95, axis=0), rtol=1e-9, atol=1e-9)
    assert heard.shape == (40, len(angles))
    along = path(cochlea, thetas[0], "centre", np.radians(curves.centre_angle[[40, 120, -1]]))
    np.testing.assert_allclose(curves.centreline[[40, 120, -1]], along.points, atol=1e-6)
    with double_precision():
        model = np.asarray(cochlea.to_model(thetas[0], along.points))
    np.testing.assert_allclose(curves.to_model(along.points), model, atol=1e-9)


def test_vertices_have_the_angle_of_their_coordinates(cochlea, thetas, meshes):
    """Another way to say it, by the level of each turn; where turns meet and over the axis the two may differ.

    Of the rounded ends one gives the angle of the last section, the other that of the half-plane.
    """
    _, curves = measure_all(cochlea, thetas[0], None)
    vertices = meshes[0].vertices[::5]
    asked = np.degrees(coordinates(cochlea, thetas[0], vertices).angle)
    found = angles_along(curves, vertices)
    assert np.mean(np.abs(found - np.clip(asked, *curves.centre_angle[[0, -1]])) < 1e-3) > 0.95
    assert np.ptp(found) == pytest.approx(np.ptp(curves.centre_angle))


def test_the_surface_is_as_sure_as_its_draws(cochlea, thetas, meshes):
    """The spread of levels over draws against the delta method with exact derivatives."""
    vertices, theta = meshes[0].vertices[::7], thetas[0]
    root = np.random.default_rng(0).normal(size=(theta.size, theta.size)) * 0.005
    draws = theta + np.random.default_rng(1).normal(size=(400, theta.size)) @ root.T
    found = surface_sd(cochlea, theta, as_draws(cochlea, draws), vertices)
    exact = derivatives(cochlea, theta, vertices)
    sd = np.linalg.norm(exact.jacobian @ root, axis=1)
    # The SD of 400 draws is good to 3.5 % (1 SD); where two turns meet neither is quite right.
    assert np.quantile(np.abs(found * np.linalg.norm(exact.gradient, axis=1) / sd - 1), 0.95) < 0.12


def test_the_population_is_that_of_draws_from_the_prior(cochlea):
    shape = Cochlea(free=("section_scale", "theta_max", "apex_offset"))
    found, rng = population_of(shape), np.random.default_rng(3)
    draws = rng.multivariate_normal(shape.mean(), prior_covariance(shape), 400)
    rows = plain_rows(shape, draws)
    assert found is not None
    assert found["a"] == pytest.approx((shape.mean()[6], shape.sd()[6]))
    for name in ("A", "duct_length_lateral_wall", "frequency_360", "turns"):
        column = rows[:, list(QUANTITIES).index(name)]
        # An SD of 400 draws is good to 3.5 % (1 SD), a mean to 5 % of an SD.
        assert found[name][1] == pytest.approx(column.std(), rel=0.12), name
        assert found[name][0] == pytest.approx(column.mean(), abs=0.2 * column.std()), name
    assert not {"volume", "axis_x"} & set(found)
    assert population_of(make("paper")) is None


def test_greenwood_spans_human_hearing():
    """Greenwood (1990): about 20 Hz at the apex and 20 677 Hz at the base."""
    assert greenwood(0.0) == pytest.approx(19.848, abs=1e-3)
    assert greenwood(1.0) == pytest.approx(20677, rel=1e-4)


def test_the_calibrated_population_is_the_published_one():
    """Ranges of the literature, which hold nearly all ears: of draws from the prior nine in ten at least."""
    cochlea = Cochlea(free=("section_scale", "theta_max", "apex_offset"))
    prior, sd = cochlea.prior(), cochlea.sd()
    rng = np.random.default_rng(3)
    draws = rng.multivariate_normal(cochlea.mean(), prior_covariance(cochlea), 60)
    draws = np.clip(draws, prior.lower, prior.upper)
    assert np.all(np.isfinite(sd))
    found = measure(cochlea, cochlea.mean(), draws)
    ranges = {"A": (8.0, 10.4), "B": (5.7, 7.6), "duct_length_organ_of_corti": (28, 38), "turns": (2.4, 2.75)}
    for name, (low, high) in ranges.items():
        one = found[name]
        lower, median, upper = ends(one)
        assert low < lower < median < upper < high, (name, one)
    # Two formulas that surgeons use, from A alone. They hold on average, for one ear to a tenth.
    a = found["A"].value
    for angle in LENGTH_ANGLES:
        escude = 2.62 * a * np.log(1 + angle / 235)
        assert found[f"length_lateral_wall_{angle}"].value == pytest.approx(escude, rel=0.1), angle
    assert found["duct_length_organ_of_corti"].value == pytest.approx(4.16 * a - 4, rel=0.1)


def prior_covariance(cochlea: Cochlea) -> np.ndarray:
    chosen = cochlea._chosen()
    return np.asarray(cochlea.calibration.covariance)[np.ix_(chosen, chosen)]


def test_the_table_is_one_for_spreadsheets(cochlea, thetas):
    found = measure(cochlea, thetas[0], thetas)
    rows = list(csv.DictReader(io.StringIO(table_of(found))))
    assert [row["name"] for row in rows] == list(QUANTITIES)
    for row in rows:
        one = found[row["name"]]
        for key in ("value", "median", "lower", "upper"):
            assert float(row[key]) == pytest.approx(getattr(one, key), rel=1e-5, abs=1e-12)
        assert row["unit"] == one.unit
    assert {row["upper"] for row in csv.DictReader(io.StringIO(table_of(measure(cochlea, thetas[0], None))))} == {""}


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        (lambda c, t: insertion_depth(c, t, angle_degrees=2000), "from 0 to the duct's end"),
        (lambda c, t: insertion_depth(c, t, angle_degrees=-1), "but is -1"),
        (lambda c, t: insertion_depth(c, t, angle_degrees=np.nan), "one number or a list"),
        (lambda c, t: insertion_angle(c, t, depth_mm=60), "from 0 to the duct's end"),
        (lambda c, t: insertion_angle(c, t, depth_mm="deep"), "expected numbers"),
        (lambda c, t: insertion_angle(c, t, depth_mm=5, along="scala"), "along must be one of"),
        (lambda c, t: frequency(c, t), "either angle_degrees or depth_mm"),
        (lambda c, t: frequency(c, t, angle_degrees=1, depth_mm=1), "either angle_degrees or depth_mm"),
        (lambda c, t: frequency(c, t[:5], angle_degrees=1), "15 parameters"),
        (lambda c, t: frequency(c, np.zeros((1, 1, 15)), angle_degrees=1), "one vector of parameters"),
    ],
    ids=range(10),
)
def test_bad_questions_meet_one_sentence(cochlea, thetas, call, pattern):
    assert_one_sentence(lambda: call(cochlea, thetas[0]), pattern)
