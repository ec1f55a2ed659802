"""A shape whose second derivatives nobody asks for."""

import jax
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray
from logishape.shapes.base import AbstractShape, AbstractShapeWithDerivatives, Derivatives, derivatives


class FirstOrder(AbstractShapeWithDerivatives):
    """The same shape, with the second derivatives of its level left out of the observed information.

    Under the model that term, sum (u - mu) grad^2 V, is noise about zero; for a shape with many formulas it takes
    longer to compile than all else together.
    """

    shape: AbstractShape

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """As the shape's."""
        return self.shape.parameter_names

    @property
    def is_faceted(self) -> bool:
        """True: leave out second derivatives."""
        return True

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """As the shape's."""
        return self.shape.level(theta, points)

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Derivatives:
        """As the shape's."""
        return derivatives(self.shape, theta, points)

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray] | None:
        """As the shape's."""
        return self.shape.extent(theta)
