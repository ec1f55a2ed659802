"""Mixtures of Student's t distributions: heavy tails keep extreme voxels from pulling the means."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, gammaln, logsumexp
from jaxtyping import Float

from logishape.appearance import mixture
from logishape.appearance.base import AbstractAppearance
from logishape.appearance.mixture import Components, PseudoCounts, Sums, Vector
from logishape.core.arrays import AnyArray, as_vector, like, over_chunks
from logishape.core.errors import InputError

DOF_RANGE = (2.1, 200.0)  # within which they are estimated
LARGEST_DOF = 1e4  # held ones: beyond it the density is a Gaussian to single precision


class StudentMixture(AbstractAppearance):
    """A mixture of Student's t distributions: weights, means, scales (not SDs) and degrees of freedom.

    With `counts` its updates are MAP, otherwise maximum likelihood. Degrees of freedom are estimated within
    [2.1, 200], or held where they are with `estimate_dofs=False`.
    """

    components: Components
    dofs: Vector
    start: Components
    start_dofs: Vector
    counts: PseudoCounts
    estimate_dofs: bool = eqx.field(static=True)

    def __init__(
        self,
        weights: Any,
        means: Any,
        scales: Any,
        dofs: Any,
        counts: PseudoCounts | None = None,
        estimate_dofs: bool = True,
    ):
        self.start = self.components = mixture.make_components(weights, means, scales)
        dofs = as_vector(dofs, self.start.means.size, "degrees of freedom")
        if not np.all((dofs > 0) & (dofs <= LARGEST_DOF)):
            raise InputError(
                f"degrees of freedom must lie in (0, {LARGEST_DOF:g}] but are {dofs.tolist()}; try 5, or a "
                "GaussianMixture for infinitely many."
            )
        self.start_dofs = self.dofs = np.clip(dofs, *DOF_RANGE) if estimate_dofs else dofs
        self.counts = (PseudoCounts() if counts is None else counts).sized(self.start.means.size)
        self.estimate_dofs = estimate_dofs

    @property
    def is_fixed(self) -> bool:
        """False: it learns."""
        return False

    def log_prob(self, intensity: Float[AnyArray, " n"]) -> Float[jax.Array, " n"]:
        """log sum_m pi_m t(I | mu_m, sigma_m, nu_m)."""
        return logsumexp(self._log_joint(intensity)[0], axis=-1)

    def log_prior(self) -> Float[AnyArray, ""]:
        """The pseudo-counts' log density, up to a constant; see `PseudoCounts`."""
        value = mixture.log_prior(self.components, self.start, self.counts)
        if not self.estimate_dofs:
            return value
        slope = 0.5 * (1 + log_minus_digamma(self.start_dofs))
        half = jnp.asarray(self.dofs) / 2
        return value + jnp.sum(self.counts.dofs * (half * jnp.log(half) - gammaln(half) - slope * self.dofs))

    def update(self, intensity: Float[AnyArray, " n"], weight: Float[AnyArray, " n"]) -> "StudentMixture":
        """One EM step (Peel and McLachlan); every maximum is exact, so the objective cannot fall."""
        sums, dof_sum = over_chunks(self._sums, (intensity, weight), reduce=True)
        new = mixture.maximise(self.components, self.start, self.counts, sums)
        dofs = jnp.asarray(self.dofs, jnp.result_type(float))
        if self.estimate_dofs:
            total = sums.count + self.counts.dofs
            target = dof_sum + self.counts.dofs * log_minus_digamma(self.start_dofs)
            has_support = total > 1e-12
            dofs = jnp.where(has_support, solve_dof(target / jnp.where(has_support, total, 1.0)), dofs)
        return eqx.tree_at(lambda m: (m.components, m.dofs), self, (new, dofs))

    def free_parameters(self) -> Float[AnyArray, " k"]:
        """Those of the components, then log degrees of freedom where they are estimated."""
        own = self.components.free_parameters()
        return jnp.concatenate([own, jnp.log(self.dofs)]) if self.estimate_dofs else own

    def with_free_parameters(self, values: Float[AnyArray, " k"]) -> "StudentMixture":
        """The same mixture with these free parameters."""
        count = self.dofs.shape[0] if self.estimate_dofs else 0
        own, log_dofs = jnp.split(values, [values.shape[0] - count])
        dofs = jnp.exp(log_dofs) if self.estimate_dofs else self.dofs
        new = (self.components.with_free_parameters(own), dofs)
        return eqx.tree_at(lambda m: (m.components, m.dofs), self, new)

    def _log_joint(self, intensity: Float[AnyArray, " n"]) -> tuple[jax.Array, jax.Array]:
        nu = jnp.asarray(self.dofs)
        # The normaliser is a small difference of large terms: full precision first, then the image's.
        normaliser = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * jnp.log(jnp.pi * nu)
        c, nu, normaliser = like((self.components, nu, normaliser), intensity)
        z = (intensity[:, None] - c.means) / c.scales
        tail = -0.5 * (nu + 1) * jnp.log1p(jnp.square(z) / nu)
        return c.log_weights - jnp.log(c.scales) + normaliser + tail, z

    def _sums(self, intensity: Float[AnyArray, " n"], weight: Float[AnyArray, " n"]) -> tuple[Sums, jax.Array]:
        """The mixture's sums, and for each component the sum of tau c_n, the right side of nu's equation."""
        log_joint, z = self._log_joint(intensity)
        tau = weight[:, None] * jax.nn.softmax(log_joint, axis=-1)
        nu = like(self.dofs, intensity)
        w = (nu + 1) / (nu + jnp.square(z))
        sums = mixture.sum_over_voxels(tau, w, z, self.components.scales)
        spread = jnp.sum(tau * (w - jnp.log(w) - 1), axis=0, dtype=jnp.result_type(float))
        return sums, spread + sums.count * log_minus_digamma(jnp.asarray(self.dofs) + 1)


def log_minus_digamma(nu: Vector) -> Vector:
    """log(nu/2) - digamma(nu/2): falls from infinity to zero as nu grows."""
    half = jnp.asarray(nu) / 2
    return jnp.log(half) - digamma(half)


def solve_dof(target: Vector) -> Vector:
    """nu with log(nu/2) - digamma(nu/2) = target, clamped to [2.1, 200]; the root is unique.

    Bisection in log nu: 60 halvings reach rounding, and nothing can make it diverge.
    """
    low, high = (jnp.full_like(target, jnp.log(bound)) for bound in DOF_RANGE)

    def halve(_: Any, bracket: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        is_below_root = log_minus_digamma(jnp.exp(middle)) > target
        return jnp.where(is_below_root, middle, low), jnp.where(is_below_root, high, middle)

    low, high = jax.lax.fori_loop(0, 60, halve, (low, high))
    return jnp.exp(0.5 * (low + high))
