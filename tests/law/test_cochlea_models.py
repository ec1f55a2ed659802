"""Cochleae with more and fewer free parameters are comparable: evidence prefers what the image was made with."""

import numpy as np
import pytest

import logishape as ls
from logishape.cochlea import Cochlea
from tests.problems import two_gaussians

pytestmark = pytest.mark.slow  # two fits of a cochlea with their posteriors: half a minute to compile each


def model_of(free):
    cochlea = Cochlea(free=free)
    return ls.Model(cochlea, cochlea.prior(), 0.15)


@pytest.mark.parametrize(("scale", "winner"), [(0.0, 0), (0.15, 1)])
def test_evidence_frees_the_size_of_the_sections_only_where_it_differs(scale, winner):
    models = [model_of(()), model_of(("section_scale",))]
    truth = models[1].shape.mean()
    truth[-1] = scale
    axes = [np.arange(low, high, 0.5) for low, high in ((-4.5, 7.5), (-5, 5), (-3, 4.5))]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    rng = np.random.default_rng(0)
    inside = np.asarray(models[1].shape.level(truth, points)) > 0
    image = np.where(inside, 100.0, 0.0) + rng.normal(0, 30, len(points))
    observation = ls.Observation.from_arrays(points, image)
    logs = []
    for model in models:
        fit = ls.fit(model, observation, ls.State(model.shape.mean(), two_gaussians()))
        logs.append(float(ls.evidence(model, observation, fit, effective_fraction=1.0)))
    assert int(np.argmax(logs)) == winner
