"""The grid behind loose points: neighbours matter where noise is correlated."""

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from logishape.core.errors import InputError

_SAMPLE, _NEIGHBOURS = 30, (30, 300, 3000)
_OFF_GRID = 0.1  # of a step: how far a point may lie from its place on the grid
_MOST_CELLS = 2**27


def lattice_index(points: Float[np.ndarray, "n d"]) -> Int[np.ndarray, "n d"]:
    """Whole-number coordinates of each point on the lattice they lie on, from zero; oblique grids and holes are fine.

    Points that lie on no lattice get the cubic cells, one typical distance between neighbours wide, that hold them.
    """
    points = np.asarray(points, dtype=np.float64)
    tree = KDTree(points)
    steps = _refined(points, _shortest_steps(points, tree))
    index = (points - points[0]) @ np.linalg.inv(steps)
    if np.abs(index - np.round(index)).max() > _OFF_GRID:
        index = (points - points.min(axis=0)) / _typical_distance(points, tree)
    index = np.round(index).astype(np.int64)
    index -= index.min(axis=0)
    if np.prod(index.max(axis=0) + 1.0) > _MOST_CELLS:
        raise InputError(
            f"the voxels are spread over a grid of {(index.max(axis=0) + 1).tolist()} cells, too many to hold; crop "
            "the observation to the object."
        )
    return index


def on_lattice(index: Int[np.ndarray, "n d"], values: Float[np.ndarray, " n"]) -> Float[np.ndarray, "..."]:
    """A dense grid with the sum of the values in each cell, zero where there is no point."""
    shape = tuple(index.max(axis=0) + 1)
    flat = np.ravel_multi_index(tuple(index.T), shape)
    return np.bincount(flat, weights=values, minlength=int(np.prod(shape))).reshape(shape)


def _typical_distance(points: np.ndarray, tree: KDTree) -> float:
    """The median distance to the 2d-th neighbour: one step of a cubic grid, and about that of scattered points."""
    n, d = points.shape
    distance, _ = tree.query(points[_sample(n)], k=min(2 * d + 1, n))
    return float(np.median(distance[:, -1]))


def _refined(points: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The steps by least squares over ever more points: the rounding of a short step adds up along a long grid."""
    away = points - points[np.argmin(np.sum(np.square(points - points.mean(axis=0)), axis=1))]
    away = away[np.argsort(np.sum(np.square(away), axis=1))]
    count = 64
    while True:
        whole = np.round(away[:count] @ np.linalg.inv(steps))
        if np.linalg.matrix_rank(whole) < len(steps):
            return steps
        fitted = np.linalg.lstsq(whole, away[:count], rcond=None)[0]
        if np.linalg.matrix_rank(fitted) < len(steps):
            return steps
        steps = fitted
        if count >= len(away):
            return steps
        count *= 4


def _sample(n: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, _SAMPLE).astype(int))


def _shortest_steps(points: np.ndarray, tree: KDTree) -> np.ndarray:
    """d linearly independent steps between neighbours, the shortest first, as rows; they span the lattice."""
    n, d = points.shape
    rows = _sample(n)
    for count in _NEIGHBOURS:  # slices far apart need more neighbours until one lies on another slice
        _, near = tree.query(points[rows], k=min(count, n))
        steps = (points[near] - points[rows][:, None]).reshape(-1, d)
        steps = steps[np.argsort(np.linalg.norm(steps, axis=1), kind="stable")]
        chosen = _independent(steps)
        if len(chosen) == d:
            return chosen
    raise InputError(
        f"the {n} voxels lie on a line or a plane, not in {d}D space; widen the region, or use kind='observed'."
    )


def _independent(steps: np.ndarray) -> np.ndarray:
    """The first steps, in their order, that are linearly independent."""
    chosen = np.zeros((0, steps.shape[1]))
    tiny = 1e-5 * np.abs(steps).max()
    for step in steps:
        within = np.linalg.pinv(chosen) @ chosen  # the projection onto the steps so far
        # On a lattice the next step leaves the span of the shorter ones by half its length or more.
        if np.linalg.norm(step - step @ within) > max(0.4 * np.linalg.norm(step), tiny):
            chosen = np.vstack([chosen, step])
            if len(chosen) == steps.shape[1]:
                break
    return chosen
