"""The No-U-turn sampler against closed forms, quadrature and the Gaussian that it is there to check."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import logishape as ls
from logishape import appearance, shapes
from logishape.core.arrays import double_precision
from logishape.inference import log_joint
from logishape.posterior.mcmc import Chart
from tests.problems import draw_intensities, ellipse_case, grid

pytest.importorskip("blackjax")
ALIKE = ls.Regions(appearance.Fixed(appearance.gaussian(50, 60)), appearance.Fixed(appearance.gaussian(50, 60)))
LOOKS = ls.Regions(appearance.Fixed(appearance.gaussian(100, 60)), appearance.Fixed(appearance.gaussian(0, 60)))
LOWER, UPPER = np.array([3.0, 3.0]), np.array([9.0, 9.0])
COVARIANCE = np.array([[0.49, 0.3], [0.3, 0.36]])


def small_image(truth, size=14):
    points = grid(size, 2)
    model = ls.Model(shapes.Ellipsoid(2), ls.Prior(LOWER, UPPER), 0.7)
    values = draw_intensities(model, np.array(truth), points, 60.0, 0)
    return ls.Observation.from_arrays(points, values, dtype=np.float64)


def sampled(model, observation, looks, start, options):
    """The fit, its Laplace posterior and the draws."""
    fit = ls.fit(model, observation, ls.State(start, looks)).check()
    posterior = ls.laplace(model, observation, fit, "observed")
    return fit, posterior, ls.mcmc(model, observation, fit, posterior, jax.random.key(3), options)


def test_without_an_image_the_posterior_is_the_prior_cut_off_at_its_box():
    """Inside looks like outside, so nothing is learnt: a Gaussian of known form, cut near its middle by a bound."""
    mean = np.array([3.2, 6.0])  # 0.3 SD from the bound
    model = ls.Model(shapes.Ellipsoid(2), ls.Prior(LOWER, UPPER, mean, COVARIANCE), 0.7)
    fit = ls.Fit(ls.State(mean, ALIKE), ls.Status.CONVERGED, np.zeros(1), 0, 0, 0.0, (), ("x", "y"))
    posterior = _posterior(mean, 4 * COVARIANCE, LOWER, UPPER)  # a poor guess, from which to set out
    shares: list[float] = []
    options = ls.McmcOptions(2, 200, 1500)
    found = ls.mcmc(model, small_image((6, 6)), fit, posterior, jax.random.key(3), options, shares.append)
    assert len(shares) == 2 * (1 + 15)  # a word after the warm-up, and one after each hundred draws
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    draws, worth = found.all_draws, found.effective_sample_size.min()
    assert np.all((draws >= LOWER) & (draws <= UPPER))
    assert worth > 500
    assert found.r_hat.max() < 1.02
    assert found.num_divergent == 0
    first = stats.truncnorm(-0.2 / 0.7, 5.8 / 0.7, loc=3.2, scale=0.7)
    thinned = draws[:: int(np.ceil(len(draws) / worth)), 0]
    assert stats.kstest(thinned, first.cdf).pvalue > 1e-3
    slope = 0.3 / 0.49  # of the second given the first, which the bound does not change
    rest = draws[:, 1] - 6.0 - slope * (draws[:, 0] - 3.2)
    assert rest.mean() == pytest.approx(0, abs=4 * np.sqrt(0.36 - 0.3 * slope) / np.sqrt(worth))
    assert rest.std() == pytest.approx(np.sqrt(0.36 - 0.3 * slope), rel=0.08)


def test_an_ellipse_agrees_with_quadrature():
    """Mean, SD and correlation of two semi-axes against sums over a grid of the log joint."""
    model, observation = ls.Model(shapes.Ellipsoid(2), ls.Prior(LOWER, UPPER), 0.7), small_image((6.5, 5.0))
    _, _, found = sampled(model, observation, LOOKS, [6.0, 6.0], ls.McmcOptions(2, 200, 1000))
    axis = np.linspace(3, 9, 121)
    thetas = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)

    @jax.jit
    def heights(thetas):
        return jax.lax.map(lambda theta: log_joint(model, observation, ls.State(theta, LOOKS)), thetas)

    with double_precision():
        log_density = np.asarray(heights(thetas))
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    mean = share @ thetas
    covariance = (thetas - mean).T @ ((thetas - mean) * share[:, None])
    error = np.sqrt(np.diag(covariance) / found.effective_sample_size)
    assert np.all(np.abs(found.mean - mean) < 4 * error)
    np.testing.assert_allclose(found.sd, np.sqrt(np.diag(covariance)), rtol=0.12)
    assert np.corrcoef(found.all_draws.T)[0, 1] == pytest.approx(
        covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]), abs=0.1
    )


def test_laplace_agrees_with_nuts():
    """A nearly Gaussian posterior of five parameters: means to a fifth of an SD, SDs to 15 %."""
    case = ellipse_case(noise=40.0)
    fit = ls.fit(case.model, case.observation, case.start).check()
    posterior = ls.laplace(case.model, case.observation, fit, "observed", appearance_is_known=True)
    found = ls.mcmc(case.model, case.observation, fit, posterior, jax.random.key(20), ls.McmcOptions(2, 150, 600))
    assert found.num_divergent == 0
    assert found.r_hat.max() < 1.02
    # 1200 draws of a nearly Gaussian posterior are worth about as many independent ones: 3 % standard error.
    assert np.all(np.abs(found.mean - posterior.mean) < 0.2 * posterior.sd)
    np.testing.assert_allclose(found.sd, posterior.sd, rtol=0.15)
    again = ls.mcmc(case.model, case.observation, fit, posterior, jax.random.key(20), ls.McmcOptions(2, 150, 600))
    np.testing.assert_array_equal(again.draws, found.draws)


def test_the_chart_has_the_volume_of_its_map(x64):
    """log |d theta / d z| against JAX's Jacobian, up to a constant."""
    posterior = _posterior([0.1, 5.0], [[0.04, 0.05], [0.05, 0.25]])
    chart = Chart.around(posterior)
    np.testing.assert_allclose(chart.theta(jnp.zeros(2)), [0.1, 5.0], atol=1e-12)
    near = jax.jacobian(chart.theta)(jnp.zeros(2))
    np.testing.assert_allclose(near @ near.T, posterior.covariance, rtol=1e-9)
    exact, found = (
        [f(jnp.array(z)) for z in ([0.0, 0.0], [1.5, -2.0], [-30.0, 4.0])]
        for f in (lambda z: jnp.linalg.slogdet(jax.jacobian(chart.theta)(z))[1], chart.log_volume)
    )
    np.testing.assert_allclose(np.subtract(found, found[0]), np.subtract(exact, exact[0]), rtol=1e-6, atol=1e-9)
    on_bound = Chart.around(_posterior([0.0, 5.0], [[0.04, 0.05], [0.05, 0.25]]))
    assert 0 < on_bound.theta(jnp.zeros(2))[0] < 0.2


def test_draws_are_sampled_without_repetition_where_they_can(key):
    draws = np.random.default_rng(0).uniform(0, 1, (2, 50, 1))
    found = ls.SampledPosterior(draws, np.zeros(1), np.ones(1), ("x",), 0, 0)
    chosen = found.sample(key, 60)
    assert len(np.unique(chosen)) == 60  # none twice
    assert np.isin(chosen, draws).all()
    assert len(found.sample(key, 150)) == 150


def test_without_blackjax_one_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    model, observation = ls.Model(shapes.Ellipsoid(2), ls.Prior(LOWER, UPPER), 0.7), small_image((6.5, 5.0))
    fit = ls.fit(model, observation, ls.State([6.0, 6.0], LOOKS))
    posterior = ls.laplace(model, observation, fit, "observed")
    with pytest.raises(
        ls.InputError, match=r'needs blackjax, which is not installed; run pip install "logishape\[mcmc\]"'
    ):
        ls.mcmc(model, observation, fit, posterior, jax.random.key(0))


@pytest.mark.parametrize(
    ("choice", "pattern"),
    [({"num_chains": 1}, "num_chains must be at least 2"), ({"acceptance": 1.0}, "between 0 and 1 but is 1.0")],
)
def test_options_that_cannot_be(choice, pattern):
    with pytest.raises(ls.InputError, match=pattern):
        ls.McmcOptions(**choice)


def _posterior(mean, covariance, lower=(0.0, 0.0), upper=(1.0, 8.0)):
    return ls.ShapePosterior(
        mean=np.array(mean),
        centre=np.array(mean),
        covariance=np.array(covariance),
        lower=np.array(lower),
        upper=np.array(upper),
        parameter_names=("x", "y"),
        kind="observed",
        effective_fraction=1.0,
        is_fallback=False,
    )
