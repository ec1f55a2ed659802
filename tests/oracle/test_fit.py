"""Fits against SciPy's optimisers and against closed forms."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import logishape as ls
from logishape import appearance, shapes
from logishape.core.arrays import double_precision
from logishape.inference import log_joint
from tests.problems import ball_case, ellipse_case

# To rounding, and without the band, whose dropped voxels weigh exp(-8) each.
TIGHT = ls.FitOptions(decrement_tolerance=1e-6, rise_tolerance=1e-8, use_band=False)


def fixed(regions):
    return ls.Regions(appearance.Fixed(regions.inside), appearance.Fixed(regions.outside))


@pytest.mark.parametrize(
    ("make", "method"),
    [
        (ellipse_case, "bfgs"),
        # Gauss-Newton meets SciPy in the test after this one, with appearances as well.
        pytest.param(ball_case, "gauss-newton", marks=pytest.mark.slow),
        pytest.param(ellipse_case, "gauss-newton", marks=pytest.mark.slow),
        pytest.param(ball_case, "bfgs", marks=pytest.mark.slow),
    ],
    ids=["ellipse-bfgs", "ball-gauss-newton", "ellipse-gauss-newton", "ball-bfgs"],
)
def test_shape_is_scipys_optimum(make, method):
    case = make()
    regions = fixed(case.start.regions)
    options = dataclasses.replace(TIGHT, method=method)
    fit = ls.fit(case.model, case.observation, ls.State(case.start.theta, regions), options).check()

    @jax.jit
    @jax.value_and_grad
    def slope(theta):
        return -log_joint(case.model, case.observation, ls.State(theta, regions))

    with double_precision():
        bounds = list(zip(case.model.prior.lower, case.model.prior.upper, strict=True))
        found = minimize(
            lambda x: tuple(np.asarray(v, float) for v in slope(jnp.asarray(x))),
            case.start.theta, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9},
        )  # fmt: skip
    assert fit.log_joint[-1] == pytest.approx(-found.fun, abs=1e-6)
    np.testing.assert_allclose(fit.state.theta, found.x, atol=2e-4)


def test_shape_and_appearance_together_are_scipys_optimum():
    case = ellipse_case()
    fit = ls.fit(case.model, case.observation, case.start, TIGHT).check()

    def unpack(x):
        def put(one, mean, log_scale):
            return eqx.tree_at(
                lambda m: (m.components.means, m.components.scales), one, (mean[None], jnp.exp(log_scale)[None])
            )

        regions = case.start.regions
        return ls.State(x[:5], ls.Regions(put(regions.inside, x[5], x[6]), put(regions.outside, x[7], x[8])))

    @jax.jit
    @jax.value_and_grad
    def slope(x):
        return -log_joint(case.model, case.observation, unpack(x))

    start = np.concatenate([case.start.theta, [110.0, np.log(39.0), -10.0, np.log(39.0)]])
    with double_precision():
        found = minimize(
            lambda x: tuple(np.asarray(v, float) for v in slope(jnp.asarray(x))),
            start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-8, "maxiter": 500},
        )  # fmt: skip
    assert fit.log_joint[-1] == pytest.approx(-found.fun, abs=1e-4)
    np.testing.assert_allclose(fit.state.theta, found.x[:5], atol=5e-3)
    inside = fit.state.regions.inside.components
    np.testing.assert_allclose([inside.means[0], np.log(inside.scales[0])], found.x[5:7], rtol=1e-3)


@pytest.mark.parametrize(
    ("dimension", "reference_length"), [(2, 0.5), (2, 1.0), pytest.param(3, 0.5, marks=pytest.mark.slow)]
)
def test_a_sharp_ball_shrinks_as_the_formula_says(dimension, reference_length):
    """delta = -(pi^2/6) K l^2 with K the sum of principal curvatures: 1/R in the plane, 2/R in space."""
    # Shells of directions with weight r^(d-1): a ball on a voxel grid is itself off its radius by as much.
    radius, spacing, num_directions = 8.0, 0.02, 100
    distance = np.repeat(np.arange(spacing / 2, 16, spacing), num_directions)
    directions = np.random.default_rng(0).normal(size=(num_directions // 2, dimension))
    directions = np.concatenate([directions, -directions])
    points = np.tile(directions / np.linalg.norm(directions, axis=1, keepdims=True), (len(distance) // 100, 1))
    points, inside = points * distance[:, None], distance < radius
    shape = shapes.Ball(dimension)
    prior = ls.Prior([-4.0] * dimension + [1.0], [4.0] * dimension + [11.0])
    regions = fixed(ls.Regions(appearance.gaussian(1.0, 0.05), appearance.gaussian(0.0, 0.05)))
    weights = distance ** (dimension - 1)
    observation = ls.Observation.from_arrays(points, inside.astype(float), weights, dtype=np.float64)
    start = ls.State([0.1] * dimension + [7.0], regions)
    fit = ls.fit(ls.Model(shape, prior, reference_length), observation, start, TIGHT)
    shrinkage = fit.state.theta[-1] - radius
    predicted = -(np.pi**2 / 6) * (dimension - 1) / radius * reference_length**2
    assert shrinkage == pytest.approx(predicted, rel=0.05)  # the next order is (l/R)^2 = 0.4 to 1.6 %


def test_reference_length_by_likelihood_is_a_stationary_point():
    """At the best length the likelihood is flat in it: score -sum (u - mu) V is zero."""
    case = ellipse_case(noise=30.0, reference_length=1.0)
    profile = ls.profile_reference_length(case.model, case.observation, case.start, [0.3, 0.6, 1.2, 2.4])
    assert profile.is_inside
    assert 0.6 < profile.best_length < 1.6  # the data were drawn at 1.0
    heights = []
    for factor in (0.8, 1.0, 1.25):
        model = case.model.with_reference_length(factor * profile.best_length)
        heights.append(ls.fit(model, case.observation, profile.best_fit.state).log_joint[-1])
    assert heights[1] > max(heights[0], heights[2])


def test_profile_says_when_the_range_chose_the_length():
    case = ellipse_case(reference_length=1.0)
    profile = ls.profile_reference_length(case.model, case.observation, case.start, [0.05, 0.1, 0.2])
    assert not profile.is_inside
    assert profile.best_length == 0.2
