"""Deformations of space with parameters: affine, modes on a grid, smooth cosines."""

import abc
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray, as_double, as_vector, like
from logishape.core.errors import InputError
from logishape.core.rotations import apply_matrix
from logishape.shapes.analytic import AXES
from logishape.shapes.base import AbstractNamed
from logishape.shapes.grid import GridField
from logishape.shapes.modes import mode_names


class AbstractDeformation(AbstractNamed):
    """Takes points of the image to points of a template; the identity at parameters of zero.

    Subclasses give `parameter_names` and the moved points, row by row with `jax.numpy`.
    """

    @abc.abstractmethod
    def __call__(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, "n d"]:
        """Where each point of the image lies in the template, mm."""


class Affine(AbstractDeformation):
    """y = (I + B)(x - centre) + centre + t: translation t (mm), then the entries of B, row by row."""

    centre: Float[AnyArray, " d"]

    def __init__(self, centre: Any):
        self.centre = as_double(centre)
        if self.centre.shape not in ((2,), (3,)) or not np.all(np.isfinite(self.centre)):
            raise InputError(
                f"the centre must be 2 or 3 numbers (mm) but is {self.centre.tolist()}; give the object's middle."
            )

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """tx, ty, ..., then b_xx, b_xy, ..."""
        axes = AXES[: self.centre.shape[0]]
        return (*(f"t{axis}" for axis in axes), *(f"b_{row}{column}" for row in axes for column in axes))

    def __call__(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, "n d"]:
        """x + B (x - centre) + t."""
        d, theta = self.centre.shape[0], jnp.asarray(theta)
        return points + apply_matrix(theta[d:].reshape(d, d), points - like(self.centre, points)) + theta[:d]


class LowRank(AbstractDeformation):
    """y = x + sum_k theta_k b_k(x) with displacement fields b_k (mm, one standard deviation each) on a grid.

    Beyond the grid a field keeps the value at its border; fields that vanish there fade out.
    """

    field: GridField

    def __init__(self, modes: Any, affine: Any):
        """A deformation from fields `(p, *grid, d)`, such as principal modes of registrations."""
        modes = as_double(modes)
        d = modes.shape[-1] if modes.ndim else 0
        if d not in (2, 3) or modes.ndim != d + 2 or len(modes) == 0:
            raise InputError(
                f"displacement modes must have shape (number of modes, *grid, dimension) but have {modes.shape}; "
                "move the mode to the first axis and the components to the last."
            )
        self.field = GridField(np.moveaxis(modes, 0, -2).reshape(*modes.shape[1:-1], -1), affine)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """mode_1, mode_2, ..., in standard deviations."""
        return mode_names(self.field.coefficients.shape[-1] // self.field.ndim)

    def __call__(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, "n d"]:
        """x + sum_k theta_k b_k(x)."""
        fields = self.field(points).reshape(points.shape[0], -1, self.field.ndim)
        return points + jnp.sum(fields * jnp.asarray(theta)[:, None], axis=1)


class Cosines(AbstractDeformation):
    """Smooth displacements over a box: products of cosines along its axes, in each direction of space.

    theta in standard deviations, N(0, 1) each: mode_k moves points by up to sd / (1 + |f|^2) mm, with f the half
    waves along each axis, so that fine waves are small. The constant displacement is left out: it is the translation
    of `Posed`. Beyond the box displacements keep the value at its border.
    """

    lower: Float[AnyArray, " d"]
    upper: Float[AnyArray, " d"]
    sd_mm: Float[AnyArray, ""]
    num_waves: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, lower: Any, upper: Any, num_waves: Any = 1, sd_mm: float = 1.0):
        """Waves over the box from `lower` to `upper` (mm), of up to `num_waves` half waves along each axis."""
        self.lower, self.upper = as_double(lower), as_double(upper)
        d = self.lower.size
        is_box = self.lower.shape in ((2,), (3,)) and self.upper.shape == (d,) and np.all(self.lower < self.upper)
        if not is_box or not np.all(np.isfinite([self.lower, self.upper])):
            raise InputError(
                f"the box must have a lower and an upper corner of 2 or 3 numbers (mm) but has "
                f"{self.lower.tolist()} and {self.upper.tolist()}; mend them."
            )
        waves = as_vector(num_waves, d, "num_waves")
        if (
            not np.all(np.isfinite(waves))
            or np.any(waves != np.round(waves))
            or np.any(waves < 0)
            or not np.any(waves > 0)
        ):
            raise InputError(f"num_waves must be whole numbers, not all zero, but is {waves.tolist()}; try 1 or 2.")
        self.num_waves = tuple(int(count) for count in waves)
        self.sd_mm = as_double(sd_mm)
        if not (self.sd_mm.shape == () and 0 < self.sd_mm < np.inf):
            raise InputError(f"sd_mm must be one positive number but is {sd_mm}; try a few voxel sizes.")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """mode_1, mode_2, ..., in standard deviations: for each wave, slow ones first, one a direction of space."""
        return mode_names((math.prod(count + 1 for count in self.num_waves) - 1) * len(self.num_waves))

    def __call__(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, "n d"]:
        """x + sum_f theta_f sd / (1 + |f|^2) prod_i cos(pi f_i s_i), with s from 0 to 1 through the box."""
        d = len(self.num_waves)
        lower, upper, sd = like((self.lower, self.upper, self.sd_mm), points)
        phase = jnp.pi * jnp.clip((points - lower) / (upper - lower), 0, 1)
        product = jnp.ones_like(phase[:, :1])
        for axis, count in enumerate(self.num_waves):
            wave = jnp.cos(phase[:, axis, None] * np.arange(count + 1, dtype=phase.dtype))
            product = (product[:, :, None] * wave[:, None, :]).reshape(points.shape[0], -1)
        squared = np.sum(np.square(np.indices(tuple(count + 1 for count in self.num_waves)).reshape(d, -1)), axis=0)
        order = np.argsort(squared, kind="stable")[1:]
        amplitude = sd / (1 + squared[order, None]) * jnp.asarray(theta).reshape(-1, d)
        return points + jnp.sum(product[:, order, None] * amplitude.astype(phase.dtype), axis=1)
