"""What is known of the shape once it is fitted: the best parameters, their posterior, and draws of it."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from logishape.cochlea.draws import Draws, as_draws, draw_cochleae
from logishape.cochlea.matched import Matched, match, matched_posterior
from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.sampled import sample_posterior
from logishape.cochlea.search import Found
from logishape.cochlea.shape import Cochlea
from logishape.core.errors import FitError
from logishape.inference.model import Model
from logishape.posterior import SampledPosterior, ShapePosterior, laplace
from logishape.shapes import FirstOrder


class Estimate(NamedTuple):
    """The parameters, their posterior and draws of it (None where there is none), and what these were made of.

    matched: what was taken off the fit's parameters, None where that was not asked for or could not be done.
    chains: of the sampler, where it was asked for.
    """

    theta: Float[np.ndarray, " p"]
    posterior: ShapePosterior | None
    draws: Draws | None
    matched: Matched | None = None
    chains: SampledPosterior | None = None


def estimate(found: Found, cochlea: Cochlea, options: SegmentOptions, tell: Callable[[str], None]) -> Estimate:
    """The estimate that the options ask for; draws are of `cochlea`. `tell` hears how far a sampler has come."""
    posterior = plain_posterior(found, options)
    if posterior is None:
        return Estimate(found.theta, None, None)
    if options.posterior == "mcmc":
        chains = sample_posterior(found, posterior, options, tell)
        if chains is None:
            return Estimate(found.theta, None, None)
        drawn = as_draws(cochlea, chains.sample(jax.random.key(options.seed), options.num_draws))
        return Estimate(found.theta, chains.as_gaussian(found.theta), drawn, chains=chains)
    matched = None
    if options.intervals == "matched" and found.fit.status.is_usable:
        matched = match(found, posterior, options)
    if matched is None:
        return Estimate(found.theta, posterior, _draws(cochlea, posterior, None, options))
    posterior = matched_posterior(found, posterior, matched, options.evidence)
    return Estimate(matched.theta, posterior, _draws(cochlea, posterior, matched, options), matched)


def plain_posterior(found: Found, options: SegmentOptions) -> ShapePosterior | None:
    """The Laplace posterior of the very objective that was fitted: each voxel counts for `evidence`.

    Second derivatives of the shape, zero in the mean, are left out: they would take a minute to compile.
    """
    model = Model(FirstOrder(found.model.shape), found.model.prior, found.model.reference_length)
    kind = "complete" if options.intervals == "complete" else "observed"
    try:
        return laplace(model, found.observation, found.fit, kind)
    except FitError:
        return None


def _draws(cochlea: Cochlea, posterior: ShapePosterior, matched: Matched | None, options: SegmentOptions) -> Draws:
    return draw_cochleae(cochlea, posterior, matched and matched.misfit, options.seed, options.num_draws)
