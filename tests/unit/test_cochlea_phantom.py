"""Synthetic CTs: their truth is the shape's, HU and noise are as asked, and every way to look at an ear agrees."""

import dataclasses
import re
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from scipy import ndimage

from logishape.cochlea import Cochlea, Frame, volume
from logishape.cochlea.phantom import Phantom, PhantomOptions, make_phantom
from logishape.cochlea.phantom_ear import draw_ear
from logishape.cochlea.phantom_parts import to_frame
from logishape.core.arrays import double_precision
from tests.cochleae import level
from tests.problems import assert_one_sentence

PLAIN = PhantomOptions(spacing_mm=0.4, noise_hu=0.0, lumen_hu=150.0)
COARSE = dataclasses.replace(PLAIN, spacing_mm=0.6, size_mm=15)  # 25 voxels along each axis
PAGE = Path(__file__).parents[2] / "docs" / "phantom.md"


def changed(options: PhantomOptions = PLAIN, **choice) -> PhantomOptions:
    return dataclasses.replace(options, **choice)


@pytest.fixture(scope="module")
def plain() -> Phantom:
    return make_phantom(PLAIN, 3)


@pytest.fixture(scope="module")
def coarse() -> Phantom:
    return make_phantom(COARSE, 3)


def positions(grid) -> np.ndarray:
    return grid.to_world(np.moveaxis(np.indices(grid.shape), 0, -1))


def centroid(mask) -> np.ndarray:
    return mask.to_world(np.argwhere(mask.data)).mean(axis=0)


def distance(mask) -> np.ndarray:
    return np.asarray(ndimage.distance_transform_edt(mask, sampling=0.4))


def size_mm3(mask) -> float:
    return float(mask.data.sum() * mask.voxel_size)


def test_a_phantom_is_what_it_says(plain):
    ear, ct = plain.ear, plain.volume
    assert ct.data.dtype == np.float32
    assert ct.shape == ear.truth.shape == ear.labyrinth.shape == (60, 60, 60)
    assert ear.truth.data.dtype == ear.labyrinth.data.dtype == bool
    np.testing.assert_allclose(ct.spacing, 0.4)
    for mask in (ear.truth, ear.labyrinth):
        np.testing.assert_array_equal(mask.affine, ct.affine)
    assert ear.side == ear.frame.side == "right"
    assert ear.frame.origin[0] > 20  # RAS: x grows towards the patient's right
    assert np.all(np.abs(centroid(ear.labyrinth) - ct.to_world([29.5] * 3)) < 3)


def test_the_same_seed_gives_the_same_numbers(coarse):
    again, other = make_phantom(COARSE, 3), make_phantom(COARSE, 4)
    np.testing.assert_array_equal(again.volume.data, coarse.volume.data)
    np.testing.assert_array_equal(again.ear.theta, coarse.ear.theta)
    assert np.any(other.ear.theta != coarse.ear.theta)
    noisy = [make_phantom(changed(COARSE, noise_hu=100.0), seed).volume.data for seed in (3, 3, 4)]
    np.testing.assert_array_equal(noisy[0], noisy[1])
    assert np.any(noisy[0] != noisy[2])


def test_the_truth_is_the_shape_before_the_cut(plain):
    ear = plain.ear
    points = positions(ear.truth)
    x, y, z = np.moveaxis((points - ear.frame.origin) @ ear.frame.axes.T, -1, 0)
    inside = level(ear.cochlea, ear.theta, points.reshape(-1, 3)).reshape(ear.truth.shape)
    is_duct = inside > 0
    expected = is_duct & ~((x > 2.4) & (y + z / 2 < -0.8)) & (z > -3)
    assert np.all(ear.truth.data <= expected)
    assert np.sum(expected & ~ear.truth.data) < 0.02 * np.sum(expected)  # crumbs beside the largest piece
    surface_volume = volume(ear.cochlea, ear.theta, 0.2)
    assert np.sum(is_duct) * 0.4**3 == pytest.approx(surface_volume, rel=0.03)
    assert 0.6 * surface_volume < size_mm3(ear.truth) < surface_volume


def test_surroundings_move_with_the_duct():
    """A point of the body's frame lies where the mean pose puts it in the duct's own frame."""
    for ear in (draw_ear(COARSE, (7,)), draw_ear(COARSE, (7,)).mirrored()):
        points = np.random.default_rng(0).normal(0, 5, (20, 3)) + ear.frame.origin
        average = Cochlea(free=("section_scale",))
        with double_precision():
            expected = average.to_model(average.mean(), to_frame(ear.body, points))
            np.testing.assert_allclose(ear.cochlea.to_model(ear.theta, points), expected, atol=1e-9)
            np.testing.assert_allclose(ear.box, ear.cochlea.extent(ear.theta), atol=1e-4)


def test_the_labyrinth_is_one_room(plain):
    ear = plain.ear
    assert np.all(ear.labyrinth.data[ear.truth.data])
    pieces = np.zeros(ear.labyrinth.shape, np.int32)
    ndimage.label(ear.labyrinth.data, np.ones((3, 3, 3)), output=pieces)
    assert pieces.max() == 1
    assert 130 < size_mm3(ear.labyrinth) < 280  # mm^3; the specimens have 144 to 267


def test_tissues_have_their_hu(plain):
    ear, hu = plain.ear, plain.volume.data
    depth = distance(ear.labyrinth.data)
    assert np.mean(hu[depth > 1.1]) == pytest.approx(150, abs=40)  # the texture's 20 HU and what is left of the blur
    away = distance(~ear.labyrinth.data)
    shell = hu[(away > 0.7) & (away < 1.3)]
    assert 1700 < np.median(shell) < 2200
    beyond = (away > 3) & (away < 5)
    assert 500 < np.median(hu[beyond]) < 1000
    z = to_frame(ear.frame, positions(plain.volume))[..., 2]  # dense bone goes on inwards, not towards the middle ear
    assert np.mean(hu[beyond & (z < 0)] > 1500) > 0.2
    assert np.mean(hu[beyond & (z > 3)] > 1500) < 0.05
    assert np.mean(hu < -600) > 0.02  # air cells and the middle ear
    assert hu.min() > -1000.5
    assert hu.max() < 2700


@pytest.mark.parametrize("lumen", ["fluid", "air"])
def test_the_lumen_is_drawn_when_not_given(lumen):
    low, high = {"fluid": (100, 250), "air": (-950, -700)}[lumen]
    values = {make_phantom(PhantomOptions(lumen, spacing_mm=1.0, size_mm=6), seed).ear.lumen_hu for seed in range(3)}
    assert len(values) == 3
    assert all(low <= value <= high for value in values)


def test_the_point_spread_softens_edges_alone(coarse):
    sharp = make_phantom(changed(COARSE, point_spread_mm=0.0), 3).volume.data
    soft = make_phantom(changed(COARSE, point_spread_mm=0.6), 3).volume.data
    assert soft.mean() == pytest.approx(sharp.mean(), abs=15)
    assert soft.std() < coarse.volume.data.std() < sharp.std()


@pytest.mark.parametrize(("spacing", "correlation"), [(0.6, 0.0), ((0.5, 0.6, 0.8), 0.5)], ids=str)
def test_noise_is_as_asked(spacing, correlation):
    options = changed(COARSE, spacing_mm=spacing, offset_mm=(-30, 0, 0))  # no ear, less to draw
    quiet = make_phantom(options, 3).volume
    loud = make_phantom(changed(options, noise_hu=120.0, noise_correlation_mm=correlation), 3).volume
    noise = loud.data.astype(float) - quiet.data
    # Four standard errors, by other seeds: 1.8 and 5 HU, and 0.012 of the correlation.
    assert noise.std() == pytest.approx(120, abs=7)
    assert abs(noise.mean()) < 20
    for axis, step in enumerate(quiet.spacing):
        last = noise.shape[axis] - 1
        found = np.mean(np.take(noise, range(1, last + 1), axis) * np.take(noise, range(last), axis)) / noise.var()
        expected = np.exp(-(step**2) / (4 * correlation**2)) if correlation else 0.0
        assert found == pytest.approx(expected, abs=0.05)


def test_a_left_ear_is_the_mirror_image_of_the_right_one():
    options = changed(COARSE, noise_hu=50.0, orientation="oblique", offset_mm=(1.0, 2.0, -1.0))
    right = make_phantom(changed(options, side="right", offset_mm=(-1.0, 2.0, -1.0)), 3)
    left = make_phantom(changed(options, side="left"), 3)
    assert left.ear.side == left.ear.frame.side == left.ear.cochlea.frame.side == "left"
    assert left.ear.frame.origin[0] < -20
    assert np.linalg.det(left.volume.affine) > 0  # a right-handed grid, as the right ear's
    here = left.volume.to_index(positions(right.volume) * [-1, 1, 1])
    index = tuple(np.moveaxis(np.rint(here).astype(int), -1, 0))
    np.testing.assert_allclose(here, np.rint(here), atol=1e-9)
    np.testing.assert_array_equal(left.volume.data[index], right.volume.data)
    np.testing.assert_array_equal(left.ear.truth.data[index], right.ear.truth.data)
    np.testing.assert_array_equal(left.ear.theta, right.ear.theta)
    for name, mark in right.ear.landmarks.items():
        np.testing.assert_allclose(left.ear.landmarks[name], mark * [-1, 1, 1])
    # The truth of the left ear is that of its own shape in its own frame.
    points = left.ear.truth.to_world(np.argwhere(left.ear.truth.data))
    assert np.all(level(left.ear.cochlea, left.ear.theta, points) > -1e-4)  # mm: single precision


@pytest.mark.parametrize(
    "choice",
    [
        {"orientation": "random"},
        {"orientation": "oblique", "flips": (True, True, False), "spacing_mm": (0.3, 0.4, 0.5)},
        {"offset_mm": (1.3, -0.7, 0.4), "size_mm": 20},
    ],
    ids=str,
)
def test_every_grid_sees_the_same_ear(plain, choice):
    other = make_phantom(changed(**choice), 3)
    ear = other.ear
    np.testing.assert_array_equal(ear.theta, plain.ear.theta)
    np.testing.assert_array_equal(ear.frame.axes, plain.ear.frame.axes)
    np.testing.assert_allclose(centroid(ear.truth), centroid(plain.ear.truth), atol=0.06)
    assert size_mm3(ear.truth) == pytest.approx(size_mm3(plain.ear.truth), rel=0.03)
    # The image moves along: the same HU at the same places, up to interpolation.
    points = plain.volume.to_world(np.argwhere(plain.ear.labyrinth.data))
    seen = ndimage.map_coordinates(other.volume.data, other.volume.to_index(points).T, order=1, mode="nearest")
    assert np.corrcoef(seen, plain.volume.data[plain.ear.labyrinth.data])[0, 1] > 0.85


def test_flips_reverse_the_voxel_order_alone(coarse):
    turned = make_phantom(changed(COARSE, flips=(True, False, True)), 3)
    np.testing.assert_allclose(turned.volume.data[::-1, :, ::-1], coarse.volume.data, atol=0.5)
    np.testing.assert_array_equal(turned.ear.truth.data[::-1, :, ::-1], coarse.ear.truth.data)


def test_gain_and_offset(coarse):
    other = make_phantom(changed(COARSE, hu_gain=1.2, hu_offset=-300.0), 3)
    np.testing.assert_allclose(other.volume.data, 1.2 * coarse.volume.data - 300, atol=0.01)


def test_landmarks_make_the_frame(coarse):
    ear = coarse.ear
    marks = (ear.landmarks[name] for name in ("C", "A", "RW"))
    frame = Frame.from_landmarks(*marks, ear.side)
    np.testing.assert_allclose(frame.axes, ear.frame.axes, atol=1e-9)
    np.testing.assert_allclose(frame.origin, ear.frame.origin)
    tiny = changed(COARSE, size_mm=6, landmark_error_mm=0.5)
    exact = make_phantom(changed(tiny, landmark_error_mm=0.0), 0).ear
    wrong = make_phantom(tiny, 0).ear
    errors = np.array([wrong.landmarks[name] - exact.landmarks[name] for name in exact.landmarks])
    assert 0.2 < errors.std() < 1.0
    np.testing.assert_array_equal(wrong.frame.axes, exact.frame.axes)


def test_shapes_on_request():
    tiny = changed(COARSE, size_mm=6, shape_spread=0.0)
    average = Cochlea(free=("section_scale",)).mean()
    np.testing.assert_allclose(make_phantom(tiny, 5).ear.theta, average)
    theta = Cochlea().mean() + 0.01
    found = make_phantom(changed(tiny, theta=theta, free=()), 5).ear
    np.testing.assert_array_equal(found.theta, theta)
    assert found.cochlea.num_parameters == 10
    draws = np.array([draw_ear(changed(tiny, shape_spread=1.0), (seed,)).theta for seed in range(40)])
    sd = np.sqrt(np.diag(Cochlea().calibration.covariance))[:11]
    assert np.all(np.abs(draws.mean(axis=0) - average) < 4 * sd / np.sqrt(40))
    assert np.all((draws.std(axis=0) > 0.6 * sd) & (draws.std(axis=0) < 1.5 * sd))


def test_a_field_without_an_ear_has_an_empty_truth():
    found = make_phantom(changed(COARSE, size_mm=10, offset_mm=(-30.0, 0.0, 0.0)), 3)
    assert not found.ear.truth.data.any()
    assert not found.ear.labyrinth.data.any()
    assert np.all(np.isfinite(found.volume.data))


def test_both_ears_in_one_head():
    found = make_phantom(PhantomOptions(side="both", spacing_mm=0.8, noise_hu=0.0), 3)
    right, left = found.ears
    assert (right.side, left.side) == ("right", "left")
    assert found.options.num_ears == 2
    assert 60 < right.frame.origin[0] - left.frame.origin[0] < 80
    single = make_phantom(PhantomOptions(spacing_mm=0.8, noise_hu=0.0), 3).ear
    np.testing.assert_array_equal(right.theta, single.theta)
    assert np.any(left.theta != right.theta)
    for ear in found.ears:
        points = found.volume.to_world(np.argwhere(ear.truth.data))
        assert np.all(np.sign(points[:, 0]) == (1 if ear.side == "right" else -1))
        assert np.all(level(ear.cochlea, ear.theta, points) > -1e-4)
        assert 45 < size_mm3(ear.truth) < 120
    assert not np.any(right.labyrinth.data & left.labyrinth.data)
    assert np.mean(np.abs(found.volume.data - 35) < 50) > 0.3  # brain in between


@pytest.mark.parametrize(
    ("choice", "pattern"),
    [
        ({"lumen": "gel"}, "lumen must be"),
        ({"side": "middle"}, "side must be"),
        ({"orientation": "tilted"}, "orientation must be"),
        ({"spacing_mm": 0.0}, "spacing_mm must lie"),
        ({"spacing_mm": (0.2, 0.2)}, "spacing_mm must be one number or three"),
        ({"spacing_mm": "fine"}, "numbers for spacing_mm"),
        ({"spacing_mm": np.nan}, "spacing_mm must lie"),
        ({"size_mm": -3}, "size_mm must lie"),
        ({"size_mm": 300, "spacing_mm": 0.1}, "voxels"),
        ({"offset_mm": np.inf}, "offset_mm must lie"),
        ({"point_spread_mm": -0.1}, "point_spread_mm"),
        ({"noise_hu": "loud"}, "noise_hu"),
        ({"noise_correlation_mm": 9}, "noise_correlation_mm"),
        ({"hu_gain": 0}, "hu_gain"),
        ({"hu_offset": np.nan}, "hu_offset"),
        ({"lumen_hu": -5000}, "lumen_hu"),
        ({"flips": (1, 0, 0)}, "flips"),
        ({"flips": True}, "flips"),
        ({"free": ("colour",)}, "free must be"),
        ({"free": "section_scale"}, "free must be"),
        ({"theta": [1, 2, 3]}, "theta must be 11 numbers"),
        ({"shape_spread": -1}, "shape_spread"),
        ({"landmark_error_mm": True}, "landmark_error_mm"),
    ],
    ids=str,
)
def test_bad_options_meet_one_sentence(choice, pattern, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as a user runs it
    assert_one_sentence(lambda: PhantomOptions(**choice), pattern)


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (({"lumen": "air"}, 0), "PhantomOptions"),
        ((None, -1), "seed"),
        ((None, 0.5), "seed"),
        ((PhantomOptions(side="both", size_mm=60), 0), "both ears"),
        ((PhantomOptions(theta=np.full(11, 99.0)), 0), "the parameter tx"),
    ],
    ids=["options", "negative", "fraction", "narrow", "far"],
)
def test_bad_arguments_meet_one_sentence(arguments, pattern, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    assert_one_sentence(lambda: make_phantom(*arguments), pattern)


def test_the_page_runs(capsys):
    namespace: dict = {}
    snippets = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, str(PAGE), "exec"), namespace)
    assert capsys.readouterr().out
