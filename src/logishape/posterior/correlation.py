"""Correlated noise: how far it reaches, and what share of the voxels counts as independent."""

import dataclasses

import equinox as eqx
import numpy as np
from jaxtyping import Float
from scipy import fft

from logishape.core.arrays import double_precision, to_host
from logishape.core.lattice import lattice_index, on_lattice
from logishape.core.observation import Observation
from logishape.inference.band import padded_size
from logishape.inference.checks import check_state
from logishape.inference.model import Model, State
from logishape.posterior.information import VoxelScores, voxel_scores

_LONGEST_LAG = 12  # voxels: beyond it structure of the image, not noise, is what correlates


@dataclasses.dataclass(frozen=True)
class NoiseCorrelation:
    """The autocorrelation of the residuals on the image's own grid.

    lags, values: mean correlation over lags of about so many voxels, up to the first that is not above chance.
    effective_fraction: kappa = min(1, 1 / sum over all lags), the share of voxels that counts as independent.
    length: voxels; the sum is (1 + 4 pi length^2)^(d/2), which is one for white noise and close to that of white
        noise smoothed by a Gaussian of this SD.
    """

    lags: Float[np.ndarray, " t"]
    values: Float[np.ndarray, " t"]
    effective_fraction: float
    length: float


def noise_correlation(model: Model, observation: Observation, state: State) -> NoiseCorrelation:
    """How the noise of this image is correlated, from its residuals at the fitted state.

    A residual is d log p(I) / d I: the distance to the mean over the variance for a Gaussian, weighted by the
    probability of each component for a mixture, so that it needs nothing of an appearance but its density.
    """
    scores = host_scores(model, observation, state)
    in_use = np.asarray(observation.weights) > 0
    index = lattice_index(np.asarray(observation.points)[in_use])
    return correlation_on_lattice(index, np.asarray(scores.residual, np.float64)[in_use])


def host_scores(model: Model, observation: Observation, state: State) -> VoxelScores:
    """Scores of the observation's own voxels as NumPy arrays."""
    n = observation.num_voxels
    observation = observation.padded(padded_size(n))
    check_state(model, observation, state)
    with double_precision():
        scores = to_host(eqx.filter_jit(voxel_scores)(model, observation, state))
    return VoxelScores(*(rows[:n] for rows in scores))


def correlation_on_lattice(index: np.ndarray, residual: np.ndarray) -> NoiseCorrelation:
    """The correlogram by FFT, each lag divided by its own number of pairs, summed shell by shell."""
    residual = residual - residual.mean()
    top = np.square(residual).mean()
    d = index.shape[1]
    if top <= 0:  # a constant image has no noise to correlate
        return NoiseCorrelation(np.zeros(1), np.ones(1), 1.0, 0.0)
    products = _autocorrelate(on_lattice(index, residual))
    pairs = np.maximum(np.round(_autocorrelate(on_lattice(index, np.ones(len(index))))), 0)
    lag = np.sqrt(sum(np.square(axis) for axis in np.indices(pairs.shape) - _LONGEST_LAG))
    lags, values, whole = [0.0], [1.0], 1.0
    for radius in range(1, _LONGEST_LAG + 1):
        shell = (lag > radius - 0.5) & (lag <= radius + 0.5) & (pairs > 0)
        count = pairs[shell].sum() / 2  # each pair was counted from both its ends
        mean = products[shell].sum() / (2 * count) / top if count else 0.0
        if mean < 2 * np.sqrt(whole / max(count, 1)):  # chance, counting pairs as far as they are independent
            break
        lags.append(float(np.average(lag[shell], weights=pairs[shell])))
        values.append(float(mean))
        whole += float(np.sum(products[shell] / pairs[shell]) / top)
    length = np.sqrt(max(whole ** (2 / d) - 1, 0.0) / (4 * np.pi))
    return NoiseCorrelation(np.array(lags), np.array(values), float(min(1.0, 1 / whole)), float(length))


def _autocorrelate(grid: np.ndarray) -> np.ndarray:
    """Sums of products at all lags up to the longest, the zero lag in the middle."""
    shape = [int(fft.next_fast_len(n + _LONGEST_LAG, real=True) or 1) for n in grid.shape]
    power = np.square(np.abs(np.asarray(fft.rfftn(grid, shape))))
    full = np.asarray(fft.irfftn(power, shape))
    reach = np.arange(-_LONGEST_LAG, _LONGEST_LAG + 1)
    return full[np.ix_(*(reach % n for n in shape))]
