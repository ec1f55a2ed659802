"""What speaks against a result, what a segmentation may be asked for, and which voxels stay together."""

import dataclasses
import json
from pathlib import Path

import jaxtyping
import numpy as np
import pytest

import logishape as ls
from logishape.appearance import gaussian
from logishape.cochlea import Cochlea, Frame, SegmentOptions, quality
from logishape.cochlea.checks import check_ct, check_field, metal_mm3, tilt_degrees
from logishape.cochlea.labels import REACH, Labels, largest_component
from logishape.cochlea.lumen import Intensities
from logishape.cochlea.measurements import QUANTITIES, Measurement
from logishape.cochlea.quality import find_flags
from logishape.cochlea.reformat import Crop, grid_points
from logishape.cochlea.search import NUM_CANDIDATES, ROWS, Found, candidates, observe
from logishape.cochlea.segment import segment
from logishape.cochlea.signs import Signs
from logishape.cochlea.verdict import HEADLINES, Flag, verdict_of
from logishape.cochlea.vestibule import shape_surprise
from logishape.core.volume import Volume
from tests.problems import assert_one_sentence

COCHLEA = Cochlea(free=("section_scale",))
HU = Intensities("fluid", 190.0, 2130.0, 150.0, 250.0)
SCHEMA = Path(ls.cochlea.calibration.DEFAULT_FILE).with_name("result.schema.json")


@pytest.fixture(autouse=True)
def as_a_user_runs_it(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def make_fit(status=ls.Status.CONVERGED, at_bound=(), theta=None) -> ls.Fit:
    regions = ls.Regions(gaussian(190.0, 150.0), gaussian(2130.0, 250.0))
    state = ls.State(COCHLEA.mean() if theta is None else theta, regions)
    return ls.Fit(state, status, np.zeros(1), 3, 2, 1e-4, at_bound, COCHLEA.parameter_names)


def make_found(fit=None, intensities=HU, is_covered=None) -> Found:
    """A fit on a crop without an image; flags look at nothing else."""
    points = grid_points()
    covered = np.ones(len(points), bool) if is_covered is None else is_covered
    crop = Crop(points, np.zeros(len(points), np.float32), covered)
    model = ls.Model(COCHLEA, COCHLEA.prior(), 0.07)
    observation = ls.Observation.from_arrays(points[:8], np.zeros(8))
    return Found(model, crop, intensities, observation, make_fit() if fit is None else fit, np.zeros(1))


def make_posterior(is_fallback=False) -> ls.ShapePosterior:
    p, prior = COCHLEA.mean().size, COCHLEA.prior()
    names = COCHLEA.parameter_names
    return ls.ShapePosterior(
        COCHLEA.mean(), COCHLEA.mean(), np.eye(p), prior.lower, prior.upper, names, "observed", 1.0, is_fallback
    )


def make_labels(segmented=80, shape=80, overlap=78) -> Labels:
    """Masks of so many mm^3 (voxels of 1 mm) on a strip."""
    masks = np.zeros((2, 200, 1, 1), bool)
    masks[0, :segmented] = True
    masks[1, segmented - overlap : segmented - overlap + shape] = True
    zeros = np.zeros((200, 1, 1), np.float32)
    return Labels((200, 1, 1), np.eye(4), (slice(0, 200), slice(0, 1), slice(0, 1)), *masks, zeros, zeros, zeros)


def measured(turns=2.6) -> dict[str, Measurement]:
    return {name: Measurement(turns, turns, turns - 0.1, turns + 0.1, one.unit) for name, one in QUANTITIES.items()}


SHAPE_ERROR = "shape_surface_error"
CT = Volume.from_spacing(np.arange(729.0).reshape(9, 9, 9), 0.4)


def make_signs(likeness=0.9, **choice) -> Signs:
    """Those of a good result but for what is chosen."""
    good = {"score": 0.85, "margin": 0.25, "contrast": 10.0, "rival_gap": None}
    return Signs(likeness, **(good | {"surface_error_mm": 0.02, "shape_surface_error_mm": 0.1} | choice))


def flags(found=None, posterior=None, labels=None, turns=2.6, volume=CT, **choice) -> dict[str, Flag]:
    found, posterior = make_found() if found is None else found, make_posterior() if posterior is None else posterior
    labels = make_labels() if labels is None else labels
    raised = find_flags(volume, found, posterior, labels, measured(turns), make_signs(**choice))
    return {flag.name: flag for flag in raised}


def test_a_good_result_has_no_flags():
    assert flags() == {}


@pytest.mark.parametrize("status", list(ls.Status))
def test_fits_that_ended_otherwise(status):
    found = flags(make_found(make_fit(status, ("phi", "b"))))
    assert ("fit" in found) is not status.is_usable
    if "fit" in found:
        assert found["fit"].is_serious
        assert status.advice in found["fit"].message
    assert ("at_box" in found) is (status == ls.Status.AT_BOX)
    if "at_box" in found:
        assert not found["at_box"].is_serious
        assert "phi, b" in found["at_box"].message


def test_posteriors_that_fell_back_or_failed():
    assert not flags(posterior=make_posterior(is_fallback=True))["posterior"].is_serious
    (raised,) = find_flags(CT, make_found(), None, make_labels(), measured(), make_signs())
    assert (raised.name, raised.is_serious) == ("posterior", True)


def test_values_far_from_hu_are_said_but_not_fatal():
    odd = Intensities("air", -374.0, 1691.0, 100.0, 175.0)  # 0.7 HU + 200
    found = flags(make_found(intensities=odd))
    assert list(found) == ["not_hu"]
    assert not found["not_hu"].is_serious
    assert "gain 0.70 and offset 200" in found["not_hu"].message


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (make_labels(80, 80, 62), []),
        (make_labels(80, 80, 58), ["disagreement"]),
        (make_labels(39, 39, 39), ["volume"]),
        (make_labels(161, 161, 161), ["volume"]),
        (make_labels(80, 0, 0), ["disagreement"]),
        (make_labels(0, 0, 0), ["disagreement", "volume"]),
    ],
    ids=["touching", "apart", "small", "large", "no shape", "nothing"],
)
def test_labels_that_cannot_be(labels, names):
    found = flags(labels=labels)
    assert list(found) == names
    assert all(flag.is_serious for flag in found.values())


@pytest.mark.parametrize(("turns", "names"), [(1.9, ["turns"]), (2.1, []), (3.1, []), (3.3, ["turns"])])
def test_odd_numbers_of_turns(turns, names):
    found = flags(turns=turns)
    assert list(found) == names
    assert not any(flag.is_serious for flag in found.values())


def odd(num_sd: float) -> np.ndarray:
    """Parameters whose form is so many standard deviations from the mean, and whose pose is the mean one."""
    covariance = np.asarray(COCHLEA.calibration.covariance)[6:11, 6:11]
    along, theta = np.linalg.cholesky(covariance) @ np.eye(len(covariance))[0], COCHLEA.mean().copy()
    theta[6:] += num_sd * along
    return theta


ODD, IMPOSSIBLE = np.sqrt([quality.ODD_SHAPE, quality.IMPOSSIBLE_SHAPE])


@pytest.mark.parametrize(
    ("num_sd", "expected"), [(0, None), (ODD - 0.1, None), (ODD + 0.1, False), (IMPOSSIBLE + 0.1, True)], ids=str
)
def test_odd_forms(num_sd, expected):
    theta = odd(num_sd)
    assert shape_surprise(COCHLEA, theta) == pytest.approx(num_sd**2)
    assert shape_surprise(COCHLEA, theta + np.r_[np.ones(6), np.zeros(theta.size - 6)]) == pytest.approx(num_sd**2)
    found = flags(make_found(make_fit(theta=theta)))
    assert (found["odd_shape"].is_serious if found else None) is expected


DOUBTFUL, WRONG = quality.DOUBTFUL_LIKENESS, quality.WRONG_LIKENESS


@pytest.mark.parametrize(
    ("likeness", "expected"),
    [(1.0, None), (DOUBTFUL + 0.01, None), (DOUBTFUL - 0.01, False), (WRONG - 0.01, True), (-0.2, True)],
    ids=str,
)
def test_bone_that_looks_otherwise(likeness, expected):
    found = flags(likeness=likeness)
    assert list(found) == ([] if expected is None else ["likeness"])
    assert all(flag.is_serious is expected for flag in found.values())


@pytest.mark.parametrize("covered", [np.ones(150_000, bool), grid_points()[:, 2] < 3.5], ids=["all", "no roof"])
def test_what_the_cochlea_does_not_reach_may_lie_outside(covered):
    assert flags(make_found(is_covered=covered)) == {}


def test_a_cochlea_cut_by_the_field_of_view():
    found = flags(make_found(is_covered=grid_points()[:, 0] > -1.0))
    assert list(found) == ["cut_field_of_view"]
    assert found["cut_field_of_view"].is_serious
    missing = float(found["cut_field_of_view"].message.split()[0])
    assert 5 < missing < 60  # mm^3, of about 80


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"score": 0.9, "margin": 0.1}, {}),
        ({"score": None, "margin": None, "contrast": None, "rival_gap": 50.0}, {}),
        ({"score": quality.LOW_SCORE - 0.01}, {}),  # the image bears the fitted shape out
        ({"score": quality.LOW_SCORE - 0.01, "shape_surface_error_mm": 0.2}, {"score": False}),
        ({"score": quality.LOW_SCORE - 0.01, "shape_surface_error_mm": None}, {"score": False, SHAPE_ERROR: True}),
        ({"margin": quality.SMALL_MARGIN - 0.01}, {"margin": False}),
        ({"rival_gap": quality.CLOSE_RIVAL - 0.1}, {"rival": False}),
        ({"contrast": quality.LOW_CONTRAST + 0.1}, {}),
        ({"contrast": quality.LOW_CONTRAST - 0.1}, {"contrast": False}),
        ({"contrast": quality.NO_CONTRAST - 0.1}, {"contrast": True}),
        ({"map_contrast": quality.LOW_MAP_CONTRAST + 0.1}, {}),
        ({"map_contrast": quality.LOW_MAP_CONTRAST - 0.1}, {"map_contrast": False}),
        ({"map_contrast": quality.NO_MAP_CONTRAST - 0.1}, {"map_contrast": True}),
        ({"surface_error_mm": quality.ROUGH_MM + 0.01}, {"surface_error": False}),
        ({"surface_error_mm": quality.WRONG_MM + 0.01}, {"surface_error": True}),
        ({"surface_error_mm": None}, {"surface_error": True}),
        ({"shape_surface_error_mm": quality.ROUGH_SHAPE_MM + 0.01}, {"shape_surface_error": False}),
        ({"shape_surface_error_mm": quality.WRONG_SHAPE_MM + 0.01}, {"shape_surface_error": True}),
    ],
    ids=str,
)
def test_signs_and_the_flags_they_earn(choice, expected):
    assert {name: flag.is_serious for name, flag in flags(**choice).items()} == expected


def test_one_verdict_from_all_flags():
    mild, serious = Flag("a", "A.", False), Flag("b", "B.", True)
    assert [verdict_of(some) for some in ([], [mild], [mild, serious])] == ["good", "check", "do not use"]
    assert verdict_of(()) == "good"
    assert set(json.loads(SCHEMA.read_text())["properties"]["verdict"]["enum"]) == set(HEADLINES)


def test_voxels_are_refused_or_to_be_checked():
    assert flags(volume=Volume(CT.data, np.diag([0.4, 0.4, 0.4, 1.0]))) == {}
    raised = flags(volume=Volume(CT.data, np.diag([0.4, 0.55, 0.4, 1.0])))
    assert {name: flag.is_serious for name, flag in raised.items()} == {"coarse_voxels": False}
    assert "0.55 mm" in raised["coarse_voxels"].message


@pytest.mark.parametrize(("radius", "expected"), [(0.0, None), (1.0, False), (1.6, True)])
def test_metal_is_noticed_by_its_volume(radius, expected):
    """A ball of 20000 HU in bone; the smoothing leaves its size, and takes white noise for noise."""
    points = grid_points()
    noise = np.random.default_rng(0).normal(2130, 600, len(points))
    is_metal = np.linalg.norm(points - [1.0, 0.0, 1.0], axis=1) < radius
    crop = Crop(points, np.where(is_metal, 20_000, noise).astype(np.float32), np.ones(len(points), bool))
    volume = metal_mm3(crop, HU)
    assert 4 / 3 * np.pi * radius**3 <= volume <= 4 / 3 * np.pi * (radius + 0.4) ** 3 * (radius > 0)
    found = flags(make_found()._replace(crop=crop))
    assert (found["metal"].is_serious if found else None) is expected
    scaled = Crop(points, np.float32(0.5) * crop.intensities + np.float32(100), crop.is_covered)
    assert metal_mm3(scaled, Intensities("fluid", 195.0, 1165.0, 75.0, 125.0)) == pytest.approx(volume, abs=0.1)


def test_tilted_slices_are_read_and_impossible_ones_refused():
    for degrees in (0.0, 20.0, 45.0):
        affine = np.diag([0.5, 0.5, 0.7, 1.0])
        affine[1, 2] = 0.7 * np.tan(np.radians(degrees))
        volume = Volume(np.random.default_rng(0).normal(0, 100, (12, 12, 12)), affine)
        assert tilt_degrees(volume) == pytest.approx(degrees, abs=1e-6)
        if degrees < 40:
            assert check_ct(volume) is volume
        else:
            assert_one_sentence(lambda volume=volume: check_ct(volume), "tilted by 30 degrees at most .* says 45")


def test_a_field_of_view_that_ends_in_the_cochlea_is_refused():
    whole = Volume(np.zeros((60, 60, 60), np.float32), np.diag([0.3, 0.3, 0.3, 1.0]))
    frame = Frame(np.eye(3), np.array([8.0, 8.0, 7.0]))
    check_field(whole, frame, COCHLEA)
    for length in (30, 25):  # 9.0 and 7.5 mm: one and 0.5 mm off the base's centre on either side
        part = Volume(whole.data[:length], whole.affine)
        assert_one_sentence(lambda part=part: check_field(part, frame, COCHLEA), "show the whole cochlea")


def test_flags_read_as_sentences():
    bad = make_found(make_fit(ls.Status.OUT_OF_STEPS, theta=odd(9.0)), Intensities("air", 0.0, 300.0, 1.0, 1.0))
    signs = Signs(0.1, 0.5, 0.0, 0.5, 1.0, None, 0.8, -0.3)
    coarse = Volume(CT.data, np.diag([0.4, 0.5, 0.4, 1.0]))
    raised = find_flags(coarse, bad, None, make_labels(0, 0, 0), measured(1.0), signs)
    names = {"fit", "posterior", "odd_shape", "not_hu", "disagreement", "volume", "turns", "likeness"}
    names |= {"coarse_voxels", "score", "margin", "contrast", "rival", "surface_error", "shape_surface_error"}
    names |= {"map_contrast"}
    assert {flag.name for flag in raised} == names
    for flag in raised:
        assert flag.message[0].isupper()
        assert flag.message.endswith(".")
        assert "\n" not in flag.message
    # What a record says of flags is what the schema asks for.
    keys = json.loads(SCHEMA.read_text())["properties"]["flags"]["items"]["required"]
    assert list(dataclasses.asdict(raised[0])) == keys


def test_labels_go_back_to_their_grid():
    block = (slice(1, 4), slice(0, 2), slice(2, 4))
    mask = np.zeros((3, 2, 2), bool)
    mask[0, 1, 1] = mask[2, 0, 0] = True
    affine = np.diag([0.5, 0.4, 0.3, 1.0])
    quarter = mask.astype(np.float32) / 4
    labels = Labels((5, 3, 4), affine, block, mask, ~mask, quarter, quarter, quarter - 1)
    found = labels.on_grid("segmentation")
    assert found.data.dtype == np.uint8
    assert np.argwhere(found.data).tolist() == [[1, 1, 3], [3, 0, 2]]
    np.testing.assert_array_equal(found.affine, affine)
    probability = labels.on_grid("probability")
    assert probability.data.dtype == np.float32
    np.testing.assert_array_equal(probability.data, found.data / 4)
    level = labels.on_crop("level", (slice(1, 5), slice(1, 3), slice(0, 4)))
    assert level.data[0, 0, 3] == -0.75
    assert np.count_nonzero(level.data == -1) == 5
    assert np.count_nonzero(level.data == np.float32(-REACH)) == level.data.size - 6
    np.testing.assert_allclose(level.to_world(np.zeros(3)), [0.5, 0.4, 0.0])
    here = labels.on_block("segmentation")
    np.testing.assert_allclose(here.to_world(np.argwhere(here.data)), found.to_world(np.argwhere(found.data)))
    assert labels.volume_mm3() == pytest.approx(2 * 0.06)
    assert labels.volume_mm3("shape") == pytest.approx(10 * 0.06)


def test_the_largest_component_shares_faces():
    mask = np.zeros((6, 6, 6), bool)
    assert not largest_component(mask).any()
    mask[0, 0, :3] = True
    np.testing.assert_array_equal(largest_component(mask), mask)
    mask[1, 1, 3:] = True  # touches the first by an edge alone
    mask[1, 2, 3:5] = True
    found = largest_component(mask)
    assert found.sum() == 5
    assert not found[0, 0].any()
    assert mask.sum() == 8  # the given mask stays


@pytest.mark.parametrize(
    ("choice", "pattern"),
    [
        ({"preset": "fast"}, "preset must be"),
        ({"distance": "euclid"}, "distance must be"),
        ({"free": ("colour",)}, "free must be among"),
        ({"reference_length": 0.0}, "reference_length must lie"),
        ({"reference_length": np.nan}, "reference_length must lie"),
        ({"reference_length": "short"}, "reference_length must lie"),
        ({"label_length": 5.0}, "label_length must lie"),
        ({"evidence": 0.0}, "evidence must lie"),
        ({"evidence": 1.5}, "evidence must lie"),
        ({"worth": -1.0}, "worth must lie"),
        ({"num_draws": 9}, "num_draws must be a whole number"),
        ({"num_draws": 20.0}, "num_draws must be a whole number"),
        ({"num_draws": 100_000}, "num_draws must be a whole number"),
        ({"num_starts": 0}, "num_starts must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": 2**40}, "seed must be a whole number"),
    ],
    ids=str,
)
def test_bad_options_meet_one_sentence(choice, pattern):
    assert_one_sentence(lambda: SegmentOptions(**choice), pattern)


def test_presets_fill_in_what_is_left_out():
    usual, paper = SegmentOptions(), SegmentOptions(preset="paper", evidence=0.3, free=("section_scale",))
    assert (usual.lengths, usual.is_paper) == ((0.07, 0.2), False)
    assert "section_scale" in usual.free
    assert (paper.lengths, paper.free, paper.evidence, paper.is_paper) == ((0.1, 0.25), (), 1.0, True)
    assert SegmentOptions(preset="paper", label_length=0.1).lengths == (0.1, 0.1)
    assert SegmentOptions(reference_length=0.3, label_length=0.3).lengths == (0.3, 0.3)
    assert type(SegmentOptions(num_draws=np.int64(20)).num_draws) is int  # JSON takes no other
    required = json.loads(SCHEMA.read_text())["properties"]["options"]["required"]
    assert sorted(dataclasses.asdict(usual)) == sorted(required)


def test_starts_spread_about_the_mean_in_the_box():
    options = SegmentOptions(seed=3)
    found, prior = candidates(COCHLEA, options), COCHLEA.prior()
    assert found.shape == (NUM_CANDIDATES, COCHLEA.num_parameters)
    assert np.all((found > prior.lower) & (found < prior.upper))
    np.testing.assert_array_equal(found, candidates(COCHLEA, options))
    assert np.any(found != candidates(COCHLEA, SegmentOptions(seed=4)))
    away = found - COCHLEA.mean()
    assert np.all(np.abs(away[:, :3]) <= 1.5)
    assert np.all(np.abs(away[:, 3:6]) <= 0.5)
    assert np.all(away.std(axis=0) > 0.1 * np.minimum(COCHLEA.sd(), 1))


def test_a_sample_weighs_as_much_as_what_it_stands_for():
    points = grid_points()
    crop = Crop(points, np.arange(len(points), dtype=np.float32), np.ones(len(points), bool))
    options = SegmentOptions(evidence=0.2)
    for num in (50_000, ROWS, 100):
        in_use = np.zeros(len(points), bool)
        in_use[np.random.default_rng(num).choice(len(points), num, replace=False)] = True
        found = observe(crop, in_use, options)
        assert found.num_voxels == ROWS  # one size for all
        weights, values = np.asarray(found.weights), np.asarray(found.intensities)
        assert weights.sum() == pytest.approx(0.2 * num, rel=1e-5)
        rows = values[weights > 0].astype(int)
        assert len(np.unique(rows)) == min(num, ROWS)
        assert np.all(in_use[rows])
        again = observe(crop, in_use, options)
        np.testing.assert_array_equal(again.intensities, values)
        in_use[rows[:3]] = False  # voxels at the border of what is in use come and go; the others stay
        fewer = observe(crop, in_use, options)
        kept = np.asarray(fewer.intensities)[np.asarray(fewer.weights) > 0].astype(int)
        assert len(np.setdiff1d(rows, kept)) == 3


def spoilt(where, value) -> Volume:
    data = np.random.default_rng(0).normal(0, 100, (9, 9, 9)).astype(np.float32)
    data[where] = value
    return Volume.from_spacing(data, 0.7)


@pytest.mark.parametrize(
    ("volume", "pattern"),
    [
        (Volume(np.zeros((9, 9)), np.eye(3)), "three axes"),
        (Volume(np.zeros((9, 7, 9)), np.eye(4)), "at least 8 voxels"),
        (spoilt(slice(None), 7.0), "one value 7 everywhere"),
        (spoilt((0, 0, 0), np.nan), "1 voxels of the CT are not finite"),
        (spoilt((slice(1, 3), 0, 0), np.inf), "2 voxels of the CT are not finite"),
        (spoilt(slice(None), np.nan), "729 voxels of the CT are not finite"),
        (
            Volume(spoilt((0, 0, 0), 5.0).data, np.diag([0.7, 0.5, 0.7, 1.0])),
            "5.6 x 4.0 x 5.6 mm; give all its slices",
        ),
        (spoilt(slice(None), np.indices((9, 9, 9))[0] % 2), "2 different ones, as masks have"),
        (spoilt(slice(None), np.indices((9, 9, 9)).sum(axis=0) % 15), "15 different ones, as masks have"),
    ],
    ids=["plane", "thin", "flat", "nan", "infinite", "all nan", "few slices", "mask", "labels"],
)
def test_volumes_that_are_no_ct(volume, pattern):
    assert_one_sentence(lambda: check_ct(volume), pattern)
    assert_one_sentence(lambda: segment(volume, Frame.identity()), pattern)


def test_a_pose_is_a_frame_or_a_point():
    assert_one_sentence(lambda: segment(spoilt((0, 0, 0), 5.0)), "0.6 mm or smaller")
    volume = Volume.from_spacing(np.random.default_rng(0).normal(0, 100, (12, 12, 12)), 0.6)
    assert check_ct(volume) is volume
    assert_one_sentence(lambda: segment(volume, (1.0, 2.0, 3.0)), "a Frame .* but this is a tuple")
    assert_one_sentence(lambda: segment(volume, Frame.identity()), "the CT should show the whole cochlea")
