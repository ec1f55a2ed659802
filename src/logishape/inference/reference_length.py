"""The reference length that makes the image most likely."""

import dataclasses
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from logishape.core.errors import InputError
from logishape.core.observation import Observation
from logishape.inference.fit import Fit, fit
from logishape.inference.model import Model, State
from logishape.inference.options import FitOptions


@dataclasses.dataclass(frozen=True)
class LengthProfile:
    """The log joint, maximised over shape and appearance, at each reference length (mm), and the best one.

    `is_inside` is false when the best length is the first or last that was tried: then the range, not the
    image, chose it.
    """

    lengths: np.ndarray
    log_joints: np.ndarray
    fits: tuple[Fit, ...]
    best_length: float
    best_fit: Fit
    is_inside: bool


def profile_reference_length(
    model: Model,
    observation: Observation,
    start: State,
    lengths: Any,
    options: FitOptions | None = None,
) -> LengthProfile:
    """The profile of the log joint over increasing reference lengths, its maximum refined between them.

    From the largest to the smallest, as in annealing: each starts from the usable fit before it, so that the
    curve follows one solution. A length whose fit is not usable counts as minus infinity.
    """
    grid = np.asarray(lengths, dtype=np.float64)
    if grid.ndim != 1 or grid.size < 3 or not np.all(grid > 0) or not np.all(np.diff(grid) > 0):
        raise InputError(
            f"expected at least three positive, increasing lengths (mm) but found {grid.tolist()}; try np.geomspace."
        )
    fits: list[Fit] = []
    state = start
    for length in grid[::-1]:
        fits.append(fit(model.with_reference_length(length), observation, state, options))
        state = fits[-1].state if fits[-1].status.is_usable else start
    fits = fits[::-1]
    heights = np.array([_height(one) for one in fits])
    k = int(np.argmax(heights))
    if not np.isfinite(heights[k]):
        raise InputError("no reference length gave a usable fit; move the start closer to the object.")
    if k in (0, grid.size - 1):
        return LengthProfile(grid, heights, tuple(fits), float(grid[k]), fits[k], is_inside=False)
    length, best = _refine(model, observation, fits[k], (grid[k - 1], grid[k + 1]), options)
    if _height(best) < heights[k]:
        length, best = float(grid[k]), fits[k]
    return LengthProfile(grid, heights, tuple(fits), length, best, is_inside=True)


def _height(one: Fit) -> float:
    return float(one.log_joint[-1]) if one.status.is_usable else -np.inf


def _refine(
    model: Model,
    observation: Observation,
    near: Fit,
    bracket: tuple[float, float],
    options: FitOptions | None,
) -> tuple[float, Fit]:
    """The maximum within the bracket, to 1 % of the length."""
    found: dict[float, Fit] = {}

    def energy(log_length: float) -> float:
        found[log_length] = fit(model.with_reference_length(np.exp(log_length)), observation, near.state, options)
        return -_height(found[log_length])

    minimize_scalar(energy, bounds=tuple(np.log(bracket)), method="bounded", options={"xatol": 0.01})
    best = max(found, key=lambda key: _height(found[key]))
    return float(np.exp(best)), found[best]
