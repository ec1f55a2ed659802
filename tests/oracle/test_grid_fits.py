"""Fits of shapes on grids: they find what was drawn, and their information is the curvature of the likelihood."""

import numpy as np
import pytest

import logishape as ls
from logishape import shapes
from logishape.core.arrays import double_precision
from tests.grids import rod_distance, rod_modes, rod_template
from tests.oracle.test_information import difference_hessian, information, log_likelihood
from tests.problems import AFFINE_3D, FitCase, draw_intensities, grid, two_gaussians


def rod_in_the_plane() -> FitCase:
    """A posed rod with two modes in a 30 x 30 image of half-millimetre pixels."""
    shape = shapes.Posed(rod_modes(2), np.zeros(2))
    prior = ls.Prior.of_modes(shape, {"tx": (-3, 3), "ty": (-3, 3), "angle": (-1.5, 1.5)})
    model = ls.Model(shape, prior, 0.3)
    truth, points = np.array([0.6, -0.4, 0.5, 1.2, -1.0]), grid(30, 2, 0.5)
    intensities = draw_intensities(model, truth, points, 30.0, 1)
    start = ls.State(np.array([0.0, 0.0, 0.2, 0.0, 0.0]), two_gaussians())
    return FitCase(model, ls.Observation.from_arrays(points, intensities, dtype=np.float64), start, truth)


@pytest.mark.slow  # test_levelset.py has the same without a pose
def test_modes_and_pose_are_found_in_a_noisy_image():
    case = rod_in_the_plane()
    found = ls.fit(case.model, case.observation, case.start).check()
    posterior = ls.laplace(case.model, case.observation, found)
    error = (found.state.theta - case.truth) / np.sqrt(np.diag(posterior.covariance))
    assert np.abs(error).max() < 3.5  # five errors in standard deviations
    assert np.all(np.sqrt(np.diag(posterior.covariance))[3:] < 1.0)  # the image says more than the prior did


@pytest.mark.slow
def test_an_affine_template_is_found_in_a_noisy_volume():
    shape = rod_template(shapes.Affine(np.zeros(3)), 3)
    width = np.repeat([2.0, 0.6], [3, 9])
    model = ls.Model(shape, ls.Prior(-width, width, np.zeros(12), np.repeat([1.0, 0.2], [3, 9]) ** 2), 0.3)
    points, truth = grid(24, 3, 0.5), np.array(AFFINE_3D)
    # Drawn from the rod's own formula, not from its samples; the level is in its frame, which is good enough here.
    level = rod_distance(points + points @ truth[3:].reshape(3, 3).T + truth[:3])
    rng = np.random.default_rng(2)
    intensities = np.where(level > rng.logistic(0, 0.3, len(points)), 100.0, 0.0) + rng.normal(0, 30, len(points))
    observation = ls.Observation.from_arrays(points, intensities)
    found = ls.fit(model, observation, ls.State(np.zeros(12), two_gaussians())).check()
    inside = np.asarray(shape.level(found.state.theta, points)) > 0
    overlap = 2 * np.sum(inside & (level > 0)) / (inside.sum() + np.sum(level > 0))
    assert overlap > 0.95
    # What turns a round rod about its axis cannot be seen, but where it lies and how long it is can.
    np.testing.assert_allclose(found.state.theta[:4], truth[:4], atol=0.12)


def test_observed_information_is_the_curvature_of_the_marginal_likelihood():
    case = rod_in_the_plane()
    theta, regions = case.truth + 0.05, case.start.regions
    with double_precision():
        info = information(case.model, case.observation, ls.State(theta, regions))
    exact = -difference_hessian(log_likelihood(case, regions), theta, step=2e-3)
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    # The spline's third derivative jumps between voxels, so differences are good to their step squared.
    assert np.abs((np.asarray(info.observed) - exact) / scale).max() < 1e-5
