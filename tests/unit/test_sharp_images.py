"""Images without noise: however sure the appearances are, a fit arrives where the labels put the shape."""

from typing import Any

import jax
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import logishape as ls
from logishape import appearance, shapes
from tests.problems import grid

RADIUS, LENGTH = 8.0, 0.5
POINTS = grid(40, 2)
DISTANCE = np.hypot(*POINTS.T)
MODEL = ls.Model(shapes.Ball(2), ls.Prior([-10, -10, 1], [10, 10, 20]), LENGTH)


@pytest.fixture(scope="module")
def best_radius():
    """With every label known, the most likely radius of the logistic prior, by SciPy: 8.09, not 8."""
    sign = np.where(DISTANCE < RADIUS, 1.0, -1.0)

    def energy(radius):
        return np.sum(np.logaddexp(0, -sign * (radius - DISTANCE) / LENGTH))

    result: Any = minimize_scalar(energy, bounds=(6, 10), method="bounded", options={"xatol": 1e-6})
    assert result.x == pytest.approx(8.09, abs=0.005)
    return result.x


@pytest.mark.parametrize(
    ("method", "dtype"), [("gauss-newton", np.float32), pytest.param("bfgs", np.float64, marks=pytest.mark.slow)]
)
def test_a_sharp_disc_is_found_however_sure_the_appearances_are(dtype, method, best_radius):
    # Log odds of up to 5e17 a voxel: changes of one nat must not drown in them. One compilation serves all.
    observation = ls.Observation.from_arrays(POINTS, np.where(DISTANCE < RADIUS, 1000.0, 0.0), dtype=dtype)
    for sd in (10.0, 0.1, 0.01, 1e-6):
        regions = ls.Regions(appearance.gaussian(1000.0, sd), appearance.gaussian(0.0, sd))
        result = ls.fit(MODEL, observation, ls.State([1.5, 1, 6], regions), ls.FitOptions(method=method))
        assert result.status is ls.Status.CONVERGED, sd
        # A fraction of the posterior's sd, which is some 0.1 mm; the decrement's tolerance allows that much.
        np.testing.assert_allclose(result.state.theta, [0, 0, best_radius], rtol=0, atol=0.01, err_msg=f"sd {sd}")
        for leaf in jax.tree.leaves(result.state):
            assert np.all(np.isfinite(leaf)), sd
