"""What Markov chains are worth: how many independent draws, and whether the chains agree."""

import numpy as np
from jaxtyping import Float
from scipy import fft

from logishape.core.errors import InputError


def effective_sample_size(draws: Float[np.ndarray, "c s p"]) -> Float[np.ndarray, " p"]:
    """How many independent draws would know each mean as well as these `c` chains of `s` draws.

    c s / tau, tau = -1 + 2 sum of (rho_2k + rho_2k+1), rho the autocorrelation of all chains together. Sums of
    neighbouring lags are positive and fall for a reversible chain (Geyer): the sum ends where they are not positive,
    and none counts for more than those before. A parameter that does not move is worth nothing.
    """
    _check(draws)
    num_chains, size, _ = draws.shape
    centred = draws - draws.mean(axis=1, keepdims=True)
    power = np.abs(np.asarray(fft.rfft(centred, 2 * size, axis=1))) ** 2
    covariance = np.asarray(fft.irfft(power, 2 * size, axis=1))[:, :size].mean(axis=0) / size
    variance = covariance[0] + (draws.mean(axis=1).var(axis=0, ddof=1) if num_chains > 1 else 0.0)
    moves = variance > 0
    within = covariance[0] * size / (size - 1)
    rho = 1 - np.divide(within - covariance, variance, out=np.ones_like(covariance), where=moves)
    rho[0] = 1.0
    pairs = rho[: size - size % 2].reshape(-1, 2, rho.shape[1]).sum(axis=1)
    counts = np.cumprod(pairs > 0, axis=0) > 0
    falling = np.minimum.accumulate(np.where(counts, pairs, 0.0), axis=0)
    tau = np.maximum(2 * falling.sum(axis=0) - 1, 1 / np.log10(num_chains * size))  # as Stan bounds it
    return np.where(moves, num_chains * size / tau, 0.0)


def split_r_hat(draws: Float[np.ndarray, "c s p"]) -> Float[np.ndarray, " p"]:
    """The SD of all draws over that within half chains (Gelman): one where chains have met, at most 1.01 or so.

    Each chain counts as two, its first and second half, so that a chain that still wanders disagrees with itself.
    """
    _check(draws)
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = half * halves.mean(axis=1).var(axis=0, ddof=1)
    moves = within > 0
    ratio = np.divide(between, within, out=np.zeros_like(within), where=moves)
    return np.where(moves, np.sqrt((ratio + half - 1) / half), np.where(between > 0, np.inf, np.nan))


def _check(draws: np.ndarray) -> None:
    if draws.ndim != 3 or draws.shape[1] < 4 or not np.all(np.isfinite(draws)):
        raise InputError(
            f"expected chains of at least four draws each, (chains, draws, parameters), all finite, but found shape "
            f"{draws.shape}; draw more, or stack the chains."
        )
