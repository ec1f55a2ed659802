"""Score and information against finite differences of the true marginal likelihood."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logishape as ls
from logishape import appearance
from logishape.core.arrays import CHUNK, double_precision
from logishape.inference import log_joint
from logishape.posterior import information as eager_information
from tests.problems import ball_case, ellipse_case

information = eqx.filter_jit(eager_information)


def log_likelihood(case, regions):
    """The marginal log likelihood as a function of theta, by the public objective, without the flat prior."""
    value = eqx.filter_jit(log_joint)

    def at(theta):
        with double_precision():
            whole = float(value(case.model, case.observation, ls.State(theta, regions)))
            return whole - float(case.model.prior.log_prob(jnp.asarray(theta)))

    return at


def difference_hessian(function, theta, step):
    """Fourth-order central differences in every pair of directions, by polarisation."""
    p = len(theta)

    def second(direction):
        f = [function(theta + k * step * direction) for k in (-2, -1, 0, 1, 2)]
        return (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * step**2)

    unit = np.eye(p)
    diagonal = [second(unit[k]) for k in range(p)]
    hessian = np.diag(diagonal)
    for i in range(p):
        for j in range(i):
            hessian[i, j] = hessian[j, i] = 0.5 * (second(unit[i] + unit[j]) - diagonal[i] - diagonal[j])
    return hessian


@pytest.mark.parametrize("make", [ellipse_case, ball_case], ids=["ellipse", "ball"])
def test_observed_information_is_the_curvature_of_the_marginal_likelihood(make):
    case = make()
    theta, regions = case.truth + 0.05, case.start.regions
    with double_precision():
        info = information(case.model, case.observation, ls.State(theta, regions))
    exact = -difference_hessian(log_likelihood(case, regions), theta, step=2e-3)
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.abs((np.asarray(info.observed) - exact) / scale).max() < 1e-6


def test_score_is_the_gradient_of_the_marginal_likelihood():
    """The E-step at the current parameters makes the gradient of F that of the likelihood itself (Fisher)."""
    case = ellipse_case()
    value = log_likelihood(case, case.start.regions)
    with double_precision():
        info = information(case.model, case.observation, case.start)
    for k in range(5):
        step = 1e-5 * np.eye(5)[k]
        slope = (value(case.start.theta + step) - value(case.start.theta - step)) / 2e-5
        assert float(info.score[k]) == pytest.approx(slope, rel=1e-6, abs=1e-4)


def test_identical_regions_carry_no_information_whatever_the_paper_says():
    case = ellipse_case()
    same = appearance.gaussian(50.0, 30.0)
    with double_precision():
        info = information(case.model, case.observation, ls.State(case.truth, ls.Regions(same, same)))
    scale = np.diag(info.complete)
    assert np.all(scale > 1)  # the complete kind claims a finite standard deviation from nothing
    assert np.abs(np.asarray(info.observed)).max() < 1e-10 * scale.max()
    assert np.abs(np.asarray(info.outer)).max() < 1e-10 * scale.max()


def test_covariance_holds_prior_and_data_and_no_damping():
    """The paper's prior on the increment is damping; only p(theta) and the data may enter."""
    case = ellipse_case()
    sd = np.array([0.5, 0.5, 0.05, 1.0, 1.0])
    prior = ls.Prior(case.model.prior.lower, case.model.prior.upper, case.truth, sd**2)
    model = ls.Model(case.model.shape, prior, case.model.reference_length)
    fit = ls.fit(model, case.observation, case.start)
    with double_precision():
        info = information(model, case.observation, fit.state)
    for kind, data in (("complete", info.complete), ("observed", info.observed)):
        expected = np.linalg.inv(0.25 * np.asarray(data) + np.diag(1 / sd**2))
        posterior = ls.laplace(model, case.observation, fit, kind, 0.25, appearance_is_known=True)
        np.testing.assert_allclose(posterior.covariance, expected, rtol=1e-8)
        assert not posterior.is_fallback


def test_gaussian_prior_pulls_with_the_right_sign():
    """The paper's Algorithm 1 has both prior signs wrong: the fit would run away from the prior's mean."""
    case = ellipse_case()
    far = case.truth + np.array([2.0, 0, 0, 0, 0])
    distances = []
    for sd in (1e3, 0.2, 0.02):
        prior = ls.Prior(case.model.prior.lower, case.model.prior.upper, far, np.array([sd, 1e3, 1e3, 1e3, 1e3]) ** 2)
        fit = ls.fit(ls.Model(case.model.shape, prior, 0.8), case.observation, case.start).check()
        distances.append(abs(fit.state.theta[0] - far[0]))
    assert distances[0] > 1.2
    assert distances[1] < 0.8 * distances[0]
    assert distances[2] < 0.1


def test_not_positive_definite_falls_back_to_the_outer_product():
    case = ellipse_case()
    fit = ls.fit(case.model, case.observation, case.start)
    astray = eqx.tree_at(lambda f: f.state.theta, fit, np.array([-7.0, 7.0, -1.0, 5.0, 14.0]))
    posterior = ls.laplace(case.model, case.observation, astray)
    assert posterior.is_fallback
    assert np.all(np.linalg.eigvalsh(posterior.covariance) > 0)


def test_pieces_add_up(monkeypatch):
    """Voxels are taken in pieces to bound memory; the sums must not notice."""
    case = ellipse_case()
    with double_precision():
        whole = information(case.model, case.observation, case.start)
        assert case.observation.num_voxels < CHUNK
        monkeypatch.setattr("logishape.core.arrays.CHUNK", 300)  # 1600 voxels: six pieces, the last one padded
        pieces = eqx.filter_jit(lambda *a: eager_information(*a))(case.model, case.observation, case.start)
    for a, b in zip(jax.tree.leaves(pieces), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-8)
