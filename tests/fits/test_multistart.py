"""Several starts on one image: the best is found, and the others say how far to trust it."""

import dataclasses

import numpy as np
import pytest
import scipy.stats

import logishape as ls
from logishape import shapes
from logishape.inference.multistart import draw_prior
from tests.problems import grid, two_gaussians

POINTS = grid(32, 2)
MODEL = ls.Model(shapes.Ball(2), ls.Prior([-12, -12, 2], [12, 12, 10]), 0.4)
NOISE = 50.0
FIXED = ls.Regions(
    ls.appearance.Fixed(ls.appearance.gaussian(100, NOISE)), ls.appearance.Fixed(ls.appearance.gaussian(0, NOISE))
)
NUM_FITS = 4  # in all tests: another number is another compilation


def observe(*discs, noise=NOISE, seed=0):
    """An image of discs (x, y, radius, brightness) in noise."""
    image = np.random.default_rng(seed).normal(0, noise, len(POINTS))
    for x, y, radius, brightness in discs:
        image += np.where(np.hypot(POINTS[:, 0] - x, POINTS[:, 1] - y) < radius, brightness, 0.0)
    return ls.Observation.from_arrays(POINTS, image, dtype=np.float64)


ONE_DISC, TWO_DISCS = observe((6, 5, 5, 100)), observe((7, 6, 5, 100), (-7, -6, 5, 85))


def search(key, observation=ONE_DISC, theta=(4.0, 4.0, 4.0), candidates=64, regions=FIXED, num_fits=NUM_FITS):
    start = ls.State(np.array(theta), regions)
    return ls.multistart(MODEL, observation, start, key=key, candidates=candidates, num_fits=num_fits)


@pytest.mark.parametrize("seed", range(3))
def test_never_worse_than_the_single_start(seed, key):
    rng = np.random.default_rng(seed)
    theta = np.array([*rng.uniform(0, 9, 2), rng.uniform(3, 7)])
    alone = ls.fit(MODEL, TWO_DISCS, ls.State(theta, FIXED))
    found = search(key, TWO_DISCS, theta)
    assert found.best.status.is_usable
    # One of the fits is that from the start; a batch differs from it by rounding.
    assert min(np.abs(one.state.theta - alone.state.theta).max() for one in found.fits) < 1e-6
    if alone.status.is_usable:
        assert found.log_joints[0] >= alone.log_joint[-1] - 1e-6


def test_two_objects_are_two_solutions_and_the_margin_says_how_different(key):
    found = search(key, TWO_DISCS, theta=(-6.0, -5.0, 5.0))
    bright, dim = (
        ls.fit(MODEL, TWO_DISCS, ls.State(np.array(theta), FIXED)).check() for theta in ((6, 5, 5.0), (-6, -5, 5.0))
    )
    np.testing.assert_allclose(found.best.state.theta, bright.state.theta, atol=0.05)
    assert found.num_solutions >= 2
    # Fits end within rise_tolerance of their maxima, 1e-3 nats, twice over.
    assert found.margin == pytest.approx(bright.log_joint[-1] - dim.log_joint[-1], abs=0.01)
    assert found.spread()["x"] > 3  # the solutions lie 14 mm apart
    assert max(found.spread(within_nats=1.0).values()) < 0.05
    assert found.spread(within_nats=1e9) == found.spread()


def test_one_object_is_one_solution_from_anywhere(key):
    """Alone, a disc over empty background has nothing to climb and vanishes."""
    far = (-9.0, -9.0, 3.0)
    assert not ls.fit(MODEL, ONE_DISC, ls.State(np.array(far), FIXED)).status.is_usable
    found = search(key, theta=far)
    np.testing.assert_allclose(found.best.check().state.theta, [6, 5, 5], atol=0.6)
    assert found.num_agreeing >= 2
    assert found.margin > 100
    usable = [one.status.is_usable for one in found.fits]
    assert usable == sorted(usable, reverse=True)  # unusable ones last, whatever their log joint
    assert not usable[-1]
    np.testing.assert_array_equal(found.solutions >= 0, usable)
    heights = found.log_joints[usable]
    assert list(heights) == sorted(heights, reverse=True)


def test_same_key_same_result(key):
    first, again = search(key), search(key)
    np.testing.assert_array_equal(first.log_joints, again.log_joints)
    np.testing.assert_array_equal(first.best.state.theta, again.best.state.theta)


def test_the_order_of_candidates_does_not_matter(key):
    rng = np.random.default_rng(0)
    candidates = rng.uniform(MODEL.prior.lower, MODEL.prior.upper, (40, 3))
    first = search(key, TWO_DISCS, candidates=candidates)
    again = search(key, TWO_DISCS, candidates=rng.permutation(candidates))
    np.testing.assert_array_equal(first.best.state.theta, again.best.state.theta)
    np.testing.assert_array_equal(first.log_joints, again.log_joints)


def test_a_candidate_at_the_object_is_found_whatever_the_start(key):
    wrong = [[-9.0, 9, 3], [9, -9, 3], [-9, -9, 4], [0, 10, 2.5]]
    found = search(key, theta=(-9.0, -9.0, 3.0), candidates=[*wrong, [5.0, 4.0, 4.0]])
    np.testing.assert_allclose(found.best.state.theta, [6, 5, 5], atol=0.6)


def test_where_nothing_is_usable_the_best_says_so(key):
    found = search(key, observe())
    assert (found.num_solutions, found.num_agreeing, found.margin) == (0, 0, 0.0)
    with pytest.raises(ls.FitError):
        found.best.check()
    with pytest.raises(ls.InputError, match=r"no fit of the multistart is usable, .*; ask"):
        found.spread()


def test_appearances_are_learnt_on_the_way(key):
    found = search(key, regions=two_gaussians(NOISE))
    inside = found.best.check().state.regions.inside
    np.testing.assert_allclose(inside.components.means, 100, atol=15)


def test_candidates_follow_the_prior(key):
    """A flat parameter beside two correlated Gaussian ones, the second cut by the box at its mean."""
    covariance = np.array([[np.inf, 0, 0], [0, 4.0, 1.5], [0, 1.5, 1.0]])
    prior = ls.Prior([-3, -30, 0], [5, 30, 30], [0.0, 1.0, 0.0], covariance)
    draws = draw_prior(prior, key, 4000)
    assert scipy.stats.kstest(draws[:, 0], scipy.stats.uniform(-3, 8).cdf).pvalue > 1e-3
    assert scipy.stats.kstest(draws[:, 2], scipy.stats.halfnorm.cdf).pvalue > 1e-3
    # Given the second, the first Gaussian parameter is normal with mean 1 + 1.5 b and variance 4 - 1.5^2.
    rest = (draws[:, 1] - 1 - 1.5 * draws[:, 2]) / np.sqrt(4 - 1.5**2)
    assert scipy.stats.kstest(rest, scipy.stats.norm.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(rest, draws[:, 2])[0, 1]) < 4 / np.sqrt(4000)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"num_fits": 0}, "num_fits must be a whole number from 1 but is 0; try"),
        ({"candidates": 0}, "number of candidates must be a whole number from 1 but is 0; try 256"),
        ({"candidates": 2.5}, "number of candidates must be a whole number from 1 but is 2.5; try 256"),
        ({"candidates": [[1.0, 2.0]]}, r"rows of 3 numbers but have shape \(1, 2\) of float64; give \(m, 3\)"),
        ({"candidates": np.zeros((0, 3))}, r"rows of 3 numbers but have shape \(0, 3\)"),
        ({"candidates": [[1.0, 2.0, 5.0], [1.0, 2.0, 50.0]]}, r"candidate 1 has radius = 50, outside .*; move"),
        ({"candidates": [[1.0, np.nan, 5.0]]}, "candidate 0 has y = nan, outside"),
        ({"theta": (0.0, 0.0, 50.0)}, "the start has radius = 50, outside"),
        ({"theta": (0.0, 0.0)}, r"3 parameters .* theta has shape \(2,\)"),
    ],
)
def test_mistakes_meet_one_sentence(changes, sentence, key):
    with pytest.raises(ls.InputError, match=sentence):
        search(key, **changes)


def test_an_image_on_which_nothing_can_begin(key):
    elsewhere = dataclasses.replace(ONE_DISC, points=ONE_DISC.points + 500)
    with pytest.raises(ls.InputError, match="contains no voxel"):
        search(key, elsewhere)
