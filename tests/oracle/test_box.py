"""The box step against SciPy's bounded least squares."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from logishape.core.arrays import double_precision
from logishape.inference import minimise_in_box


def solve(hessian, gradient, lower, upper):
    with double_precision():
        problem = (jnp.asarray(a) for a in (hessian, gradient, lower, upper))
        return np.asarray(eqx.filter_jit(minimise_in_box)(*problem))


@given(seed=st.integers(0, 100_000), p=st.sampled_from([2, 5, 11]), conditioning=st.floats(0, 5))
def test_solution_is_scipys(seed, p, conditioning):
    rng = np.random.default_rng(seed)
    A = np.diag(10 ** rng.uniform(-conditioning / 2, conditioning / 2, p)) @ rng.normal(size=(p, p)) + 0.1 * np.eye(p)
    b = 3 * rng.normal(size=p)
    lower, upper = -rng.uniform(0, 1, p), rng.uniform(0, 1, p)
    lower[rng.random(p) < 0.2] = 0.0  # already on a bound
    x = solve(A.T @ A, -A.T @ b, lower, upper)
    exact = lsq_linear(A, b, (lower, np.maximum(upper, lower + 1e-9)), method="bvls", tol=1e-14)

    def value(y):
        return 0.5 * np.sum((A @ y - b) ** 2)

    assert np.all((x >= lower) & (x <= upper))
    assert value(x) <= value(exact.x) * (1 + 1e-8) + 1e-10


def test_clipping_a_newton_step_is_wrong():
    """With correlated parameters the clipped Newton step is not the best point of the box, nor is it close."""
    hessian, gradient = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([-2.0, -1.0])
    lower, upper = -np.ones(2), np.array([0.5, 1.0])
    newton = -np.linalg.solve(hessian, gradient)
    clipped = np.clip(newton, lower, upper)
    x = solve(hessian, gradient, lower, upper)

    def value(y):
        return gradient @ y + 0.5 * y @ hessian @ y

    np.testing.assert_allclose(x, [0.5, 0.55], atol=1e-12)  # by hand: x2 = 1 - 0.9 * 0.5
    assert value(clipped) > value(x) + 0.5


def test_an_undetermined_direction_stays_put():
    x = solve(np.diag([1.0, 0.0]), np.array([-0.5, 0.0]), -np.ones(2), np.ones(2))
    np.testing.assert_allclose(x, [0.5, 0.0], atol=1e-12)
    np.testing.assert_array_equal(solve(np.zeros((2, 2)), np.zeros(2), -np.ones(2), np.ones(2)), [0.0, 0.0])
