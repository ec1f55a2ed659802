"""What an appearance is: a log density of intensities that can learn from weighted voxels."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from logishape.core.arrays import AnyArray


class AbstractAppearance(eqx.Module):
    """How the intensities of one region are distributed."""

    @abc.abstractmethod
    def log_prob(self, intensity: Float[AnyArray, " n"]) -> Float[jax.Array, " n"]:
        """Log density of each intensity."""

    @abc.abstractmethod
    def update(self, intensity: Float[AnyArray, " n"], weight: Float[AnyArray, " n"]) -> "AbstractAppearance":
        """The appearance after one EM step on voxels of these weights; never less likely than before."""

    @abc.abstractmethod
    def log_prior(self) -> Float[AnyArray, ""]:
        """log p(theta_I | beta) up to a constant; zero for maximum likelihood."""

    @property
    @abc.abstractmethod
    def is_fixed(self) -> bool:
        """Whether `update` leaves everything as it is, so that the MI-step may be skipped."""

    def free_parameters(self) -> Float[AnyArray, " k"]:
        """What `update` learns, as numbers that may take any value; none where nothing is learnt or nobody says.

        With `with_free_parameters` it lets the posterior count how uncertain the appearance itself is.
        """
        return jnp.zeros(0)

    def with_free_parameters(self, values: Float[AnyArray, " k"]) -> "AbstractAppearance":
        """The same appearance with these free parameters."""
        del values
        return self


class Fixed(AbstractAppearance):
    """Any appearance, held as it is."""

    appearance: AbstractAppearance

    def log_prob(self, intensity: Float[AnyArray, " n"]) -> Float[jax.Array, " n"]:
        """Log density of each intensity under the wrapped appearance."""
        return self.appearance.log_prob(intensity)

    def update(self, intensity: Float[AnyArray, " n"], weight: Float[AnyArray, " n"]) -> "Fixed":
        """Itself."""
        del intensity, weight
        return self

    def log_prior(self) -> Float[AnyArray, ""]:
        """Zero: what is known needs no prior."""
        return jnp.zeros(())

    @property
    def is_fixed(self) -> bool:
        """True."""
        return True
