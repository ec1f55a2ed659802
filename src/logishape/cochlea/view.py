"""The crop about a state, to first order: how its rendering moves with parameters and straying sections."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

from logishape.cochlea.evaluation import level_at
from logishape.cochlea.reformat import SHAPE, SPACING
from logishape.cochlea.render import EDGE_MM, Rendering, Scene, render, smooth
from logishape.cochlea.search import Found
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.straying import strayed
from logishape.cochlea.vestibule import is_beyond
from logishape.posterior.correlation import correlation_on_lattice

NUM_LOOKS = 3  # Gauss-Newton steps
_STEPS = 1e-3, 2e-3  # differences: of a parameter in parts of its box, of a deviation
_ROBUST = 2.0  # residuals beyond so many of their scale count less


class View(NamedTuple):
    """Tempered information and score of parameters and, if the state has them, deviations; and the point spread."""

    information: Float[np.ndarray, "q q"]
    score: Float[np.ndarray, " q"]
    blur_mm: float


def most_alike(found: Found) -> tuple[Float[np.ndarray, " p"], float]:
    """Parameters whose rendering is most like the crop, the prior counted, and the point spread (SD, mm)."""
    prior, theta, blur_mm = found.model.prior, found.theta, None
    P0, mean = np.asarray(prior.precision), np.asarray(prior.mean)
    for _ in range(NUM_LOOKS):
        seen = view(found, theta, blur_mm)
        step = np.linalg.solve(seen.information + P0, seen.score + P0 @ (mean - theta))
        theta, blur_mm = np.clip(theta + step, prior.lower, prior.upper), seen.blur_mm
    assert blur_mm is not None
    return theta, blur_mm


def view(found: Found, state: np.ndarray, blur_mm: float | None = None) -> View:
    """Information k J' W J / s^2 and score k J' W r / s^2 of the difference r between the image and its rendering.

    W: robust weights; s: the residuals' scale; k: what share of the voxels counts for as many independent ones, for
    the parameters on average, with noise correlated as the residuals are. The values of lumen and bone and the
    point spread are free.
    """
    shape, crop, p = _cochlea(found), found.crop, len(found.theta)
    scene = Scene(crop, level_at(_at(shape, state), state[:p], crop.points), is_beyond(crop.points))
    seen = render(scene, blur_mm)
    J = _columns(found, state, scene, seen)
    near = scene.is_near
    left = (scene.image - seen.image)[near]
    weights = 1 / (1 + np.square(left / (_ROBUST * seen.residual)))
    root = np.sqrt(weights)[:, None]
    free = _free(scene, seen)
    both = np.column_stack([J, left])
    both -= free @ np.linalg.lstsq(free * root, both * root, rcond=None)[0]
    J, left = both[:, :-1], both[:, -1]
    variance = np.sum(weights * np.square(left)) / np.sum(weights)
    information = (J.T * weights) @ J / variance
    length = correlation_on_lattice(_index(near), left * root[:, 0]).length
    share = _share(J[:, :p] * weights[:, None], information[:p, :p] * variance, near, length)
    return View(share * information, share * J.T @ (weights * left) / variance, seen.blur_mm)


def _share(J: np.ndarray, information: np.ndarray, near: np.ndarray, length: float) -> float:
    """p / tr(H^-1 B): H the information of white noise, B that of noise correlated over this length (voxels)."""
    whole = (1 + 4 * np.pi * length**2) ** 1.5  # the sum of the correlation over all lags (`NoiseCorrelation`)
    smoothed = np.empty_like(J)
    for k, column in enumerate(J.T):
        grid = np.zeros(near.shape)
        grid[near] = column
        grid = ndimage.gaussian_filter(grid.reshape(SHAPE), np.sqrt(2) * length, mode="constant", truncate=3)
        smoothed[:, k] = np.asarray(grid).ravel()[near]
    return min(1.0, len(information) / float(np.trace(np.linalg.solve(information, whole * J.T @ smoothed))))


def _columns(found: Found, state: np.ndarray, scene: Scene, seen: Rendering) -> Float[np.ndarray, "n q"]:
    """How the rendering near the surface moves with parameters and deviations: what the surface sweeps, blurred."""
    shape, p, widths = _cochlea(found), len(found.theta), np.asarray(found.model.prior.widths)
    is_swept = (np.abs(scene.levels + EDGE_MM) < SPACING / 2) & ~scene.beyond
    points = found.crop.points[is_swept]
    here = level_at(_at(shape, state), state[:p], points)
    steps = np.concatenate([_STEPS[0] * widths, np.full(len(state) - p, _STEPS[1])])
    contrast = (seen.lumen - seen.bone[is_swept]) / SPACING
    columns = []
    for k, step in enumerate(steps):
        moved = state.copy()
        moved[k] += step
        swept = np.zeros(len(scene.levels))
        swept[is_swept] = contrast * (level_at(_at(shape, moved), moved[:p], points) - here) / step
        columns.append(smooth(swept, seen.blur_mm)[scene.is_near])
    return np.stack(columns, axis=1)


def _free(scene: Scene, seen: Rendering) -> Float[np.ndarray, "n 3"]:
    """How the rendering moves with the values of lumen and bone and with the point spread."""
    lumen, bone = scene.inside, scene.outside * seen.bone
    sharp, step = seen.lumen * lumen + bone, 0.01
    wider = (smooth(sharp, seen.blur_mm + step) - smooth(sharp, seen.blur_mm - step)) / (2 * step)
    columns = (smooth(lumen, seen.blur_mm), smooth(bone, seen.blur_mm), wider)
    return np.stack([one[scene.is_near] for one in columns], axis=1)


def _index(near: Bool[np.ndarray, " n"]) -> np.ndarray:
    return np.stack(np.unravel_index(np.flatnonzero(near), SHAPE), axis=1)


def _cochlea(found: Found) -> Cochlea:
    shape = found.model.shape
    assert isinstance(shape, Cochlea)
    return shape.by_level()


def _at(shape: Cochlea, state: np.ndarray) -> Cochlea:
    """The cochlea with the deviations of a state, if it has any."""
    deviations = state[shape.num_parameters :]
    return shape.with_sections(strayed(shape.calibration.table.powers, deviations)) if deviations.size else shape
