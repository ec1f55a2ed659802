"""The two appearances, inside and outside, and the log odds between them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from logishape.appearance.base import AbstractAppearance
from logishape.core.arrays import AnyArray


class Regions(eqx.Module):
    """How the inside and the outside of the shape look."""

    inside: AbstractAppearance
    outside: AbstractAppearance

    @property
    def is_fixed(self) -> bool:
        """Whether neither region learns."""
        return self.inside.is_fixed and self.outside.is_fixed

    def log_odds(self, intensity: Float[AnyArray, " n"]) -> Float[jax.Array, " n"]:
        """rho = log p(I | inside) - log p(I | outside); each class with its own parameters."""
        return self.inside.log_prob(intensity) - self.outside.log_prob(intensity)

    def update(
        self, intensity: Float[AnyArray, " n"], u: Float[AnyArray, " n"], weight: Float[AnyArray, " n"] | float = 1.0
    ) -> "Regions":
        """The MI-step: both regions after one update with label probabilities u and voxel weights."""
        return Regions(self.inside.update(intensity, weight * u), self.outside.update(intensity, weight * (1 - u)))

    def free_parameters(self) -> Float[jax.Array, " k"]:
        """What both regions learn, inside first."""
        return jnp.concatenate([self.inside.free_parameters(), self.outside.free_parameters()])

    def with_free_parameters(self, values: Float[AnyArray, " k"]) -> "Regions":
        """The same regions with these free parameters."""
        first, second = jnp.split(values, [self.inside.free_parameters().shape[0]])
        return Regions(self.inside.with_free_parameters(first), self.outside.with_free_parameters(second))

    def log_prior(self) -> Float[AnyArray, ""]:
        """log p(theta_I | beta) of both regions."""
        return self.inside.log_prior() + self.outside.log_prior()
