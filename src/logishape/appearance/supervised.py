"""Appearance from somebody else's network: a map of probabilities in place of intensities."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from logishape.appearance.base import AbstractAppearance
from logishape.appearance.regions import Regions
from logishape.core.arrays import AnyArray
from logishape.core.errors import InputError


class ProbabilityMap(AbstractAppearance):
    """Reads the observation's values as p(inside | image) of a trained classifier; never updated.

    By Bayes' rule p(image | inside) is proportional to p / prevalence, with the share of inside voxels in the
    classifier's training data. `confidence` keeps p within [1 - confidence, confidence]: an
    overconfident network must not outvote the shape with infinite odds.
    """

    is_inside: bool = eqx.field(static=True)
    prevalence: float = eqx.field(static=True, default=0.5)
    confidence: float = eqx.field(static=True, default=0.999)

    def __check_init__(self) -> None:
        if not 0 < self.prevalence < 1:
            raise InputError(f"prevalence must lie between 0 and 1 but is {self.prevalence}; use 0.5 if unknown.")
        if not 0.5 < self.confidence < 1:
            raise InputError(f"confidence must lie between 0.5 and 1 but is {self.confidence}; try 0.999.")

    def log_prob(self, intensity: Float[AnyArray, " n"]) -> Float[jax.Array, " n"]:
        """log(p / prevalence) inside, log((1 - p)/(1 - prevalence)) outside."""
        p = jnp.clip(intensity, 1 - self.confidence, self.confidence)
        if self.is_inside:
            return jnp.log(p) - jnp.log(self.prevalence)
        return jnp.log1p(-p) - jnp.log1p(-self.prevalence)

    def update(self, intensity: Float[AnyArray, " n"], weight: Float[AnyArray, " n"]) -> "ProbabilityMap":
        """Itself."""
        del intensity, weight
        return self

    def log_prior(self) -> Float[AnyArray, ""]:
        """Zero."""
        return jnp.zeros(())

    @property
    def is_fixed(self) -> bool:
        """True."""
        return True


def supervised_regions(prevalence: float = 0.5, confidence: float = 0.999) -> Regions:
    """Regions for an observation whose values are a classifier's probabilities of being inside."""
    return Regions(ProbabilityMap(True, prevalence, confidence), ProbabilityMap(False, prevalence, confidence))
