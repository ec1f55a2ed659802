"""Many images at once: what each gives alone, in any order, whatever the others do."""

from operator import itemgetter

import jax
import numpy as np
import pytest

import logishape as ls
from tests.problems import ellipse_case

OPTIONS = ls.FitOptions(anneal=(2.0,))


def assert_same(a: ls.Fit, b: ls.Fit) -> None:
    assert a.status is b.status
    assert (a.num_rounds, a.num_steps) == (b.num_rounds, b.num_steps)
    np.testing.assert_allclose(a.state.theta, b.state.theta, rtol=1e-7)
    np.testing.assert_allclose(a.log_joint, b.log_joint, rtol=1e-10)


def test_a_batch_is_a_loop_in_any_order():
    cases = [ellipse_case(noise, seed) for seed, noise in enumerate((5.0, 30.0, 80.0))]
    # Of different sizes, so that padding is at work, and one that starts so badly that it needs longest.
    observations = [jax.tree.map(itemgetter(slice(1600 - 200 * k)), case.observation) for k, case in enumerate(cases)]
    starts = [case.start for case in cases]
    starts[1] = ls.State(np.array([-5.0, 5.0, -0.8, 6.0, 12.0]), starts[1].regions)
    model = cases[0].model
    alone = [
        ls.fit(model, observation, start, OPTIONS) for observation, start in zip(observations, starts, strict=True)
    ]
    batch = ls.fit_batch(model, observations, starts, OPTIONS)
    for a, b in zip(alone, batch, strict=True):
        assert_same(a, b)
    order = [2, 0, 1]
    shuffled = ls.fit_batch(model, [observations[k] for k in order], [starts[k] for k in order], OPTIONS)
    for k, one in zip(order, shuffled, strict=True):
        assert_same(one, batch[k])


def test_what_cannot_be_stacked():
    case = ellipse_case()
    with pytest.raises(ls.InputError, match="1 observations and 2 starts; give"):
        ls.fit_batch(case.model, [case.observation], [case.start] * 2)
    single = ellipse_case(dtype=np.float32)
    with pytest.raises(ls.InputError, match=r"one dimension and precision but found .*; split"):
        ls.fit_batch(case.model, [case.observation, single.observation], [case.start] * 2)
    other = ls.State(case.start.theta, ls.appearance.supervised_regions())
    with pytest.raises(ls.InputError, match="same kinds of appearance; split"):
        ls.fit_batch(case.model, [case.observation] * 2, [case.start, other])
