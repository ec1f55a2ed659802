"""Which model does the image support: log evidence and Bayes factors."""

import dataclasses
from collections.abc import Mapping

import equinox as eqx
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import double_precision
from logishape.core.errors import FitError, InputError
from logishape.core.observation import Observation
from logishape.core.truncated import log_share_in_box
from logishape.inference.band import padded_size
from logishape.inference.checks import check_state
from logishape.inference.fit import Fit, fit
from logishape.inference.model import Model, Prior, State
from logishape.inference.objective import log_joint
from logishape.inference.options import FitOptions
from logishape.posterior.data_information import check_fraction, sandwich_information, shape_information

_FLAT = (
    4.0  # nats: less curvature over the whole box, either way, is no direction that the image tells anything about
)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Models by how well they explain one image, parameters integrated out, the best first.

    log_bayes_factors: log evidence below that of the best. probabilities: with equal odds before the image.
    effective_fraction: kappa, the same for all models.
    """

    names: tuple[str, ...]
    log_evidences: Float[np.ndarray, " k"]
    fits: tuple[Fit, ...]
    effective_fraction: float

    @property
    def best(self) -> str:
        """The name of the model with the largest evidence."""
        return self.names[0]

    @property
    def log_bayes_factors(self) -> Float[np.ndarray, " k"]:
        """Log evidence of each model minus that of the best: zero, then negative."""
        return self.log_evidences - self.log_evidences[0]

    @property
    def probabilities(self) -> Float[np.ndarray, " k"]:
        """Posterior probability of each model if all were equally likely before."""
        odds = np.exp(self.log_bayes_factors)
        return odds / odds.sum()

    def summary(self) -> str:
        """One line a model: log Bayes factor against the best, and its probability."""
        rows = zip(self.names, self.log_bayes_factors, self.probabilities, strict=True)
        return "\n".join(f"{name}: log Bayes factor {factor:.2f}, probability {p:.3g}" for name, factor, p in rows)


def evidence(model: Model, observation: Observation, fit: Fit, effective_fraction: float) -> float:
    """log p(I | model) by Laplace's method, shape parameters integrated out, appearances held at their best.

    kappa log p(I | theta) + log p(theta) + (p/2) log 2 pi - 1/2 log|kappa J + P0|, plus the share of that Gaussian
    within the prior's box. kappa, the effective fraction, tempers the data for correlated noise: one for independent
    noise, otherwise that of `laplace` for the model that fits best; with kappa = 1 on correlated noise the richer
    model always wins. Compare models on the same voxels and with the same kappa only: `compare` sees to that.
    """
    check_state(model, observation, fit.check().state)
    check_fraction(effective_fraction)
    info = shape_information(model, observation, fit.state)
    prior, theta = model.prior, np.asarray(fit.state.theta)
    covariance = _covariance_in_box(effective_fraction * info.observed + prior.precision, prior.widths)
    slope = effective_fraction * info.score - prior.precision @ (theta - prior.mean)
    shift = covariance @ slope if fit.at_bound or effective_fraction < 1 else np.zeros_like(theta)
    log_gaussian = 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1] + 0.5 * slope @ shift
    height = effective_fraction * _log_likelihood(model, observation, fit.state)
    log_share = log_share_in_box(theta + shift, covariance, (prior.lower, prior.upper))
    return float(height + _log_prior(prior, theta) + log_gaussian + log_share)


def compare(
    models: Mapping[str, Model],
    observation: Observation,
    starts: Mapping[str, State],
    options: FitOptions | None = None,
    effective_fraction: float | None = None,
) -> Comparison:
    """The models fitted to one image and ranked by their evidence.

    kappa is that of the model with the highest log likelihood unless given: the residuals of a bad fit are
    correlated because it is bad, not because the noise is.
    """
    if set(models) != set(starts) or len(models) < 2:
        raise InputError(
            f"a comparison needs a start for each of at least two models but has the models {', '.join(models)} and "
            f"the starts {', '.join(starts)}; name them alike."
        )
    if effective_fraction is not None:
        check_fraction(effective_fraction)
    fits = {name: _checked(name, fit(model, observation, starts[name], options)) for name, model in models.items()}
    if effective_fraction is None:
        heights = {name: _log_likelihood(model, observation, fits[name].state) for name, model in models.items()}
        closest = max(heights, key=lambda name: heights[name])
        state = fits[closest].state
        effective_fraction = sandwich_information(models[closest], observation, state, False).fraction
    values = {name: evidence(model, observation, fits[name], effective_fraction) for name, model in models.items()}
    order = sorted(values, key=lambda name: -values[name])
    return Comparison(
        names=tuple(order),
        log_evidences=np.array([values[name] for name in order]),
        fits=tuple(fits[name] for name in order),
        effective_fraction=effective_fraction,
    )


def _covariance_in_box(curvature: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The inverse, with directions that nothing determines as wide as the box.

    The angle of an ellipse that is round is such a direction: flat, or bent the wrong way by noise. A Gaussian whose
    SD is the width of the box, cut off at the box, has the integral of a uniform density to 4 %.
    """
    whitened = widths[:, None] * curvature * widths
    values, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
    if values[0] < -_FLAT:
        raise FitError(
            "the log joint bends upwards here, at a saddle or on the border of the box, so that Laplace's method has "
            "no evidence to give; fit from another start, or try multistart."
        )
    return widths[:, None] * ((vectors / np.maximum(values, 1.0)) @ vectors.T) * widths


def _checked(name: str, one: Fit) -> Fit:
    try:
        return one.check()
    except FitError as error:
        raise FitError(f"the model {name!r} has no evidence: {error}") from error


def _log_likelihood(model: Model, observation: Observation, state: State) -> float:
    """log p(I | theta, appearances) over all voxels."""
    padded = observation.padded(padded_size(observation.num_voxels))
    with double_precision():
        whole = float(eqx.filter_jit(log_joint)(model, padded, state))
        return whole - float(model.prior.log_prob(state.theta)) - float(state.regions.log_prior())


def _log_prior(prior: Prior, theta: np.ndarray) -> float:
    """Log density of the prior at theta, its Gaussian renormalised for what the box cuts off."""
    offset = theta - prior.mean
    value = float(prior.log_normaliser) - 0.5 * offset @ prior.precision @ offset
    has = np.diag(prior.precision) > 0
    if not has.any():
        return value
    covariance = np.linalg.inv(prior.precision[np.ix_(has, has)])
    return value - log_share_in_box(prior.mean[has], covariance, (prior.lower[has], prior.upper[has]))
