"""Gaussian mixtures."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Float

from logishape.appearance import mixture
from logishape.appearance.base import AbstractAppearance
from logishape.appearance.mixture import Components, PseudoCounts, Sums
from logishape.core.arrays import AnyArray, like, over_chunks


class GaussianMixture(AbstractAppearance):
    """A mixture of Gaussians; with `counts` its updates are MAP, otherwise maximum likelihood."""

    components: Components
    start: Components
    counts: PseudoCounts

    def __init__(self, weights: Any, means: Any, scales: Any, counts: PseudoCounts | None = None):
        self.start = self.components = mixture.make_components(weights, means, scales)
        self.counts = (PseudoCounts() if counts is None else counts).sized(self.start.means.size)

    @property
    def is_fixed(self) -> bool:
        """False: it learns."""
        return False

    def log_prob(self, intensity: Float[AnyArray, " n"]) -> Float[jax.Array, " n"]:
        """log sum_m pi_m N(I | mu_m, sigma_m^2)."""
        return logsumexp(self._log_joint(intensity)[0], axis=-1)

    def log_prior(self) -> Float[AnyArray, ""]:
        """The pseudo-counts' log density, up to a constant; see `PseudoCounts`."""
        return mixture.log_prior(self.components, self.start, self.counts)

    def update(self, intensity: Float[AnyArray, " n"], weight: Float[AnyArray, " n"]) -> "GaussianMixture":
        """One EM step; every maximum is exact, so the objective cannot fall."""
        sums = over_chunks(self._sums, (intensity, weight), reduce=True)
        new = mixture.maximise(self.components, self.start, self.counts, sums)
        return eqx.tree_at(lambda m: m.components, self, new)

    def free_parameters(self) -> Float[AnyArray, " k"]:
        """Those of the components."""
        return self.components.free_parameters()

    def with_free_parameters(self, values: Float[AnyArray, " k"]) -> "GaussianMixture":
        """The same mixture with these free parameters."""
        return eqx.tree_at(lambda m: m.components, self, self.components.with_free_parameters(values))

    def _log_joint(self, intensity: Float[AnyArray, " n"]) -> tuple[jax.Array, jax.Array]:
        c = like(self.components, intensity)
        z = (intensity[:, None] - c.means) / c.scales
        return c.log_weights - jnp.log(c.scales) - 0.5 * (jnp.log(2 * jnp.pi) + jnp.square(z)), z

    def _sums(self, intensity: Float[AnyArray, " n"], weight: Float[AnyArray, " n"]) -> Sums:
        log_joint, z = self._log_joint(intensity)
        tau = weight[:, None] * jax.nn.softmax(log_joint, axis=-1)
        return mixture.sum_over_voxels(tau, 1.0, z, self.components.scales)


def gaussian(mean: float, scale: float, counts: PseudoCounts | None = None) -> GaussianMixture:
    """One Gaussian: a mean and a standard deviation."""
    return GaussianMixture(1.0, [mean], [scale], counts)
