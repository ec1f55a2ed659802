"""Every way a fit can end, each met by a fit that ends that way."""

import dataclasses

import numpy as np
import pytest

import logishape as ls
from logishape import appearance, shapes
from tests.problems import ellipse_case, grid, two_gaussians


def disc_image(radius=8.0, noise=10.0, size=48):
    points = grid(size, 2)
    inside = np.linalg.norm(points, axis=1) < radius
    return ls.Observation.from_arrays(
        points, np.where(inside, 100.0, 0.0) + np.random.default_rng(0).normal(0, noise, len(points))
    )


def fit_disc(theta=(1.0, 1.0, 7.0), reference_length=0.5, observation=None, upper=20.0, options=None, regions=None):
    prior = ls.Prior([-10, -10, 1], [10, 10, upper])
    model = ls.Model(shapes.Ball(2), prior, reference_length)
    start = ls.State(np.array(theta), two_gaussians(20.0) if regions is None else regions)
    return ls.fit(model, disc_image() if observation is None else observation, start, options)


def test_converged():
    fit = fit_disc()
    assert fit.status is ls.Status.CONVERGED
    assert fit.check() is fit
    assert fit.decrement < ls.FitOptions().decrement_tolerance
    assert fit.parameters["radius"] == pytest.approx(8.0, abs=0.15)
    assert fit.at_bound == ()


def test_out_of_steps():
    fit = fit_disc(theta=(6.0, 6.0, 3.0), options=ls.FitOptions(max_rounds=1, max_shape_steps=1))
    assert fit.status is ls.Status.OUT_OF_STEPS
    with pytest.raises(ls.FitError, match="raise max_rounds"):
        fit.check()


def test_at_the_box():
    fit = fit_disc(upper=7.2)
    assert fit.status is ls.Status.AT_BOX
    assert fit.at_bound == ("radius",)
    assert fit.parameters["radius"] == pytest.approx(7.2)


def test_no_information_when_inside_and_outside_look_alike():
    same = appearance.Fixed(appearance.gaussian(50.0, 30.0))
    assert fit_disc(regions=ls.Regions(same, same)).status is ls.Status.NO_INFORMATION


def test_no_information_in_a_constant_image():
    points = grid(48, 2)
    constant = ls.Observation.from_arrays(points, np.full(len(points), 50.0))
    assert fit_disc(observation=constant).status is ls.Status.NO_INFORMATION


@pytest.mark.parametrize("reference_length", [12.0, 40.0])
def test_a_large_reference_length_collapses_and_says_so(reference_length):
    """A circle much smaller than the reference length is no circle, however flat the log joint is there."""
    fit = fit_disc(reference_length=reference_length)
    assert fit.status is ls.Status.COLLAPSED
    with pytest.raises(ls.FitError, match="lower the reference length"):
        fit.check()


def test_a_shape_that_swallows_the_image_says_so():
    points = grid(48, 2)
    everything = ls.Observation.from_arrays(points, 100 + np.random.default_rng(0).normal(0, 10, len(points)))
    fixed = ls.Regions(*(appearance.Fixed(one) for one in (appearance.gaussian(100, 10), appearance.gaussian(0, 10))))
    fit = fit_disc(observation=everything, regions=fixed, upper=40.0)
    assert fit.status is ls.Status.COLLAPSED


def test_stalled():
    """A level that lies about its derivative: no step along it can raise the log joint."""

    class Liar(ls.shapes.AbstractShape):
        @property
        def parameter_names(self):
            return ("x", "y", "radius")

        def level(self, theta, points):
            import jax

            flipped = 2 * jax.lax.stop_gradient(theta) - theta  # right value, derivative of the wrong sign
            return flipped[2] - ls.shapes.safe_norm(points - flipped[:2])

    prior = ls.Prior([-10, -10, 1], [10, 10, 20])
    start = ls.State([1.0, 1.0, 7.0], two_gaussians(20.0))
    fit = ls.fit(ls.Model(Liar(), prior, 0.5), disc_image(), start)
    assert fit.status is ls.Status.STALLED


def test_every_status_has_advice_in_one_sentence():
    for status in ls.Status:
        assert status.advice.endswith(".")
        assert "\n" not in status.advice
    usable = {status for status in ls.Status if status.is_usable}
    assert usable == {ls.Status.CONVERGED, ls.Status.AT_BOX}


def test_annealing_reaches_what_a_short_length_cannot():
    points = grid(64, 2)
    inside = np.linalg.norm(points - [12, 10], axis=1) < 6
    image = np.where(inside, 100.0, 0.0) + np.random.default_rng(1).normal(0, 10, len(points))
    observation = ls.Observation.from_arrays(points, image)
    model = ls.Model(shapes.Ball(2), ls.Prior([-20, -20, 2], [20, 20, 15]), 0.2)
    start = ls.State([0.0, 0.0, 10.0], two_gaussians(20.0))
    fit = ls.fit(model, observation, start, ls.FitOptions(anneal=(20.0, 5.0, 2.0))).check()
    np.testing.assert_allclose(fit.state.theta, [12, 10, 6], atol=0.15)


def test_supervised_regions_are_not_updated():
    case = ellipse_case()
    probability = 1 / (1 + np.exp(-(np.asarray(case.observation.intensities) - 50) / 25))
    observation = ls.Observation.from_arrays(case.observation.points, probability)
    regions = appearance.supervised_regions()
    fit = ls.fit(case.model, observation, dataclasses.replace(case.start, regions=regions)).check()
    np.testing.assert_allclose(fit.state.theta, case.truth, atol=0.8)
    assert fit.state.regions.is_fixed


@pytest.mark.parametrize("seed", range(4))
def test_pure_noise_says_nothing_about_a_shape(seed):
    points = grid(48, 2)
    noise = ls.Observation.from_arrays(points, 50 + np.random.default_rng(seed).normal(0, 10, len(points)))
    regions = ls.Regions(appearance.gaussian(60.0, 10.0), appearance.gaussian(40.0, 10.0))
    fit = fit_disc(theta=(0.0, 0.0, 6.0), observation=noise, regions=regions)
    assert not fit.status.is_usable


@pytest.mark.parametrize("method", ["gauss-newton", "bfgs"])
def test_a_bound_lets_go_when_the_log_joint_rises_inwards(method):
    """A start on the box's border, with a Gaussian prior beside the data: the gradient there must be whole."""
    lower, upper = np.array([-10.0, -10, 1]), np.array([10.0, 10, 12])
    prior = ls.Prior(lower, upper, [0.0, 0, 9.0], np.array([4.0, 4, 1]) ** 2)
    start = ls.State([1.0, 1.0, 12.0], two_gaussians(20.0))
    fit = ls.fit(ls.Model(shapes.Ball(2), prior, 0.5), disc_image(), start, ls.FitOptions(method=method))
    assert fit.status is ls.Status.CONVERGED
    assert fit.parameters["radius"] == pytest.approx(8.0, abs=0.15)
