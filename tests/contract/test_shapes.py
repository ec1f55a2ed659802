"""What every shape must do; see tests/problems.py."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logishape as ls
from tests.problems import SHAPES, grid

# Each of these has a twin without a pose or in the other dimension, or tests of its own; they add compilation.
TWINS = {
    *("superellipse", "posed superellipsoid", "posed level-set modes", "posed waving template", "posed mesh modes"),
    *("cochlea", "learned", "remeshed"),
}
each_shape = pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.name, marks=pytest.mark.slow if c.name in TWINS else ()) for c in SHAPES]
)


def random_points(case, num=200, seed=1):
    return np.random.default_rng(seed).uniform(-6, 6, (num, case.dimension))


def points_near_surface(case):
    """Level and gradient at points moved onto the zero level by Newton steps along the gradient in space."""
    points = jnp.asarray(random_points(case, 60))
    level_and_gradient = jax.vmap(jax.value_and_grad(lambda x: case.shape.level(case.theta, x[None])[0]))

    @jax.jit
    def approach(points):
        level, g = level_and_gradient(points)
        return points - 0.7 * (level / jnp.maximum(jnp.sum(g**2, axis=-1), 0.1))[:, None] * g

    for _ in range(60):
        points = approach(points)
    return jax.jit(level_and_gradient)(points)


@each_shape
def test_level_is_positive_inside_and_negative_far_away(case, x64):
    evaluate = eqx.filter_jit(case.shape.level)
    level = np.asarray(evaluate(case.theta, random_points(case)))
    assert level.shape == (200,)
    assert np.all(np.isfinite(level))
    assert level.max() > 0 > level.min()
    corners = 6.0 * grid(2, case.dimension, 2.0)
    assert np.all(np.asarray(evaluate(case.theta, corners)) < 0)


@each_shape
def test_level_is_in_millimetres_at_the_surface(case, x64):
    level, gradient = points_near_surface(case)
    on_surface = np.abs(level) < 1e-8
    assert on_surface.mean() > 0.9
    slope = np.linalg.norm(gradient, axis=-1)[on_surface]
    np.testing.assert_allclose(slope, 1.0, atol=case.slope_tolerance)


@each_shape
def test_jacobian_is_the_derivative(case, x64):
    points = random_points(case)
    step, evaluate = 1e-6, eqx.filter_jit(case.shape.level)
    level, jacobian = eqx.filter_jit(ls.level_and_jacobian)(case.shape, case.theta, points)
    np.testing.assert_allclose(level, evaluate(case.theta, points), rtol=1e-12)
    for k in range(case.shape.num_parameters):
        delta = np.zeros_like(case.theta)
        delta[k] = step
        up, down = (evaluate(case.theta + sign * delta, points) for sign in (1, -1))
        # Central differences: truncation step^2 and rounding 1e-16 / step are both below 1e-8.
        np.testing.assert_allclose(jacobian[:, k], (up - down) / (2 * step), rtol=1e-5, atol=1e-7)


FORMULAS = {case.name for case in SHAPES[:9]}


@pytest.mark.parametrize(
    "case",
    # Second derivatives of splines and facets take long to compile.
    [pytest.param(c, id=c.name, marks=() if c.name in FORMULAS else pytest.mark.slow) for c in SHAPES],
)
def test_derivatives_are_finite_everywhere(case, x64):
    awkward = np.concatenate([np.zeros((1, case.dimension)), np.eye(case.dimension), grid(5, case.dimension, 1.0)])
    if hasattr(case.shape, "to_world"):
        awkward = np.concatenate([awkward, np.asarray(case.shape.to_world(case.theta, awkward))])
    level, jacobian = eqx.filter_jit(ls.level_and_jacobian)(case.shape, case.theta, awkward)
    bend = jax.hessian(lambda theta, points: jnp.sum(case.shape.level(theta, points)))
    hessian = eqx.filter_jit(bend)(jnp.asarray(case.theta), awkward)
    for values in (level, jacobian, hessian):
        assert np.all(np.isfinite(values))


@each_shape
def test_jit_equals_eager_and_vmap_equals_a_loop(case, x64):
    points = random_points(case)
    eager = case.shape.level(case.theta, points)
    np.testing.assert_allclose(eqx.filter_jit(case.shape.level)(case.theta, points), eager, rtol=1e-12, atol=1e-13)
    thetas = case.theta * (1 + 0.05 * np.random.default_rng(2).uniform(-1, 1, (4, case.theta.size)))
    batched = jax.jit(jax.vmap(lambda theta, x: case.shape.level(theta, x), in_axes=(0, None)))(thetas, points)
    looped = np.stack([eqx.filter_jit(case.shape.level)(theta, points) for theta in thetas])
    np.testing.assert_allclose(batched, looped, rtol=1e-12, atol=1e-13)


@each_shape
def test_points_do_not_see_each_other(case, x64):
    points = random_points(case)
    order = np.random.default_rng(3).permutation(len(points))
    evaluate = eqx.filter_jit(case.shape.level)
    level = np.asarray(evaluate(case.theta, points))
    # The last few of an array may run through scalar instead of vector code, which rounds differently.
    np.testing.assert_allclose(evaluate(case.theta, points[order]), level[order], rtol=1e-14, atol=1e-14)


@each_shape
def test_single_precision_stays_single_and_close(case):
    points = random_points(case).astype(np.float32)
    with ls.core.arrays.double_precision():
        theta = case.theta.astype(np.float32)
        single = eqx.filter_jit(case.shape.level)(theta, points)
        double = eqx.filter_jit(case.shape.level)(case.theta, points.astype(np.float64))
        assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, double, atol=2e-4)  # single rounding, times the superellipsoid's powers


@each_shape
def test_parameters_go_by_name(case):
    named = dict(zip(case.shape.parameter_names, case.theta, strict=True))
    np.testing.assert_array_equal(case.shape.theta(named), case.theta)
    assert len(set(case.shape.parameter_names)) == case.shape.num_parameters == case.theta.size


@pytest.mark.parametrize("case", SHAPES[:9], ids=lambda case: case.name)  # formulas and poses: the cheap programs
def test_compiled_values_do_not_depend_on_how_many_points_there_are(case):
    """A compiler once broke sums after matrix-vector products, for some array sizes only, this one among them."""
    size = 32769
    points = random_points(case, size).astype(np.float32)
    theta = case.theta.astype(np.float32)
    whole = eqx.filter_jit(ls.level_and_jacobian)(case.shape, theta, points)
    sample = np.random.default_rng(4).choice(size, 100, replace=False)
    few = eqx.filter_jit(ls.level_and_jacobian)(case.shape, theta, points[sample])
    for a, b in zip(whole, few, strict=True):
        np.testing.assert_allclose(np.asarray(a)[sample], b, atol=2e-3, rtol=1e-3)  # single, summed in another order
