"""Meshes to start from: a ball, a torus, and the segments of a polygon."""

import numbers

import numpy as np
from jaxtyping import Float, Int

from logishape.core.errors import InputError

_MOST_SUBDIVISIONS = 8  # 1.3 million triangles


def icosphere(subdivisions: int = 3) -> tuple[Float[np.ndarray, "v 3"], Int[np.ndarray, "f 3"]]:
    """Vertices on the unit sphere and 20 * 4^subdivisions nearly equal triangles, outward."""
    if not isinstance(subdivisions, numbers.Integral) or not 0 <= subdivisions <= _MOST_SUBDIVISIONS:
        raise InputError(
            f"an icosphere has 0 to {_MOST_SUBDIVISIONS} subdivisions but {subdivisions} were asked for; try 3."
        )
    golden = (1 + 5**0.5) / 2
    rectangle = np.array([[0, a, b * golden] for a in (-1, 1) for b in (-1, 1)])
    vertices = np.concatenate([np.roll(rectangle, shift, axis=1) for shift in range(3)])
    # Any three corners of an icosahedron that are one edge (of length 2) apart span a face.
    distance = np.linalg.norm(vertices[:, None] - vertices, axis=-1)
    is_edge = np.isclose(distance, 2.0)
    faces = np.array([(i, j, k) for i, j, k in np.ndindex(12, 12, 12) if i < j < k and _all_edges(is_edge, i, j, k)])
    corners = vertices[faces]
    is_inward = np.linalg.det(corners) < 0
    faces[is_inward] = faces[is_inward][:, ::-1]
    for _ in range(subdivisions):
        vertices, faces = _subdivide(vertices, faces)
    return vertices / np.linalg.norm(vertices, axis=1, keepdims=True), faces


def torus(
    radius: float, tube_radius: float, num_around: int = 48, num_across: int = 24
) -> tuple[Float[np.ndarray, "v 3"], Int[np.ndarray, "f 3"]]:
    """Vertices on a torus about the z axis (mm) and its outward triangles, two for each cell of the angles' grid."""
    if not 0 < tube_radius < radius:
        raise InputError(
            f"a torus needs 0 < tube_radius < radius but they are {tube_radius:g} and {radius:g}; swap or mend them."
        )
    if min(num_around, num_across) < 3:
        raise InputError(f"a torus needs 3 vertices each way but has {num_around} and {num_across}; ask for more.")
    around, across = np.meshgrid(_angles(num_around), _angles(num_across), indexing="ij")
    reach = radius + tube_radius * np.cos(across)
    vertices = np.stack([reach * np.cos(around), reach * np.sin(around), tube_radius * np.sin(across)], axis=-1)
    number = np.arange(num_around * num_across).reshape(num_around, num_across)
    right, up = np.roll(number, -1, axis=0), np.roll(number, -1, axis=1)
    opposite = np.roll(right, -1, axis=1)
    cells = [np.stack(corners, axis=-1) for corners in ((number, right, opposite), (number, opposite, up))]
    return vertices.reshape(-1, 3), np.concatenate([cell.reshape(-1, 3) for cell in cells])


def polygon_faces(num_vertices: int) -> Int[np.ndarray, "v 2"]:
    """The segments of a closed polygon whose vertices are listed in order: each vertex with the next."""
    if num_vertices < 3:
        raise InputError(f"a polygon needs at least 3 vertices but has {num_vertices}; add some.")
    number = np.arange(num_vertices)
    return np.stack([number, np.roll(number, -1)], axis=1)


def _angles(count: int) -> np.ndarray:
    return 2 * np.pi * np.arange(count) / count


def _all_edges(is_edge: np.ndarray, i: int, j: int, k: int) -> bool:
    return bool(is_edge[i, j] and is_edge[j, k] and is_edge[i, k])


def _subdivide(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Four triangles for each, with new vertices in the middle of the edges, moved out to the sphere."""
    vertices = vertices / np.linalg.norm(vertices, axis=1, keepdims=True)
    edges = np.stack([faces, np.roll(faces, -1, axis=1)], axis=-1)  # the k-th from corner k to the next
    ends, number = np.unique(np.sort(edges.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
    middle = len(vertices) + number.reshape(-1, 3)
    a, b, c = faces.T
    ab, bc, ca = middle.T
    four = [(a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca)]
    corners = np.concatenate([np.stack(one, axis=1) for one in four])
    return np.concatenate([vertices, vertices[ends].mean(axis=1)]), corners
