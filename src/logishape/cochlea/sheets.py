"""The surface's sheets, tube and end ellipsoids: where a spot on them is, and samples of what the union shows."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from logishape.cochlea.level import hold, piece_levels, place_of
from logishape.cochlea.sections import Form, log_radius
from logishape.core.arrays import AnyArray

BURIED = 1e-3  # mm: deeper than this inside another piece a point is not on the surface
_NUM_RINGS = 120  # along the tube
_NUM_AROUND = 24
_NUM_PARTS = 6
_CAP = (-1.4, -1.05, -0.7, -0.35, 0, 0.35, 0.7, 1.05, 1.4)  # rad from the end section towards its ellipsoid's poles


class Spot(NamedTuple):
    """A point of the surface by sheet and coordinates: along the sheet (rad) and around it (rad)."""

    sheet: Int[AnyArray, "..."]
    along: Float[AnyArray, "..."]
    around: Float[AnyArray, "..."]


class Jet(NamedTuple):
    """A point of the surface and its derivatives along and around, components first."""

    point: Float[AnyArray, "3 ..."]
    along: Float[AnyArray, "3 ..."]
    around: Float[AnyArray, "3 ..."]


def surface_jet(form: Form, spot: Spot) -> Jet:
    """Where a spot is, and how it moves with its coordinates."""
    is_tube, is_apex = spot.sheet == 0, spot.sheet == 2
    end = jnp.where(is_apex, form.end, form.start)
    angle = jnp.where(is_tube, jnp.clip(spot.along, form.start, form.end), end)
    lift = jnp.where(is_tube, 0, spot.along)
    section = hold(form.section(hold(angle, spot.along)), spot.along)
    cosine, sine = hold((jnp.cos(spot.around), jnp.sin(spot.around)), spot.along)
    log_r, bend = log_radius(section, cosine, sine)
    size = hold(jnp.exp(log_r), spot.along)
    depth = jnp.exp(section.c0.value) * jnp.where(is_apex, form.depths[1], form.depths[0])
    near, far = jnp.cos(lift), jnp.sin(lift)
    cosine2, sine2 = cosine * cosine - sine * sine, 2 * cosine * sine
    growth = section.c0.slope + section.c2.slope * cosine2 + section.s2.slope * sine2

    # In the section's plane: radial, axial; and across it.
    radial, axial = section.radius.value + near * size * cosine, section.height.value + near * size * sine
    across = depth * far
    by_angle = (section.radius.slope + size * growth * cosine, radial, section.height.slope + size * growth * sine)
    by_lift = (-far * size * cosine, depth * near, -far * size * sine)
    along = [jnp.where(is_tube, a, b) for a, b in zip(by_angle, by_lift, strict=True)]
    around = (near * size * (bend * cosine - sine), jnp.zeros_like(size), near * size * (bend * sine + cosine))
    turn = jnp.cos(angle), jnp.sin(angle)
    return Jet(_turn(turn, radial, across, axial), _turn(turn, *along), _turn(turn, *around))


def _turn(turn: tuple[AnyArray, AnyArray], radial: AnyArray, across: AnyArray, axial: AnyArray) -> jax.Array:
    cosine, sine = turn
    return jnp.stack([radial * cosine - across * sine, radial * sine + across * cosine, axial + 0 * radial])


class Samples(NamedTuple):
    """Rings of spots on the surface; `half_square` is half the squared length of each point, infinite if buried."""

    spots: Spot
    points: Float[AnyArray, "3 r k"]
    half_square: Float[AnyArray, "r k"]


def spots(form: Form, dtype: Any) -> Spot:
    """Rings of spots all over the sheets: those of the tube from base to apex, then both ends."""
    cap = np.array(_CAP)
    sheet = np.concatenate([np.zeros(_NUM_RINGS, int), np.ones(len(cap), int), np.full(len(cap), 2)])
    even = np.linspace(0, 1, _NUM_RINGS)
    share = jnp.asarray(even * (0.4 + 0.6 * even), dtype)  # closer at the base, where the turn is wide
    along = jnp.concatenate([form.start + (form.end - form.start) * share, jnp.asarray(np.tile(cap, 2), dtype)])
    around = jnp.asarray(np.arange(_NUM_AROUND) * 2 * np.pi / _NUM_AROUND, dtype)
    shape = (len(sheet), _NUM_AROUND)
    return Spot(*(jnp.broadcast_to(a, shape) for a in (sheet[:, None], along[:, None], around[None])))


def sample(form: Form, dtype: Any) -> Samples:
    """Spots all over the sheets, and which of them the union shows."""
    rings = spots(form, dtype)
    points = surface_jet(form, rings).point
    deepest = jnp.max(piece_levels(form, place_of(points.reshape(3, -1).T)), axis=0).reshape(rings.sheet.shape)
    half_square = jnp.where(deepest > BURIED, jnp.inf, 0.5 * jnp.sum(points**2, axis=0))
    return Samples(rings, points, half_square)


def parts() -> list[slice]:
    """Parts of less than a turn each, and the ends: a rival sheet is always in another part."""
    size = _NUM_RINGS // _NUM_PARTS
    return [*(slice(k * size, (k + 1) * size) for k in range(_NUM_PARTS)), slice(_NUM_RINGS, None)]


def nearest_sample(samples: Samples, rings: slice, x: Float[AnyArray, "3 n"]) -> tuple[jax.Array, jax.Array]:
    """The nearest shown sample of these rings to each point: half its squared distance less |x|^2/2, its number."""

    def visit(best: tuple[jax.Array, jax.Array], ring: tuple) -> tuple:
        value, index = best
        points, half_square, number = ring
        for k in range(_NUM_AROUND):
            p = points[:, k]
            new = half_square[k] - (p[0] * x[0] + p[1] * x[1] + p[2] * x[2])
            index = jnp.where(new < value, number + k, index)
            value = jnp.minimum(value, new)
        return (value, index), None

    points, half_square = jnp.moveaxis(samples.points, 1, 0)[rings], samples.half_square[rings]
    first = rings.start * _NUM_AROUND
    number = first + np.arange(points.shape[0], dtype=np.int32) * _NUM_AROUND
    begin = jnp.full(x.shape[1], jnp.inf, x.dtype), jnp.full(x.shape[1], first, jnp.int32)
    return jax.lax.scan(visit, begin, (points, half_square, number))[0]
