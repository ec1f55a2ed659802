"""Draws from a Gaussian truncated to a box."""

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

_BATCHES = 40
_BURN_IN, _THINNING = 50, 5


def draw_truncated(
    key: jax.Array,
    mean: Float[np.ndarray, " p"],
    covariance: Float[np.ndarray, "p p"],
    box: tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]],
    num_draws: int,
) -> Float[np.ndarray, "s p"]:
    """Exact draws by rejection; where the box keeps too few, a Gibbs sampler with exact conditionals.

    The mean must lie in the box, which a fit's always does.
    """
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
    root = np.linalg.cholesky(covariance)
    kept: list[np.ndarray] = []
    count = 0
    for _ in range(_BATCHES):
        draws = mean + rng.standard_normal((2 * num_draws + 100, mean.size)) @ root.T
        kept.append(draws[np.all((draws >= box[0]) & (draws <= box[1]), axis=1)])
        count += len(kept[-1])
        if count >= num_draws:
            return np.concatenate(kept)[:num_draws]
    return _gibbs(rng, mean, covariance, box, num_draws)


def _gibbs(
    rng: np.random.Generator,
    mean: np.ndarray,
    covariance: np.ndarray,
    box: tuple[np.ndarray, np.ndarray],
    num_draws: int,
) -> np.ndarray:
    """One chain per draw, all advanced together: each coordinate from its truncated conditional in turn."""
    precision = np.linalg.inv(covariance)
    sd = 1 / np.sqrt(np.diag(precision))
    x = np.tile(mean, (num_draws, 1))
    for _ in range(_BURN_IN * _THINNING):
        for k in range(mean.size):
            others = (x - mean) @ precision[k] - (x[:, k] - mean[k]) * precision[k, k]
            centre = mean[k] - others * sd[k] ** 2
            low, high = ndtr((box[0][k] - centre) / sd[k]), ndtr((box[1][k] - centre) / sd[k])
            level = low + (high - low) * rng.random(num_draws)
            value = centre + sd[k] * ndtri(np.clip(level, 1e-300, 1 - 1e-16))
            x[:, k] = np.clip(value, box[0][k], box[1][k])
    return x
