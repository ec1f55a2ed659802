"""The analytic level of the union of all turns: exact in sign and zero set, a distance to first order at the surface.

A point of the cochlea's frame meets the half-planes of the angles az + 2 pi k on its own side of the axis and those
of az + pi + 2 pi k across it (apical sections reach over the axis). Each section it meets, and an ellipsoid at either
end, has a level of its own; the union's is the largest. Listing fewer would tear the surface.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, Num

from logishape.cochlea.sections import Form, Section, log_radius
from logishape.core.arrays import AnyArray

# Turns from the one that begins at the start: one before it, for what lies behind the base, and three more. The last
# is always beyond the apex: near the axis it is not far from there.
NUM_NEAR = 5
_TURNS = np.array([-1, 0, 1, 2, 3, 0, 1, 2, 3])
_SIDES = np.array([1, 1, 1, 1, 1, -1, -1, -1, -1])
NUM_TUBES = len(_TURNS)
NUM_PIECES = NUM_TUBES + 2
_ON_AXIS = 1e-12  # mm^2: the axis itself, where directions are rounding
_AXIS = 0.02  # mm: nearer to the axis than this a section's change by angle is not resolved
_FAR = 0.05  # of the gap: how much of it counts as distance from the axis
_CORE = 0.4  # of the size: within it a section's form fades to a circle, so that its very centre has one level


class Place(NamedTuple):
    """A point of the cochlea's frame, in Cartesian and in cylindrical coordinates (mm, rad)."""

    x: Float[AnyArray, "..."]
    y: Float[AnyArray, "..."]
    height: Float[AnyArray, "..."]
    distance: Float[AnyArray, "..."]
    azimuth: Float[AnyArray, "..."]


def locate(x: AnyArray, y: AnyArray, height: AnyArray) -> Place:
    """Both kinds of coordinates; on the axis the azimuth is zero and all derivatives stay finite."""
    squared = x * x + y * y
    is_axis = squared < _ON_AXIS
    distance = jnp.where(is_axis, 0.0, jnp.sqrt(jnp.where(is_axis, 1.0, squared)))
    return Place(x, y, height, distance, _azimuth(x, y))


@jax.custom_jvp
def _azimuth(x: AnyArray, y: AnyArray) -> jax.Array:
    """atan2(y, x) to rounding, by a polynomial that compiles to vector code; zero on the axis."""
    small, large = jnp.minimum(jnp.abs(x), jnp.abs(y)), jnp.maximum(jnp.abs(x), jnp.abs(y))
    t = small / jnp.where(large > 0, large, 1.0)
    # atan t = 2 atan(t / (1 + sqrt(1 + t^2))): the argument stays below tan(pi/8), where the series is short.
    u = t / (1 + jnp.sqrt(1 + t * t))
    series = jnp.zeros_like(u)
    for k in range(18, -1, -1):
        series = series * u * u + (-1) ** k / (2 * k + 1)
    angle = 2 * u * series
    angle = jnp.where(jnp.abs(y) > jnp.abs(x), jnp.pi / 2 - angle, angle)
    angle = jnp.where(x < 0, jnp.pi - angle, angle)
    return jnp.where(y < 0, -angle, angle)


@_azimuth.defjvp
def _(primals: tuple, tangents: tuple) -> tuple:
    (x, y), (x_dot, y_dot) = primals, tangents
    squared = x * x + y * y
    return _azimuth(x, y), (x * y_dot - y * x_dot) / jnp.where(squared > _ON_AXIS, squared, jnp.inf)


def piece_angles(form: Form, azimuth: Float[AnyArray, "..."]) -> Float[jax.Array, "k ..."]:
    """The angle of each half-plane that a point of this azimuth meets, the tube's pieces first."""
    shape = (-1, *[1] * azimuth.ndim)
    turns = jnp.asarray(_TURNS, azimuth.dtype).reshape(shape)
    half = jnp.asarray(np.where(_SIDES < 0, np.pi, 0), azimuth.dtype).reshape(shape)
    return form.start + wrap(azimuth + half - form.start) + 2 * jnp.pi * turns


def wrap(angle: AnyArray) -> jax.Array:
    """The angle in [0, 2 pi), by a floor: a remainder does not compile to vector code."""
    return angle - 2 * jnp.pi * jnp.floor(jax.lax.stop_gradient(angle) / (2 * jnp.pi))


def tube_level(
    form: Form, section: Section, angle: Float[AnyArray, "..."], side: Num[AnyArray, "..."], place: Place
) -> Float[jax.Array, "..."]:
    """The level (mm) of the section at `angle`, seen from its own side of the axis or from across it.

    (R - q)/sqrt(1 + (R'/R)^2 + (T/s)^2) with q the distance from the section's centre and T how fast the surface
    moves away as the half-plane turns. Behind the ends the distance to the end plane limits it, so that the tube
    stops there without a jump.
    """
    e = side * place.distance - section.radius.value
    f = place.height - section.height.value
    squared = e * e + f * f + 1e-12
    inverse = jax.lax.rsqrt(squared)
    q, cosine, sine = squared * inverse, e * inverse, f * inverse
    size = jnp.exp(section.c0.value)
    fade = _fade(q / size)
    section = _rounded(section, fade)
    log_r, bend = log_radius(section, cosine, sine)
    # The drift fades in the core too, but not near the axis, where it is all that says how near the surface is.
    is_far = place.distance**2 / (place.distance**2 + 0.25)
    move = (1 - (1 - fade) * is_far) * _turning(section, bend, q, cosine, sine)
    gap = jnp.exp(log_r) - q
    # Far from the surface its drift says less: near the axis a short way turns far, but not for ever nearer.
    steepness = 1 + bend**2 + move**2 / (place.distance**2 + _AXIS**2 + _FAR * gap**2)
    level = gap * jax.lax.rsqrt(steepness)
    behind = place.distance * jnp.maximum(form.start - angle, angle - form.end)
    return jnp.where(behind > 0, jnp.minimum(level, -behind), level)


def _fade(share: AnyArray) -> jax.Array:
    """From 0 at the centre to 1 at `_CORE` of the size, smoothly."""
    x = jnp.minimum(share / _CORE, 1)
    return x * x * (3 - 2 * x)


def _rounded(section: Section, fade: AnyArray) -> Section:
    """The section with its form faded towards a circle."""
    c2, s2 = section.c2, section.s2
    return section._replace(c2=c2._replace(value=c2.value * fade), s2=s2._replace(value=s2.value * fade))


def _turning(section: Section, bend: AnyArray, q: AnyArray, cosine: AnyArray, sine: AnyArray) -> jax.Array:
    """How fast the surface moves inward (mm/rad) as the half-plane turns."""
    cosine2, sine2 = cosine * cosine - sine * sine, 2 * cosine * sine
    growth = section.c0.slope + section.c2.slope * cosine2 + section.s2.slope * sine2
    drift = (cosine + bend * sine) * section.radius.slope + (sine - bend * cosine) * section.height.slope
    return q * growth + drift


def end_level(
    section: Section, plane: tuple[AnyArray, AnyArray], depth: AnyArray, place: Place
) -> Float[jax.Array, "..."]:
    """The level (mm) of the ellipsoid around an end section, in Cartesian coordinates of its plane.

    Q = |(q/R(psi), n/depth)|, level (1 - Q)/|grad Q|. `plane` is the cosine and sine of the section's angle, `depth`
    the half-length across the plane in sizes.
    """
    cosine, sine = plane
    e, n = place.x * cosine + place.y * sine - section.radius.value, place.y * cosine - place.x * sine
    f = place.height - section.height.value
    squared = e * e + f * f + 1e-12
    inverse = jax.lax.rsqrt(squared)
    size = jnp.exp(section.c0.value)
    depth = size * depth
    fade = _fade(jnp.sqrt(squared / size**2 + (n / depth) ** 2))
    log_r, bend = log_radius(_rounded(section, fade), e * inverse, f * inverse)
    shrink = jnp.exp(-2 * log_r)
    within, across = squared * shrink, (n / depth) ** 2
    slope = within * shrink * (1 + bend**2) + across / depth**2
    q = jnp.sqrt(within + across)
    floor = 1e-10  # at the very centre the direction of the gradient is undefined; the ratio becomes the size
    return (1 - q) * jnp.sqrt((within + across + floor) / (slope + floor / size**2))


class Meeting(NamedTuple):
    """How a point meets one piece: the side of the axis it sees, the angle of its half-plane and of its section."""

    side: Float[AnyArray, " n"]
    angle: Float[AnyArray, " n"]
    at: Float[AnyArray, " n"]
    is_tube: Bool[AnyArray, " n"]
    is_apex: Bool[AnyArray, " n"]


def meet(form: Form, piece: Int[AnyArray, " n"], azimuth: Float[AnyArray, " n"]) -> Meeting:
    """How a point of this azimuth meets its piece."""
    is_tube, is_apex = piece < NUM_TUBES, piece == NUM_PIECES - 1
    is_across = is_tube & (piece >= NUM_NEAR)
    turn = jnp.where(is_across, piece - NUM_NEAR, piece - 1).astype(azimuth.dtype)
    turned = azimuth + jnp.where(is_across, jnp.pi, 0.0).astype(azimuth.dtype) - form.start
    angle = hold(form.start + wrap(turned) + 2 * jnp.pi * turn, azimuth)
    at = jnp.where(is_tube, jnp.clip(angle, form.start, form.end), jnp.where(is_apex, form.end, form.start))
    return Meeting(jnp.where(is_across, -1.0, 1.0).astype(azimuth.dtype), angle, hold(at, azimuth), is_tube, is_apex)


def met_level(form: Form, meeting: Meeting, section: Section, place: Place) -> Float[jax.Array, " n"]:
    """The level of the piece that each point meets, given its section."""
    tube = tube_level(form, section, meeting.angle, meeting.side, place)
    (first, last), depths = form.planes(), form.depths
    plane = [jnp.where(meeting.is_apex, b, a) for a, b in zip(first, last, strict=True)]
    depth = jnp.where(meeting.is_apex, depths[1], depths[0]).astype(place.x.dtype)
    return jnp.where(meeting.is_tube, tube, end_level(section, (plane[0], plane[1]), depth, place))


def piece_level(form: Form, piece: Int[AnyArray, " n"], points: Float[AnyArray, "n 3"]) -> Float[jax.Array, " n"]:
    """The level of one piece for each point, differentiable in the form and the points."""
    place = place_of(points)
    meeting = meet(form, piece, place.azimuth)
    return met_level(form, meeting, hold(form.section(meeting.at), place.x), place)


def place_of(points: Float[AnyArray, "n 3"]) -> Place:
    """Where each point is."""
    x, y, height = points.T
    return hold(locate(*hold((x, y, height), x)), x)


def piece_levels(form: Form, place: Place) -> Float[jax.Array, "k n"]:
    """The levels of all pieces at each point: sections on its side of the axis, those across it, base, apex."""
    angle = piece_angles(form, place.azimuth)
    tube = tube_level(form, form.section(jnp.clip(angle, form.start, form.end)), angle, _SIDES[:, None], place)
    ends = [
        end_level(form.section(jnp.asarray(at)), plane, depth, place)
        for at, plane, depth in zip((form.start, form.end), form.planes(), form.depths, strict=True)
    ]
    return jnp.concatenate([tube, jnp.stack(ends)])


def largest(levels: Float[AnyArray, "k n"]) -> Int[jax.Array, " n"]:
    """Which row is the largest in each column; the first of equals."""
    best, index = levels[0], jnp.zeros(levels.shape[1], jnp.int32)
    for k in range(1, levels.shape[0]):  # as vector code; a reduction that carries an index is not
        index = jnp.where(levels[k] > best, k, index)
        best = jnp.maximum(best, levels[k])
    return index


def nearest_piece(form: Form, place: Place) -> Int[jax.Array, " n"]:
    """The piece with the largest level at each point: the one that the union shows there."""
    piece = largest(hold(jax.lax.stop_gradient(piece_levels(form, place)), place.x))
    return hold(piece.astype(place.x.dtype), place.x).astype(jnp.int32)


def union_level(form: Form, points: Float[AnyArray, "n 3"]) -> Float[jax.Array, " n"]:
    """The level of the union: that of the piece with the largest, the only one that derivatives pass through."""
    return piece_level(form, nearest_piece(form, place_of(points)), points)


def hold(tree: Any, reference: Float[AnyArray, "..."]) -> Any:
    """The same values, computed once: a compiler repeats cheap work for every reader of it, but not a division.

    `reference` is any array of the leaves' last axes; what they are divided by is one, which no compiler can know.
    """
    one = 1 + 0 * jax.lax.stop_gradient(reference)
    return jax.tree.map(lambda leaf: leaf / one, tree)
