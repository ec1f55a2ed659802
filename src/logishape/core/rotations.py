"""Rotations by a rotation vector (axis times angle), with every derivative finite at zero."""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from logishape.core.arrays import AnyArray


def _is_small(angle_squared: jax.Array) -> jax.Array:
    # Where the first dropped term of the series below, s^3/5040, is beneath the precision in use.
    return angle_squared < 16 * float(jnp.finfo(angle_squared.dtype).eps) ** (1 / 3)


def _sine_ratio(s: jax.Array) -> jax.Array:
    """sin(a)/a at s = a^2."""
    a = jnp.sqrt(jnp.where(_is_small(s), 1.0, s))
    return jnp.where(_is_small(s), 1 - s / 6 + s**2 / 120, jnp.sin(a) / a)


def _cosine_ratio(s: jax.Array) -> jax.Array:
    """(1 - cos a)/a^2 at s = a^2, as 2 sin^2(a/2)/a^2, which does not cancel."""
    a = jnp.sqrt(jnp.where(_is_small(s), 1.0, s))
    return jnp.where(_is_small(s), 0.5 - s / 24 + s**2 / 720, 2 * jnp.sin(a / 2) ** 2 / a**2)


def _cubic_ratio(s: jax.Array) -> jax.Array:
    """(a - sin a)/a^3 at s = a^2."""
    a = jnp.sqrt(jnp.where(_is_small(s), 1.0, s))
    return jnp.where(_is_small(s), 1 / 6 - s / 120 + s**2 / 5040, (a - jnp.sin(a)) / a**3)


def cross_matrix(r: Float[AnyArray, "3"]) -> Float[jax.Array, "3 3"]:
    """The matrix [r] with [r] x = r cross x."""
    zero = jnp.zeros_like(r[0])
    return jnp.array([[zero, -r[2], r[1]], [r[2], zero, -r[0]], [-r[1], r[0], zero]])


def rotation_matrix(r: Float[AnyArray, " 3"]) -> Float[jax.Array, "3 3"]:
    """R = exp([r]): turns by |r| radians about r (Rodrigues), smooth through r = 0."""
    s = jnp.vdot(r, r)
    k = cross_matrix(r)
    return jnp.eye(3, dtype=k.dtype) + _sine_ratio(s) * k + _cosine_ratio(s) * (k @ k)


def rotation_matrix_2d(angle: Float[AnyArray, ""]) -> Float[jax.Array, "2 2"]:
    """Turns the plane counter-clockwise by `angle` radians."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.array([[c, -s], [s, c]])


def right_jacobian(r: Float[AnyArray, " 3"]) -> Float[jax.Array, "3 3"]:
    """J with exp([r + d]) = exp([r]) exp([J d]) to first order: I - (1-cos a)/a^2 [r] + (a - sin a)/a^3 [r]^2."""
    s = jnp.vdot(r, r)
    k = cross_matrix(r)
    return jnp.eye(3, dtype=k.dtype) - _cosine_ratio(s) * k + _cubic_ratio(s) * (k @ k)


def apply_matrix(matrix: Float[AnyArray, "d d"], vectors: Float[AnyArray, "n d"]) -> Float[jax.Array, "n d"]:
    """matrix @ v for each row v, written as a sum.

    It fuses with what surrounds it, and a GPU does not round it to ten bits as it does a matrix product.
    """
    return jnp.sum(matrix * vectors[:, None, :], axis=-1)


def rotation_vector(matrix: Float[AnyArray, "3 3"]) -> Float[jax.Array, " 3"]:
    """The rotation vector of a rotation matrix, of length at most pi.

    Goes through the quaternion of largest component, so that half turns are as accurate as small ones.
    """
    m = jnp.asarray(matrix)
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    # Row k holds the quaternion (w, x, y, z) scaled by its k-th component; take the largest.
    skew = jnp.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])
    symmetric = m + m.T - jnp.diag(jnp.diag(m)) * 2
    body = symmetric + jnp.diag(1 + 2 * jnp.diag(m) - trace)
    table = jnp.concatenate([jnp.append(1 + trace, skew)[None], jnp.column_stack([skew, body])])
    q = table[jnp.argmax(jnp.diag(table))]
    q = q / jnp.linalg.norm(q)
    q = jnp.where(q[0] < 0, -q, q)
    squared = jnp.vdot(q[1:], q[1:])
    is_tiny = squared < 1e-14
    sine = jnp.sqrt(jnp.where(is_tiny, 1.0, squared))
    return jnp.where(is_tiny, 2.0, 2 * jnp.arctan2(sine, q[0]) / sine) * q[1:]
