"""How far a mask's border lies from where the image itself has one: quality without a truth.

After Audelan and Delingette: Student mixtures of the intensities inside and outside the mask, in a band around its
border, say what each voxel looks like; a smooth field of log odds turns that into a mask of the image's own, and the
average distance from one border to the other is the error.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage
from scipy.special import expit, logit

from logishape.appearance import StudentMixture
from logishape.core.arrays import AnyArray, double_precision
from logishape.core.errors import InputError
from logishape.metrics.masks import as_mask
from logishape.metrics.surface_distance import boundary, surface_distances

NUM_COMPONENTS, NUM_BINS = 7, 256
BAND_MM = 1.2
_EM_STEPS, _FIELD_STEPS, _SETTLED = 60, 100, 1e-3
Pairs = list[tuple[tuple[slice, ...], tuple[slice, ...], np.ndarray]]
_FLOOR = 1e-6  # of the probabilities that intensities give: log odds stay finite


def average_surface_error(
    image: Float[np.ndarray, "x y z"], mask: Any, axes: Any = 1.0, region: Any = None, band_mm: float = BAND_MM
) -> float | None:
    """Mean distance (mm) from the mask's border to that of the image's own mask in the band around it.

    `axes` is as in `surface_distances`. What lies outside `region` is unknown: it is not looked at, and faces that
    it cuts are no border. None if either mask has no border: there is nothing to measure.
    """
    inside = as_mask(mask, "the mask")
    if inside.shape != np.shape(image):
        raise InputError(f"the mask has shape {inside.shape} but the image {np.shape(image)}; resample one of them.")
    allowed = np.ones(inside.shape, bool) if region is None else as_mask(region, "the region")
    band = near_border(inside, allowed, axes, band_mm)
    if not (band & inside).any() or not (band & ~inside).any():
        return None
    seen = np.zeros(inside.shape)
    values = np.asarray(image, np.float64)[band]
    seen[band] = inside_probability(values, inside[band])
    own = np.where(band, smooth_labels(seen, band) >= 0.5, inside)
    there = surface_distances(inside, own, axes, allowed).there
    return float(there.mean()) if there.size else None


def near_border(
    mask: Bool[np.ndarray, "x y z"], region: Bool[np.ndarray, "x y z"], axes: Any, band_mm: float
) -> Bool[np.ndarray, "x y z"]:
    """The voxels of the region within a distance of the mask's border."""
    steps = np.asarray(axes, np.float64)
    spacing = np.linalg.norm(steps, axis=0) if steps.ndim == 2 else np.broadcast_to(steps, mask.ndim)
    edge = boundary(mask, region)
    if not edge.any():
        return np.zeros(mask.shape, bool)
    return region & (np.asarray(ndimage.distance_transform_edt(~edge, sampling=spacing)) <= band_mm)


def inside_probability(values: Float[np.ndarray, " n"], is_inside: Bool[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """p1 / (p0 + p1) of each value, with a Student mixture of seven components for each side.

    The mixtures see a histogram: the same number of bins for every image, and one compilation.
    """
    low, high = np.percentile(values, [0.1, 99.9])
    edges = np.linspace(low, max(high, low + 1e-6), NUM_BINS + 1)
    middles = 0.5 * (edges[1:] + edges[:-1])
    clipped = np.clip(values, low, edges[-1])
    with double_precision():
        logs = [_fitted_log_prob(middles, np.histogram(clipped[side], edges)[0]) for side in (is_inside, ~is_inside)]
    return np.interp(clipped, middles, expit(logs[0] - logs[1]))


def _fitted_log_prob(middles: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Log density at the bins' middles of the mixture that EM fits to the counts."""
    share = (np.cumsum(counts) - 0.5 * counts) / counts.sum()
    means = np.interp((np.arange(NUM_COMPONENTS) + 0.5) / NUM_COMPONENTS, share, middles)
    spread = np.sqrt(np.average((middles - np.average(middles, weights=counts)) ** 2, weights=counts))
    scale = max(float(spread) / 3, 2 * (middles[1] - middles[0]))
    start = StudentMixture(np.ones(NUM_COMPONENTS), means, scale, 10.0)
    return np.asarray(_run_em(start, jnp.asarray(middles), jnp.asarray(counts, float)))


@eqx.filter_jit
def _run_em(start: StudentMixture, middles: Float[AnyArray, " n"], counts: Float[AnyArray, " n"]) -> jax.Array:
    begin = jax.tree.map(jnp.asarray, start)
    found = jax.lax.fori_loop(0, _EM_STEPS, lambda _, mixture: mixture.update(middles, counts), begin)
    return found.log_prob(middles)


def smooth_labels(
    probability: Float[np.ndarray, "x y z"], domain: Bool[np.ndarray, "x y z"]
) -> Float[np.ndarray, "x y z"]:
    """Posterior probabilities r of being inside, smoothed by a Gaussian field of log odds; zero outside the domain.

    p(W) is proportional to exp(-alpha/4 sum (W+ - W-)^2) over pairs two voxels apart along each axis, p(Z = 1 | W) =
    sigmoid(W), bounded below by Jaakkola and Jordan's Gaussian; r, W and alpha are updated in turn until r settles.
    """
    odds = logit(np.clip(probability, _FLOOR, 1 - _FLOOR))
    pairs = [_pairs(domain, axis) for axis in range(domain.ndim)]
    count = _over_pairs(np.ones(domain.shape), pairs)
    field, variance, alpha = np.zeros(domain.shape), np.where(domain, 1.0, 0.0), 1.0
    labels = np.where(domain, expit(odds), 0.0)
    for _ in range(_FIELD_STEPS):
        field, variance = update_field(labels, field, variance, alpha, pairs, count)
        field, variance = np.where(domain, field, 0.0), np.where(domain, variance, 0.0)
        alpha = 1 / max(_roughness(field, variance, pairs) / (2 * np.count_nonzero(domain)), 1e-9)
        before, labels = labels, np.where(domain, expit(odds + field), 0.0)
        if np.abs(labels - before).max() < _SETTLED:
            break
    return labels


def update_field(
    labels: np.ndarray, field: np.ndarray, variance: np.ndarray, alpha: float, pairs: Pairs, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each W given its neighbours' means: one step of mean field.

    s = 1/(2 lam + alpha nb/2), w = s [(r - 1/2) + alpha/2 sum_nb w], lam = tanh(xi/2)/(4 xi), xi = sqrt(s + w^2).
    """
    xi = np.sqrt(np.maximum(variance + field**2, 1e-12))
    bound = np.tanh(xi / 2) / (4 * xi)
    precision = 2 * bound + alpha * count / 2
    return (labels - 0.5 + alpha / 2 * _over_pairs(field, pairs)) / precision, 1 / precision


def _pairs(domain: np.ndarray, axis: int) -> tuple[tuple[slice, ...], tuple[slice, ...], np.ndarray]:
    """Where the voxels two apart along an axis lie, and which of these pairs are in the domain."""
    first = tuple(slice(None, -2) if k == axis else slice(None) for k in range(domain.ndim))
    second = tuple(slice(2, None) if k == axis else slice(None) for k in range(domain.ndim))
    return first, second, domain[first] & domain[second]


def _over_pairs(values: np.ndarray, pairs: Pairs) -> np.ndarray:
    """The sum over each voxel's neighbours."""
    total = np.zeros(values.shape)
    for first, second, is_pair in pairs:
        total[first] += np.where(is_pair, values[second], 0)
        total[second] += np.where(is_pair, values[first], 0)
    return total


def _roughness(field: np.ndarray, variance: np.ndarray, pairs: Pairs) -> float:
    """The sum over pairs of (w+ - w-)^2 + s+ + s-."""
    return sum(
        float(np.sum(((field[a] - field[b]) ** 2 + variance[a] + variance[b])[is_pair])) for a, b, is_pair in pairs
    )
