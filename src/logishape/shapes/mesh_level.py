"""Signed distance to the nearest face of a mesh, its side by pseudonormals, and what its derivatives need.

The nearest face, and which part of it is nearest, are constants to the derivatives: the distance to that part is
a smooth function of vertices and point. Components come first, as in `closest`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from logishape.shapes.base import safe_norm
from logishape.shapes.closest import closest_on_face, dot, face_normal, face_table, safe_inverse

# Which corners have a part in the closest point, as bits: the first and last corner of that corner or edge.
_FIRST = {2: np.array([0, 0, 1, 0], np.int32), 3: np.array([0, 0, 1, 0, 2, 2, 1, 0], np.int32)}
_LAST = {2: np.array([0, 0, 1, 0], np.int32), 3: np.array([0, 0, 1, 1, 2, 0, 2, 0], np.int32)}


class Contact(NamedTuple):
    """Where each point meets the mesh; constant to all derivatives."""

    corners: Int[Array, "n d"]  # vertex numbers of the nearest face
    weights: Float[Array, "d n"]  # of those corners in the closest point
    part: Int[Array, " n"]  # of the face: the bits of the corners with a weight, all of them for its inside
    pseudonormal: Float[Array, "d n"]


class Reach(NamedTuple):
    """Signed distance (mm, positive inside) and outward unit normal for each point."""

    level: Float[Array, " n"]
    normal: Float[Array, "d n"]


@jax.jit  # a fit asks in many places: traced once for all of them
def find_contact(
    vertices: Float[Array, "v d"],
    faces: Int[Array, "f d"],
    neighbours: Int[Array, "f e"],
    nearest: Int[Array, " n"],
    points: Float[Array, "n d"],
) -> Contact:
    """The closest point of the nearest face, the part of the face it lies on, and the pseudonormal there."""
    _, weights = closest_on_face(face_table(_gather(vertices, faces[nearest])), points.T)
    part = sum((weight > 0).astype(jnp.int32) << k for k, weight in enumerate(weights))
    table = pseudonormals(vertices, faces, neighbours)
    contact = Contact(faces[nearest], jnp.stack(weights), jnp.asarray(part), table[nearest, part].T)
    return jax.lax.stop_gradient(contact)


def pseudonormals(
    vertices: Float[Array, "v d"], faces: Int[Array, "f d"], neighbours: Int[Array, "f e"]
) -> Float[Array, "f b d"]:
    """Outward unit vectors for the parts of each face, by their bits; they make the sign exact (Baerentzen).

    Inside a face its normal; on an edge the sum of both faces' normals; at a corner the sum over all faces that
    meet there, weighted by their angles. In the plane corners weigh both segments alike.
    """
    d = faces.shape[1]
    corners = _gather(vertices, faces)
    edges = [corners[(k + 1) % d] - corners[k] for k in range(d)]
    normals = _unit(jnp.stack(face_normal(edges))).T
    around = jnp.zeros_like(vertices)
    for k in range(d):
        angle = jnp.ones_like(normals[:, 0]) if d == 2 else _angle(edges[k], -edges[k - 1])
        around = around.at[faces[:, k]].add(angle[:, None] * normals)
    at_corner = [around[faces[:, k]] for k in range(d)]
    if d == 2:
        parts = [normals, at_corner[0], at_corner[1], normals]
    else:
        on_edge = [normals + normals[neighbours[:, k]] for k in range(3)]  # from corner k to the next
        parts = [normals, at_corner[0], at_corner[1], on_edge[0], at_corner[2], on_edge[2], on_edge[1], normals]
    return jnp.moveaxis(_unit(jnp.moveaxis(jnp.stack(parts), -1, 0)), 0, -1).swapaxes(0, 1)


@jax.jit
def reach(vertices: Float[Array, "v d"], contact: Contact, points: Float[Array, "n d"]) -> Reach:
    """The signed distance at each point and the outward normal there, smooth in vertices and points.

    Inside a face the distance to its plane, smooth through zero; on an edge or corner the length of what leads
    there, with the sign of the pseudonormal. A point on an edge or corner has the pseudonormal as its normal.
    """
    corners, x = _gather(vertices, contact.corners), points.T
    d = len(corners)
    normal = _unit(jnp.stack(face_normal([corners[1] - corners[0], corners[-1] - corners[1]])))
    plane = dot(corners[0] - x, normal)
    start = _pick(corners, jnp.asarray(_FIRST[d])[contact.part])
    along = _pick(corners, jnp.asarray(_LAST[d])[contact.part]) - start
    offset = x - start
    rest = offset - dot(offset, along) * safe_inverse(dot(along, along)) * along
    distance = safe_norm(rest.T)
    height = dot(rest, contact.pseudonormal)
    side = jax.lax.stop_gradient(jnp.where(height < 0, -1.0, 1.0).astype(x.dtype))
    # Below rounding the direction of what is left is noise.
    is_on = is_rounding(distance, x, start)
    away = side * rest * safe_inverse(distance)
    is_face = contact.part == 2**d - 1
    level = jnp.where(is_face, plane, -jnp.where(is_on, height, side * distance))
    return Reach(level, jnp.where(is_face, normal, jnp.where(is_on, contact.pseudonormal, away)))


def is_rounding(
    distance: Float[Array, " n"], x: Float[Array, "d n"], start: Float[Array, "d n"]
) -> Bool[Array, " n"]:
    """Whether a distance is too short for its direction to be more than rounding."""
    size = jnp.sum(jnp.abs(x) + jnp.abs(start), axis=0)
    return distance <= 8 * jnp.finfo(x.dtype).eps * size


def _gather(vertices: Float[Array, "v d"], faces: Int[Array, "n d"]) -> Float[Array, "d d n"]:
    """Corners of faces, the corner first, then the component."""
    return jnp.stack([vertices[faces[:, k]].T for k in range(faces.shape[1])])


def _pick(corners: Float[Array, "d d n"], number: Int[Array, " n"]) -> Float[Array, "d n"]:
    """The corner of this number for each point."""
    chosen = corners[0]
    for k in range(1, len(corners)):
        chosen = jnp.where(number == k, corners[k], chosen)
    return chosen


def _unit(vectors: Float[Array, "d ..."]) -> Float[Array, "d ..."]:
    """Vectors of length one; zero stays zero."""
    return vectors * safe_inverse(safe_norm(jnp.moveaxis(vectors, 0, -1)))


def _angle(a: Float[Array, "3 f"], b: Float[Array, "3 f"]) -> Float[Array, " f"]:
    """The angle between two vectors, exact for small ones too."""
    return jnp.arctan2(safe_norm(jnp.cross(a, b, axis=0).T), dot(a, b))
