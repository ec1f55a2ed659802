"""What Gaussian and Student mixtures share: components, pseudo-counts and the closed-form updates."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray, as_double, as_vector
from logishape.core.errors import InputError

SCALE_FLOOR = 1e-3  # of the starting scale: a constant image must not drive a scale to zero
_LOG_FLOOR = 1e-30  # an empty component keeps a finite log weight
Vector = Float[AnyArray, " m"]


class Components(eqx.Module):
    """Weights (summing to one), means and scales of a mixture, in the units of the image."""

    weights: Vector
    means: Vector
    scales: Vector

    @property
    def log_weights(self) -> Vector:
        """Log weights, finite for empty components."""
        return jnp.log(jnp.maximum(self.weights, _LOG_FLOOR))

    def free_parameters(self) -> Float[AnyArray, " k"]:
        """Log weights (unless there is one component), means and log scales, one after the other."""
        weights = [self.log_weights] if self.means.shape[0] > 1 else []
        return jnp.concatenate([*weights, jnp.asarray(self.means), jnp.log(self.scales)])

    def with_free_parameters(self, values: Float[AnyArray, " k"]) -> "Components":
        """Components with these free parameters; adding a number to all log weights changes nothing."""
        *weights, means, log_scales = jnp.split(values, values.shape[0] // self.means.shape[0])
        return Components(jax.nn.softmax(weights[0]) if weights else jnp.ones(1), means, jnp.exp(log_scales))


class PseudoCounts(eqx.Module):
    """A prior worth so many voxels, for each component, already seen at the mixture's starting values.

    log p = sum_m  c_w log pi - c_s [log s + s0^2/(2 s^2)] - c_m (mu - mu0)^2/(2 s^2), and for Student's t
    + c_d [h(nu) - h'(nu0) nu] with h(nu) = (nu/2) log(nu/2) - log Gamma(nu/2). Means, scales and degrees of freedom
    are drawn to their starting values, weights to shares in proportion to c_w; `worth` makes those the
    starting weights. Zero counts are maximum likelihood.
    """

    weights: Float[AnyArray, "..."] = eqx.field(converter=as_double, default=0.0)
    means: Float[AnyArray, "..."] = eqx.field(converter=as_double, default=0.0)
    scales: Float[AnyArray, "..."] = eqx.field(converter=as_double, default=0.0)
    dofs: Float[AnyArray, "..."] = eqx.field(converter=as_double, default=0.0)

    def __check_init__(self) -> None:
        for leaf in jax.tree.leaves(self):
            if isinstance(leaf, np.ndarray) and not (np.all(np.isfinite(leaf)) and np.all(leaf >= 0)):
                raise InputError(
                    f"pseudo-counts must be finite and not negative but are {leaf.tolist()}; zero is no prior."
                )

    @classmethod
    def worth(cls, num_voxels: float, weights: Any) -> "PseudoCounts":
        """So many voxels in all, spread over the components by their weights."""
        counts = num_voxels * as_double(weights) / np.sum(weights)
        return cls(counts, counts, counts, counts)

    def sized(self, size: int) -> "PseudoCounts":
        """The same counts with one number for each of `size` components."""
        return jax.tree.map(lambda leaf: as_vector(leaf, size, "pseudo-counts"), self)


class Sums(eqx.Module):
    """Sums over voxels for each component: tau, tau w, tau w (I - mu), tau w (I - mu)^2."""

    count: Vector
    weight: Vector
    offset: Vector
    square: Vector


def make_components(weights: Any, means: Any, scales: Any) -> Components:
    """Checked components; weights and scales may be one number for all, weights are normalised."""
    means = np.atleast_1d(as_double(means))
    if means.ndim != 1 or not np.all(np.isfinite(means)):
        raise InputError(f"a mixture needs one finite mean a component but has {means.tolist()}; check its start.")
    weights = as_vector(weights, means.size, "mixture weights")
    scales = as_vector(scales, means.size, "mixture scales")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or weights.sum() <= 0:
        raise InputError(
            f"mixture weights must be finite, not negative and not all zero but are {weights.tolist()}; try 1."
        )
    if not np.all(np.isfinite(scales)) or np.any(scales <= 0):
        raise InputError(f"mixture scales must be positive but are {scales.tolist()}; use a rough noise level.")
    return Components(weights / weights.sum(), means, scales)


def sum_over_voxels(tau: AnyArray, w: Any, z: AnyArray, scales: AnyArray) -> Sums:
    """The sums of one batch of voxels from responsibilities, precisions and standardised intensities."""

    def add(term: Any) -> jax.Array:
        return jnp.sum(tau * term, axis=0, dtype=jnp.result_type(float))

    return Sums(add(1.0), add(w), add(w * z) * scales, add(w * z * z) * jnp.square(scales))


def maximise(now: Components, start: Components, counts: PseudoCounts, sums: Sums) -> Components:
    """Weights, means and scales at the maximum of the expected log density plus the pseudo-counts' term.

    Components that no voxel and no pseudo-count supports stay as they are.
    """
    n = sums.count + counts.weights
    weights = jnp.where(jnp.sum(n) > 0, n / jnp.where(jnp.sum(n) > 0, jnp.sum(n), 1.0), now.weights)
    # Sums are about the current mean, so that nothing cancels when the mean is far from zero.
    support = sums.weight + counts.means
    shift = _ratio(sums.offset + counts.means * (start.means - now.means), support, 0.0)
    means = now.means + shift
    square = sums.square - 2 * shift * sums.offset + jnp.square(shift) * sums.weight
    square = square + counts.scales * jnp.square(start.scales) + counts.means * jnp.square(means - start.means)
    variance = _ratio(jnp.maximum(square, 0.0), sums.count + counts.scales, jnp.square(now.scales))
    scales = jnp.maximum(jnp.sqrt(variance), SCALE_FLOOR * start.scales)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(float)), Components(weights, means, scales))


def log_prior(now: Components, start: Components, counts: PseudoCounts) -> Float[jax.Array, ""]:
    """The pseudo-counts' log density of weights, means and scales, up to a constant."""
    variance = jnp.square(now.scales)
    return jnp.sum(
        counts.weights * now.log_weights
        - counts.scales * (jnp.log(now.scales) + jnp.square(start.scales) / (2 * variance))
        - counts.means * jnp.square(now.means - start.means) / (2 * variance)
    )


def _ratio(numerator: AnyArray, denominator: AnyArray, otherwise: Any) -> jax.Array:
    """The ratio where the denominator counts for something, `otherwise` elsewhere."""
    has_support = denominator > 1e-12
    return jnp.where(has_support, numerator / jnp.where(has_support, denominator, 1.0), otherwise)
