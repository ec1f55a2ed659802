"""The rigid wrapper against the closed-form derivatives of a rotation vector."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logishape as ls
from logishape.core import right_jacobian, rotation_matrix
from tests.problems import SHAPES

INNER = next(case for case in SHAPES if case.name == "superellipsoid")


@pytest.mark.parametrize("r", [(0.0, 0.0, 0.0), (1e-6, -2e-6, 1e-6), (0.3, -0.2, 0.4), (1.0, 2.0, -0.5)])
def test_pose_derivatives_are_the_closed_form(r, x64):
    """d/dt = grad S, d/dr = J_r' (x cross R' grad S); finite at r = 0, where the paper's form is 0/0."""
    centre, points = np.array([1.0, 2.0, -1.0]), np.random.default_rng(0).uniform(-4, 4, (40, 3))
    posed = ls.shapes.Posed(INNER.shape, centre)
    theta = np.array([0.2, -0.1, 0.3, *r, *INNER.theta])
    _, jacobian = eqx.filter_jit(ls.level_and_jacobian)(posed, theta, points)
    rotation, x = np.asarray(rotation_matrix(jnp.array(r))), points - centre
    y = x @ rotation.T + theta[:3]
    gradient = jax.jit(jax.vmap(jax.grad(lambda q: INNER.shape.level(INNER.theta, q[None])[0])))(y)
    np.testing.assert_allclose(jacobian[:, :3], gradient, rtol=1e-9, atol=1e-12)
    turned = np.cross(x, gradient @ rotation) @ np.asarray(right_jacobian(jnp.array(r)))
    np.testing.assert_allclose(jacobian[:, 3:6], turned, rtol=1e-7, atol=1e-10)


def test_world_pose_is_the_inverse(x64):
    posed = ls.shapes.Posed(INNER.shape, np.array([1.0, 2.0, -1.0]), np.array([0.5, 0.0, 0.2]))
    theta = np.array([0.2, -0.1, 0.3, 0.3, -0.2, 0.4, *INNER.theta])
    model_points = np.random.default_rng(1).uniform(-4, 4, (20, 3))
    world = posed.to_world(theta, model_points)
    np.testing.assert_allclose(posed.level(theta, world), INNER.shape.level(INNER.theta, model_points), atol=1e-10)
