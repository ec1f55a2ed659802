"""Statistical level sets: a mean level and its principal modes on a grid."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray, as_double
from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.shapes.base import AbstractShapeWithDerivatives, Derivatives
from logishape.shapes.distance_map import check_border, mask_level
from logishape.shapes.grid import GridField
from logishape.shapes.modes import choose_modes, mode_names


class LevelSetModes(AbstractShapeWithDerivatives):
    """mean(x) + sum_k theta_k modes_k(x) on a grid, theta in standard deviations: a prior of N(0, 1) each.

    Beyond the grid the level falls by a millimetre a millimetre. It is a distance as far as mean and modes make it
    one: averages of distances are a little flatter than a distance where the averaged shapes disagree.
    """

    field: GridField  # the mean, then the modes
    explained_variance: Float[AnyArray, " p"]

    def __init__(self, mean: Volume, modes: Any, explained_variance: Any = None):
        """A shape from a mean level (mm, positive inside) and modes `(p, *grid)`, each one standard deviation."""
        modes = as_double(modes)
        if modes.ndim == 0 or len(modes) == 0 or modes.shape[1:] != mean.shape:
            raise InputError(
                f"modes must have shape (number of modes, *{mean.shape}), the mean's, but have {modes.shape}; "
                "resample them."
            )
        check_border(np.asarray(mean.data), "the mean shape")
        self.field = GridField(np.stack([mean.data, *modes], axis=-1), mean.affine)
        unknown = np.full(len(modes), np.nan)
        self.explained_variance = as_double(unknown if explained_variance is None else explained_variance)

    @classmethod
    def from_masks(
        cls, masks: Sequence[Any] | np.ndarray, affine: Any, num_modes: int | None = None, explained: float = 0.95
    ) -> "LevelSetModes":
        """Mean and principal modes of the signed distances of aligned masks `(k, *grid)` on one grid.

        As many modes as asked for, or as explain the given share of the variance. The share of each is kept.
        """
        shapes = sorted({np.shape(mask) for mask in masks})
        if len(masks) < 2 or len(shapes) > 1:
            raise InputError(
                f"modes need at least 2 masks of one shape but found {len(masks)} of shapes {shapes}; resample "
                "them to one grid."
            )
        levels = np.stack([mask_level(Volume(np.asarray(mask), affine)).data for mask in masks])
        for k, level in enumerate(levels):
            check_border(level, f"the object in mask {k}")
        mean = levels.mean(axis=0)
        modes, ratios = choose_modes((levels - mean).reshape(len(levels), -1), num_modes, explained)
        # A mode's sign is arbitrary: positive parameters make the object larger.
        modes = modes.reshape(-1, *mean.shape) * np.where(modes.sum(axis=1) < 0, -1.0, 1.0)[:, *[None] * mean.ndim]
        return cls(Volume(mean, affine), modes, ratios)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """mode_1, mode_2, ..., in standard deviations."""
        return mode_names(self.field.coefficients.shape[-1] - 1)

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """mean + sum_k theta_k modes_k at the nearest point of the grid, minus the distance to it."""
        return _mix(self.field(points), theta) - self.field.beyond(points)

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Derivatives:
        """The modes are the Jacobian; the gradient is that of one spline, mean and modes mixed."""
        theta, points = jnp.asarray(theta), jnp.asarray(points)
        values = self.field(points)
        # Mixed on the grid: one product with all nodes is cheaper than the gradients of all modes at the points.
        mixed = self.field.combined(jnp.concatenate([jnp.ones_like(theta[:1]), theta]))

        def total_level(x: jax.Array) -> jax.Array:
            return jnp.sum(mixed(x)[:, 0] - mixed.beyond(x))

        level = _mix(values, theta) - self.field.beyond(points)
        return Derivatives(level, values[:, 1:], jax.grad(total_level)(points))

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray]:
        """The grid's corners, whatever the parameters."""
        del theta
        return self.field.extent


def _mix(fields: Float[AnyArray, "*rows c"], theta: Float[AnyArray, " p"]) -> Float[jax.Array, "*rows"]:
    """The mean plus the modes times theta, as a sum: a GPU would round a matrix product."""
    return fields[..., 0] + jnp.sum(fields[..., 1:] * theta, axis=-1)
