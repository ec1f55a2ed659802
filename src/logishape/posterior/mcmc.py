"""Draws of the shape's posterior as it is, by the No-U-turn sampler: the check of what `laplace` approximates."""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray, double_precision, to_host
from logishape.core.errors import FitError, InputError
from logishape.core.observation import Observation
from logishape.inference.band import padded_size
from logishape.inference.checks import check_state
from logishape.inference.fit import Fit
from logishape.inference.model import Model, State
from logishape.inference.objective import log_joint
from logishape.posterior.convergence import effective_sample_size, split_r_hat
from logishape.posterior.laplace import ShapePosterior

_MOST_AT_ONCE = 100  # draws between two words on how far it is
_WARM = 0.4  # of a chain's time, about, until it is tuned
_MARGIN = 0.5  # SDs between the chart's centre and a bound that the fit lies on


@dataclasses.dataclass(frozen=True)
class McmcOptions:
    """How long to sample: chains, steps that tune each of them and are thrown away, and draws kept of each."""

    num_chains: int = 2
    num_warmup: int = 300
    num_draws: int = 500
    acceptance: float = 0.8

    def __post_init__(self) -> None:
        for name, least in (("num_chains", 2), ("num_warmup", 20), ("num_draws", 4)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least} but is {getattr(self, name)}; try the default.")
        if not 0 < self.acceptance < 1:
            raise InputError(f"the acceptance rate must lie between 0 and 1 but is {self.acceptance}; try 0.8.")


class SampledPosterior(eqx.Module):
    """Chains of draws `(c, s, p)` within the prior's box, and what they are worth.

    `num_gradients` is what they cost, warm-up included; `num_divergent` draws came from steps that lost their way,
    of which there should be none.
    """

    draws: Float[np.ndarray, "c s p"]
    lower: Float[np.ndarray, " p"]
    upper: Float[np.ndarray, " p"]
    parameter_names: tuple[str, ...] = eqx.field(static=True)
    num_gradients: int = eqx.field(static=True)
    num_divergent: int = eqx.field(static=True)

    @property
    def all_draws(self) -> Float[np.ndarray, "m p"]:
        """Those of all chains, one after the other."""
        return self.draws.reshape(-1, self.draws.shape[-1])

    @property
    def mean(self) -> Float[np.ndarray, " p"]:
        """Of the draws."""
        return self.all_draws.mean(axis=0)

    @property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        """Of the draws."""
        return np.cov(self.all_draws.T).reshape(self.lower.size, -1)

    @property
    def sd(self) -> Float[np.ndarray, " p"]:
        """Of the draws."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def effective_sample_size(self) -> Float[np.ndarray, " p"]:
        """How many independent draws would know each mean as well."""
        return effective_sample_size(self.draws)

    @property
    def r_hat(self) -> Float[np.ndarray, " p"]:
        """Split R-hat of each parameter: above 1.01 or so the chains have not met, and more draws are needed."""
        return split_r_hat(self.draws)

    def sample(self, key: jax.Array, num_draws: int) -> Float[np.ndarray, "s p"]:
        """So many of the draws, each at most once unless more are asked for than there are."""
        if num_draws < 1:
            raise InputError(f"the number of draws must be positive but is {num_draws}; try 100.")
        every = self.all_draws
        chosen = jax.random.choice(key, len(every), (num_draws,), replace=num_draws > len(every))
        return every[np.asarray(chosen)]

    def as_gaussian(self, best: Float[AnyArray, " p"]) -> ShapePosterior:
        """The Gaussian with the draws' mean and covariance; `best` is the fit, which it reports beside them."""
        return ShapePosterior(
            mean=np.asarray(best),
            centre=self.mean,
            covariance=self.covariance,
            lower=self.lower,
            upper=self.upper,
            parameter_names=self.parameter_names,
            kind="mcmc",
            effective_fraction=1.0,
            is_fallback=False,
        )

    def summary(self) -> dict[str, Any]:
        """What the chains are worth, as plain numbers; by name where each parameter has its own."""
        r_hat, worth = self.r_hat, self.effective_sample_size
        return {
            "num_chains": self.draws.shape[0],
            "draws_per_chain": self.draws.shape[1],
            "gradients": self.num_gradients,
            "divergences": self.num_divergent,
            "effective_sample_size": dict(zip(self.parameter_names, map(float, worth), strict=True)),
            "r_hat": {
                name: float(one) if np.isfinite(one) else None
                for name, one in zip(self.parameter_names, r_hat, strict=True)
            },
        }


class Chart(eqx.Module):
    """Coordinates z in which the box has no end and the Laplace posterior is about a standard normal.

    theta = lower + widths sigmoid(centre + root z); the density of z is that of theta times |d theta / d z|.
    """

    lower: Float[AnyArray, " p"]
    widths: Float[AnyArray, " p"]
    centre: Float[AnyArray, " p"]
    root: Float[AnyArray, "p p"]

    @classmethod
    def around(cls, posterior: ShapePosterior) -> "Chart":
        """The chart about a Laplace posterior's best fit, a little inside where that lies on a bound."""
        lower, widths = posterior.lower, posterior.upper - posterior.lower
        inner = np.clip(_MARGIN * posterior.sd / widths, 1e-9, 0.25)
        share = np.clip((posterior.mean - lower) / widths, inner, 1 - inner)
        slope = widths * share * (1 - share)
        covariance = posterior.covariance / np.outer(slope, slope)
        return cls(lower, widths, np.log(share / (1 - share)), np.linalg.cholesky(covariance))

    def theta(self, z: Float[AnyArray, " p"]) -> Float[jax.Array, " p"]:
        """The parameters."""
        return self.lower + self.widths * jax.nn.sigmoid(self.centre + self.root @ z)

    def log_volume(self, z: Float[AnyArray, " p"]) -> Float[jax.Array, ""]:
        """log |d theta / d z| up to a constant."""
        eta = self.centre + self.root @ z
        return jnp.sum(jax.nn.log_sigmoid(eta) + jax.nn.log_sigmoid(-eta))


class Target(NamedTuple):
    """The posterior of the shape with the appearances held where the fit left them."""

    model: Model
    observation: Observation
    regions: Any
    chart: Chart

    def log_density(self, z: Float[AnyArray, " p"]) -> Float[jax.Array, ""]:
        """log p(I, theta) of the labels summed out, in the chart."""
        state = State(self.chart.theta(z), self.regions)
        return log_joint(self.model, self.observation, state) + self.chart.log_volume(z)


class Tuned(NamedTuple):
    """A chain after its warm-up."""

    state: Any
    step_size: Any
    inverse_mass: Any
    num_gradients: Any


def mcmc(
    model: Model,
    observation: Observation,
    fit: Fit,
    posterior: ShapePosterior,
    key: jax.Array,
    options: McmcOptions | None = None,
    tell: Callable[[float], None] | None = None,
) -> SampledPosterior:
    """Draws of p(theta | I) by the No-U-turn sampler (blackjax, the extra `mcmc`), appearances held at the fit.

    What is sampled is the likelihood with the labels summed out, weights of voxels included, times the prior in its
    box. That is what `laplace` of the kind "observed" approximates, and its `posterior` says where to start and how
    far to step. Chains start twice as far apart as it is wide. `tell` hears which share is done.
    """
    options = McmcOptions() if options is None else options
    _blackjax()
    observation = observation.padded(padded_size(observation.num_voxels))
    check_state(model, observation, fit.check().state)
    target = Target(model, observation, fit.state.regions, Chart.around(posterior))
    told = tell or (lambda _: None)
    found = []
    with double_precision():
        target = jax.tree.map(jnp.asarray, target)
        for k, one in enumerate(jax.random.split(key, options.num_chains)):
            found.append(_chain(target, one, options, lambda share, k=k: told((k + share) / options.num_chains)))
    chains, costs, diverged = zip(*found, strict=True)
    if not np.all(np.isfinite(chains)):
        raise FitError("the sampler left the numbers that can be told apart; start from another fit.")
    lower, upper = np.asarray(posterior.lower), np.asarray(posterior.upper)
    return SampledPosterior(np.stack(chains), lower, upper, posterior.parameter_names, sum(costs), sum(diverged))


def _chain(
    target: Target, key: jax.Array, options: McmcOptions, tell: Callable[[float], None]
) -> tuple[Float[np.ndarray, "s p"], int, int]:
    """The draws of one chain, the gradients it took, and how many draws diverged; some draws at a time."""
    first, warm, rest = jax.random.split(key, 3)
    z = 2 * jax.random.normal(first, np.shape(target.chart.centre), jnp.float64)
    tuned = _tune(target, warm, z, (options.num_warmup, options.acceptance))
    state, num_gradients, num_divergent = tuned.state, int(tuned.num_gradients), 0
    tell(_WARM)
    num, keys, pieces = options.num_draws, jax.random.split(rest, options.num_draws), []
    size = max(n for n in range(1, _MOST_AT_ONCE + 1) if num % n == 0)
    for begin in range(0, num, size):
        state, drawn = _draw(target, tuned, state, keys[begin : begin + size])
        draws, cost, diverged = to_host(drawn)
        pieces.append(draws)
        num_gradients, num_divergent = num_gradients + int(cost), num_divergent + int(diverged)
        tell(_WARM + (1 - _WARM) * (begin + size) / num)
    return np.concatenate(pieces), num_gradients, num_divergent


@eqx.filter_jit
def _tune(target: Target, key: jax.Array, z: jax.Array, how: tuple[int, float]) -> Tuned:
    """Step size and scale of each coordinate, by Stan's windows of adaptation."""
    blackjax, (num_steps, acceptance) = _blackjax(), how
    warmup = blackjax.window_adaptation(blackjax.nuts, target.log_density, target_acceptance_rate=acceptance)
    (state, found), told = warmup.run(key, z, num_steps)
    cost = jnp.sum(told.info.num_integration_steps)
    return Tuned(state, found["step_size"], found["inverse_mass_matrix"], cost)


@eqx.filter_jit
def _draw(target: Target, tuned: Tuned, state: Any, keys: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:
    """Where the chain is after a draw for each key; the draws, the gradients they took, and how many diverged."""
    kernel = _blackjax().nuts(target.log_density, tuned.step_size, tuned.inverse_mass)

    def step(state: Any, key: jax.Array) -> tuple[Any, Any]:
        state, told = kernel.step(key, state)
        return state, (target.chart.theta(state.position), told.num_integration_steps, told.is_divergent)

    state, (draws, cost, diverged) = jax.lax.scan(step, state, keys)
    return state, (draws, jnp.sum(cost), jnp.sum(diverged))


def check_sampler() -> None:
    """An error, in one sentence, where blackjax is not installed."""
    _blackjax()


def _blackjax() -> Any:
    try:
        return importlib.import_module("blackjax")
    except ImportError as error:
        raise InputError(
            'the No-U-turn sampler needs blackjax, which is not installed; run pip install "logishape[mcmc]".'
        ) from error
