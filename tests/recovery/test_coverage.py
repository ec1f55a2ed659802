"""Simulate from the model, fit, and ask whether 90 % intervals hold the truth 90 % of the time."""

import numpy as np
import pytest

import logishape as ls
from logishape import appearance, shapes
from tests.problems import draw_intensities, grid

NUM_REPLICATES = 300
Z90 = 1.6449


def simulate(noise: float):
    """Errors and reported standard deviations of both kinds over replicates; shape and appearance both estimated."""
    shape = shapes.Posed(shapes.Ellipsoid(2), np.zeros(2))
    bounds = {"tx": (-8, 8), "ty": (-8, 8), "angle": (-1.2, 1.2), "semi_axis_x": (8, 32), "semi_axis_y": (6, 28)}
    model = ls.Model(shape, ls.Prior.named(shape, bounds), 1.0)
    truth = np.array([1.0, -2.0, 0.3, 20.0, 13.0])
    points = grid(64, 2)
    errors, sds = [], {"observed": [], "complete": []}
    for seed in range(NUM_REPLICATES):
        intensities = draw_intensities(model, truth, points, noise, seed)
        observation = ls.Observation.from_arrays(points, intensities)
        regions = ls.Regions(appearance.gaussian(100.0, noise), appearance.gaussian(0.0, noise))
        fit = ls.fit(model, observation, ls.State(truth, regions)).check()
        errors.append(fit.state.theta - truth)
        for kind in ("observed", "complete"):
            sds[kind].append(ls.laplace(model, observation, fit, kind).sd)
    return np.array(errors), {kind: np.array(values) for kind, values in sds.items()}


@pytest.mark.slow
@pytest.mark.parametrize("noise", [30.0, 100.0], ids=["low noise", "high noise"])
def test_observed_intervals_cover(noise, capsys):
    errors, sds = simulate(noise)
    coverage = {kind: np.mean(np.abs(errors) < Z90 * sd, axis=0) for kind, sd in sds.items()}
    ratio = {kind: sd.mean(axis=0) / errors.std(axis=0) for kind, sd in sds.items()}
    with capsys.disabled():
        for kind in sds:
            print(f"\nnoise {noise:g} {kind:>8}: coverage {coverage[kind].round(3)}, SD ratio {ratio[kind].round(2)}")
    # The binomial standard error of 300 replicates is 1.7 %.
    assert np.all((coverage["observed"] >= 0.86) & (coverage["observed"] <= 0.94))
    assert coverage["complete"].mean() < coverage["observed"].mean()  # the paper's kind is over-confident
