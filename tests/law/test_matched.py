"""The correction for blur, on a phantom with a clinical scanner's point spread; slow: it compiles more programs."""

import dataclasses
import json

import jsonschema
import numpy as np
import pytest

from logishape.cochlea import PhantomOptions, SegmentOptions, make_phantom, segment
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.cochlea.matched import _what_is_left
from logishape.cochlea.measurements import measure
from tests.problems import assert_one_sentence

pytestmark = pytest.mark.slow
SIZES = ("A", "B", "duct_length_organ_of_corti")


def segmented(side: str, misfit: float = 0):
    scan = {"lumen": "fluid", "spacing_mm": 0.3, "size_mm": 20, "point_spread_mm": 0.35, "noise_hu": 80}
    phantom = make_phantom(PhantomOptions(side=side, misfit=misfit, **scan), 5)
    return phantom, segment(phantom.volume, phantom.ear.frame, options=SegmentOptions())


@pytest.fixture(scope="module")
def right():
    return segmented("right")


def test_sizes_are_nearer_the_truth_and_their_intervals_wider(right):
    phantom, found = right
    truth = measure(phantom.ear.cochlea, phantom.ear.theta, None)
    plain = measure(found.cochlea, found.found.theta, None)
    for name in SIZES:
        before, after = (abs(one[name].value - truth[name].value) for one in (plain, found.measurements))
        assert after < 0.6 * before, name
    assert found.matched.blur_mm == pytest.approx(0.36, abs=0.05)  # 0.35 and the voxel's own 0.09
    assert found.posterior.kind == "sandwich"


def test_the_record_says_what_was_taken_off(right):
    _, found = right
    record = found.record()
    schema = json.loads(DEFAULT_FILE.with_name("result.schema.json").read_text())
    jsonschema.validate(record["posterior"], schema["properties"]["posterior"])
    off = record["posterior"]["blur"]["taken_off"]
    values = {name: one["value"] for name, one in record["parameters"].items()}
    np.testing.assert_allclose(
        [values[name] + off[name] for name in found.cochlea.parameter_names], found.found.theta, atol=1e-6
    )
    assert "point spread" in found.caveat


def test_sections_that_stray_are_seen_and_counted(right):
    _, other = segmented("right", misfit=2)
    _, own = right
    (little, much) = (one.record()["posterior"]["blur"]["sections_sd_mm"] for one in (own, other))
    assert little < 0.08 < much
    for name in ("A", "volume"):
        measured = [dataclasses.astuple(one.measurements[name]) for one in (own, other)]
        (_, _, low, high, _), (_, _, lower, higher, _) = measured
        assert high - low < higher - lower, name


def test_a_mirrored_ear_gives_mirrored_results(right):
    _, left = segmented("left")
    for name in SIZES:
        assert left.measurements[name].value == pytest.approx(right[1].measurements[name].value, rel=0.002)


def test_steps_that_shrink_alike_are_summed():
    """1 + 1/2 + 1/4 + ... leaves 1/2 after the second; steps that grow or turn round are not followed."""
    step = np.array([3.0, -1.0])
    np.testing.assert_allclose(_what_is_left(step, step / 2), step / 2 * (0.5 / 0.5))
    np.testing.assert_allclose(_what_is_left(step, step / 4), step / 4 * (0.25 / 0.75))
    np.testing.assert_allclose(_what_is_left(step, -step / 2), 0)
    np.testing.assert_allclose(_what_is_left(step, 2 * step), 2 * step * (0.7 / 0.3))


def test_the_papers_preset_knows_no_correction():
    assert_one_sentence(lambda: SegmentOptions(preset="paper", intervals="matched"), "matched ones were asked for")
