"""How far a cochlea's sections stray from the model's, as the image shows it, and what that does to a fit."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from logishape.cochlea.search import Found
from logishape.cochlea.straying import NUM_MODES, UNIT_SD
from logishape.cochlea.view import View, view

SDS_MM = np.arange(0.01, 0.305, 0.01)
NUM_STEPS = 1  # of Gauss and Newton, after which the SD is read


class Misfit(NamedTuple):
    """The SD (mm) of the sections' centres about the model's, and how the fit's parameters follow deviations.

    Sections that deviate by w look like parameters that are off by `response` w: a fit ends there.
    """

    sd_mm: float
    response: Float[np.ndarray, "p m"]

    @property
    def mode_sd(self) -> Float[np.ndarray, " m"]:
        """Standard deviations of the modes."""
        return self.sd_mm * UNIT_SD


def find_misfit(found: Found, theta: Float[np.ndarray, " p"], blur_mm: float) -> Misfit:
    """How far the sections stray, by the evidence of the image about a fit that is free of what blur does to it.

    The image is rendered at the parameters with about this point spread; parameters and deviations w ~ N(0, sd^2)
    explain the difference to first order, the noise being correlated as the residuals are. sd is the root of its mean
    square, any one of `SDS_MM` being as likely before, after `NUM_STEPS` of Gauss and Newton. The response is
    (J' J + P0)^-1 J' J_w of the first view.
    """
    p, prior = len(theta), found.model.prior
    state, sd, response = np.concatenate([theta, np.zeros(NUM_MODES)]), 0.0, None
    mean = np.concatenate([np.asarray(prior.mean), np.zeros(NUM_MODES)])
    for k in range(NUM_STEPS + 1):
        seen = view(found, state, blur_mm)
        blur_mm = seen.blur_mm
        if response is None:
            own = seen.information[:p, :p] + np.asarray(prior.precision)
            response = np.linalg.solve(own, seen.information[:p, p:])
        evidence = np.array([_evidence(seen, state, mean, _precision(found, one)) for one in SDS_MM])
        sd = float(np.sqrt(np.average(np.square(SDS_MM), weights=np.exp(evidence - evidence.max()))))
        if k < NUM_STEPS:
            P = _precision(found, sd)
            state = state + np.linalg.solve(seen.information + P, seen.score + P @ (mean - state))
            state[:p] = np.clip(state[:p], prior.lower, prior.upper)
    assert response is not None
    return Misfit(sd, response)


def _precision(found: Found, sd_mm: float) -> np.ndarray:
    own = np.asarray(found.model.prior.precision)
    p = len(own)
    P = np.zeros((p + NUM_MODES, p + NUM_MODES))
    P[:p, :p] = own
    P[p:, p:] = np.diag(1 / np.square(sd_mm * UNIT_SD))
    return P


def _evidence(seen: View, state: np.ndarray, mean: np.ndarray, P: np.ndarray) -> float:
    """log p(image | sd) of the linearised Gaussian model, up to a constant."""
    A, off = seen.information + P, mean - state
    pull = seen.score + P @ off
    fit = pull @ np.linalg.solve(A, pull) - off @ P @ off
    spread = np.log(np.diag(P)[len(P) - NUM_MODES :]).sum() - np.linalg.slogdet(A)[1]
    return float(fit + spread) / 2
