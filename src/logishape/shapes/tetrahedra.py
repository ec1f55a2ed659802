"""Marching tetrahedra: the zero level of values on a lattice as triangles whose corners lie on lattice edges.

NumPy alone, since it runs on the host while compiled code waits for it.
"""

import itertools

import numpy as np
from jaxtyping import Float, Int

_NODES = np.stack(np.unravel_index(np.arange(8), (2, 2, 2)), axis=1)  # of a cube


def _paths() -> tuple[np.ndarray, np.ndarray]:
    """The six tetrahedra of a cube by their nodes, and whether each is a mirrored one.

    Each walks from the first node to the last along the axes in one order; neighbouring cubes then agree on how the
    square between them is divided.
    """
    paths, mirrored = [], []
    for order in itertools.permutations(range(3)):
        steps = np.cumsum([np.zeros(3, int), *np.eye(3, dtype=int)[list(order)]], axis=0)
        paths.append(np.ravel_multi_index(tuple(steps.T), (2, 2, 2)))
        mirrored.append(np.linalg.det(np.diff(steps, axis=0)) < 0)
    return np.array(paths), np.array(mirrored)


def _triangles_of(inside: tuple[bool, ...]) -> np.ndarray:
    """Triangles of a tetrahedron that is not mirrored; each corner is an edge (node inside, node outside)."""
    inner, outer = ([k for k in range(4) if inside[k] == wanted] for wanted in (True, False))
    edges = list(itertools.product(inner, outer))
    if len(edges) == 4:  # a quadrilateral, round which the edges run 0, 1, 3, 2
        found = np.array([[edges[0], edges[1], edges[3]], [edges[0], edges[3], edges[2]]])
    else:
        found = np.array([edges] if edges else []).reshape(-1, 3, 2)
    nodes = np.cumsum([np.zeros(3), *np.eye(3)], axis=0)
    for k, triangle in enumerate(found):
        a, b, c = nodes[triangle].mean(axis=1)
        outward = nodes[outer].mean(axis=0) - nodes[inner].mean(axis=0)
        if np.cross(b - a, c - a) @ outward < 0:
            found[k] = triangle[::-1]
    return found


_PATHS, _IS_MIRRORED = _paths()
_CASES = [_triangles_of(inside) for inside in itertools.product((False, True), repeat=4)]


def zero_level(values: Float[np.ndarray, "i j k"]) -> Int[np.ndarray, "f 3 2"]:
    """The triangles between positive values and others: each corner is an edge, by its positive and its other node.

    Nodes are numbered as in `values.ravel()`. Triangles run counter-clockwise seen from where values are not
    positive. The surface is closed but where it leaves the lattice.
    """
    is_inside: np.ndarray = np.greater(values, 0)
    blocks = [is_inside[tuple(slice(o, n - 1 + o) for o, n in zip(at, values.shape, strict=True))] for at in _NODES]
    count = np.stack(blocks).sum(axis=0)
    cells: np.ndarray = np.argwhere((count > 0) & (count < 8))
    nodes = np.asarray(np.ravel_multi_index(tuple((cells[:, None] + _NODES).transpose(2, 0, 1)), values.shape))
    flags, triangles = is_inside.ravel(), []
    for path, is_mirrored in zip(_PATHS, _IS_MIRRORED, strict=True):
        corners: np.ndarray = nodes[:, path]
        case = np.asarray(flags[corners] * [8, 4, 2, 1]).sum(axis=1)
        for number, local in enumerate(_CASES):
            rows = corners[case == number]
            triangles += [rows[:, one[::-1] if is_mirrored else one] for one in local]
    return np.concatenate(triangles).astype(np.int64)
