"""Label probabilities against Bayes' rule, quadrature and the limits of the reference length."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit

import logishape as ls
from logishape import appearance
from logishape.inference import expected_label
from tests.problems import ellipse_case


def test_posterior_label_is_bayes_rule_with_each_class_its_own_parameters():
    """The paper's denominator uses the foreground's parameters for both classes; that is not Bayes' rule."""
    case = ellipse_case()
    u = ls.label_probability(case.model, case.observation, case.start)
    intensity = case.observation.intensities
    level = np.asarray(case.model.shape.level(case.start.theta, case.observation.points))
    prior = expit(level / case.model.reference_length)
    f1 = np.exp(case.start.regions.inside.log_prob(intensity))
    f0 = np.exp(case.start.regions.outside.log_prob(intensity))
    np.testing.assert_allclose(u, f1 * prior / (f1 * prior + f0 * (1 - prior)), atol=1e-5)  # the right side is single
    with_paper_denominator = f1 * prior / (f1 * prior + f1 * (1 - prior))
    assert np.abs(u - with_paper_denominator).max() > 0.5


def test_a_tiny_reference_length_returns_the_shape_and_a_huge_one_the_intensities():
    """The paper's paragraph on the ellipse has the direction reversed."""
    case = ellipse_case()
    level = np.asarray(case.model.shape.level(case.start.theta, case.observation.points))
    tiny = ls.label_probability(case.model, case.observation, case.start, reference_length=1e-4)
    clear = np.abs(level) > 0.05
    np.testing.assert_allclose(tiny[clear], level[clear] > 0, atol=1e-6)
    huge = ls.label_probability(case.model, case.observation, case.start, reference_length=1e7)
    by_intensity = expit(case.start.regions.log_odds(case.observation.intensities))
    np.testing.assert_allclose(huge, by_intensity, atol=1e-5)


@given(D=st.floats(-40, 40))
def test_expected_label_is_its_integral(D):
    # With t = sigmoid(s) the integrand over t in (0, 1) has no boundary layer.
    integral, _ = quad(lambda s: expit(D + s) * expit(s) * expit(-s), -60, 60, points=[-D, 0], limit=200)
    with ls.core.arrays.double_precision():
        assert float(expected_label(np.array(D))) == pytest.approx(integral, abs=1e-9)


def test_expected_label_needs_more_than_four_lengths_for_95_percent(x64):
    assert float(expected_label(np.array(0.0))) == 0.5
    assert float(expected_label(np.array(4.0))) == pytest.approx(0.943, abs=5e-4)  # the paper: at least 0.95
    assert brentq(lambda D: float(expected_label(np.array(D))) - 0.95, 1, 10) == pytest.approx(4.19, abs=5e-3)


def test_supervised_odds_are_the_networks():
    p = np.array([0.02, 0.4, 0.5, 0.97])
    odds = appearance.supervised_regions(prevalence=0.5).log_odds(p)
    np.testing.assert_allclose(odds, np.log(p / (1 - p)), rtol=1e-5)
    shifted = appearance.supervised_regions(prevalence=0.1).log_odds(p)
    np.testing.assert_allclose(shifted, odds + np.log(0.9 / 0.1), rtol=1e-5)
    sure = appearance.supervised_regions(confidence=0.99).log_odds(np.array([0.0, 1.0]))
    np.testing.assert_allclose(sure, [-np.log(99), np.log(99)], rtol=1e-4)


def test_marginal_labels_are_the_mean_over_draws():
    case = ellipse_case()
    fit = ls.fit(case.model, case.observation, case.start)
    posterior = ls.laplace(case.model, case.observation, fit)
    key = jax.random.key(4)
    marginal = ls.marginal_label_probability(case.model, case.observation, fit.state, posterior, key, num_draws=20)
    each = [
        ls.label_probability(case.model, case.observation, ls.State(theta, fit.state.regions))
        for theta in posterior.sample(key, 20)
    ]
    np.testing.assert_allclose(marginal, np.mean(each, axis=0), atol=1e-12)
    plugged_in = ls.label_probability(case.model, case.observation, fit.state)
    entropy = [np.mean(p * (1 - p)) for p in (plugged_in, marginal)]
    assert entropy[1] > entropy[0]  # integrating the shape out can only add doubt here
