"""The exact Euclidean signed distance of the union: closest point of its surface, and the pieces that meet there.

Samples of all sheets, without those that lie inside another turn, say where to begin; Newton's method finds the foot
on that sheet; where the foot is buried in another turn, the closest point lies on a crease between turns and is found
there. By the envelope theorem the derivatives of the distance at x are those of the pieces' levels at the closest
point, whose own motion does not matter.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from logishape.cochlea.level import hold, largest, piece_level, piece_levels, place_of, union_level
from logishape.cochlea.sections import Form
from logishape.cochlea.sheets import BURIED, Jet, Samples, Spot, nearest_sample, parts, sample, surface_jet
from logishape.core.arrays import AnyArray

_LANES = 64
_NUM_CHUNKS = 24
_NUM_RIVALS = 3
_NUM_NEWTON = 5
_NUM_CREASE = 6
_NUM_MEETING = 4  # pieces that may meet in a point
_SPACING = 0.4  # mm: how far from its nearest sample the foot of a point may be
_ON_SURFACE = 1e-4  # mm: nearer than this the direction to the closest point is rounding


Vector = tuple[jax.Array, ...]  # its components, each for all points


class Contact(NamedTuple):
    """The closest point of the surface to each point, the pieces that meet there and their parts in the normal."""

    point: Float[AnyArray, "n 3"]
    sign: Float[AnyArray, " n"]
    normal: Float[AnyArray, "3 n"]  # inward
    pieces: tuple[Int[AnyArray, " n"], Int[AnyArray, " n"]]
    weights: tuple[Float[AnyArray, " n"], Float[AnyArray, " n"]]


def exact_level(form: Form, points: Float[AnyArray, "n 3"]) -> Float[jax.Array, " n"]:
    """The signed distance (mm, positive inside); its first derivatives are exact, its second those of the level."""
    at = contact(form, points)
    moved = at.point + points - jax.lax.stop_gradient(points)
    carried = sum(w * piece_level(form, piece, moved) for w, piece in zip(at.weights, at.pieces, strict=True))
    return distance(at, points) + carried - jax.lax.stop_gradient(carried)


def distance(at: Contact, points: Float[AnyArray, "n 3"]) -> Float[jax.Array, " n"]:
    """The signed distance itself, constant to derivatives."""
    rest = jax.lax.stop_gradient(points) - at.point
    return at.sign * jnp.sqrt(jnp.sum(rest**2, axis=1))


def contact(form: Form, points: Float[AnyArray, "n 3"]) -> Contact:
    """Where each point meets the surface; constant to all derivatives.

    On a smooth part one piece carries the whole normal; on a crease two pieces share it, so that their levels'
    derivatives add up to the distance's.
    """
    form, points = jax.lax.stop_gradient((form, points))
    point = closest(form, points)
    rest = points.T - point
    length = jnp.sqrt(_dot(rest, rest))
    sign = jnp.where(union_level(form, points) < 0, -1.0, 1.0).astype(points.dtype)
    levels, gradients = hold(piece_gradients(form, point), point[0])
    norms = jnp.sqrt(jnp.sum(gradients**2, axis=0) + 1e-12)  # one, but next to the axis
    gradients = gradients / norms
    own = largest(-jnp.abs(levels))
    is_on = length < _ON_SURFACE
    normal = jnp.where(is_on, _column(gradients, own), rest * sign / jnp.where(is_on, 1.0, length))
    meets = jnp.abs(levels) < 2 * BURIED
    along = jnp.where(meets, jnp.sum(gradients * normal[:, None], axis=0), -2.0)
    first = jnp.where(is_on, own, largest(along))
    g1 = _column(gradients, first)
    left = normal - _dot(normal, g1) * g1
    others = meets & (jnp.arange(len(levels))[:, None] != first)
    second = largest(jnp.where(others, jnp.sum(gradients * left[:, None], axis=0), -2.0))
    is_smooth = is_on | (_dot(left, left) < 1e-6) | ~jnp.any(others, axis=0)
    g2 = _column(gradients, second)
    w1, w2 = _solve([tuple(g1), tuple(g2)], [_dot(normal, g1), _dot(normal, g2)])
    w1, w2 = jnp.where(is_smooth, 1.0, w1), jnp.where(is_smooth, 0.0, w2)
    weights = w1 / _pick(norms, first), w2 / _pick(norms, second)
    return Contact(point.T, sign, normal, (first, second), weights)


def _column(rows: Float[AnyArray, "3 k n"], piece: Int[AnyArray, " n"]) -> Float[jax.Array, "3 n"]:
    return jnp.take_along_axis(rows, piece[None, None], axis=1)[:, 0]


def foot(form: Form, spot: Spot, x: Float[AnyArray, "3 n"]) -> Float[jax.Array, "3 n"]:
    """The closest point of a sheet near the given spot, by a damped Newton method that never moves away."""

    def distance(at: Spot) -> jax.Array:
        return jnp.sum((x - surface_jet(form, at).point) ** 2, axis=0)

    def step(_: Any, state: tuple) -> tuple:
        at, best, length = state
        trial = _newton_step(form, at, x, length)
        new = distance(trial)
        better = new < best
        at = Spot(at.sheet, *(jnp.where(better, b, a) for a, b in zip(at[1:], trial[1:], strict=True)))
        return at, jnp.where(better, new, best), jnp.where(better, jnp.minimum(2 * length, 1), 0.3 * length)

    begin = spot, distance(spot), jnp.ones_like(x[0])
    at = jax.lax.fori_loop(0, _NUM_NEWTON, step, begin)[0]
    return surface_jet(form, at).point


def _newton_step(form: Form, at: Spot, x: Float[AnyArray, "3 n"], length: Float[AnyArray, " n"]) -> Spot:
    """One step towards the foot: Newton's where the distance is convex, Gauss-Newton's where it is not."""
    one, zero = jnp.ones_like(at.along), jnp.zeros_like(at.along)

    def jet(along: jax.Array, around: jax.Array) -> Jet:
        return surface_jet(form, Spot(at.sheet, along, around))

    here, by_along = jax.jvp(jet, at[1:], (one, zero))
    _, by_around = jax.jvp(jet, at[1:], (zero, one))
    rest = x - here.point
    gram = [_dot(here.along, here.along), _dot(here.along, here.around), _dot(here.around, here.around)]
    curved = [_dot(rest, by_along.along), _dot(rest, by_around.along), _dot(rest, by_around.around)]
    slope = _dot(rest, here.along), _dot(rest, here.around)
    h11, h12, h22 = (g - c for g, c in zip(gram, curved, strict=True))
    convex = (h11 > 0.05 * gram[0]) & (h11 * h22 - h12**2 > 0.01 * gram[0] * gram[2])
    h11, h12, h22 = (jnp.where(convex, h, g) for h, g in zip((h11, h12, h22), gram, strict=True))
    h11, h22 = h11 * (1 + 1e-6) + 1e-9, h22 * (1 + 1e-6) + 1e-9
    scale = length / (h11 * h22 - h12**2)
    move = scale * (h22 * slope[0] - h12 * slope[1]), scale * (h11 * slope[1] - h12 * slope[0])
    # Half a millimetre or so at a time: beyond that the parabola says little.
    reach = jnp.sqrt(move[0] ** 2 * gram[0] + move[1] ** 2 * gram[2])
    cut = jnp.minimum(1, 0.6 / jnp.maximum(reach, 1e-6))
    is_tube = at.sheet == 0
    lower, upper = jnp.where(is_tube, form.start, -jnp.pi / 2), jnp.where(is_tube, form.end, jnp.pi / 2)
    return Spot(at.sheet, jnp.clip(at.along + cut * move[0], lower, upper), at.around + cut * move[1])


def _dot(a: Sequence[jax.Array] | AnyArray, b: Sequence[jax.Array] | AnyArray) -> jax.Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def piece_gradients(form: Form, points: Float[AnyArray, "3 n"]) -> tuple[jax.Array, Float[jax.Array, "3 k n"]]:
    """The levels of all pieces at each point, and their gradients."""

    def levels(x: jax.Array) -> jax.Array:
        return piece_levels(form, place_of(x.T))

    value, push = jax.linearize(levels, points)
    units = (jnp.zeros_like(points).at[k].set(1) for k in range(3))
    return value, jnp.stack([push(unit) for unit in units])


def crease(form: Form, start: Float[AnyArray, "3 n"], x: Float[AnyArray, "3 n"]) -> Float[jax.Array, "3 n"]:
    """The closest point to x that no piece covers, near the start: on a crease or a corner between turns.

    The levels of the pieces that are nearest are made linear where the point is; x is brought into the part of space
    where none of them is positive; and so on from there.
    """

    def step(_: Any, p: jax.Array) -> jax.Array:
        levels, gradients = hold(piece_gradients(form, p), p[0])
        chosen, left = [], levels
        for _ in range(_NUM_MEETING):
            piece = largest(left)
            slope = tuple(_pick(rows, piece) for rows in gradients)
            chosen.append((slope, _pick(levels, piece) - _dot(slope, p)))
            left = jnp.where(jnp.arange(len(levels))[:, None] == piece, -jnp.inf, left)
        move = jnp.stack(project(tuple(x), hold(chosen, p[0]))) - p
        size = jnp.sqrt(_dot(move, move))
        return p + move * jnp.minimum(1, 0.5 / jnp.maximum(size, 1e-6))

    return jax.lax.fori_loop(0, _NUM_CREASE, step, start)


def project(x: Vector, planes: list[tuple[Vector, jax.Array]]) -> Vector:
    """The point nearest to x at which g . p + c <= 0 for all planes (g, c): every set of up to three is tried.

    The right set is the one whose own projection violates no plane and pulls on none; rounding is let pass.
    """
    best, lowest = x, jnp.full_like(x[0], jnp.inf)
    for size in (1, 2, 3):
        for subset in itertools.combinations(planes, size):
            weights = _solve([g for g, _ in subset], [_dot(g, x) + c for g, c in subset])
            p = tuple(x[k] - sum(w * g[k] for w, (g, _) in zip(weights, subset, strict=True)) for k in range(3))
            over = [jnp.maximum(_dot(g, p) + c, 0) for g, c in planes] + [jnp.maximum(-w, 0) for w in weights]
            rest = [p[k] - x[k] for k in range(3)]
            cost = _dot(rest, rest) + 1e3 * jnp.maximum(sum(over) - 1e-4, 0)
            best = tuple(jnp.where(cost < lowest, new, old) for new, old in zip(p, best, strict=True))
            lowest = jnp.minimum(cost, lowest)
    return best


def _solve(directions: list[Vector], goals: list[jax.Array]) -> list[jax.Array]:
    """Weights w with sum_j (g_i . g_j) w_j = b_i, by elimination; nearly parallel directions are damped."""
    size = len(goals)
    rows = [
        [_dot(a, b) + (1e-6 if i == j else 0) for j, b in enumerate(directions)] for i, a in enumerate(directions)
    ]
    goals = list(goals)
    for i in range(size):
        for j in range(i + 1, size):
            share = rows[j][i] / rows[i][i]
            rows[j] = [below - share * above for below, above in zip(rows[j], rows[i], strict=True)]
            goals[j] = goals[j] - share * goals[i]
    weights: list[jax.Array] = []
    for i in reversed(range(size)):
        known = sum((rows[i][i + 1 + k] * weight for k, weight in enumerate(weights)), jnp.zeros_like(goals[i]))
        weights.insert(0, (goals[i] - known) / rows[i][i])
    return weights


def closest(form: Form, points: Float[AnyArray, "n 3"]) -> Float[jax.Array, "3 n"]:
    """The closest point of the union's surface to each point."""
    num = points.shape[0]
    # A whole number of lanes: the remainder of an odd number would cost the compiler its vector code.
    missing = -num % _LANES if num > _LANES else 0
    x = jnp.pad(hold(points.T, points[:, 0]), ((0, 0), (0, missing)), mode="edge")
    samples = sample(form, points.dtype)
    found = [nearest_sample(samples, rings, x) for rings in parts()]
    value, number = (jnp.stack(rows) for rows in zip(*found, strict=True))

    def from_sample(number: jax.Array, x: jax.Array) -> jax.Array:
        return _closest_from(form, samples, number, x)

    def visit(_: Any, state: tuple) -> tuple:
        value, point, square = state
        best = largest(-value)
        is_near = 2 * _pick(value, best) + _dot(x, x) < square + _SPACING**2
        new = where_needed(is_near, from_sample, _pick(number, best), x, point)
        rest = new - x
        is_better = _dot(rest, rest) < square
        value = jnp.where(jnp.arange(len(value))[:, None] == best, jnp.inf, value)
        return value, jnp.where(is_better, new, point), jnp.where(is_better, _dot(rest, rest), square)

    begin = value, x, jnp.full_like(x[0], jnp.inf)
    return jax.lax.fori_loop(0, 1 + _NUM_RIVALS, visit, begin)[1][:, :num]


def _pick(rows: AnyArray, number: Int[AnyArray, " n"]) -> jax.Array:
    return jnp.take_along_axis(rows, number[None], axis=0)[0]


def where_needed(
    needed: Bool[AnyArray, " n"],
    function: Callable[[jax.Array, jax.Array], jax.Array],
    number: Int[AnyArray, " n"],
    x: Float[AnyArray, "3 n"],
    otherwise: Float[AnyArray, "3 n"],
) -> Float[jax.Array, "3 n"]:
    """`function(number, x)` for the columns that need it, some at a time, and `otherwise` for the rest."""
    n = needed.shape[0]
    chunk = min(n, -(-n // (_NUM_CHUNKS * _LANES)) * _LANES)
    count = jnp.sum(needed)
    place = jnp.where(needed, jnp.cumsum(needed) - 1, n + chunk)
    columns = jnp.full(n + chunk, n, jnp.int32).at[place].set(jnp.arange(n, dtype=jnp.int32), mode="drop")

    def visit(state: tuple) -> tuple:
        done, result = state
        some = jax.lax.dynamic_slice(columns, (done,), (chunk,))
        inside = jnp.minimum(some, n - 1)
        return done + chunk, result.at[:, some].set(function(number[inside], x[:, inside]), mode="drop")

    return jax.lax.while_loop(lambda state: state[0] < count, visit, (jnp.zeros((), count.dtype), otherwise))[1]


def _closest_from(form: Form, samples: Samples, number: Int[AnyArray, " n"], x: Float[AnyArray, "3 n"]) -> jax.Array:
    """The closest point found from one sample: its sheet's foot, or a crease, or the sample itself."""
    spot = Spot(*(rows.ravel()[number] for rows in samples.spots))
    at_foot = foot(form, spot, x)

    def on_crease(number: jax.Array, x: jax.Array) -> jax.Array:
        shown = samples.points.reshape(3, -1)[:, number]
        found = crease(form, shown, x)
        is_nearer = _dot(found - x, found - x) < _dot(shown - x, shown - x)
        return jnp.where(is_nearer & (jnp.abs(_deepest(form, found)) < BURIED), found, shown)

    return where_needed(_deepest(form, at_foot) >= BURIED, on_crease, number, x, at_foot)


def _deepest(form: Form, points: Float[AnyArray, "3 n"]) -> jax.Array:
    """The largest level of any piece: how deep a point lies in the union."""
    place = place_of(points.T)
    levels = hold(piece_levels(form, place), place.x)
    return _pick(levels, largest(levels))
