"""Densities and their updates against SciPy, studenttmixture and numerical maximisation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from logishape import appearance
from logishape.appearance.student import DOF_RANGE, log_minus_digamma, solve_dof
from logishape.core.arrays import double_precision
from logishape.inference import log_marginal

GRID = np.linspace(-500, 700, 301)


def test_student_mixture_is_scipys(x64):
    weights, means, scales, dofs = [0.2, 0.5, 0.3], [-50.0, 20.0, 300.0], [10.0, 40.0, 80.0], [2.5, 7.0, 190.0]
    ours = appearance.StudentMixture(weights, means, scales, dofs).log_prob(GRID)
    terms = [
        np.log(w) + stats.t.logpdf(GRID, v, m, s) for w, m, s, v in zip(weights, means, scales, dofs, strict=True)
    ]
    np.testing.assert_allclose(ours, special.logsumexp(terms, axis=0), rtol=1e-11)


def test_gaussian_mixture_is_scipys_and_the_limit_of_students(x64):
    weights, means, scales = [0.4, 0.6], [0.0, 200.0], [30.0, 60.0]
    ours = appearance.GaussianMixture(weights, means, scales).log_prob(GRID)
    terms = [np.log(w) + stats.norm.logpdf(GRID, m, s) for w, m, s in zip(weights, means, scales, strict=True)]
    np.testing.assert_allclose(ours, special.logsumexp(terms, axis=0), rtol=1e-11)
    near = np.linspace(-100, 300, 101)  # within four scales; the difference there is z^4 / (4 nu)
    limit = appearance.StudentMixture(weights, means, scales, 1e4, estimate_dofs=False).log_prob(near)
    np.testing.assert_allclose(limit, appearance.GaussianMixture(weights, means, scales).log_prob(near), atol=5e-3)


@given(c=st.floats(1e-4, 5.0))
def test_degrees_of_freedom_solve_their_equation(c):
    with double_precision():
        ours = float(solve_dof(jnp.array([c]))[0])

    def equation(nu):
        return np.log(nu / 2) - special.digamma(nu / 2) - c

    low, high = DOF_RANGE
    clamped = low if equation(low) < 0 else high if equation(high) > 0 else optimize.brentq(equation, low, high)
    assert ours == pytest.approx(clamped, rel=1e-8)


def test_log_minus_digamma_falls_and_is_positive(x64):
    values = np.asarray(log_minus_digamma(np.geomspace(0.1, 1e4, 50)))
    assert np.all(np.diff(values) < 0)
    assert np.all(values > 0)


def test_one_student_component_finds_scipys_maximum_likelihood(x64):
    data = stats.t.rvs(5.0, loc=30, scale=8, size=4000, random_state=np.random.default_rng(3))
    one = appearance.StudentMixture(1.0, [10.0], [20.0], 20.0)
    step = eqx.filter_jit(lambda o: o.update(data, np.ones_like(data)))
    for _ in range(300):
        one = step(one)
    dof, location, scale = stats.t.fit(data)
    ours = (float(one.dofs[0]), float(one.components.means[0]), float(one.components.scales[0]))
    assert ours == pytest.approx((dof, location, scale), rel=2e-3)  # SciPy stops at its simplex tolerance


def test_student_mixture_matches_an_independent_implementation(x64):
    from studenttmixture import EMStudentMixture

    rng = np.random.default_rng(4)
    data = np.concatenate([10 * rng.standard_t(4, 1500), 120 + 15 * rng.standard_t(8, 2500)])
    theirs = EMStudentMixture(n_components=2, fixed_df=False, n_init=3, random_state=1, tol=1e-7, max_iter=5000)
    theirs.fit(data[:, None])
    ours = appearance.StudentMixture([0.5, 0.5], [20.0, 90.0], [30.0, 30.0], 10.0)
    step = eqx.filter_jit(lambda o: o.update(data, np.ones_like(data)))
    for _ in range(500):
        ours = step(ours)
    likelihood = float(np.mean(np.asarray(ours.log_prob(data))))
    assert likelihood >= theirs.score(data[:, None], perform_model_checks=False) - 1e-6
    order = np.argsort(theirs.location[:, 0])
    np.testing.assert_allclose(ours.components.means, theirs.location[order, 0], rtol=0.01, atol=0.2)
    np.testing.assert_allclose(ours.components.weights, theirs.mix_weights[order], rtol=0.02)
    np.testing.assert_allclose(
        ours.dofs, theirs.degrees_of_freedom[order], rtol=0.1
    )  # the likelihood is flat in them


@pytest.mark.parametrize("kind", ["gaussian", "student"])
def test_map_updates_reach_the_maximum_that_scipy_finds(kind, x64):
    rng = np.random.default_rng(5)
    data, weight = 40 + 12 * rng.standard_t(5, 300), rng.uniform(0.2, 1, 300)
    counts = appearance.PseudoCounts(weights=5.0, means=30.0, scales=60.0, dofs=40.0)

    def make(mean, scale, dof):
        if kind == "gaussian":
            return appearance.gaussian(mean, scale, counts)
        return appearance.StudentMixture(1.0, [mean], [scale], dof, counts)

    one = start = make(20.0, 20.0, 8.0)
    step = eqx.filter_jit(lambda o: o.update(data, weight))
    for _ in range(300):
        one = step(one)

    @jax.jit
    def energy(x):
        there = eqx.tree_at(lambda m: (m.components.means, m.components.scales), start, (x[:1], jnp.exp(x[1:2])))
        if kind == "student":
            there = eqx.tree_at(lambda m: m.dofs, there, jnp.exp(x[2:3]))
        return -(jnp.sum(weight * there.log_prob(data)) + there.log_prior())

    ours = [float(one.components.means[0]), float(np.log(one.components.scales[0]))]
    ours += [float(np.log(one.dofs[0]))] if kind == "student" else []
    best = optimize.minimize(energy, ours, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    np.testing.assert_allclose(best.x, ours, atol=2e-5)


def test_pseudo_counts_draw_weights_to_the_starting_weights(x64):
    weights = [0.2, 0.8]
    counts = appearance.PseudoCounts.worth(1e6, weights)
    one = appearance.GaussianMixture(weights, [0.0, 100.0], [10.0, 10.0], counts)
    data = np.zeros(500)  # all say the first component
    for _ in range(10):
        one = one.update(data, np.ones(500))
    np.testing.assert_allclose(one.components.weights, weights, atol=1e-3)
    np.testing.assert_allclose(one.components.scales, 10.0, atol=0.02)


def test_log_marginal_neither_overflows_nor_underflows(x64):
    """The paper calls the direct objective difficult because of overflows; in log odds there are none."""
    V = np.array([-800.0, -30.0, -1.0, 0.0, 2.0, 40.0, 900.0])
    inside, outside = np.array([-5.0, -900.0, -2.0, -3.0, -700.0, -4.0, -2.0]), np.full(7, -6.0)
    with np.errstate(all="ignore"):
        import mpmath

        mpmath.mp.dps = 60
        exact = [
            float(mpmath.log(mpmath.exp(a) / (1 + mpmath.exp(-v)) + mpmath.exp(b) / (1 + mpmath.exp(mpmath.mpf(v)))))
            for v, a, b in zip(map(mpmath.mpf, V), inside, outside, strict=True)
        ]
    np.testing.assert_allclose(log_marginal(V, inside, outside), exact, rtol=1e-13)
