"""Reliability curves and the expected calibration error against counting by hand and known miscalibration."""

import numpy as np
import pytest

import logishape as ls
from logishape.metrics import Reliability, expected_calibration_error, reliability

SAID = np.array([0.0, 0.05, 0.1, 0.30, 0.35, 0.5, 0.9, 1.0])
TRUE = np.array([0, 1, 0, 0, 1, 1, 1, 1], bool)


def by_hand(said, true, bins):
    """Voxel by voxel, in plain Python."""
    members = {}
    for p, t in zip(said.tolist(), true.tolist(), strict=True):
        members.setdefault(min(int(p * bins), bins - 1), []).append((p, t))
    gaps = [abs(sum(p for p, _ in some) - sum(t for _, t in some)) for some in members.values()]
    return sum(gaps) / said.size


def test_the_curve_of_eight_voxels():
    found = reliability(SAID, TRUE, 4)
    np.testing.assert_array_equal(found.counts, [3, 2, 1, 2])  # 0.5 belongs to the bin that it opens, one to the last
    np.testing.assert_allclose(found.mean_probability, [0.05, 0.325, 0.5, 0.95])
    np.testing.assert_allclose(found.fraction, [1 / 3, 1 / 2, 1, 1])
    # (3 |0.05 - 0.333| + 2 |0.325 - 0.5| + |0.5 - 1| + 2 |0.95 - 1|) / 8
    assert found.expected_error == pytest.approx((0.85 + 0.35 + 0.5 + 0.1) / 8)
    assert found.bias == pytest.approx(np.mean(SAID) - np.mean(TRUE))
    empty = reliability(SAID, TRUE, 20)
    assert np.isnan(empty.fraction[5])
    assert empty.counts[5] == 0


@pytest.mark.parametrize("bins", [1, 7, 20])
def test_the_error_is_that_of_counting(bins):
    rng = np.random.default_rng(bins)
    said, true = rng.random((30, 40)) ** 2, rng.random((30, 40)) < 0.3
    assert expected_calibration_error(said, true, bins) == pytest.approx(by_hand(said.ravel(), true.ravel(), bins))


def test_probabilities_that_hold_and_log_odds_taken_too_far():
    """Odds squared say p^2 / (p^2 + (1 - p)^2) where p is true; over uniform p that is off by 1/2 - log(2)/2."""
    rng = np.random.default_rng(0)
    p = rng.random(400_000)
    true = rng.random(p.size) < p
    assert expected_calibration_error(p, true) < 0.01  # sampling alone
    bold = p**2 / (p**2 + (1 - p) ** 2)
    grid = (np.arange(200_000) + 0.5) / 200_000
    exact = np.mean(np.abs(grid**2 / (grid**2 + (1 - grid) ** 2) - grid))
    assert expected_calibration_error(bold, true) == pytest.approx(exact, abs=0.003)  # and the width of the bins
    shy = np.sqrt(p) / (np.sqrt(p) + np.sqrt(1 - p))
    assert expected_calibration_error(shy, true) > 0.05


def test_pooled_cases_count_the_same():
    one, other = reliability([0.2, 0.2], [0, 0], 5), reliability([0.25, 0.75, 0.75, 0.75], [1, 1, 1, 0], 5)
    found = Reliability.pooled([one, other])
    np.testing.assert_allclose(found.counts, [0, 1.25, 0, 0.75, 0])
    assert found.mean_probability[1] == pytest.approx((0.2 * 1 + 0.25 * 0.25) / 1.25)
    assert found.fraction[1] == pytest.approx(0.2)
    assert Reliability.pooled([one]).expected_error == pytest.approx(one.expected_error)
    whole = reliability([0.2, 0.2, 0.25, 0.75, 0.75, 0.75], [0, 0, 1, 1, 1, 0], 5)
    every = Reliability.pooled([one, other], alike=False)
    for name in ("counts", "mean_probability", "fraction"):
        np.testing.assert_allclose(getattr(every, name), getattr(whole, name))


@pytest.mark.parametrize(
    ("said", "true", "pattern"),
    [
        ([0.1, 0.2], [1], r"shape \(2,\) but the truth \(1,\); resample"),
        ([1.2], [1], "from 0 to 1 but these go from 1.2 to 1.2; log odds"),
        ([np.nan], [1], "from 0 to 1"),
        ([], np.zeros(0, bool), "there are none; check the band"),
        ([0.5], [0.5], "zeros and ones"),
    ],
)
def test_what_is_no_probability(said, true, pattern):
    with pytest.raises(ls.InputError, match=pattern):
        reliability(said, np.asarray(true))


def test_bins_and_curves_that_cannot_be():
    with pytest.raises(ls.InputError, match="must be positive but is 0; try 20"):
        reliability([0.5], [1], 0)
    with pytest.raises(ls.InputError, match="of the same bins"):
        Reliability.pooled([reliability([0.5], [1], 5), reliability([0.5], [1], 6)])
