"""Where a mesh crosses itself: an edge that pierces a face with which it shares no vertex."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import KDTree

_FACES_PER_PASS = 1024
_ROUNDING = 1e-13  # of contents, relative to the mesh's


def find_crossing(
    vertices: Float[np.ndarray, "v d"], faces: Int[np.ndarray, "f d"]
) -> Float[np.ndarray, " d"] | None:
    """A place (mm) where the mesh crosses itself; None if it does not.

    Faces that only touch, or overlap within one plane, are not found.
    """
    slack = _ROUNDING * np.ptp(vertices, axis=0).max() ** faces.shape[1]
    num_edges = 1 if faces.shape[1] == 2 else 3
    for one, other in _near_pairs(vertices[faces]):
        for k in range(num_edges):
            edge = faces[one][:, [k, (k + 1) % faces.shape[1]]]
            is_apart = ~np.any(edge[:, :, None] == faces[other][:, None, :], axis=(1, 2))
            edge, target = edge[is_apart], faces[other][is_apart]
            is_pierced = _pierces(vertices[edge], vertices[target], slack)
            if np.any(is_pierced):
                return vertices[target[is_pierced][0]].mean(axis=0)
    return None


def _near_pairs(corners: Float[np.ndarray, "f d d"]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of faces that could meet, each pair both ways: their centroids are within the sum of their radii."""
    centroids = corners.mean(axis=1)
    radii = np.linalg.norm(corners - centroids[:, None], axis=-1).max(axis=1)
    tree = KDTree(centroids)
    for start in range(0, len(corners), _FACES_PER_PASS):
        some = np.arange(start, min(start + _FACES_PER_PASS, len(corners)))
        lists = tree.query_ball_point(centroids[some], radii[some] + radii.max())
        one, other = np.repeat(some, [len(found) for found in lists]), np.concatenate(lists).astype(int)
        apart = np.linalg.norm(centroids[one] - centroids[other], axis=1)
        keep = (one != other) & (apart <= radii[one] + radii[other])
        yield one[keep], other[keep]


def _pierces(
    edge: Float[np.ndarray, "n 2 d"], face: Float[np.ndarray, "n d d"], slack: float
) -> Bool[np.ndarray, " n"]:
    """Whether each edge passes through its face, by the signs of the simplices they span.

    Both ends must be clear of the face's plane, so that neighbours within one plane do not count; the border of
    the face does count, so that edges that meet edges are found.
    """
    start, end = edge[:, 0], edge[:, 1]
    heights = np.array([_content(point, face) for point in (start, end)])
    crosses = (heights.min(axis=0) < -slack) & (heights.max(axis=0) > slack)
    if face.shape[1] == 2:
        around = np.array([_content(face[:, 0], edge), -_content(face[:, 1], edge)])
    else:
        corners = [np.stack([end, face[:, k], face[:, (k + 1) % 3]], axis=1) for k in range(3)]
        around = np.array([_content(start, three) for three in corners])
    return crosses & (np.all(around >= -slack, axis=0) | np.all(around <= slack, axis=0))


def _content(point: Float[np.ndarray, "n d"], corners: Float[np.ndarray, "n d d"]) -> Float[np.ndarray, " n"]:
    """The signed content of the simplex of a point and d corners, up to a factor."""
    return np.linalg.det(corners - point[:, None])
