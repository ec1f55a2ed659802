"""What a shape is: a level in millimetres, positive inside, and the derivatives that come with it."""

import abc
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray
from logishape.core.errors import InputError


class AbstractNamed(eqx.Module):
    """Something with named parameters: a shape, a surface, a deformation."""

    if TYPE_CHECKING:
        parameter_names: ClassVar[Any]  # a class attribute and a property are both fine
    else:

        @property
        @abc.abstractmethod
        def parameter_names(self) -> tuple[str, ...]:
            """A name for each entry of `theta`, in order."""

    @property
    def num_parameters(self) -> int:
        """The length of `theta`."""
        return len(self.parameter_names)


class AbstractShape(AbstractNamed):
    """A family of shapes with parameters `theta`, written down as one function.

    Subclasses give `parameter_names` and `level`. The level must be computed with `jax.numpy`, row by row
    (the value at one point may not depend on the others); derivatives, batches and GPUs follow from it.
    """

    @abc.abstractmethod
    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """Millimetres to the surface at each point: positive inside, negative outside, zero on it."""

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray] | None:
        """Corners (mm) of a world box around the shape where it knows one; told to a user whose image misses it."""
        del theta

    @property
    def is_faceted(self) -> bool:
        """Whether the surface is made of flat pieces, whose second derivatives know nothing of the bends between."""
        return False

    def theta(self, values: Mapping[str, float]) -> np.ndarray:
        """The parameter vector with these named values."""
        missing = set(self.parameter_names) - set(values)
        unknown = set(values) - set(self.parameter_names)
        if missing or unknown:
            raise InputError(
                f"this shape has the parameters {', '.join(self.parameter_names)}; "
                f"missing: {', '.join(sorted(missing)) or 'none'}, unknown: {', '.join(sorted(unknown)) or 'none'}."
            )
        return np.array([values[name] for name in self.parameter_names], dtype=np.float64)


class AbstractShapeWithDerivatives(AbstractShape):
    """A shape that knows its derivatives better than automatic differentiation would find them."""

    @abc.abstractmethod
    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> "Derivatives":
        """The level and its derivatives in parameters and position, exact."""


class Derivatives(NamedTuple):
    """The level at each point, its derivatives in the parameters, and its gradient in space."""

    level: Float[AnyArray, " n"]
    jacobian: Float[AnyArray, "n p"]
    gradient: Float[AnyArray, "n d"]


def derivatives(shape: AbstractShape, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Derivatives:
    """The level and its exact derivatives at each point.

    Reverse mode point by point: one backward pass gives all p + d derivatives, whatever p.
    """
    theta, points = jnp.asarray(theta), jnp.asarray(points)
    if isinstance(shape, AbstractShapeWithDerivatives):
        return shape.derivatives(theta, points)

    def at_point(parameters: jax.Array, point: jax.Array) -> jax.Array:
        return shape.level(parameters, point[None])[0]

    value_and_grad = jax.vmap(jax.value_and_grad(at_point, argnums=(0, 1)), in_axes=(None, 0))
    level, (jacobian, gradient) = value_and_grad(theta, points)
    return Derivatives(level, jacobian, gradient)


def level_and_jacobian(
    shape: AbstractShape, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]
) -> tuple[Float[jax.Array, " n"], Float[jax.Array, "n p"]]:
    """The level and its exact derivatives in `theta` at each point."""
    found = derivatives(shape, theta, points)
    return found.level, found.jacobian


def safe_norm(vector: Float[AnyArray, "... d"]) -> Float[jax.Array, "..."]:
    """The length of each vector, with derivative zero (not NaN) where the length is zero."""
    squared = jnp.sum(jnp.square(vector), axis=-1)
    is_zero = squared == 0
    return jnp.where(is_zero, 0.0, jnp.sqrt(jnp.where(is_zero, 1.0, squared)))


def first_order_level(
    implicit: Callable[[Float[AnyArray, " d"]], Float[AnyArray, ""]], points: Float[AnyArray, "n d"]
) -> Float[jax.Array, " n"]:
    """f/|grad f| in millimetres for any function f of one point that is positive inside.

    Same sign and same zero set as f; the distance is exact to first order next to the surface and only
    indicative far from it, which is all that inference needs. Turns a formula into a level.
    """
    value, gradient = jax.vmap(jax.value_and_grad(implicit))(jnp.asarray(points))
    slope = safe_norm(gradient)
    return value / jnp.where(slope > 0, slope, 1.0)
