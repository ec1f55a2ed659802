"""Draws and averages of covariances against SciPy and closed forms."""

import jax
import numpy as np
import pytest
from scipy import stats

import logishape as ls
from logishape.core.truncated import draw_truncated
from logishape.posterior import affine_invariant_mean, log_euclidean_mean
from tests.problems import ellipse_case

COVARIANCE = np.array([[1.0, 0.7], [0.7, 2.0]])


def test_draws_of_a_wide_box_are_gaussian(key):
    draws = draw_truncated(key, np.zeros(2), COVARIANCE, (np.full(2, -50.0), np.full(2, 50.0)), 20_000, np.zeros(2))
    np.testing.assert_allclose(np.cov(draws.T), COVARIANCE, atol=0.06)  # four standard errors
    assert stats.kstest(draws[:, 0], "norm").pvalue > 1e-3


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(-5.0, 0.3), (-5.0, -4.5), (9.0, 20.0), (-20.0, -9.0)],
    ids=["by rejection", "by Gibbs", "far out in the upper tail", "far out in the lower tail"],
)
def test_draws_of_a_narrow_box_are_the_truncated_gaussian(lower, upper, key):
    box = (np.array([lower, -60.0]), np.array([upper, 60.0]))
    start = np.array([(lower + upper) / 2, 0.0])
    draws = draw_truncated(key, np.zeros(2), COVARIANCE, box, 4000, start)
    assert draws.shape == (4000, 2)
    assert np.all((draws >= box[0]) & (draws <= box[1]))
    exact = stats.truncnorm(lower, upper)  # the first coordinate's marginal: the second is not cut
    assert stats.kstest(draws[:, 0], exact.cdf).pvalue > 1e-3
    rest = draws[:, 1] - 0.7 * draws[:, 0]  # given the first, the second is Gaussian
    assert stats.kstest(rest / np.sqrt(2 - 0.49), "norm").pvalue > 1e-3


def test_a_fit_on_a_bound_has_the_posterior_of_its_slope(key):
    """On a bound the log joint still rises: the posterior there is nearly exponential, not half a Gaussian."""
    case = ellipse_case()
    free = ls.fit(case.model, case.observation, case.start).check()
    wide = ls.laplace(case.model, case.observation, free)
    upper = np.array(case.model.prior.upper)
    upper[3] = free.state.theta[3] - 3 * wide.sd[3]
    model = ls.Model(case.model.shape, ls.Prior(case.model.prior.lower, upper), case.model.reference_length)
    start = ls.State(np.minimum(case.start.theta, upper), case.start.regions)
    bound = ls.laplace(model, case.observation, ls.fit(model, case.observation, start).check())
    assert bound.mean[3] == pytest.approx(upper[3])
    assert bound.centre[3] > upper[3] + 1.5 * bound.sd[3]
    width = upper[3] - np.mean(bound.sample(key, 4000)[:, 3])
    cut = stats.truncnorm(-40, -3, loc=wide.mean[3], scale=wide.sd[3])  # the free posterior, cut at the bound
    assert width == pytest.approx(upper[3] - cut.mean(), rel=0.25)
    assert width < 0.6 * bound.sd[3] * np.sqrt(2 / np.pi)  # half a Gaussian would be this wide


def test_intervals_respect_the_box_and_the_level(key):
    posterior = ls.ShapePosterior(
        mean=np.array([0.0, 1.0]),
        centre=np.array([0.0, 1.0]),
        covariance=np.diag([1.0, 4.0]),
        lower=np.array([0.0, -50.0]),
        upper=np.array([50.0, 50.0]),
        parameter_names=("a", "b"),
        kind="observed",
        effective_fraction=1.0,
        is_fallback=False,
    )
    intervals = posterior.interval(key, 0.9)
    np.testing.assert_allclose(intervals[0], stats.halfnorm.ppf([0.05, 0.95]), atol=0.12)
    np.testing.assert_allclose(intervals[1], 1 + 2 * stats.norm.ppf([0.05, 0.95]), atol=0.25)
    np.testing.assert_array_equal(posterior.sample(key, 7), posterior.sample(key, 7))
    assert not np.array_equal(posterior.sample(jax.random.key(1), 7), posterior.sample(key, 7))


def random_covariances(num=4, p=3, seed=0):
    roots = np.random.default_rng(seed).normal(size=(num, p, p))
    return roots @ roots.transpose(0, 2, 1) + 0.2 * np.eye(p)


def test_log_euclidean_mean_does_not_depend_on_units():
    """The paper's mean of covariances does: millimetres and radians enter its logarithms as they are."""
    covariances, widths = random_covariances(), np.array([4.0, 1.2, 0.3])
    units = np.array([1000.0, 1.0, 57.3])  # micrometres and degrees
    change = np.outer(units, units)
    ours = log_euclidean_mean(covariances, widths)
    np.testing.assert_allclose(log_euclidean_mean(covariances * change, widths * units), ours * change, rtol=1e-9)
    ones = np.ones(3)
    raw, raw_changed = log_euclidean_mean(covariances, ones), log_euclidean_mean(covariances * change, ones)
    assert np.abs(raw_changed / change - raw).max() > 0.01


def test_affine_invariant_mean_is_affine_invariant():
    covariances = random_covariances()
    mean = affine_invariant_mean(covariances)
    A = np.random.default_rng(1).normal(size=(3, 3)) + 2 * np.eye(3)
    np.testing.assert_allclose(affine_invariant_mean(A @ covariances @ A.T), A @ mean @ A.T, rtol=1e-8)
    two = covariances[:2]
    root = np.linalg.cholesky(two[0])
    inner = np.linalg.inv(root) @ two[1] @ np.linalg.inv(root).T
    values, vectors = np.linalg.eigh(inner)
    closed_form = root @ (vectors * np.sqrt(values)) @ vectors.T @ root.T  # the geometric mean of two
    np.testing.assert_allclose(affine_invariant_mean(two), closed_form, rtol=1e-8)


def test_both_means_are_the_geometric_mean_of_commuting_matrices():
    diagonals = np.array([np.diag([1.0, 4.0]), np.diag([9.0, 0.25])])
    np.testing.assert_allclose(log_euclidean_mean(diagonals, np.array([2.0, 3.0])), np.diag([3.0, 1.0]), rtol=1e-12)
    np.testing.assert_allclose(affine_invariant_mean(diagonals), np.diag([3.0, 1.0]), rtol=1e-9)
