"""The closest point of a face: a segment in the plane, a triangle in space.

One formula for host and device: these functions use the arithmetic and the namespace of what they are given,
NumPy or JAX. Vectors have their components first, `(d, ...)`, and the rest broadcasts: arithmetic on whole
components is what both NumPy and the compiler turn into vector code.
"""

from typing import Any, NamedTuple

from logishape.core.arrays import AnyArray


class FaceTable(NamedTuple):
    """What the closest point needs of each face and of no point.

    `corners` (c, d, ...), `edges` from each corner to the next, one over their squared lengths, and in space the
    gradients of the barycentric weights, `weight_slopes` (3, 3, ...). Zero where an edge or a face has no extent.
    """

    corners: Any
    edges: Any
    inverse_lengths: Any
    weight_slopes: Any


def dot(a: Any, b: Any) -> Any:
    """The inner product over the first axis."""
    return sum(a[i] * b[i] for i in range(1, len(a))) + a[0] * b[0]


def cross(a: Any, b: Any) -> Any:
    """The three components of a cross product."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def face_normal(edges: Any) -> Any:
    """Components of the outward normal, as long as the segment or as twice the triangle's area.

    Outward for polygons that run counter-clockwise and for triangles that do so seen from outside.
    """
    return [edges[0][1], -edges[0][0]] if len(edges[0]) == 2 else cross(edges[0], edges[1])


def face_table(corners: AnyArray) -> FaceTable:
    """The table of faces with these corners, components first."""
    xp = corners.__array_namespace__()
    num_edges = 1 if len(corners) == 2 else 3
    edges = [corners[(k + 1) % len(corners)] - corners[k] for k in range(num_edges)]
    lengths = xp.stack([safe_inverse(dot(edge, edge)) for edge in edges])
    if num_edges == 1:
        return FaceTable(corners, xp.stack(edges), lengths, None)
    normal = face_normal(edges)
    inverse_area = safe_inverse(dot(normal, normal))
    # The weight of a corner grows from zero on the edge that starts at the next corner, towards the inside.
    slopes = [xp.stack(cross(normal, edges[(k + 1) % 3])) * inverse_area for k in range(3)]
    return FaceTable(corners, xp.stack(edges), lengths, xp.stack(slopes))


def closest_on_face(table: FaceTable, points: AnyArray) -> tuple[Any, list[Any]]:
    """The squared distance from each point to its face, and the weights of the closest point's corners.

    Inside the triangle where all three weights of the projection are positive, else the best of the edges. A
    weight of exactly zero says that its corner has no part in the closest point. Faces of no extent are harmless:
    they count as their longest edge, or as a point.
    """
    xp = points.__array_namespace__()
    num_corners, zero = len(table.corners), xp.zeros_like(points[0])
    best: Any = None
    for k in range(len(table.edges)):
        offset = [points[i] - table.corners[k][i] for i in range(len(points))]
        along = xp.clip(dot(offset, table.edges[k]) * table.inverse_lengths[k], 0.0, 1.0)
        rest = [offset[i] - along * table.edges[k][i] for i in range(len(points))]
        weights = [zero] * num_corners
        weights[k], weights[(k + 1) % num_corners] = 1 - along, along
        best = _nearer(best, (dot(rest, rest), weights), xp)
    if table.weight_slopes is None:
        return best
    weights = [_inner_weight(table, points, k) for k in range(3)]
    is_inside = (weights[0] > 0) & (weights[1] > 0) & (weights[2] > 0)
    offset = [points[i] - table.corners[0][i] for i in range(3)]
    rest = [offset[i] - weights[1] * table.edges[0][i] + weights[2] * table.edges[2][i] for i in range(3)]
    chosen = [xp.where(is_inside, new, old) for new, old in zip(weights, best[1], strict=True)]
    return xp.where(is_inside, dot(rest, rest), best[0]), chosen


def _inner_weight(table: FaceTable, points: Any, k: int) -> Any:
    """The barycentric weight of corner k of the projection on the triangle's plane."""
    start = table.corners[(k + 1) % 3]
    return dot([points[i] - start[i] for i in range(3)], table.weight_slopes[k])


def _nearer(old: Any, new: Any, xp: Any) -> Any:
    """The closer one of two closest points."""
    if old is None:
        return new
    is_nearer = new[0] < old[0]
    weights = [xp.where(is_nearer, b, a) for a, b in zip(old[1], new[1], strict=True)]
    return xp.where(is_nearer, new[0], old[0]), weights


def safe_inverse(value: Any) -> Any:
    """One over the value, zero where it is zero, and a derivative there that is no NaN."""
    xp = value.__array_namespace__()
    is_zero = value == 0
    return xp.where(is_zero, 0.0, 1 / xp.where(is_zero, 1.0, value))
