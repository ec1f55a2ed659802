"""Parameters freed of what blur does to a fit: those whose image, blurred alike, would be fitted as this one was."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from logishape.cochlea.evaluation import level_at
from logishape.cochlea.misfit import Misfit, find_misfit
from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.render import Scene, render
from logishape.cochlea.search import NEAR, Found, refine
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.vestibule import is_beyond
from logishape.cochlea.view import most_alike
from logishape.core.lattice import lattice_index
from logishape.core.observation import Observation
from logishape.inference.model import Model, State
from logishape.posterior import ShapePosterior
from logishape.posterior.correlation import correlation_on_lattice, host_scores
from logishape.posterior.sandwich import score_covariance
from logishape.shapes import FirstOrder

NUM_MATCHES = 2
BIAS_SHARE = 0.25  # of what is taken off is its SD: chosen on phantoms that no study counts
_SLOWEST = 0.7  # share of a step that the next one has, at most


class Matched(NamedTuple):
    """The parameters, how far the plain fit was from them, the point spread (SD, mm) that explains the image, and how
    far the sections stray from the model's.
    """

    theta: Float[np.ndarray, " p"]
    bias: Float[np.ndarray, " p"]
    blur_mm: float
    misfit: Misfit


def match(found: Found, posterior: ShapePosterior, options: SegmentOptions) -> Matched | None:
    """The fit's parameters less the bias that blur and uneven bone give it; None where a rendering cannot be fitted,
    or says nothing of some parameter, as where there is no cochlea.

    The crop is rendered for the parameters at hand and fitted in the same way. A fit without bias would return them,
    drawn towards the prior by A^-1 P0 (m - theta); what it returns beside that is bias, and is taken off. Repeated,
    because the rendering follows the parameters; it begins where renderings resemble the crop most, and what is left
    of steps that shrink alike is extrapolated.
    """
    try:
        matched = _match(found, posterior, options)
    except np.linalg.LinAlgError:
        return None
    return matched if matched is not None and np.all(np.isfinite(matched.misfit.response)) else None


def _match(found: Found, posterior: ShapePosterior, options: SegmentOptions) -> Matched | None:
    """The same, but for directions of which the image says nothing, which are an error of the solver."""
    prior, A_inverse = found.model.prior, np.asarray(posterior.covariance)
    mean, P0 = np.asarray(prior.mean), np.asarray(prior.precision)
    beyond, (theta, blur_mm) = is_beyond(found.crop.points), most_alike(found)
    sd, steps = np.sqrt(np.diag(A_inverse)), []
    for _ in range(NUM_MATCHES):
        seen = render(Scene(found.crop, _levels(found, theta), beyond), blur_mm)
        crop = dataclasses.replace(found.crop, intensities=seen.image.astype(np.float32))
        again, _ = refine(found.model, crop, found.intensities, theta, options)
        if not again.status.is_usable:
            return None
        bias = np.asarray(again.state.theta) - theta - A_inverse @ (P0 @ (mean - theta))
        steps.append((found.theta - bias - theta) / sd)
        theta, blur_mm = np.clip(found.theta - bias, prior.lower, prior.upper), seen.blur_mm
    theta = np.clip(theta + sd * _what_is_left(*steps[-2:]), prior.lower, prior.upper)
    return Matched(theta, found.theta - theta, blur_mm, find_misfit(found, theta, blur_mm))


def _what_is_left(before: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The sum of the steps to come if each is the same share of the one before (Aitken)."""
    share = np.clip(before @ last / max(before @ before, 1e-12), 0, _SLOWEST)
    return last * share / (1 - share)


def matched_posterior(found: Found, posterior: ShapePosterior, matched: Matched, evidence: float) -> ShapePosterior:
    """The posterior about the matched parameters: A^-1 (w^2 B + P0) A^-1 + R S R' + h^2 b b'.

    w is what a voxel counts for; B the covariance of the score, summed over neighbours as far as noise is correlated
    in the image (`score_covariance`): what the noise does to the fit. R S R' is what sections do that stray
    (`Misfit`). What was taken off, b, is known to a share h of itself: no rendering has all that surrounds a cochlea.
    """
    shape, crop = found.model.shape, found.crop
    assert isinstance(shape, Cochlea)
    near = near_voxels(found)
    pieces = Observation.from_arrays(crop.points[near], crop.intensities[near])
    model = Model(FirstOrder(shape.by_level()), found.model.prior, found.model.reference_length)
    scores = host_scores(model, pieces, State(found.theta, found.fit.state.regions))
    index, widths = lattice_index(np.asarray(pieces.points)), model.prior.widths
    noise = correlation_on_lattice(index, np.asarray(scores.residual, np.float64))
    B = score_covariance(np.asarray(scores.shape, np.float64) * widths, index, noise.length).matrix
    B = evidence**2 * B / np.outer(widths, widths)
    A_inverse = np.asarray(posterior.covariance)
    covariance = A_inverse @ (B + np.asarray(model.prior.precision)) @ A_inverse
    moved = matched.misfit.response * matched.misfit.mode_sd
    covariance += moved @ moved.T + BIAS_SHARE**2 * np.outer(matched.bias, matched.bias)
    symmetric = (covariance + covariance.T) / 2
    return dataclasses.replace(
        posterior, mean=matched.theta, centre=matched.theta, covariance=symmetric, kind="sandwich"
    )


def near_voxels(found: Found) -> Bool[np.ndarray, " n"]:
    """Which voxels of the crop the refined fit could see."""
    crop = found.crop
    return crop.is_covered & ~is_beyond(crop.points) & (np.abs(_levels(found, found.theta)) < NEAR)


def _levels(found: Found, theta: np.ndarray) -> np.ndarray:
    shape = found.model.shape
    assert isinstance(shape, Cochlea)
    return level_at(shape.by_level(), theta, found.crop.points)
