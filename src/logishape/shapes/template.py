"""A template: one level on a grid, seen through a deformation."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray
from logishape.core.volume import Volume
from logishape.shapes.base import AbstractShape
from logishape.shapes.deformation import AbstractDeformation
from logishape.shapes.distance_map import check_border, mask_level
from logishape.shapes.grid import GridField

_LEAST_STRETCH = 0.01  # of the mean square stretch: keeps the level finite where a deformation flattens space


class Template(AbstractShape):
    """A level S0 on a grid under a deformation y(theta, x); parameters are those of the deformation.

    S0 is a signed distance (mm, positive inside). The level is S0(y) in millimetres of the image: same sign, same
    zero set, slope one at the surface however the deformation stretches space.
    """

    field: GridField
    deformation: AbstractDeformation

    def __init__(self, level: Volume, deformation: AbstractDeformation):
        check_border(np.asarray(level.data), "the template")
        self.field = GridField(np.asarray(level.data)[..., None], level.affine)
        self.deformation = deformation

    @classmethod
    def from_mask(cls, mask: Volume, deformation: AbstractDeformation) -> "Template":
        """The template whose object is the mask's, by its signed distance."""
        return cls(mask_level(mask), deformation)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Those of the deformation."""
        return self.deformation.parameter_names

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """S0(y) / sqrt(|J' g|^2 + (1 - |g|^2) tr(J' J) / d), with J = dy/dx and g = grad S0 at y.

        At the surface, where |g| = 1, the root is the stretch along the normal. Where |g| < 1, on the medial axis,
        there is no normal, and the mean stretch takes its place.
        """
        theta, points = jnp.asarray(theta), jnp.asarray(points)
        moved, apply_transpose = jax.vjp(lambda x: self.deformation(theta, x), points)
        value, gradient_times = jax.vjp(self._undeformed, moved)
        (gradient,) = gradient_times(jnp.ones_like(value))
        rows = [apply_transpose(jnp.zeros_like(moved).at[:, axis].set(1.0))[0] for axis in range(moved.shape[1])]
        stretch = _squared(sum(gradient[:, axis, None] * row for axis, row in enumerate(rows)))
        mean_stretch = sum(_squared(row) for row in rows) / len(rows)
        squared = stretch + (1 - _squared(gradient)) * mean_stretch
        return value / jnp.sqrt(jnp.maximum(squared, _LEAST_STRETCH * mean_stretch + 1e-12))

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray]:
        """The corners of the template's grid, before its deformation."""
        del theta
        return self.field.extent

    def _undeformed(self, points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        return self.field(points)[:, 0] - self.field.beyond(points)


def _squared(vectors: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
    return jnp.sum(jnp.square(vectors), axis=-1)
