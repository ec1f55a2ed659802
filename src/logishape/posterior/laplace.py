"""The posterior of the shape parameters: a Gaussian about the best fit, cut off at the prior's box."""

from typing import Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from logishape.core.errors import FitError, InputError
from logishape.core.observation import Observation
from logishape.core.truncated import draw_truncated
from logishape.inference.checks import check_state
from logishape.inference.fit import Fit
from logishape.inference.model import Model
from logishape.posterior.data_information import (
    Kind,
    check_fraction,
    invert,
    sandwich_information,
    tempered_information,
)

_INTERVAL_DRAWS = 4000


class ShapePosterior(eqx.Module):
    """A Gaussian truncated to the prior's box: the best fit, where it is centred, how wide it is, how it was made.

    `mean` is the best fit. `centre` is the Gaussian's own: the same inside the box; where the fit lies on a bound the
    log joint still rises, and the Gaussian that continues it is centred beyond; with an effective fraction below one
    and a Gaussian prior it moves towards the prior. `effective_fraction` is the one given or that the sandwich found.

    `is_fallback` says that the observed information was not positive definite and the outer product of
    scores took its place; such a posterior deserves a second look.
    """

    mean: Float[np.ndarray, " p"]
    centre: Float[np.ndarray, " p"]
    covariance: Float[np.ndarray, "p p"]
    lower: Float[np.ndarray, " p"]
    upper: Float[np.ndarray, " p"]
    parameter_names: tuple[str, ...] = eqx.field(static=True)
    kind: Kind | Literal["mcmc"] = eqx.field(static=True)
    effective_fraction: float = eqx.field(static=True)
    is_fallback: bool = eqx.field(static=True)

    @property
    def sd(self) -> Float[np.ndarray, " p"]:
        """Standard deviation of each parameter before truncation."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> Float[np.ndarray, "p p"]:
        """Correlation matrix before truncation."""
        return self.covariance / np.outer(self.sd, self.sd)

    def sample(self, key: jax.Array, num_draws: int) -> Float[np.ndarray, "s p"]:
        """Draws within the box."""
        if num_draws < 1:
            raise InputError(f"the number of draws must be positive but is {num_draws}; try 100.")
        box = (self.lower, self.upper)
        return draw_truncated(key, self.centre, self.covariance, box, num_draws, start=self.mean)

    def interval(self, key: jax.Array, level: float = 0.9) -> Float[np.ndarray, "p 2"]:
        """Equal-tailed intervals of each parameter, truncation included."""
        if not 0 < level < 1:
            raise InputError(f"the level of an interval must lie between 0 and 1 but is {level}; try 0.9.")
        draws = self.sample(key, _INTERVAL_DRAWS)
        return np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0).T

    def summary(self) -> dict[str, tuple[float, float]]:
        """Best value and standard deviation by parameter name."""
        return {
            name: (float(m), float(s)) for name, m, s in zip(self.parameter_names, self.mean, self.sd, strict=True)
        }


def laplace(
    model: Model,
    observation: Observation,
    fit: Fit,
    kind: Kind = "sandwich",
    effective_fraction: float = 1.0,
    appearance_is_known: bool = False,
) -> ShapePosterior:
    """The Laplace approximation at a fit: covariance (data information + P0)^-1, P0 the prior's precision.

    kind: "sandwich" measures from the scores of neighbouring voxels what noise, correlated or not, does to the fit,
    and is the kind whose intervals covered in every study; "observed" is exact for independent noise; "complete" is
    the paper's and over-confident.
    effective_fraction: kappa, the share of voxels that count as independent, for the last two kinds; it tempers the
    data, not the prior (see `noise_correlation`).
    appearance_is_known: leave out what the uncertainty of the estimated appearances adds ("complete" always does).
    The model must be the one of the fit; a fit that is not at a maximum has no such posterior (`FitError`).
    """
    _check_request(kind, effective_fraction)
    check_state(model, observation, fit.check().state)
    if kind == "sandwich":
        data = sandwich_information(model, observation, fit.state, appearance_is_known)
    else:
        data = tempered_information(model, observation, fit.state, kind, effective_fraction, appearance_is_known)
    precision = model.prior.precision
    covariance = invert(data.matrix + precision, model.prior.widths)
    if covariance is None:
        raise FitError(
            "the image and the prior leave some direction of the parameters undetermined, so there is no "
            "posterior; add a Gaussian prior or a region with contrast."
        )
    theta = np.asarray(fit.state.theta)
    slope = data.score - precision @ (theta - model.prior.mean)
    is_tempered = kind == "sandwich" or effective_fraction < 1
    is_off_centre = bool(fit.at_bound) or (is_tempered and bool(np.any(precision)))
    return ShapePosterior(
        mean=theta,
        centre=theta + covariance @ slope if is_off_centre else theta,
        covariance=covariance,
        lower=np.asarray(model.prior.lower),
        upper=np.asarray(model.prior.upper),
        parameter_names=fit.parameter_names,
        kind=kind,
        effective_fraction=data.fraction,
        is_fallback=data.is_fallback,
    )


def _check_request(kind: str, effective_fraction: float) -> None:
    if kind not in ("sandwich", "observed", "complete"):
        raise InputError(
            f"kind is {kind!r} but must be 'sandwich', 'observed' or 'complete' (the paper's); use the first."
        )
    check_fraction(effective_fraction)
    if kind == "sandwich" and effective_fraction != 1:
        raise InputError(
            f"the sandwich measures the correlation of the noise itself but effective_fraction is "
            f"{effective_fraction}; leave it out, or take kind='observed'."
        )
