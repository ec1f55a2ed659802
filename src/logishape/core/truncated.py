"""A Gaussian truncated to a box: draws from it, and its share within the box."""

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr, logsumexp, ndtri_exp

_BATCHES = 20
_SWEEPS = 300
_SHARE_DRAWS = 4096


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
        x[:, k] = np.clip(middle + sd[k] * standard_truncated(rng, low, high), box[0][k], box[1][k])


def standard_truncated(rng: np.random.Generator, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Standard normal draws within [low, high], exact far out in either tail: all in logs, mirrored to the left."""
    is_right = low + high > 0
    a, b = np.where(is_right, -high, low), np.where(is_right, -low, high)
    log_a, log_b = log_ndtr(a), log_ndtr(b)
    u = rng.random(low.size)
    # log of (1 - u) Phi(a) + u Phi(b), with Phi(a) <= Phi(b)
    level = log_b + np.log(u + (1 - u) * np.exp(log_a - log_b))
    value = np.clip(ndtri_exp(level), a, b)
    return np.where(is_right, -value, value)


def log_share_in_box(
    centre: Float[np.ndarray, " p"],
    covariance: Float[np.ndarray, "p p"],
    box: tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]],
) -> float:
    """Log of the Gaussian's share within the box: zero well inside, log 1/2 for one parameter on its bound.

    Sequential conditioning (Genz) in logs, the tightest bound first, so that a box far out in the tail keeps its
    digits; always the same draws, so always the same number.
    """
    sd = np.sqrt(np.diag(covariance))
    lower, upper = (box[0] - centre) / sd, (box[1] - centre) / sd
    if np.all(lower < -8) and np.all(upper > 8):
        return 0.0
    order = np.argsort(-np.maximum(lower, -upper))
    lower, upper = lower[order], upper[order]
    root = np.linalg.cholesky((covariance / np.outer(sd, sd))[np.ix_(order, order)])
    rng, y, log_weight = np.random.default_rng(0), np.zeros((_SHARE_DRAWS, sd.size)), np.zeros(_SHARE_DRAWS)
    for k in range(sd.size):
        a, b = ((edge[k] - y[:, :k] @ root[k, :k]) / root[k, k] for edge in (lower, upper))
        is_right = a + b > 0
        low, high = np.where(is_right, -b, a), np.where(is_right, -a, b)
        log_weight += log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))
        y[:, k] = standard_truncated(rng, a, b)
    return float(logsumexp(log_weight) - np.log(_SHARE_DRAWS))
