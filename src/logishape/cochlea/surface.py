"""What a fitted cochlea looks like: its surface as a mesh, its volume, its paths, and coordinates along it."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from logishape.cochlea.duct import Duct
from logishape.cochlea.level import NUM_TUBES, piece_angles, piece_levels, place_of, union_level
from logishape.cochlea.sections import Form, log_radius
from logishape.cochlea.shape import Cochlea
from logishape.core.arrays import AnyArray, as_numbers, double_precision
from logishape.core.errors import InputError

Along = Literal["centre", "organ_of_corti", "lateral_wall"]
_SHARES: dict[str, float] = {"centre": 0.0, "organ_of_corti": 0.69, "lateral_wall": 1.0}
_CHUNK = 16384
_DIRECTIONS = np.linspace(-1.4, 1.4, 15)


class Mesh(NamedTuple):
    """A closed surface: vertices (world mm) and triangles, counter-clockwise seen from outside."""

    vertices: Float[np.ndarray, "v 3"]
    faces: Int[np.ndarray, "f 3"]


def surface(cochlea: Cochlea, theta: object, edge_length: float = 0.15) -> Mesh:
    """The surface of the union of all turns as a closed mesh with edges of about this length (mm)."""
    try:
        from skimage.measure import marching_cubes
    except ImportError as error:
        raise InputError("making a mesh needs scikit-image, which is missing; pip install scikit-image.") from error
    values = cochlea.check(theta)
    if not isinstance(edge_length, int | float) or not 0.02 <= edge_length <= 1:
        raise InputError(f"the edge length must be 0.02 to 1 mm but is {edge_length!r}; try 0.15.")
    origin, levels = _level_grid(cochlea.duct, values[6:], edge_length)
    found, faces, _, _ = marching_cubes(levels, 0.0, spacing=(edge_length,) * 3)
    vertices = found.astype(float) + origin
    for _ in range(2):  # from the chords of the grid onto the surface
        level, gradient = _in_pieces(_level_and_gradient, cochlea.duct, values[6:], vertices)
        vertices = vertices - np.clip(level, -edge_length / 4, edge_length / 4)[:, None] * gradient
    (world,) = _in_pieces(_to_world, cochlea, values, vertices)
    return Mesh(world, faces[:, ::-1] if _is_inward(world, faces) else faces)


def volume(cochlea: Cochlea, theta: object, edge_length: float = 0.1) -> float:
    """The volume (mm^3) of the union of all turns, by the divergence theorem over its mesh."""
    return mesh_volume(surface(cochlea, theta, edge_length))


def mesh_volume(mesh: Mesh) -> float:
    """The volume (mm^3) that a closed mesh encloses; negative if it looks inward."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    return float(np.sum(a * np.cross(b, c)) / 6)


def _is_inward(vertices: np.ndarray, faces: np.ndarray) -> bool:
    return mesh_volume(Mesh(vertices, faces)) < 0


def _level_grid(duct: Duct, theta: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """The first corner and the levels of a grid around the surface, computed where the surface may pass.

    Elsewhere every fourth sample stands for its neighbours: its level says that they are on the same side.
    """
    lower, upper = duct.extent(theta)
    counts = np.ceil((upper - lower) / spacing + 4).astype(int) // 4 * 4 + 4
    axes = [a - 2 * spacing + spacing * np.arange(count) for a, count in zip(lower, counts, strict=True)]
    coarse = np.stack(np.meshgrid(*(axis[::4] for axis in axes), indexing="ij"), axis=-1)
    (level,) = _in_pieces(_level, duct, theta, coarse.reshape(-1, 3))
    levels = np.kron(level.reshape(coarse.shape[:3]), np.ones((4, 4, 4)))
    near = np.nonzero(np.abs(levels) < 8 * spacing)  # a block's corner is within 5.2 spacings of all its points
    points = np.stack([axis[rows] for axis, rows in zip(axes, near, strict=True)], axis=1)
    levels[near] = _in_pieces(_level, duct, theta, points)[0]
    return np.array([axis[0] for axis in axes]), levels


def _in_pieces(function: Callable, shape: Any, theta: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, ...]:
    """The rows that the function gives for many points, in pieces of one size so that it compiles once."""
    padded = np.pad(points, ((0, -len(points) % _CHUNK), (0, 0)), mode="edge")
    with double_precision():
        found = [function(shape, theta, part) for part in padded.reshape(-1, _CHUNK, 3)]
    return tuple(
        np.concatenate([np.asarray(row) for row in rows])[: len(points)] for rows in zip(*found, strict=True)
    )


@eqx.filter_jit
def _to_world(cochlea: Cochlea, theta: AnyArray, points: AnyArray) -> tuple[jax.Array]:
    return (cochlea.to_world(theta, points),)


@eqx.filter_jit
def _level(duct: Duct, theta: AnyArray, points: AnyArray) -> tuple[jax.Array]:
    return (union_level(duct.form(theta, points), points),)


@eqx.filter_jit
def _level_and_gradient(duct: Duct, theta: AnyArray, points: AnyArray) -> tuple[jax.Array, jax.Array]:
    form = duct.form(theta, points)
    level, pull = jax.vjp(lambda x: union_level(form, x), points)
    return level, pull(jnp.ones_like(level))[0]


class DuctPath(NamedTuple):
    """A path along the duct by angle: world position, distance from the axis, height and arc length, all mm."""

    angle: Float[np.ndarray, " n"]
    points: Float[np.ndarray, "n 3"]
    radius: Float[np.ndarray, " n"]
    height: Float[np.ndarray, " n"]
    length: Float[np.ndarray, " n"]


def path(cochlea: Cochlea, theta: object, along: Along = "centre", angles: object = None) -> DuctPath:
    """The path through the sections' centres, along the organ of Corti or the lateral wall, from the round window on.

    Its distance from the axis is M + eta (W - M) with M that of the section's centre, W that of its outermost point
    and eta = 0, 0.69, 1. The length is the integral of sqrt(Q'^2 + Q^2 + z'^2) from the first angle; angles (rad) run
    from 0 to theta_max unless given.
    """
    share = share_of(along)
    values = cochlea.check(theta)
    form = _in_double(cochlea.form, values)
    at = (
        np.linspace(max(0.0, float(form.start)), float(form.end), 1001)
        if angles is None
        else as_numbers(angles, "the angles")
    )
    start, end = float(form.start), float(form.end)
    if at.ndim != 1 or len(at) < 2 or not np.all(np.diff(at) > 0) or at[0] < start - 1e-9 or at[-1] > end + 1e-9:
        raise InputError(
            f"the angles must be two or more that rise within [{start:.2f}, {end:.2f}] rad; leave them out for the "
            "whole duct."
        )
    fine = np.unique(np.concatenate([at, np.linspace(at[0], at[-1], 2001)]))
    radius, height, speed = (np.asarray(one) for one in _in_double(path_speed, form, fine, share))
    length = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(fine))])
    chosen = np.searchsorted(fine, at)
    r, z = radius[chosen], height[chosen]
    model = np.stack([r * np.cos(at), r * np.sin(at), z], axis=1)
    world = np.asarray(_in_double(cochlea.to_world, values, model))
    return DuctPath(at, world, r, z, length[chosen])


def share_of(along: object) -> float:
    """How far a path lies from the sections' centres to their outermost points: eta."""
    if along not in _SHARES:
        raise InputError(f"along must be one of {', '.join(_SHARES)} but is {along!r}; choose one.")
    return _SHARES[str(along)]


def wall_radius(form: Form, angle: Float[AnyArray, " n"]) -> Float[jax.Array, " n"]:
    """W: the largest distance from the axis (mm) that the section at each angle reaches.

    The best of some directions, refined by Newton steps on the slope of log R(psi) + log cos(psi); where that slope
    vanishes the direction need not be differentiated.
    """
    section = form.section(jnp.asarray(angle))
    held = jax.lax.stop_gradient(section)
    log_r, _ = log_radius(held, np.cos(_DIRECTIONS)[:, None], np.sin(_DIRECTIONS)[:, None])
    psi = jnp.asarray(_DIRECTIONS)[jnp.argmax(log_r + np.log(np.cos(_DIRECTIONS))[:, None], axis=0)]
    gap = _DIRECTIONS[1] - _DIRECTIONS[0]
    for _ in range(4):
        tangent = jnp.tan(psi)
        value, slope = log_radius(held, jnp.cos(psi), jnp.sin(psi))
        # The second derivative of log R is -4 times its part that varies.
        curvature = -4 * (value - held.c0.value) - (1 + tangent**2)
        step = (slope - tangent) / jnp.minimum(curvature, -0.1)
        psi = jnp.clip(psi - jnp.clip(step, -gap, gap), -1.5, 1.5)
    log_r, _ = log_radius(section, jnp.cos(psi), jnp.sin(psi))
    return section.radius.value + jnp.exp(log_r) * jnp.cos(psi)


def path_speed(form: Form, angle: Float[AnyArray, " n"], share: float) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Distance from the axis, height, and sqrt(Q'^2 + Q^2 + z'^2) at each angle, `share` of the way to the wall."""

    def curve(at: jax.Array) -> tuple[jax.Array, jax.Array]:
        section = form.section(at)
        middle = section.radius.value
        return middle + share * (wall_radius(form, at) - middle), section.height.value

    at = jnp.asarray(angle)
    (radius, height), (widening, rise) = jax.jvp(curve, (at,), (jnp.ones_like(at),))
    return radius, height, jnp.sqrt(widening**2 + radius**2 + rise**2)


class Coordinates(NamedTuple):
    """Where points lie along the duct: angle (rad, whole turns counted), distance from the axis and height (mm)."""

    angle: Float[np.ndarray, " n"]
    radius: Float[np.ndarray, " n"]
    height: Float[np.ndarray, " n"]


def coordinates(cochlea: Cochlea, theta: object, points: Float[AnyArray, "n 3"]) -> Coordinates:
    """World points in cochlear coordinates; the turn is the one whose surface holds or is nearest to the point.

    A point that the apex's or the base's rounded end holds has the angle of its own half-plane nearest to that end. A
    section that reaches over the axis gives a point there a negative radius: it lies across from its angle.
    """
    values, positions = cochlea.check(theta), as_numbers(points, "the points")
    if positions.ndim != 2 or positions.shape[1] != 3 or not np.all(np.isfinite(positions)):
        raise InputError(
            f"the points must be finite, of shape (n, 3), but have shape {positions.shape} or hold NaN; give RAS mm."
        )
    with double_precision():
        form = cochlea.form(values)
        place = place_of(cochlea.to_model(values, jnp.asarray(positions)))
        levels = np.asarray(piece_levels(form, place))
        angles, azimuth = np.asarray(piece_angles(form, place.azimuth)), np.asarray(place.azimuth)
    # A section that holds the point comes before a rounded end that does too.
    tube, piece = levels[:NUM_TUBES].argmax(axis=0), levels.argmax(axis=0)
    piece = np.where(levels[:NUM_TUBES].max(axis=0) >= 0, tube, piece)
    ends = np.where(piece == NUM_TUBES, float(form.start), float(form.end))
    near_end = azimuth + 2 * np.pi * np.round((ends - azimuth) / (2 * np.pi))
    is_tube = piece < NUM_TUBES
    angle = np.where(is_tube, np.take_along_axis(angles, np.minimum(piece, NUM_TUBES - 1)[None], axis=0)[0], near_end)
    is_across = is_tube & (np.cos(angle - azimuth) < 0)
    distance = np.asarray(place.distance)
    return Coordinates(angle, np.where(is_across, -distance, distance), np.asarray(place.height))


def _in_double(function: Callable, *arguments: Any) -> Any:
    with double_precision():
        return function(*arguments)
