"""Draws from a Gaussian truncated to a box."""

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr, ndtri_exp

_BATCHES = 20
_SWEEPS = 300


def draw_truncated(
    key: jax.Array,
    centre: Float[np.ndarray, " p"],
    covariance: Float[np.ndarray, "p p"],
    box: tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]],
    num_draws: int,
    start: Float[np.ndarray, " p"],
) -> Float[np.ndarray, "s p"]:
    """Exact draws by rejection; where the box keeps too few, a Gibbs sampler with exact conditionals from `start`.

    `start` must lie in the box; `centre` need not.
    """
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
    root = np.linalg.cholesky(covariance)
    kept: list[np.ndarray] = []
    count = 0
    for _ in range(_BATCHES):
        draws = centre + rng.standard_normal((2 * num_draws + 100, centre.size)) @ root.T
        kept.append(draws[np.all((draws >= box[0]) & (draws <= box[1]), axis=1)])
        count += len(kept[-1])
        if count >= num_draws:
            return np.concatenate(kept)[:num_draws]
    x = np.tile(start, (num_draws, 1))
    precision = np.linalg.inv(covariance)
    for _ in range(_SWEEPS):
        _sweep(rng, x, centre, precision, box)
    return x


def _sweep(
    rng: np.random.Generator,
    x: np.ndarray,
    centre: np.ndarray,
    precision: np.ndarray,
    box: tuple[np.ndarray, np.ndarray],
) -> None:
    """Draws each coordinate of every chain in `x`, in place, from its truncated conditional."""
    sd = 1 / np.sqrt(np.diag(precision))
    for k in range(centre.size):
        others = (x - centre) @ precision[k] - (x[:, k] - centre[k]) * precision[k, k]
        middle = centre[k] - others * sd[k] ** 2
        low, high = (box[0][k] - middle) / sd[k], (box[1][k] - middle) / sd[k]
        x[:, k] = np.clip(middle + sd[k] * _standard_truncated(rng, low, high), box[0][k], box[1][k])


def _standard_truncated(rng: np.random.Generator, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Standard normal draws within [low, high], exact far out in either tail: all in logs, mirrored to the left."""
    is_right = low + high > 0
    a, b = np.where(is_right, -high, low), np.where(is_right, -low, high)
    log_a, log_b = log_ndtr(a), log_ndtr(b)
    u = rng.random(low.size)
    # log of (1 - u) Phi(a) + u Phi(b), with Phi(a) <= Phi(b)
    level = log_b + np.log(u + (1 - u) * np.exp(log_a - log_b))
    value = np.clip(ndtri_exp(level), a, b)
    return np.where(is_right, -value, value)
