"""What correlated noise does to the scores: their covariance, summed over neighbours and freed of the fit's bias."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import correlate1d

from logishape.core.lattice import on_lattice

_REACH = 3.5  # bandwidth in correlation lengths: chosen by the coverage study, which is flat from 2.5 to 4
_LEAST_FREEDOM = 0.1  # of a direction: less than this share left by the fit cannot be scaled back
_LEAST_DEGREES = 4.0


class ScoreCovariance(NamedTuple):
    """The covariance of the summed score, and how many independent patches it was estimated from."""

    matrix: Float[np.ndarray, "p p"]
    degrees_of_freedom: float


def score_covariance(
    scores: Float[np.ndarray, "n p"], index: Int[np.ndarray, "n d"], correlation_length: float
) -> ScoreCovariance:
    """B = sum over pairs of K(x_n - x_m) s_n s_m', K a Gaussian of bandwidth 3.5 correlation lengths (voxels).

    At a fit the scores add up to zero, so nearby ones are too small together: along a border of few independent
    patches B would be a third too small. With z the scores in units where sum z z' = 1, white noise would leave
    1 - Q of each direction, Q = sum K(x_n - x_m) z_n (z_n . z_m) z_m': dividing by that removes the bias to first
    order (the spatial form of what HC2 does for regressions). And B is itself estimated: its degrees of freedom,
    nu = p^2 / tr Q, widen it by nu / (nu - 2), the variance of Student's t.
    """
    values, vectors = np.linalg.eigh(scores.T @ scores)
    moves = values > 1e-14 * values[-1]  # a direction that moves no voxel has no score and no covariance
    values, vectors, p = values[moves], vectors[:, moves], int(moves.sum())
    if p == 0:
        return ScoreCovariance(np.zeros((scores.shape[1], scores.shape[1])), np.inf)
    root = vectors * np.sqrt(values)
    grids = [on_lattice(index, column) for column in (scores @ (vectors / np.sqrt(values))).T]
    bandwidth = _REACH * correlation_length
    summed = np.zeros((p, p))
    for a, smooth in enumerate(_smooth(grid, bandwidth) for grid in grids):
        summed[a] = [np.vdot(smooth, grid) for grid in grids]
    lost = _lost_to_the_fit(grids, bandwidth)
    left, axes = np.linalg.eigh(np.eye(p) - lost)
    scale = (axes / np.sqrt(np.maximum(left, _LEAST_FREEDOM))) @ axes.T
    degrees = max(p**2 / np.trace(lost), _LEAST_DEGREES)
    matrix = root @ scale @ summed @ scale @ root.T * degrees / (degrees - 2)
    return ScoreCovariance((matrix + matrix.T) / 2, float(degrees))


def _lost_to_the_fit(grids: list[np.ndarray], bandwidth: float) -> np.ndarray:
    """Q: what of white noise, summed with the kernel, a fit of these parameters takes away."""
    p = len(grids)
    lost = np.zeros((p, p))
    for b in range(p):
        for c in range(b + 1):
            smooth = _smooth(grids[b] * grids[c], bandwidth)
            for a in range(p):
                lost[a, c] += np.vdot(grids[a] * grids[b], smooth)
                if b != c:
                    lost[a, b] += np.vdot(grids[a] * grids[c], smooth)
    return (lost + lost.T) / 2


def _smooth(grid: np.ndarray, bandwidth: float) -> np.ndarray:
    """The grid summed over neighbours with weights exp(-h^2 / (2 bandwidth^2)), zero beyond its border."""
    reach = int(4 * bandwidth)
    if reach == 0:
        return grid
    weights = np.exp(-np.square(np.arange(-reach, reach + 1) / bandwidth) / 2)
    for axis in range(grid.ndim):
        grid = correlate1d(grid, weights, axis=axis, mode="constant")
    return grid
