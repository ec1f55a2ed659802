"""Many images at once: what each gives alone, in any order, whatever the others do."""

from operator import itemgetter

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import logishape as ls
from logishape import shapes
from tests.problems import ellipse_case, grid, two_gaussians

OPTIONS = ls.FitOptions(anneal=(2.0,))


def assert_same(a: ls.Fit, b: ls.Fit) -> None:
    assert a.status is b.status
    assert (a.num_rounds, a.num_steps) == (b.num_rounds, b.num_steps)
    np.testing.assert_allclose(a.state.theta, b.state.theta, rtol=1e-7)
    np.testing.assert_allclose(a.log_joint, b.log_joint, rtol=1e-10)
    np.testing.assert_allclose(a.path, b.path, rtol=1e-6, atol=1e-6)


def spoilt(observation: ls.Observation, rows: slice, **values: float) -> ls.Observation:
    """The observation with other values in these rows, as no constructor would let pass."""
    arrays = {name: np.array(getattr(observation, name)) for name in ("points", "intensities", "weights")}
    for name, value in values.items():
        arrays[name][rows] = value
    return ls.Observation(**arrays)


@pytest.fixture(scope="module")
def cases():
    """Three images of different sizes, to be padded, the second started so badly that it needs longest."""
    found = [ellipse_case(noise, seed) for seed, noise in enumerate((5.0, 30.0, 80.0))]
    observations = [jax.tree.map(itemgetter(slice(1600 - 200 * k)), case.observation) for k, case in enumerate(found)]
    starts = [case.start for case in found]
    starts[1] = ls.State(np.array([-5.0, 5.0, -0.8, 6.0, 12.0]), starts[1].regions)
    model = found[0].model
    # Padded, as test_em.py lets us: one size, one compilation.
    alone = [ls.fit(model, one.padded(1600), start, OPTIONS) for one, start in zip(observations, starts, strict=True)]
    return model, observations, starts, alone


def test_a_batch_is_a_loop_in_any_order(cases):
    model, observations, starts, alone = cases
    for order in ([0, 1, 2], [2, 0, 1]):
        batch = ls.fit_batch(model, [observations[k] for k in order], [starts[k] for k in order], OPTIONS)
        for k, one in zip(order, batch, strict=True):
            assert_same(one, alone[k])


def test_broken_cases_get_a_reason_and_the_others_their_fits(cases, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # which would speak first where a user has none
    model, (good, *_), (start, *_), (fit, *_) = cases
    theta = start.theta
    few = spoilt(good, slice(4, None), weights=0.0)
    ragged = ls.Observation(good.points, good.intensities[:-1], good.weights)
    broken = {
        "3 of 1600 intensities are not finite": (spoilt(good, slice(3), intensities=np.nan), start),
        "intensities reach 1e\\+12": (spoilt(good, slice(3), intensities=1e12), start),
        "points are not finite": (spoilt(good, slice(3), points=np.inf), start),
        "weights must be finite, not negative": (spoilt(good, slice(3), weights=-1.0), start),
        "has 4 voxels but a fit needs at least 8": (few, start),
        "must have one row a voxel": (ragged, start),
        r"5 parameters .* but theta has shape \(4,\)": (good, ls.State(theta[:4], start.regions)),
        "the parameters must be finite": (good, ls.State(theta * np.nan, start.regions)),
        "the start has tx = 9, outside": (good, ls.State([9.0, *theta[1:]], start.regions)),
        "contains no voxel": (spoilt(good, slice(None), points=300.0), start),
        "log joint is not finite": (good, ls.State(theta, two_gaussians(1e-200))),
    }
    # Good ones at both ends, the broken between them, in groups of three, one of which has no good case at all.
    mixed = [(good, start), *broken.values(), (good, start)]
    first, *refused, last = ls.fit_batch(model, *map(list, zip(*mixed, strict=True)), OPTIONS, group_size=3)
    assert_same(first, fit)
    assert_same(last, fit)
    for one, (problem, case) in zip(refused, broken.items(), strict=True):
        assert one.status is ls.Status.REFUSED
        assert one.state is case[1]
        assert (one.log_joint.size, one.num_steps, one.num_rounds, one.at_bound) == (0, 0, 0, ())
        assert len(one.parameters) == np.size(case[1].theta)
        with pytest.raises(ls.FitError, match=f"^refused: .*{problem}.*; .*[.]$"):
            one.check()


class Cliff(shapes.AbstractShape):
    """A disc that is not a number once its radius falls below five."""

    @property
    def parameter_names(self):
        return ("x", "y", "radius")

    def level(self, theta, points):
        distance = shapes.safe_norm(points - theta[:2])
        return jnp.where(theta[2] > 5, theta[2], jnp.nan) - distance


def test_a_case_that_meets_no_number_spoils_nobody_and_ends():
    points = grid(40, 2)
    radii = (8.0, 3.0, 9.0)  # the second image draws its disc over the cliff
    rng = np.random.default_rng(0)
    images = [np.where(np.hypot(*points.T) < r, 100.0, 0.0) + rng.normal(0, 30, len(points)) for r in radii]
    observations = [ls.Observation.from_arrays(points, image, dtype=np.float64) for image in images]
    model = ls.Model(Cliff(), ls.Prior([-5, -5, 1], [5, 5, 15]), 0.8)
    start = ls.State([1.0, 1.0, 7.0], two_gaussians())
    batch = ls.fit_batch(model, observations, [start] * 3)
    without = ls.fit_batch(model, [observations[k] for k in (0, 2, 2)], [start] * 3)
    assert_same(batch[0], without[0])
    assert_same(batch[2], without[2])
    assert [one.status.is_usable for one in batch] == [True, False, True]
    for one in batch:
        assert one.num_rounds < 20  # of a hundred allowed
        assert np.all(np.isfinite(one.state.theta))


def test_what_cannot_be_stacked():
    case = ellipse_case()
    with pytest.raises(ls.InputError, match="whole number from 1 but is 0; leave it out"):
        ls.fit_batch(case.model, [case.observation], [case.start], group_size=0)
    with pytest.raises(ls.InputError, match="1 observations and 2 starts; give"):
        ls.fit_batch(case.model, [case.observation], [case.start] * 2)
    single = ellipse_case(dtype=np.float32)
    with pytest.raises(ls.InputError, match=r"one dimension and precision but found .*; split"):
        ls.fit_batch(case.model, [case.observation, single.observation], [case.start] * 2)
    other = ls.State(case.start.theta, ls.appearance.supervised_regions())
    with pytest.raises(ls.InputError, match="same kinds of appearance; split"):
        ls.fit_batch(case.model, [case.observation] * 2, [case.start, other])
    cube = ls.Observation.from_arrays(grid(6, 3), np.zeros(216), dtype=np.float64)
    with pytest.raises(ls.InputError, match="must live in the same space"):  # nothing a single case could mend
        ls.fit_batch(
            ls.Model(shapes.Ball(2), ls.Prior([0, 0, 1], [1, 1, 2]), 1.0),
            [cube],
            [ls.State([0.5, 0.5, 1.5], case.start.regions)],
        )
