"""Rotations against SciPy, which works in double precision whatever we do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from logishape.core import cross_matrix, right_jacobian, rotation_matrix, rotation_matrix_2d, rotation_vector

# Compiled as a whole: one compilation in place of one an operation.
matrix_of, vector_of = jax.jit(rotation_matrix), jax.jit(rotation_vector)
matrices_of, vectors_of, jacobians_of = (
    jax.jit(jax.vmap(function)) for function in (rotation_matrix, rotation_vector, right_jacobian)
)
AXES = np.vstack([np.eye(3), -np.eye(3), np.random.default_rng(3).normal(size=(10, 3))])
AXES = AXES / np.linalg.norm(AXES, axis=1, keepdims=True)


@pytest.fixture(params=[np.float32, np.float64], ids=["single", "double"])
def dtype(request):
    if request.param is np.float64:
        request.getfixturevalue("x64")
    return request.param


def tolerance(dtype):
    """Each entry is a sum of a few products of numbers up to pi: some ten roundings at worst."""
    return 16 * float(np.finfo(dtype).eps)


def vectors(dtype, *angles):
    """Rotation vectors of these angles about all axes."""
    return np.concatenate([angle * AXES for angle in angles]).astype(dtype)


def angles_of_interest(dtype):
    # Zero, the two sides of the border between series and closed form (see rotations._is_small), and pi.
    border = np.sqrt(16 * np.finfo(dtype).eps ** (1 / 3))
    return (0.0, 1e-12, 1e-6, 0.99 * border, 1.01 * border, 0.5, 2.0, np.pi - 1e-3, np.pi - 1e-7, np.pi)


def test_rotation_matrix_matches_scipy(dtype):
    r = vectors(dtype, *angles_of_interest(dtype), 5.0)
    matrices = matrices_of(r)
    assert matrices.dtype == dtype
    np.testing.assert_allclose(matrices, Rotation.from_rotvec(r).as_matrix(), rtol=0, atol=tolerance(dtype))


def test_rotation_vector_matches_scipy_up_to_half_turns(dtype):
    matrices = Rotation.from_rotvec(vectors(np.float64, *angles_of_interest(dtype))).as_matrix().astype(dtype)
    expected = Rotation.from_matrix(matrices)
    r = np.array(vectors_of(matrices), np.float64)
    # As rotations: at a half turn both signs of the axis are right.
    assert np.max((Rotation.from_rotvec(r) * expected.inv()).magnitude()) < tolerance(dtype)
    assert np.max(np.linalg.norm(r, axis=1)) <= np.pi + tolerance(dtype)


def test_rotation_vector_keeps_its_digits_for_small_angles(dtype):
    for angle in (1e-12, 1e-8, 1e-6, 1e-3, 0.1):
        r = vectors(dtype, angle)
        back = vectors_of(matrices_of(r))
        # The entries off the diagonal of a small rotation are the vector itself, so the error is relative.
        np.testing.assert_allclose(back, r, rtol=0, atol=tolerance(dtype) * angle)


def test_derivatives_at_zero_are_those_of_the_exponential(dtype):
    # exp([r]) = I + [r] + [r]^2/2 + ...: generators first, then their symmetrised products; exact numbers.
    zero = jnp.zeros(3, dtype)
    generators = np.stack([np.asarray(cross_matrix(e)) for e in np.eye(3, dtype=dtype)])
    products = np.einsum("kij,ljm->imkl", generators, generators)
    np.testing.assert_array_equal(jax.jit(jax.jacobian(rotation_matrix))(zero), np.moveaxis(generators, 0, -1))
    np.testing.assert_array_equal(
        jax.jit(jax.hessian(rotation_matrix))(zero), (products + np.swapaxes(products, -1, -2)) / 2
    )
    np.testing.assert_array_equal(
        jax.jit(jax.jacobian(right_jacobian))(zero), -np.moveaxis(generators, 0, -1) / 2
    )  # J = I - [r]/2 + ...


def test_right_jacobian_matches_automatic_derivatives(dtype):
    def from_derivative(r):
        # [J e_k] = R' dR/dr_k; read the vector off the skew matrix.
        slopes = jnp.einsum("ji,jmk->imk", rotation_matrix(r), jax.jacfwd(rotation_matrix)(r))
        return jnp.stack([slopes[2, 1] - slopes[1, 2], slopes[0, 2] - slopes[2, 0], slopes[1, 0] - slopes[0, 1]]) / 2

    r = vectors(dtype, *angles_of_interest(dtype), 5.0)
    np.testing.assert_allclose(jacobians_of(r), jax.jit(jax.vmap(from_derivative))(r), rtol=0, atol=tolerance(dtype))


def test_right_jacobian_matches_finite_differences_of_scipy(dtype):
    r = vectors(dtype, *angles_of_interest(dtype)).astype(np.float64)
    here, h = Rotation.from_rotvec(r), 1e-4

    def turned(step):
        return (here.inv() * Rotation.from_rotvec(r + step)).as_rotvec()

    differences = np.stack([(turned(h * e) - turned(-h * e)) / (2 * h) for e in np.eye(3)], axis=-1)
    # Central differences err by h^2/6 times a third derivative of order one.
    np.testing.assert_allclose(jacobians_of(r.astype(dtype)), differences, rtol=0, atol=1e-9 + tolerance(dtype))


def test_cross_matrix_and_plane_rotation():
    r, x = np.array([0.3, -1.2, 2.0], np.float32), np.array([1.5, 0.4, -0.7], np.float32)
    np.testing.assert_allclose(cross_matrix(r) @ x, np.cross(r, x), rtol=0, atol=tolerance(np.float32))
    in_space = Rotation.from_rotvec([0, 0, 0.7]).as_matrix()
    np.testing.assert_allclose(
        rotation_matrix_2d(np.array(0.7, np.float32)), in_space[:2, :2], rtol=0, atol=tolerance(np.float32)
    )


components = st.floats(-6, 6, width=32)


@given(r=st.tuples(components, components, components))
def test_rotation_matrices_are_rotations(r):
    matrix = np.asarray(matrix_of(np.array(r, np.float32)), np.float64)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(3), rtol=0, atol=tolerance(np.float32))
    assert abs(np.linalg.det(matrix) - 1) < tolerance(np.float32)


@given(r=st.tuples(components, components, components))
def test_matrix_to_vector_and_back_is_the_identity(r):
    matrix = matrix_of(np.array(r, np.float32))
    vector = vector_of(matrix)
    # The angle is at most pi, also when the vector that made the matrix was longer.
    assert np.linalg.norm(vector) <= np.pi + tolerance(np.float32)
    np.testing.assert_allclose(matrix_of(vector), matrix, rtol=0, atol=tolerance(np.float32))
