"""Derivatives by finite differences: what one does without better ones, and what better ones are compared with."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray, as_vector, like
from logishape.shapes.base import AbstractShape, AbstractShapeWithDerivatives, Derivatives


class FiniteDifferences(AbstractShapeWithDerivatives):
    """The same shape, its derivatives in the parameters by central differences: two levels for each parameter.

    `step` is one for all parameters, or one each, in their units. The gradient in space is the level's own.
    """

    shape: AbstractShape
    step: Float[AnyArray, " p"]

    def __init__(self, shape: AbstractShape, step: object):
        self.shape = shape
        self.step = as_vector(step, shape.num_parameters, "the steps of finite differences")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """As the shape's."""
        return self.shape.parameter_names

    @property
    def is_faceted(self) -> bool:
        """True: second derivatives are left out, since differences of differences are noise."""
        return True

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """As the shape's."""
        return self.shape.level(theta, points)

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Derivatives:
        """The level, (S(theta + step) - S(theta - step)) / (2 step) one parameter after another, and the gradient."""
        theta, points = jnp.asarray(theta), jnp.asarray(points)
        step = like(self.step, theta)
        level, pull = jax.vjp(lambda x: self.shape.level(theta, x), points)
        moves = jnp.diag(step)

        def change(move: jax.Array) -> jax.Array:
            return self.shape.level(theta + move, points) - self.shape.level(theta - move, points)

        jacobian = jax.lax.map(change, moves).T / (2 * step).astype(points.dtype)
        return Derivatives(level, jacobian, pull(jnp.ones_like(level))[0])

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray] | None:
        """As the shape's."""
        return self.shape.extent(theta)
