"""A shape whose reference length is one more parameter."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray
from logishape.core.errors import InputError
from logishape.shapes.base import AbstractShape, AbstractShapeWithDerivatives, Derivatives, derivatives

LENGTH_NAME = "log_length_ratio"


class FreeLength(AbstractShapeWithDerivatives):
    """A shape with its level divided by exp(last parameter), so that the reference length is estimated with it.

    With model length l the labels follow level / (l exp(log_length_ratio)): dV/dlog l = -V, and the posterior, its
    intervals and the evidence include the length. The level is then in units of the ratio, not in millimetres.
    """

    shape: AbstractShape

    def __check_init__(self) -> None:
        if LENGTH_NAME in self.shape.parameter_names:
            raise InputError("this shape has a free length already; one FreeLength is enough.")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The shape's own, then the log of the length's ratio to the model's."""
        return (*self.shape.parameter_names, LENGTH_NAME)

    @property
    def is_faceted(self) -> bool:
        """As the shape is."""
        return self.shape.is_faceted

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """The shape's level over the ratio."""
        theta = jnp.asarray(theta)
        return self.shape.level(theta[:-1], points) * jnp.exp(-theta[-1])

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray] | None:
        """The shape's own."""
        return self.shape.extent(theta[:-1])

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Derivatives:
        """The shape's derivatives over the ratio, and minus the level for the ratio itself."""
        theta = jnp.asarray(theta)
        inner, scale = derivatives(self.shape, theta[:-1], points), jnp.exp(-theta[-1])
        level = inner.level * scale
        jacobian = jnp.concatenate([inner.jacobian * scale, -level[:, None]], axis=1)
        return Derivatives(level, jacobian, inner.gradient * scale)
