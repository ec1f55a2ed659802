"""Cochleae drawn from the box of their parameters, and exact distances at points about them."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.cochlea.calibration import Calibration
from logishape.cochlea.duct import FREE, Duct
from logishape.cochlea.network import Network
from logishape.cochlea.sheets import Spot, surface_jet
from logishape.core.arrays import AnyArray

NOISE_MM = (0.05, 0.3, 1.0)  # of points about the surface, a third each
EVERYWHERE = 8  # one point in so many is anywhere in the box
SHEETS = (0.9, 0.93)  # shares of points about the tube, and about it and the base; the rest are about the apex
GROUP = 512  # shapes at a time


class Pool(NamedTuple):
    """Shapes, points about each of them (mm), and the distances there (mm, positive inside)."""

    theta: Float[AnyArray, "s p"]
    points: Float[AnyArray, "s n 3"]
    distances: Float[AnyArray, "s n"]


def make_pool(calibration: Calibration, network: Network, size: tuple[int, int], key: jax.Array) -> Pool:
    """So many shapes, uniform in the network's box, with so many points about each."""
    shape_key, point_key = jax.random.split(key)
    lower, upper = jnp.asarray(network.lower, jnp.float32), jnp.asarray(network.upper, jnp.float32)
    theta = jax.random.uniform(shape_key, (size[0], lower.size), minval=lower, maxval=upper)
    return pool_about(calibration, network, theta, size[1], point_key)


def pool_about(
    calibration: Calibration, network: Network, theta: Float[AnyArray, "s p"], num_points: int, key: jax.Array
) -> Pool:
    """These shapes with points about each, most of them near the surface, shown or buried."""
    theta = jnp.asarray(theta, jnp.float32)
    keys = jax.random.split(key, len(theta))
    box = tuple(jnp.asarray(corner, jnp.float32) for corner in (network.low, network.high))
    points = _points_about(_duct(calibration, network), box, theta, keys, num_points)
    return Pool(theta, points, exact_distances(calibration, network, theta, points))


def exact_distances(
    calibration: Calibration, network: Network, theta: Float[AnyArray, "s p"], points: Float[AnyArray, "s n 3"]
) -> Float[jax.Array, "s n"]:
    """The exact distance at points of their own for each shape, so many shapes at a time."""
    duct, size = _duct(calibration, network), min(GROUP, len(theta))
    missing = -len(theta) % size
    theta, points = (jnp.pad(a, [(0, missing)] + [(0, 0)] * (a.ndim - 1), mode="edge") for a in (theta, points))
    found = [_exact(duct, theta[k : k + size], points[k : k + size]) for k in range(0, len(theta), size)]
    return jnp.concatenate(found)[: len(theta) - missing]


def _duct(calibration: Calibration, network: Network) -> Duct:
    return Duct(calibration, tuple(name for name in FREE if name in network.names), "exact")


@eqx.filter_jit
def _exact(duct: Duct, theta: jax.Array, points: jax.Array) -> jax.Array:
    return jax.vmap(duct.level)(theta, points)


@eqx.filter_jit
def _points_about(duct: Duct, box: tuple, theta: jax.Array, keys: jax.Array, num: int) -> jax.Array:
    return jax.vmap(partial(_points_about_one, duct, box, num))(theta, keys)


def _points_about_one(duct: Duct, box: tuple, num: int, theta: jax.Array, key: jax.Array) -> jax.Array:
    """Points on all sheets of a shape, moved a little or more, and some anywhere in the box."""
    form = duct.form(theta, theta)
    sheet_key, along_key, around_key, noise_key, move_key, box_key = jax.random.split(key, 6)
    share, even = jax.random.uniform(sheet_key, (num,)), jax.random.uniform(along_key, (num,))
    sheet = jnp.searchsorted(jnp.array(SHEETS), share).astype(jnp.int32)
    tube = form.start + (form.end - form.start) * even * (0.5 + 0.5 * even)  # denser at the base, which is wide
    along = jnp.where(sheet == 0, tube, (even - 0.5) * np.pi)
    around = jax.random.uniform(around_key, (num,), maxval=2 * np.pi)
    on = surface_jet(form, Spot(sheet, along, around)).point.T
    noise = jnp.array(NOISE_MM, on.dtype)[jax.random.randint(noise_key, (num, 1), 0, len(NOISE_MM))]
    about = jnp.clip(on + noise * jax.random.normal(move_key, on.shape), *box)
    anywhere = jax.random.uniform(box_key, on.shape, minval=box[0], maxval=box[1])
    return jnp.where((jnp.arange(num) % EVERYWHERE == 0)[:, None], anywhere, about)
