"""Fields on a regular grid, interpolated by cubic B-splines: twice continuously differentiable in space."""

import functools
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.custom_derivatives
import jax.numpy as jnp
import numpy as np
import scipy.ndimage
from jaxtyping import Float

from logishape.core.arrays import AnyArray, as_double, like
from logishape.core.errors import InputError
from logishape.core.rotations import apply_matrix
from logishape.core.volume import Volume
from logishape.shapes.base import safe_norm

_FEWEST = 4  # nodes along an axis: as many as one cubic piece needs
# Coefficients of 1, t, t^2, t^3 in each of the four B-splines that reach a point t voxels past a node.
_CUBIC = np.array([[1, 4, 1, 0], [-3, 0, 3, 0], [3, -6, 3, 0], [-1, 3, -3, 1]]) / 6


class GridField(eqx.Module):
    """One or several fields on the nodes of a grid with any invertible affine, oblique ones included.

    Within the grid the cubic spline through the values, mirrored at the border as in SciPy; beyond it the value at
    the nearest node or face (nearest in voxel units, which is nearest in mm unless the axes are sheared). The values
    are data: derivatives are those in space.
    """

    coefficients: Float[AnyArray, "*nodes c"]  # one more node on either side of each axis than the grid has
    axes: Float[AnyArray, "d d"]
    inverse: Float[AnyArray, "d d"]
    origin: Float[AnyArray, " d"]

    def __init__(self, values: Any, affine: Any):
        """Fields with the given values `(*grid, c)`."""
        values = as_double(values)
        d = values.ndim - 1
        affine = Volume(values[..., 0], affine).affine  # which checks it
        if min(values.shape[:d]) < _FEWEST:
            raise InputError(
                f"a grid needs at least {_FEWEST} voxels along each axis but is {values.shape[:d]}; pad it or choose "
                "a finer one."
            )
        num_bad = int(np.count_nonzero(~np.isfinite(values)))
        if num_bad:
            raise InputError(f"{num_bad} of {values.size} values on the grid are not finite; replace them.")
        for axis in range(d):
            values = scipy.ndimage.spline_filter1d(values, order=3, axis=axis, mode="mirror")
        self.coefficients = np.pad(values, [(1, 1)] * d + [(0, 0)], mode="reflect")
        self.axes, self.origin = affine[:d, :d], affine[:d, d]
        self.inverse = np.linalg.inv(self.axes)

    @property
    def ndim(self) -> int:
        """The dimension of space."""
        return self.coefficients.ndim - 1

    @property
    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner (mm) of the world box around the grid."""
        last = np.array(self.coefficients.shape[:-1]) - 3
        corners = np.array(list(itertools.product(*([0, n] for n in last)))) @ np.asarray(self.axes).T + self.origin
        return corners.min(axis=0), corners.max(axis=0)

    def __call__(self, points: Float[AnyArray, "n d"]) -> Float[jax.Array, "n c"]:
        """The fields at each point; beyond the grid those at its nearest point."""
        return interpolate(*self._gather(points), 0)[0]

    def beyond(self, points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """Millimetres from each point to the grid, zero within it."""
        index, nearest = self._locate(points)
        return safe_norm(apply_matrix(like(self.axes, points), index - nearest))

    def combined(self, weights: Float[AnyArray, " c"]) -> "GridField":
        """One field: the sum of all, each times its weight."""
        mixed = jnp.matmul(like(self.coefficients, weights), weights[:, None], precision="highest")
        return eqx.tree_at(lambda field: field.coefficients, self, mixed)

    def _gather(
        self, points: Float[AnyArray, "n d"]
    ) -> tuple[Float[jax.Array, "n *taps c"], Float[jax.Array, "n d"]]:
        """The 4^d spline coefficients around each point, and where between them it lies, in voxels from 0 to 1."""
        _, nearest = self._locate(points)
        coefficients = like(self.coefficients, points)
        size, c = coefficients.shape[:-1], coefficients.shape[-1]
        first = jnp.clip(jnp.floor(nearest), 0, np.array(size, nearest.dtype) - 4)
        strides = np.cumprod((1, *size[:0:-1]))[::-1].astype(np.int32)
        taps = np.array(list(itertools.product(range(4), repeat=self.ndim)), np.int32) @ strides
        rows = jnp.sum(first.astype(np.int32) * strides, axis=-1)[:, None] + taps
        # Components lie side by side, so that one look-up brings all of them.
        blocks = coefficients.reshape(-1, c)[rows]
        return blocks.reshape(-1, *[4] * self.ndim, c), nearest - jax.lax.stop_gradient(first)

    def _locate(self, points: Float[AnyArray, "n d"]) -> tuple[jax.Array, jax.Array]:
        """Voxel indices of the points, and of the nearest points of the grid."""
        points = jnp.asarray(points)
        if points.shape[1] != self.ndim:
            raise InputError(
                f"the grid lies in {self.ndim}D but the points have {points.shape[1]} coordinates; use a grid and an "
                "image of one dimension."
            )
        inverse, origin = like((self.inverse, self.origin), points)
        index = apply_matrix(inverse, points - origin)
        last = np.array(self.coefficients.shape[:-1], index.dtype) - 3
        return index, jnp.clip(index, 0, last)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def interpolate(
    blocks: Float[AnyArray, "n *taps c"], offset: Float[AnyArray, "n d"], order: int
) -> tuple[jax.Array, ...]:
    """The spline and its derivatives per voxel up to `order`: arrays (n, c), (n, c, d), (n, c, d, d), ...

    Differentiating goes one order up instead of back through the sums, so that what is kept for a derivative is
    one number a component and direction, not the whole block.
    """
    return _contract(blocks, offset, order)


@functools.partial(jax.jit, static_argnums=2)  # traced once for all uses; eager calls run one program
def _contract(blocks: jax.Array, offset: jax.Array, order: int) -> tuple[jax.Array, ...]:
    d = offset.shape[1]
    parts: dict[tuple[int, ...], jax.Array] = {(): blocks}
    for axis in reversed(range(d)):
        weights = _spline_weights(offset[:, axis], order)
        parts = {
            (r, *orders): _contract_last_tap(part, weights[r])
            for orders, part in parts.items()
            for r in range(order + 1 - sum(orders))
        }

    def derivative(k: int) -> jax.Array:
        directions = itertools.product(range(d), repeat=k)
        each = [parts[tuple(path.count(axis) for axis in range(d))] for path in directions]
        return jnp.stack(each, axis=-1).reshape(*each[0].shape, *[d] * k)

    return tuple(derivative(k) for k in range(order + 1))


@functools.partial(interpolate.defjvp, symbolic_zeros=True)
def _interpolate_jvp(order: int, primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    (blocks, offset), (block_tangent, offset_tangent) = primals, tangents
    found = interpolate(blocks, offset, order + 1)
    value, change = found[:-1], tuple(jnp.zeros_like(one) for one in found[:-1])
    if not isinstance(offset_tangent, jax.custom_derivatives.SymbolicZero):
        n, d = offset.shape
        change = tuple(
            jnp.sum(one * offset_tangent.reshape(n, *[1] * (one.ndim - 2), d), axis=-1) for one in found[1:]
        )
    if not isinstance(block_tangent, jax.custom_derivatives.SymbolicZero):  # linear in the coefficients
        change = jax.tree.map(jnp.add, change, interpolate(block_tangent, offset, order))
    return value, change


def _contract_last_tap(part: jax.Array, weights: jax.Array) -> jax.Array:
    """sum_q w_q part[..., q, :], as a sum: it fuses, and a GPU does not round it as it does a matrix product."""
    if part.shape[-1] > 1:  # written out: twice as fast for ten components, for one it takes twice as long to compile
        each = [weights[:, q].reshape(-1, *[1] * (part.ndim - 2)) * part[..., q, :] for q in range(4)]
        return each[0] + each[1] + each[2] + each[3]
    return jnp.sum(part * weights.reshape(-1, *[1] * (part.ndim - 3), 4, 1), axis=-2)


def _spline_weights(t: jax.Array, order: int) -> list[jax.Array]:
    """Weights (n, 4) of the four cubic B-splines over t in [0, 1], and of their derivatives up to `order`."""
    powers = jnp.stack([jnp.ones_like(t), t, t**2, t**3], axis=-1)[:, :, None]
    weights, matrix = [], _CUBIC
    for _ in range(order + 1):
        weights.append(jnp.sum(powers * matrix.astype(t.dtype), axis=1))
        matrix = np.concatenate([matrix[1:] * np.array([[1], [2], [3]]), np.zeros((1, 4))])  # derivatives of powers
    return weights
