"""Is a mesh sound: closed, oriented, outward, not crossing itself. On the host, once for a shape or a fit."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from logishape.core.errors import InputError
from logishape.shapes.mesh_crossings import find_crossing

_FLAT = 1e-12  # of the mesh's size: faces thinner than that have no normal


def as_faces(faces: Any) -> Int[np.ndarray, "f d"]:
    """Faces as whole numbers of 32 bits, two or three vertices each."""
    array = np.asarray(faces)
    if array.ndim != 2 or array.shape[1] not in (2, 3) or array.dtype.kind not in "iu" or array.shape[0] == 0:
        raise InputError(
            f"faces must be whole numbers of shape (f, 3), or (f, 2) in the plane, but are {array.dtype} of shape "
            f"{array.shape}; give the vertex numbers of each triangle or segment."
        )
    return array.astype(np.int32)


def check_vertices(vertices: Float[np.ndarray, "..."], faces: Int[np.ndarray, "f d"]) -> None:
    """Raises unless vertices and faces belong together and every face has an extent."""
    if vertices.ndim != 2 or vertices.shape[1] != faces.shape[1]:
        raise InputError(
            f"faces of {faces.shape[1]} vertices need vertices of shape (v, {faces.shape[1]}) but found "
            f"{vertices.shape}; use triangles in space and segments in the plane."
        )
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise InputError(
            f"faces name the vertices {faces.min()} to {faces.max()} but there are {len(vertices)}, counted from 0; "
            "check that faces and vertices are of the same mesh."
        )
    if not np.all(np.isfinite(vertices)):
        num_bad = np.count_nonzero(~np.isfinite(vertices).all(axis=1))
        raise InputError(f"{num_bad} of {len(vertices)} vertices are not finite; check the parameters and the mesh.")
    num_unused = len(vertices) - np.unique(faces).size
    if num_unused:
        raise InputError(f"{num_unused} of {len(vertices)} vertices belong to no face; drop the unused ones.")
    size = np.ptp(vertices, axis=0).max()
    is_flat = _sizes(vertices, faces) <= _FLAT * size ** (faces.shape[1] - 1)
    if np.any(is_flat):
        raise InputError(
            f"{np.count_nonzero(is_flat)} of {len(faces)} faces have no extent, one near "
            f"{_place(vertices, faces[is_flat][0])}; remove them, and merge vertices that coincide."
        )


def check_closed(vertices: Float[np.ndarray, "v d"], faces: Int[np.ndarray, "f d"]) -> None:
    """Raises unless each edge (in the plane: each vertex) joins two faces that run through it in opposite senses."""
    d = faces.shape[1]
    name = {2: "vertices", 3: "edges"}[d]
    edges, number, counts = _edges(faces)
    if np.any(counts == 1):
        raise InputError(
            f"the mesh must be closed but {np.count_nonzero(counts == 1)} {name} belong to one face alone, one near "
            f"{_place(vertices, edges[counts == 1][0])}; fill the hole, or merge vertices that coincide."
        )
    if np.any(counts > 2):
        raise InputError(
            f"two faces may meet at each of the {name} but at {np.count_nonzero(counts > 2)} more do, one near "
            f"{_place(vertices, edges[counts > 2][0])}; remove inner walls and double faces."
        )
    sense = np.zeros(len(counts), int)
    np.add.at(sense, number.ravel(), _senses(faces).ravel())
    if np.any(sense != 0):
        raise InputError(
            f"all faces must be oriented alike but across {np.count_nonzero(sense)} {name} they are not, one near "
            f"{_place(vertices, edges[sense != 0][0])}; list the vertices of each face in the same sense."
        )


def orient(vertices: Float[np.ndarray, "v d"], faces: Int[np.ndarray, "f d"]) -> Int[np.ndarray, "f d"]:
    """The faces of a closed mesh, turned outward; those of a cavity look into the cavity.

    Each connected piece is turned by how many other pieces hold it, so that inside and outside alternate.
    """
    check_closed(vertices, faces)
    _, number, _ = _edges(faces)
    face = np.repeat(np.arange(len(faces)), number.shape[1])
    joined = coo_array((np.ones(number.size), (face, number.ravel())))
    num_pieces, piece = connected_components(joined @ joined.T, directed=False)
    faces = faces.copy()
    for k in range(num_pieces):
        start = vertices[faces[piece == k][0, 0]]
        depth = sum(_holds(vertices[faces[piece == j]], start) for j in range(num_pieces) if j != k)
        if (_volume(vertices, faces[piece == k]) < 0) != (depth % 2 == 1):
            faces[piece == k] = faces[piece == k][:, ::-1]
    return faces


def check_crossings(vertices: Float[np.ndarray, "v d"], faces: Int[np.ndarray, "f d"]) -> None:
    """Raises if the mesh crosses itself or is turned inside out."""
    crossing = find_crossing(vertices, faces)
    if crossing is not None:
        raise InputError(
            f"the mesh crosses itself near {_text(crossing)} mm; stay closer to the shapes it was made from, "
            "or repair it there."
        )
    if _volume(vertices, faces) <= 0:
        raise InputError("the mesh is turned inside out at these parameters; keep scales positive.")


def edge_neighbours(faces: Int[np.ndarray, "f d"]) -> Int[np.ndarray, "f e"]:
    """The face across each edge of each triangle, the edges counted from corner k to the next; none in the plane."""
    if faces.shape[1] == 2:
        return np.zeros((len(faces), 0), np.int32)
    _, number, _ = _edges(faces)
    order = np.argsort(number.ravel(), kind="stable").reshape(-1, 2)  # two for each edge of a closed mesh
    across = np.empty(number.size, np.int32)
    across[order[:, 0]], across[order[:, 1]] = order[:, 1] // 3, order[:, 0] // 3
    return across.reshape(-1, 3)


def _edges(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What faces are joined by (edges; in the plane vertices): their vertices, their number a face, their use."""
    if faces.shape[1] == 2:
        ends = faces.reshape(-1, 1)
    else:
        ends = np.sort(np.stack([faces, np.roll(faces, -1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    unique, number, counts = np.unique(ends, axis=0, return_inverse=True, return_counts=True)
    return unique, number.reshape(faces.shape), counts


def _senses(faces: np.ndarray) -> np.ndarray:
    """In which sense each face runs through its edges (in the plane: into or out of its vertices)."""
    if faces.shape[1] == 2:
        return np.broadcast_to([-1, 1], faces.shape)
    return np.sign(np.roll(faces, -1, axis=1) - faces)


def _sizes(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Twice the area of triangles, the length of segments."""
    corners = vertices[faces]
    if faces.shape[1] == 2:
        return np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)
    return np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)


def _volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """Signed content, times 2 in the plane and 6 in space: positive if the faces look outward."""
    return float(np.sum(np.linalg.det(vertices[faces] - vertices.mean(axis=0))))


def _holds(corners: np.ndarray, point: np.ndarray) -> bool:
    """Whether a closed piece holds a point: its winding number, from the angles its faces fill seen from there."""
    rays = corners - point
    if corners.shape[1] == 2:
        turns = np.arctan2(np.linalg.det(rays), np.sum(rays[:, 0] * rays[:, 1], axis=1)) / (2 * np.pi)
    else:
        a, b, c = rays.transpose(1, 0, 2)
        la, lb, lc = np.linalg.norm(rays, axis=-1).T
        below = la * lb * lc + np.sum(a * b, 1) * lc + np.sum(b * c, 1) * la + np.sum(c * a, 1) * lb
        turns = np.arctan2(np.linalg.det(rays), below) / (2 * np.pi)
    return bool(abs(np.sum(turns)) > 0.5)


def _place(vertices: np.ndarray, numbers: np.ndarray) -> str:
    return f"{_text(vertices[numbers].mean(axis=0))} mm"


def _text(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in point) + ")"
