"""Draws of a cochlea: its parameters, and sections that may stray from the calibrated ones along the duct."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from logishape.cochlea.misfit import Misfit
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.straying import NUM_MODES, strayed
from logishape.posterior import ShapePosterior


class Draws(NamedTuple):
    """A row of parameters for each draw, and the powers of its section table (`SectionTable.powers`)."""

    theta: Float[np.ndarray, "s p"]
    powers: Float[np.ndarray, "s 5 degree"]


def as_draws(cochlea: Cochlea, draws: Any) -> Draws:
    """Draws as they are; rows of parameters alone have the cochlea's own sections."""
    if isinstance(draws, Draws):
        return draws
    own = np.asarray(cochlea.calibration.table.powers)
    return Draws(np.asarray(draws), np.broadcast_to(own, (len(draws), *own.shape)))


def draw_cochleae(
    cochlea: Cochlea, posterior: ShapePosterior, misfit: Misfit | None, seed: int, num_draws: int
) -> Draws:
    """Draws of the posterior within its box; with a misfit, each with sections that go with its parameters.

    The posterior's covariance C holds what straying sections do to the fit. Deviations w have the SDs s of `Misfit`
    and move the parameters by -R w, so that given the parameters they are Gaussian with mean -S R' C^-1 (theta -
    mean), S = diag(s^2), and covariance S - S R' C^-1 R S.
    """
    theta = np.asarray(posterior.sample(jax.random.key(seed), num_draws))
    if misfit is None:
        return as_draws(cochlea, theta)
    variance, response = np.square(misfit.mode_sd), misfit.response
    pull = np.linalg.solve(np.asarray(posterior.covariance), response * variance).T  # S R' C^-1
    left = np.diag(variance) - pull @ (response * variance)
    values, axes = np.linalg.eigh((left + left.T) / 2)
    root = axes * np.sqrt(np.maximum(values, 0))
    noise = np.random.default_rng([seed, 1]).standard_normal((num_draws, NUM_MODES))
    deviations = noise @ root.T - (theta - np.asarray(posterior.mean)) @ pull.T
    own = cochlea.calibration.table.powers
    return Draws(theta, np.stack([strayed(own, row) for row in deviations]))
