"""The paper's shape step as it is printed, written anew in NumPy: what is wrong with it, and that ours is not."""

import equinox as eqx
import numpy as np
import pytest
from scipy.special import expit, log_expit

import logishape as ls
from logishape.core.arrays import double_precision
from logishape.posterior import information as eager_information
from tests.problems import ellipse_case

information, level_and_jacobian = eqx.filter_jit(eager_information), eqx.filter_jit(ls.level_and_jacobian)


def linearised(case, theta):
    """V and its derivatives D (voxels by parameters), and the posterior labels u, at these parameters."""
    with double_precision():
        level, jacobian = level_and_jacobian(case.model.shape, theta, case.observation.points)
    V, D = (np.asarray(array, float) / case.model.reference_length for array in (level, jacobian))
    return V, D, expit(V + np.asarray(case.start.regions.log_odds(case.observation.intensities), float))


def score_at(case, theta):
    with double_precision():
        return np.asarray(information(case.model, case.observation, ls.State(theta, case.start.regions)).score)


def test_the_data_term_of_the_printed_objective_is_upside_down():
    """L_S is to be maximised but is printed as -sum[u log mu + (1-u) log(1-mu)] + log p: its slope is downhill."""
    case = ellipse_case()
    _, _, u = linearised(case, case.start.theta)

    def printed(theta):
        V, _, _ = linearised(case, theta)
        return -np.sum(u * log_expit(V) + (1 - u) * log_expit(-V))

    uphill = score_at(case, case.start.theta)
    for k, step in enumerate(1e-5 * np.eye(5)):
        slope = (printed(case.start.theta + step) - printed(case.start.theta - step)) / 2e-5
        assert slope == pytest.approx(-uphill[k], rel=1e-5, abs=1e-3)


def test_the_printed_prior_pushes_the_step_away():
    """Algorithm 1 subtracts P0 delta from the gradient and P0 from the Hessian: for a minimum both signs are wrong.

    With them the inner loop ends farther from its prior's mean, delta = 0, than without any prior; with the signs
    turned round it ends nearer.
    """
    case = ellipse_case()
    V, D, u = linearised(case, case.truth + 0.3 * (case.start.theta - case.truth))
    mu = expit(V)
    P0 = 0.2 * np.diag(np.diag(D.T @ ((mu * (1 - mu))[:, None] * D)))

    def inner_loop(sign):
        delta = np.zeros(5)
        for _ in range(100):
            mu = expit(V + D @ delta)
            gradient = -D.T @ (u - mu) + sign * P0 @ delta
            hessian = D.T @ ((mu * (1 - mu))[:, None] * D) + sign * P0
            delta = delta - np.linalg.solve(hessian, gradient)
        np.testing.assert_allclose(D.T @ (u - expit(V + D @ delta)), sign * P0 @ delta, atol=1e-6)  # it has settled
        return np.sqrt(delta @ P0 @ delta)

    assert inner_loop(+1) < 0.8 * inner_loop(0)
    assert inner_loop(-1) > 1.5 * inner_loop(0)


def test_an_e_step_behind_the_shape_is_not_the_gradient():
    """Line 15 of Algorithm 1 updates u before theta has moved; D(u - mu) is the likelihood's slope only after."""
    case = ellipse_case()
    here = case.start.theta + np.array([0.3, -0.2, 0.05, 0.4, 0.3])
    V, D, u = linearised(case, here)
    _, _, stale = linearised(case, case.start.theta)
    slope = score_at(case, here)
    np.testing.assert_allclose(D.T @ (u - expit(V)), slope, rtol=1e-6, atol=1e-4)
    assert np.linalg.norm(D.T @ (stale - expit(V)) - slope) > 0.1 * np.linalg.norm(slope)
