"""What correlated noise does to the scores: their covariance, summed over neighbours and freed of the fit's bias."""

import dataclasses
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
    z = scores @ (vectors / np.sqrt(values))
    carries = _carrying(np.sum(np.square(z), axis=1))  # far from the border next to nothing pulls
    z, index = z[carries], index[carries] - index[carries].min(axis=0)
    kernel = _Kernel(index, _REACH * correlation_length)
    summed = np.stack([z.T @ kernel.sum(column) for column in z.T])
    lost = _lost_to_the_fit(z, kernel)
    left, axes = np.linalg.eigh(np.eye(p) - lost)
    scale = (axes / np.sqrt(np.maximum(left, _LEAST_FREEDOM))) @ axes.T
    degrees = max(p**2 / np.trace(lost), _LEAST_DEGREES)
    matrix = root @ scale @ summed @ scale @ root.T * degrees / (degrees - 2)
    return ScoreCovariance((matrix + matrix.T) / 2, float(degrees))


def _carrying(share: np.ndarray) -> np.ndarray:
    """The voxels, in their order, that carry all but a hundred-thousandth of the whole."""
    order = np.argsort(share)
    is_spare = np.cumsum(share[order]) < 1e-5 * share.sum()
    return np.sort(order[~is_spare])


@dataclasses.dataclass(frozen=True)
class _Kernel:
    """Sums over the neighbours of each voxel, with weights exp(-h^2 / (2 bandwidth^2))."""

    index: np.ndarray
    bandwidth: float

    def sum(self, values: np.ndarray) -> np.ndarray:
        """The weighted sum about each voxel, itself included."""
        reach = int(4 * self.bandwidth)
        if reach == 0:
            return values
        weights = np.exp(-np.square(np.arange(-reach, reach + 1) / self.bandwidth) / 2)
        grid = on_lattice(self.index, values)
        for axis in range(grid.ndim):
            grid = correlate1d(grid, weights, axis=axis, mode="constant")
        return grid[tuple(self.index.T)]


def _lost_to_the_fit(z: np.ndarray, kernel: _Kernel) -> np.ndarray:
    """Q: what of white noise, summed with the kernel, a fit of these parameters takes away."""
    p = z.shape[1]
    lost = np.zeros((p, p))
    for b in range(p):
        for c in range(b + 1):
            smooth = kernel.sum(z[:, b] * z[:, c])
            lost[:, c] += z.T @ (z[:, b] * smooth)
            if b != c:
                lost[:, b] += z.T @ (z[:, c] * smooth)
    return (lost + lost.T) / 2
