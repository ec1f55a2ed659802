"""Robustness: fits from starts drawn at random around the located pose, by three ways of fitting."""

from typing import Any

import numpy as np

from logishape.cochlea import Cochlea, SegmentOptions
from logishape.cochlea.search import NUM_SCORED, Found, begin, candidates, follow
from logishape.inference.model import Model, State
from logishape.inference.multistart import choose_starts
from logishape.reproduce.segmented import Scene

SPREAD_MM, SPREAD_RAD = 2.0, 0.6
NUM_STARTS, TIMES_CANDIDATES = 16, 8  # a pose that is known less well takes more of them than a segmentation has
WAYS = {
    "gauss-newton": "Gauss-Newton, one start",
    "multistart": "Gauss-Newton, several starts",
    "bfgs": "BFGS, one start",
}


def fit_from(scene: Scene, number: int, way: str, options: SegmentOptions) -> dict[str, Any]:
    """How one way of fitting ends from start `number`: Dice of labels and shape, log joint, status."""
    model = scene.model(options)
    start = draw_start(model, number, options.seed)
    if way == "multistart":
        found = _several(scene, model, start, number, options)
    else:
        method = "bfgs" if way == "bfgs" else "gauss-newton"
        found = follow(model, scene.crop, scene.intensities, [start], options, method)
    scores = scene.dice(found.theta, found.fit.state.regions, options)
    return {**scores, "status": found.fit.status.name.lower(), "start": start.tolist(), "theta": found.theta.tolist()}


def draw_start(model: Model, number: int, seed: int) -> np.ndarray:
    """Start `number`: uniform within 2 mm and 0.6 rad of the located pose, the rest uniform in its box."""
    cochlea, prior = model.shape, model.prior
    assert isinstance(cochlea, Cochlea)
    rng = np.random.default_rng([seed, number])
    start = rng.uniform(prior.lower, prior.upper)
    start[:6] = cochlea.mean()[:6] + _pose(rng, 1)[0]
    return _inside(model, start)


def _several(scene: Scene, model: Model, start: np.ndarray, number: int, options: SegmentOptions) -> Found:
    """As a segmentation does it, knowing of the pose that it is as far from the start as starts are drawn."""
    cochlea = model.shape
    assert isinstance(cochlea, Cochlea)
    drawn = np.tile(candidates(cochlea, options), (TIMES_CANDIDATES, 1))
    drawn[:, :6] = start[:6] + _pose(np.random.default_rng([options.seed, number, 1]), len(drawn))
    sample, state = begin(model, scene.crop, scene.intensities, options)
    at_start = State(start, state.regions)
    chosen = choose_starts(model, sample, at_start, _inside(model, drawn), NUM_STARTS, NUM_SCORED)
    return follow(model, scene.crop, scene.intensities, chosen, options)


def _pose(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.uniform(-1, 1, (count, 6)) * np.repeat([SPREAD_MM, SPREAD_RAD], 3)


def _inside(model: Model, theta: np.ndarray) -> np.ndarray:
    inner = 1e-3 * model.prior.widths
    return np.clip(theta, model.prior.lower + inner, model.prior.upper - inner)
