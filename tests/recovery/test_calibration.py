"""A small run of the study of coverage: blurred phantoms, intervals without and with the correction for blur."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import calibration
import calibration_report as report

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cases():
    return [calibration.study(case, "landmarks") for case in range(0, 16, 2)]


def test_sizes_of_blurred_cochleae_are_held_once_blur_is_taken_off(cases):
    some = report.usable(cases, 0.0)
    assert len(some) >= 4
    errors, held = {}, {}
    for way in report.WAYS:
        found, truth, quantiles, names = report.columns(some, way, "measurements")
        chosen = [names.index(name) for name in ("A", "B", "duct_length_organ_of_corti")]
        errors[way] = np.mean(np.abs(found - truth)[:, chosen], axis=0)
        held[way] = np.mean(report.coverage(quantiles, truth, 90)[chosen])
    assert np.all(errors["corrected"] < 0.6 * errors["plain"])
    assert held["corrected"] > 0.7  # of a dozen or more intervals of 90 %
    assert held["plain"] < held["corrected"]


def test_the_point_spread_is_found(cases):
    some = report.usable(cases, 0.0)
    offsets = [case["blur_mm"] - case["settings"]["point_spread_mm"] for case in some]
    assert np.mean(np.abs(offsets)) < 0.05


def test_a_pose_in_another_frame_is_the_same_cochlea():
    from logishape.cochlea import PhantomOptions, make_phantom
    from logishape.cochlea.shape import Cochlea
    from logishape.core.arrays import double_precision

    ear = make_phantom(PhantomOptions(spacing_mm=0.5, size_mm=14, side="left"), 3).ear
    frame = calibration.rough_frame(ear, 3)
    theta = np.r_[calibration.pose_in(frame, ear), ear.theta[6:]]
    points = np.random.default_rng(0).uniform(-4, 4, (200, 3)) + np.asarray(ear.frame.origin)
    with double_precision():
        there = Cochlea(frame, ear.cochlea.duct.free).level(theta, points)
        np.testing.assert_allclose(there, ear.cochlea.level(ear.theta, points), atol=1e-9)
