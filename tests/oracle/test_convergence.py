"""Effective sample size and split R-hat against blackjax's and what is known of autoregressive series."""

import numpy as np
import pytest

import logishape as ls
from logishape.posterior import effective_sample_size, split_r_hat


def autoregressive(rho, shape, seed=0):
    """Chains `(c, s, p)` with x_t = rho x_(t-1) + noise of variance 1 - rho^2, stationary from the start."""
    rng = np.random.default_rng(seed)
    chains, size, p = shape
    x = np.empty(shape)
    x[:, 0] = rng.normal(size=(chains, p))
    for t in range(1, size):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * rng.normal(size=(chains, p))
    return x


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.5, 0.9])
def test_effective_size_of_an_autoregressive_series_is_known(rho):
    """n (1 - rho) / (1 + rho); the estimate of one series is good to about a tenth, twelve of them to a thirtieth."""
    found = effective_sample_size(autoregressive(rho, (4, 5000, 12)))
    assert np.mean(found) == pytest.approx(20_000 * (1 - rho) / (1 + rho), rel=0.08)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("rho", [0.0, 0.6])
@pytest.mark.parametrize("shape", [(2, 300, 3), (4, 501, 2)])
def test_both_agree_with_blackjax(rho, shape, x64):
    diagnostics = pytest.importorskip("blackjax").diagnostics
    draws = autoregressive(rho, shape, 3) + np.linspace(0, 0.3, shape[0])[:, None, None]
    expected = np.asarray(diagnostics.effective_sample_size(draws))
    # After the last pair that is positive blackjax takes in half of the next one, as Stan does.
    np.testing.assert_allclose(effective_sample_size(draws), expected, rtol=0.02)
    half = shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, -half:]])
    np.testing.assert_allclose(
        split_r_hat(draws), np.asarray(diagnostics.potential_scale_reduction(halves)), rtol=1e-9
    )


def test_chains_apart_and_chains_that_wander_are_seen():
    still = autoregressive(0.5, (2, 400, 1))
    assert split_r_hat(still)[0] < 1.02
    apart = still + np.array([0.0, 3.0])[:, None, None]
    assert split_r_hat(apart)[0] > 1.5
    assert effective_sample_size(apart)[0] < 10
    wandering = still + np.linspace(0, 3, 400)[None, :, None]  # together, and both on their way
    assert split_r_hat(wandering)[0] > 1.3


def test_a_parameter_that_does_not_move_is_worth_nothing():
    draws = autoregressive(0.0, (2, 100, 2))
    draws[..., 1] = 3.0
    assert effective_sample_size(draws)[1] == 0
    assert np.isnan(split_r_hat(draws)[1])
    draws[1, :, 1] = 4.0  # each chain stuck in a place of its own
    assert split_r_hat(draws)[1] == np.inf


def test_what_are_no_chains():
    for draws in (np.zeros((2, 3, 1)), np.zeros((100, 2)), np.full((2, 10, 1), np.nan)):
        with pytest.raises(ls.InputError, match="at least four draws"):
            effective_sample_size(draws)
