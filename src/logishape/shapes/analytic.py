"""Shapes with a formula: ball, ellipsoid, superellipsoid, each in the plane or in space."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from logishape.core.arrays import AnyArray
from logishape.core.errors import InputError
from logishape.shapes.base import AbstractShape, first_order_level, safe_norm

AXES = ("x", "y", "z")


def _checked_dimension(dimension: int) -> int:
    if dimension not in (2, 3):
        raise InputError(f"the dimension of space must be 2 or 3 but is {dimension}; choose one of them.")
    return dimension


class Ball(AbstractShape):
    """A disc (2D) or ball (3D) by its centre and radius; its level is the exact signed distance."""

    dimension: int = eqx.field(default=3, static=True, converter=_checked_dimension)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Centre coordinates, then the radius, all mm."""
        return (*AXES[: self.dimension], "radius")

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """R - |x - C|."""
        return theta[-1] - safe_norm(points - theta[:-1])


class Ellipsoid(AbstractShape):
    """An ellipse (2D) or ellipsoid (3D) about the origin, its semi-axes along the axes; see `Posed`.

    The level is (1 - Q)/|grad Q| with Q = |x / semi-axes|: exact to first order at the surface.
    """

    dimension: int = eqx.field(default=3, static=True, converter=_checked_dimension)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Semi-axes, mm."""
        return tuple(f"semi_axis_{axis}" for axis in AXES[: self.dimension])

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """(1 - Q)/|grad Q|, written out: |grad Q| = |x / semi-axes^2| / Q."""
        scaled = points / theta
        q = safe_norm(scaled)
        # At the centre the direction of the gradient is undefined; the floors make the ratio the mean semi-axis.
        floor = jnp.asarray(1e-6, q.dtype)
        mean_axis = jnp.exp(jnp.mean(jnp.log(theta)))
        millimetres = (q + floor) / (safe_norm(scaled / theta) + floor / mean_axis)
        return (1 - q) * millimetres


class Superellipsoid(AbstractShape):
    """A box with rounded edges about the origin: semi-axes and exponents (2 is the ellipsoid).

    In the plane |x/a|^e + |y/b|^e = 1; in space (|x/a|^e + |y/b|^e)^(f/e) + |z/c|^f = 1. Exponents above 2
    are boxier; between 1 and 2 the surface is pointed and second derivatives grow near its ridges.
    """

    dimension: int = eqx.field(default=3, static=True, converter=_checked_dimension)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Semi-axes (mm), then the exponent in the xy plane and, in space, the one along z."""
        exponents = ("exponent_xy", "exponent_z")[: self.dimension - 1]
        return (*(f"semi_axis_{axis}" for axis in AXES[: self.dimension]), *exponents)

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """(1 - Q)/|grad Q| with Q the gauge of the superellipsoid, homogeneous of degree one."""
        d, theta = self.dimension, jnp.asarray(theta)
        return first_order_level(lambda point: 1 - _gauge(point / theta[:d], theta[d:]), points)


def _gauge(scaled: AnyArray, exponents: AnyArray) -> jax.Array:
    q = _power_norm(scaled[:2], exponents[0])
    return q if scaled.shape[0] == 2 else _power_norm(jnp.stack([q, scaled[2]]), exponents[1])


def _power_norm(vector: AnyArray, exponent: AnyArray) -> jax.Array:
    """(sum |v|^e)^(1/e), which neither overflows nor meets log 0."""
    # Not jnp.abs: its derivative at zero is zero, and the level at the very centre would have no slope.
    size = jnp.where(vector < 0, -vector, vector) + jnp.asarray(1e-9, vector.dtype)
    # Through exp and log, which compile to vector code; a power of two floats does not.
    return jnp.exp(jax.nn.logsumexp(exponent * jnp.log(size)) / exponent)
