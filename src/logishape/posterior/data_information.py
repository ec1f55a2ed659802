"""What the data alone say about the shape, under each kind of assumption on the noise."""

from typing import Literal, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh

from logishape.core.arrays import double_precision, to_host
from logishape.core.errors import InputError
from logishape.core.lattice import lattice_index
from logishape.core.observation import Observation
from logishape.inference.band import padded_size
from logishape.inference.model import Model, State
from logishape.posterior.correlation import correlation_on_lattice, host_scores
from logishape.posterior.information import Information, appearance_information, information
from logishape.posterior.sandwich import score_covariance

Kind = Literal["sandwich", "observed", "complete"]


class DataInformation(NamedTuple):
    """Information and score of the data as they shall count beside the prior.

    fraction: the share of voxels that counts as independent, given or implied by the scores.
    is_fallback: the observed information was not positive definite, and the outer product of scores took its place.
    """

    matrix: Float[np.ndarray, "p p"]
    score: Float[np.ndarray, " p"]
    fraction: float
    is_fallback: bool


class Appearance(NamedTuple):
    """Cross information of shape and appearances, and the inverse of the appearances' own."""

    cross: Float[np.ndarray, "p k"]
    inverse: Float[np.ndarray, "k k"]

    @property
    def cost(self) -> Float[np.ndarray, "p p"]:
        """The Schur complement's subtrahend."""
        return self.cross @ self.inverse @ self.cross.T


def tempered_information(
    model: Model, observation: Observation, state: State, kind: Kind, fraction: float, appearance_is_known: bool
) -> DataInformation:
    """kappa times the observed or the complete information and score; for independent noise kappa is one."""
    info = shape_information(model, observation, state)
    score = fraction * info.score
    if kind == "complete":
        return DataInformation(fraction * info.complete, score, fraction, False)
    matrix = fraction * _profiled(model, observation, state, info, fraction, appearance_is_known)[0]
    if invert(matrix + model.prior.precision, model.prior.widths) is None:
        return DataInformation(fraction * info.outer, score, fraction, True)
    return DataInformation(matrix, score, fraction, False)


def sandwich_information(
    model: Model, observation: Observation, state: State, appearance_is_known: bool
) -> DataInformation:
    """Godambe's information J B^-1 J: J the curvature of the log likelihood, B the covariance of its score.

    Its inverse is the sandwich J^-1 B J^-1; with independent noise B = J and all kinds agree. B is summed over
    neighbours as far as the residuals are correlated, the appearances' share of each score taken out.
    """
    info = shape_information(model, observation, state)
    matrix, appearance = _profiled(model, observation, state, info, 1.0, appearance_is_known)
    is_fallback = invert(matrix + model.prior.precision, model.prior.widths) is None
    J = info.outer if is_fallback else matrix
    scores = host_scores(model, observation, state)
    in_use = np.asarray(observation.weights) > 0
    rows = np.asarray(scores.shape, np.float64)[in_use]
    if appearance is not None and not is_fallback:
        rows = rows - np.asarray(scores.appearance, np.float64)[in_use] @ appearance.inverse @ appearance.cross.T
    index = lattice_index(np.asarray(observation.points)[in_use])
    noise = correlation_on_lattice(index, np.asarray(scores.residual, np.float64)[in_use])
    B = score_covariance(rows * model.prior.widths, index, noise.length).matrix
    return _combine(model, J, B / np.outer(model.prior.widths, model.prior.widths), info, is_fallback)


def _combine(model: Model, J: np.ndarray, B: np.ndarray, info: Information, is_fallback: bool) -> DataInformation:
    """J B^-1 J, counting in no direction more than J does, nor anything where J is not positive.

    In the basis where B is one and J is lambda, lambda is the share of voxels that counts: lambda^2 up to one. Beyond
    one, and below zero in directions that the prior alone determines, it is noise. The fraction of the whole is
    tr(A^-1 J) / tr(A^-1 B) with A = J + P0, the share by which the likelihood's gains of a fit must be tempered.
    """
    widths, P0 = model.prior.widths, model.prior.precision
    units = np.outer(widths, widths)  # parameters in units of the box, so that no unit decides what is small
    ridge = 1e-10 * np.trace(B * units) / len(B)
    share, basis = eigh(J * units, B * units + ridge * np.eye(len(B)))
    counted = np.clip(share, 0.0, 1.0)
    back = B @ (widths[:, None] * basis)
    inverse = np.linalg.pinv(J * units + P0 * units, hermitian=True)
    gain = float(np.trace(inverse @ (J * units)) / max(float(np.trace(inverse @ (B * units))), 1e-300))
    fraction = float(np.clip(gain, 1e-3, 1.0))
    if is_fallback:  # without a curvature there is no sandwich; what is left is an outer product that knows its noise
        return DataInformation(fraction * info.outer, fraction * info.score, fraction, True)
    matrix = (back * (counted * np.maximum(share, 0.0))) @ back.T
    score = (back * counted) @ (basis.T @ (info.score * widths))
    return DataInformation(matrix, score, fraction, False)


def shape_information(model: Model, observation: Observation, state: State) -> Information:
    """`information` compiled, padded and brought to the host."""
    padded = observation.padded(padded_size(observation.num_voxels))
    with double_precision():
        return to_host(eqx.filter_jit(information)(model, padded, state))


def check_fraction(effective_fraction: float) -> None:
    """Raises unless the share of voxels that count as independent is one."""
    if not 0 < effective_fraction <= 1:
        raise InputError(f"effective_fraction must lie in (0, 1] but is {effective_fraction}; use 1 for white noise.")


def invert(precision: np.ndarray, widths: np.ndarray) -> np.ndarray | None:
    """The inverse, or None where the matrix is not safely positive definite in units of the box widths."""
    whitened = widths[:, None] * precision * widths
    if not np.all(np.isfinite(whitened)):
        return None
    values, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
    if values[0] <= max(1e-12 * values[-1], 1e-6):
        return None
    covariance = (vectors / values) @ vectors.T
    return widths[:, None] * covariance * widths


def _profiled(
    model: Model, observation: Observation, state: State, info: Information, fraction: float, is_known: bool
) -> tuple[np.ndarray, Appearance | None]:
    """The observed information with the appearances' uncertainty taken off (Schur), and what it was taken from."""
    if is_known or state.regions.free_parameters().shape[0] == 0:
        return info.observed, None
    padded = observation.padded(padded_size(observation.num_voxels))
    with double_precision():
        looks = to_host(eqx.filter_jit(appearance_information)(model, padded, state))
    # The prior of the appearances is not tempered, so beside data that are it weighs more.
    appearance = Appearance(looks.cross, _invert_own(looks.own + looks.prior / fraction))
    return info.observed - appearance.cost, appearance


def _invert_own(own: np.ndarray) -> np.ndarray:
    """The inverse on what the data determine: an empty component, or all log weights at once, adds nothing."""
    scale = 1 / np.sqrt(np.maximum(np.abs(np.diag(own)), 1e-12))
    values, vectors = np.linalg.eigh(scale[:, None] * (own + own.T) / 2 * scale)
    inverse = np.where(values > 1e-8, 1 / np.where(values > 1e-8, values, 1.0), 0.0)
    return scale[:, None] * ((vectors * inverse) @ vectors.T) * scale
