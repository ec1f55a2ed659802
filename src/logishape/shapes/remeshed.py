"""The signed distance of any shape by way of a triangle mesh that is made anew for each set of parameters."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from logishape.core.arrays import AnyArray, as_vector
from logishape.core.errors import InputError
from logishape.shapes.base import AbstractShape, AbstractShapeWithDerivatives, Derivatives, derivatives
from logishape.shapes.closest import closest_on_face, face_normal, face_table, safe_inverse
from logishape.shapes.mesh_level import Contact, is_rounding, reach
from logishape.shapes.mesh_query import ask_host, nearest_by_tree
from logishape.shapes.tetrahedra import zero_level

_MOST_NODES = 2**24
Nearest = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class Remeshed(AbstractShapeWithDerivatives):
    """The Euclidean signed distance to a mesh of a shape's zero level, for shapes whose level is none.

    The mesh is that of the shape's levels on a lattice `spacing` mm apart from `lower` to `upper`, which must hold
    the surface: what lies outside is not seen, and where nothing is seen the level is not a number. Parts may merge
    or appear: connectivity is found anew each time, on the host.

    Level and first derivatives are those of this very mesh, exact; second derivatives are those of flat pieces, as
    for `MeshShape`. `nearest` finds the nearest face on the host (`nearest_by_libigl` is quicker).
    """

    shape: AbstractShape
    lower: tuple[float, float, float] = eqx.field(static=True)
    counts: tuple[int, int, int] = eqx.field(static=True)
    spacing: float = eqx.field(static=True)
    nearest: Nearest = eqx.field(static=True)

    def __init__(
        self, shape: AbstractShape, lower: Any, upper: Any, spacing: float = 0.15, nearest: Nearest = nearest_by_tree
    ):
        corners = [as_vector(corner, 3, "a corner of the lattice") for corner in (lower, upper)]
        if not (np.all(np.isfinite(corners)) and np.all(corners[0] < corners[1]) and spacing > 0):
            raise InputError(
                "the lattice must have finite corners, the lower one below the upper one, and a positive spacing but "
                f"has {corners[0].tolist()}, {corners[1].tolist()} and {spacing}; give a box around the shape, mm."
            )
        counts = np.ceil((corners[1] - corners[0]) / spacing - 1e-9) + 1
        if np.prod(counts) > _MOST_NODES:
            raise InputError(
                f"a lattice has at most {_MOST_NODES} nodes but this one would have {np.prod(counts):.0f}; take a "
                "larger spacing or a smaller box."
            )
        self.shape, self.spacing, self.nearest = shape, float(spacing), nearest
        self.lower = (float(corners[0][0]), float(corners[0][1]), float(corners[0][2]))
        self.counts = (int(counts[0]), int(counts[1]), int(counts[2]))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """As the shape's."""
        return self.shape.parameter_names

    @property
    def is_faceted(self) -> bool:
        """True."""
        return True

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray] | None:
        """As the shape's."""
        return self.shape.extent(theta)

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Float[jax.Array, " n"]:
        """The signed distance to the mesh; its sign at edges and corners is that of the shape's level."""
        theta, points = jnp.asarray(theta), jnp.asarray(points)
        nodes, is_inside = _ask(self, theta, points)
        return _distance(self._node_levels(theta, nodes), nodes, is_inside, points)

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Derivatives:
        """Level and derivatives from one mesh: a face moves as the levels at its six lattice nodes change."""
        theta, points = jnp.asarray(theta), jnp.asarray(points)
        nodes, is_inside = _ask(self, theta, points)
        found = derivatives(self.shape, theta, nodes.reshape(-1, 3))
        levels = found.level.reshape(nodes.shape[:-1])
        level, pull = jax.vjp(lambda ends, x: _distance(ends, nodes, is_inside, x), levels, points)
        by_levels, gradient = pull(jnp.ones_like(level))
        motion = found.jacobian.reshape(*by_levels.shape, -1)
        return Derivatives(level, jnp.sum(by_levels[..., None] * motion, axis=(1, 2)), gradient)

    def mesh(self, theta: Float[AnyArray, " p"]) -> tuple[Float[np.ndarray, "v 3"], Int[np.ndarray, "f 3"]]:
        """Vertices (mm) and faces, outward, at these parameters; every face has corners of its own."""
        return _mesh(self, np.asarray(_lattice_levels(self, jnp.asarray(theta), jnp.zeros((1, 3)))))[:2]

    def _node_levels(self, theta: jax.Array, nodes: Float[jax.Array, "n 3 2 3"]) -> Float[jax.Array, "n 3 2"]:
        return self.shape.level(theta, nodes.reshape(-1, 3)).reshape(nodes.shape[:-1])


@eqx.filter_jit
def _ask(remeshed: Remeshed, theta: jax.Array, points: jax.Array) -> tuple[Float[jax.Array, "n 3 2 3"], jax.Array]:
    """The lattice nodes whose edges carry the corners of the nearest face, and whether each point is inside.

    Constant to all derivatives.
    """
    theta, points = jax.lax.stop_gradient((theta, points))
    levels = jax.lax.stop_gradient(_lattice_levels(remeshed, theta, points))
    numbers = ask_host(partial(_nearest_edges, remeshed), (levels,), points, (6,))
    is_inside = remeshed.shape.level(theta, points) > 0
    return jax.lax.stop_gradient((_positions(remeshed, numbers.reshape(-1, 3, 2), points), is_inside))


@eqx.filter_jit
def _lattice_levels(remeshed: Remeshed, theta: jax.Array, like_points: jax.Array) -> Float[jax.Array, " m"]:
    numbers = jnp.arange(int(np.prod(remeshed.counts)), dtype=jnp.int32)
    return remeshed.shape.level(theta, _positions(remeshed, numbers, like_points))


def _positions(remeshed: Remeshed, numbers: jax.Array, like_points: jax.Array) -> Float[jax.Array, "... 3"]:
    """Where lattice nodes of these numbers lie, mm, in the precision of the points."""
    index = jnp.stack(jnp.unravel_index(numbers, remeshed.counts), axis=-1).astype(like_points.dtype)
    return index * remeshed.spacing + jnp.asarray(remeshed.lower, like_points.dtype)


def _mesh(remeshed: Remeshed, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices, faces, and the lattice edges on which the corners of faces lie."""
    levels = np.asarray(levels, np.float64).ravel()
    edges = zero_level(levels.reshape(remeshed.counts))
    nodes = np.stack(np.unravel_index(edges, remeshed.counts), axis=-1) * remeshed.spacing + remeshed.lower
    share = levels[edges[..., 0]] / (levels[edges[..., 0]] - levels[edges[..., 1]])
    vertices = nodes[:, :, 0] + share[..., None] * (nodes[:, :, 1] - nodes[:, :, 0])
    return vertices.reshape(-1, 3), np.arange(3 * len(edges)).reshape(-1, 3), edges


def _nearest_edges(remeshed: Remeshed, levels: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Six node numbers for each point: both ends of the three lattice edges with the corners of the nearest face."""
    vertices, faces, edges = _mesh(remeshed, levels)
    if not len(faces):
        return np.zeros((len(points), 6), np.int32)  # one node twice: the level there is not a number
    return edges[remeshed.nearest(vertices, faces, points)].reshape(-1, 6)


def _distance(
    levels: Float[jax.Array, "n 3 2"], nodes: Float[jax.Array, "n 3 2 3"], is_inside: jax.Array, points: jax.Array
) -> Float[jax.Array, " n"]:
    """The signed distance to the face whose corners these levels put on the edges between these nodes."""
    share = levels[..., 0] / (levels[..., 0] - levels[..., 1])
    corners = nodes[:, :, 0] + share[..., None] * (nodes[:, :, 1] - nodes[:, :, 0])
    vertices = corners.reshape(-1, 3)
    at = jnp.arange(vertices.shape[0], dtype=jnp.int32).reshape(-1, 3)
    return reach(vertices, _contact(jax.lax.stop_gradient(corners), at, is_inside, points), points).level


def _contact(corners: Float[jax.Array, "n 3 3"], at: jax.Array, is_inside: jax.Array, points: jax.Array) -> Contact:
    """Where each point meets its face; the side that a pseudonormal would tell is known."""
    table, x = face_table(jnp.moveaxis(corners, 0, -1)), jax.lax.stop_gradient(points).T
    _, weights = closest_on_face(table, x)
    part = sum((weight > 0).astype(jnp.int32) << k for k, weight in enumerate(weights))
    closest = jnp.sum(jnp.stack(weights)[:, None] * table.corners, axis=0)
    away = x - closest
    length = jnp.sqrt(jnp.sum(away**2, axis=0))
    outward = jnp.where(is_inside, -1.0, 1.0).astype(x.dtype) * away * safe_inverse(length)
    normal = jnp.stack(face_normal(table.edges))
    unit = normal * safe_inverse(jnp.sqrt(jnp.sum(normal**2, axis=0)))
    side = jnp.where(is_rounding(length / 4, x, closest), unit, outward)
    contact = Contact(at, jnp.stack(weights), jnp.asarray(part), side)
    return jax.lax.stop_gradient(contact)
