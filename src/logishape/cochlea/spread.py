"""How far parameters spread what is computed from them: a surface by draws, a population's sizes by a Gaussian."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from logishape.cochlea.draws import Draws
from logishape.cochlea.evaluation import level_at
from logishape.cochlea.measurements import QUANTITIES, plain_rows
from logishape.cochlea.shape import Cochlea
from logishape.core.arrays import AnyArray

_STEP_MM = 0.05  # of the level's gradient in space


def spread(
    function: Callable[[np.ndarray], np.ndarray],
    centre: Float[np.ndarray, " p"],
    covariance: Float[np.ndarray, "p p"],
) -> tuple[np.ndarray, np.ndarray]:
    """What `function` gives at the centre, and its standard deviation to first order (rows in, rows out).

    The root of g' S g; g' L is half the difference between one standard deviation up and one down along each column
    of L, S = L L', so that a function that bends is followed as far as parameters go, and nothing is compiled anew.
    """
    steps = np.linalg.cholesky(covariance).T
    values = function(np.concatenate([centre[None], centre + steps, centre - steps]))
    halves = (values[1 : 1 + len(steps)] - values[1 + len(steps) :]) / 2
    return values[0], np.sqrt(np.sum(np.square(halves), axis=0))


def surface_sd(
    cochlea: Cochlea, theta: Float[AnyArray, " p"], draws: Draws, vertices: Float[AnyArray, "v 3"]
) -> Float[np.ndarray, " v"]:
    """How sure the surface is at points on it: the standard deviation (mm) of where it lies along its normal.

    That of the level over the draws, divided by the level's gradient in space.
    """
    points = np.asarray(vertices, float)
    levels = [level_at(cochlea.with_sections(powers), row, points) for row, powers in zip(*draws, strict=True)]
    steps = _STEP_MM * np.eye(3)
    slopes = [level_at(cochlea, theta, points + s) - level_at(cochlea, theta, points - s) for s in steps]
    return np.std(levels, axis=0) / np.maximum(np.linalg.norm(slopes, axis=0) / (2 * _STEP_MM), 0.1)


def population_of(cochlea: Cochlea) -> dict[str, tuple[float, float]] | None:
    """Mean and SD, by name, of parameters and measurements over the cochleae that the prior stands for.

    None where the prior is a box alone. Neither the axis, which is a matter of how the head lies, nor the volume.
    """
    prior = cochlea.prior()
    if not np.any(prior.precision):
        return None
    mean, covariance = np.asarray(prior.mean), np.linalg.inv(np.asarray(prior.precision))
    found = dict(zip(cochlea.parameter_names, zip(mean, np.sqrt(np.diag(covariance)), strict=True), strict=True))
    middle, sds = spread(lambda rows: plain_rows(cochlea, rows), mean, covariance)
    for name, *both in zip(QUANTITIES, middle, sds, strict=False):  # the volume is the last of them
        if not name.startswith("axis"):
            found[name] = (both[0], both[1])
    return {name: (float(one), float(sd)) for name, (one, sd) in found.items()}
