"""The shape's posterior by the No-U-turn sampler, from the fit on: the check of the Gaussian about it."""

from collections.abc import Callable

import jax
import numpy as np

from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.search import Found
from logishape.cochlea.verdict import Flag
from logishape.core.errors import FitError
from logishape.posterior import McmcOptions, SampledPosterior, ShapePosterior, mcmc

PLAIN = (
    "Draws and intervals are those of the plain fit's posterior, sampled by NUTS: what blur does to sizes is not "
    "taken off."
)
LOST = "The sampler lost its way and gave no draws, so there are no intervals; --posterior laplace gives them."
LARGEST_R_HAT, LEAST_WORTH = 1.05, 100.0  # of any parameter: split R-hat, effective sample size


def sample_posterior(
    found: Found, posterior: ShapePosterior, options: SegmentOptions, tell: Callable[[str], None]
) -> SampledPosterior | None:
    """Chains on the very objective that was fitted, tempered alike, appearances held; None where they get lost.

    `posterior` is the Gaussian about the fit, which says where chains start and how they step. `tell` hears
    "posterior 40%" and so on.
    """
    usual = McmcOptions()
    num_draws = max(usual.num_draws, -(-options.num_draws // usual.num_chains))
    asked = McmcOptions(usual.num_chains, usual.num_warmup, num_draws, usual.acceptance)
    key = jax.random.key(options.seed)
    try:
        return mcmc(
            found.model,
            found.observation,
            found.fit,
            posterior,
            key,
            asked,
            lambda share: tell(f"posterior {share:.0%}"),
        )
    except FitError:
        return None


def flags_of_chains(chains: SampledPosterior | None) -> list[Flag]:
    """What the chains themselves give reason to check."""
    if chains is None:
        return []
    flags = []
    names, r_hat, worth = chains.parameter_names, chains.r_hat, chains.effective_sample_size
    worst, least = int(np.argmax(np.nan_to_num(r_hat, nan=np.inf))), int(np.argmin(worth))
    if not r_hat[worst] <= LARGEST_R_HAT:
        message = (
            f"The sampler's chains have not met: R-hat of {names[worst]} is {r_hat[worst]:.2f} (1.01 is usual, above "
            f"{LARGEST_R_HAT} the intervals are not those of the posterior)."
        )
        flags.append(Flag("r_hat", message, False))
    if worth[least] < LEAST_WORTH:
        message = (
            f"The sampler's draws of {names[least]} are worth {worth[least]:.0f} independent ones only; intervals "
            f"need {LEAST_WORTH:.0f}."
        )
        flags.append(Flag("sample_size", message, False))
    if chains.num_divergent:
        message = f"{chains.num_divergent} of the sampler's draws lost their way; intervals may miss a corner."
        flags.append(Flag("divergences", message, False))
    return flags
