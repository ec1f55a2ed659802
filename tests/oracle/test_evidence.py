"""Evidence and Bayes factors against numerical integration, and a free reference length."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp
from scipy.special import log_ndtr, ndtr
from scipy.stats import multivariate_normal

import logishape as ls
from logishape import appearance, shapes
from logishape.core.arrays import double_precision
from logishape.core.truncated import log_share_in_box
from logishape.inference import e_step, log_joint, prior_logit
from logishape.posterior import information
from tests.problems import draw_intensities, ellipse_case, grid

LOOKS = ls.Regions(
    appearance.Fixed(appearance.gaussian(100.0, 60.0)), appearance.Fixed(appearance.gaussian(0.0, 60.0))
)


class CentredDisc(shapes.AbstractShape):
    """A disc about the origin: one parameter."""

    parameter_names = ("radius",)

    def level(self, theta, points):
        return theta[0] - shapes.safe_norm(points)


def small_image(truth, seed=0):
    """20 x 20 pixels of an ellipse with these semi-axes, seen through known densities."""
    points = grid(20, 2)
    model = ls.Model(shapes.Ellipsoid(2), ls.Prior([3, 3], [9, 9]), 0.7)
    return ls.Observation.from_arrays(
        points, draw_intensities(model, np.array(truth), points, 60.0, seed), dtype=np.float64
    )


DISC = ls.Model(CentredDisc(), ls.Prior([3.0], [9.0]), 0.7)
ELLIPSE = ls.Model(shapes.Ellipsoid(2), ls.Prior([3.0, 3.0], [9.0, 9.0]), 0.7)
GAUSSIAN = ls.Model(shapes.Ellipsoid(2), ls.Prior([3.0, 3.0], [9.0, 9.0], [6.0, 6.0], [0.3**2, 0.3**2]), 0.7)


def integrate(model, observation, kappa=1.0, num=61):
    """log of the integral of likelihood^kappa times prior over the box, by the trapezoidal rule."""
    axes = [np.linspace(a, b, num) for a, b in zip(model.prior.lower, model.prior.upper, strict=True)]
    thetas = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    @jax.jit
    def heights(thetas):
        def one(theta):
            prior = model.prior.log_prob(theta)
            return kappa * (log_joint(model, observation, ls.State(theta, LOOKS)) - prior) + prior

        return jax.lax.map(one, thetas)

    with double_precision():
        is_edge = (thetas == model.prior.lower) | (thetas == model.prior.upper)
        log_cell = np.sum(np.log([axis[1] - axis[0] for axis in axes]))
        return float(logsumexp(heights(thetas) - np.log(2) * is_edge.sum(axis=1)) + log_cell)


@pytest.mark.parametrize("kappa", [1.0, 0.3])
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(DISC, id="disc"),
        pytest.param(ELLIPSE, id="ellipse", marks=pytest.mark.slow),  # the next one is it with more
        pytest.param(GAUSSIAN, id="ellipse, Gaussian prior"),
    ],
)
def test_evidence_is_the_integral(model, kappa):
    observation = small_image([6.5, 5.5])
    fit = ls.fit(model, observation, ls.State(np.full(model.shape.num_parameters, 6.0), LOOKS)).check()
    # Laplace's method is exact to about 1/8 of a nat for a few hundred noisy voxels.
    assert ls.evidence(model, observation, fit, kappa) == pytest.approx(
        integrate(model, observation, kappa), abs=0.15
    )


class IdleDisc(CentredDisc):
    """A disc with a second parameter that does nothing."""

    parameter_names = ("radius", "idle")


def test_a_parameter_that_does_nothing_costs_nothing():
    observation = small_image([6.0, 6.0])
    plain = ls.fit(DISC, observation, ls.State([6.0], LOOKS)).check()
    model = ls.Model(IdleDisc(), ls.Prior([3.0, -5.0], [9.0, 5.0]), 0.7)
    idle = ls.fit(model, observation, ls.State([6.0, 0.0], LOOKS)).check()
    # A Gaussian as wide as the box, cut off at it, stands for the uniform density: 4 % are 0.04 nats.
    expected = ls.evidence(DISC, observation, plain, 1.0)
    assert ls.evidence(model, observation, idle, 1.0) == pytest.approx(expected, abs=0.05)


def test_a_saddle_has_no_evidence():
    case = ellipse_case()
    fit = ls.fit(case.model, case.observation, case.start).check()
    astray = eqx.tree_at(lambda f: f.state.theta, fit, np.array([-7.0, 7.0, -1.0, 5.0, 14.0]))
    with pytest.raises(ls.FitError, match=r"bends upwards here.*; fit from another start"):
        ls.evidence(case.model, case.observation, astray, 1.0)


@pytest.mark.parametrize("bound", [6.2, 5.0])
def test_evidence_on_a_bound_is_the_integral_too(bound):
    observation = small_image([6.5, 5.5])
    model = ls.Model(shapes.Ellipsoid(2), ls.Prior([3.0, 3.0], [bound, 9.0]), 0.7)
    fit = ls.fit(model, observation, ls.State([4.5, 6.0], LOOKS)).check()
    assert fit.status is ls.Status.AT_BOX
    # Further out the log joint is less of a parabola; the share left by the box is found however little it is.
    assert ls.evidence(model, observation, fit, 1.0) == pytest.approx(integrate(model, observation, num=121), abs=0.5)


@pytest.mark.parametrize("distance", [0.5, 6.0, 60.0])
def test_share_in_a_box_far_out(distance):
    """Against SciPy's tail: with independent parameters the share is a product."""
    covariance = np.diag([1.0, 4.0])
    share = log_share_in_box(np.zeros(2), covariance, (np.array([distance, -1.0]), np.array([1e3, 3.0])))
    expected = log_ndtr(-distance) + np.log(ndtr(1.5) - ndtr(-0.5))
    assert share == pytest.approx(expected, abs=1e-9)


def test_share_in_a_box_of_correlated_parameters():
    covariance = np.array([[1.0, 1.2], [1.2, 4.0]])
    box = (np.array([0.5, -1.0]), np.array([2.0, 3.0]))
    exact = multivariate_normal(cov=covariance).cdf(box[1], lower_limit=box[0])
    assert log_share_in_box(np.zeros(2), covariance, box) == pytest.approx(np.log(exact), abs=0.02)  # 4096 draws


@pytest.mark.parametrize(("truth", "winner"), [((6.0, 6.0), "disc"), ((7.0, 5.0), "ellipse")])
def test_bayes_factors_are_those_of_the_integrals(truth, winner):
    observation = small_image(truth, seed=3)
    models = {"disc": DISC, "ellipse": ELLIPSE}
    starts = {"disc": ls.State([6.0], LOOKS), "ellipse": ls.State([6.0, 6.0], LOOKS)}
    found = ls.compare(models, observation, starts, effective_fraction=1.0)
    assert found.best == winner
    exact = {name: integrate(model, observation) for name, model in models.items()}
    other = found.names[1]
    assert found.log_bayes_factors[1] == pytest.approx(exact[other] - exact[winner], abs=0.15)
    assert found.probabilities.sum() == pytest.approx(1)
    assert winner in found.summary().split("\n")[0]
    tempered = ls.compare(models, observation, starts, effective_fraction=0.3)
    assert abs(tempered.log_bayes_factors[1]) < abs(found.log_bayes_factors[1]) or winner == "disc"


def test_compare_finds_one_fraction_for_all():
    observation = small_image((7.0, 5.0), seed=3)
    starts = {"disc": ls.State([6.0], LOOKS), "ellipse": ls.State([6.0, 6.0], LOOKS)}
    found = ls.compare({"disc": DISC, "ellipse": ELLIPSE}, observation, starts)
    fit = ls.fit(ELLIPSE, observation, starts["ellipse"])
    assert found.effective_fraction == ls.laplace(ELLIPSE, observation, fit).effective_fraction


def test_what_cannot_be_compared():
    observation = small_image((6.0, 6.0))
    start = ls.State([6.0], LOOKS)
    with pytest.raises(ls.InputError, match=r"a start for each of at least two models .* name them alike"):
        ls.compare({"disc": DISC, "ellipse": ELLIPSE}, observation, {"disc": start})
    with pytest.raises(ls.InputError, match=r"effective_fraction must lie in \(0, 1\]"):
        ls.evidence(DISC, observation, ls.fit(DISC, observation, start), 0.0)


@pytest.mark.slow
def test_free_length_finds_the_maximum_of_the_profile_and_its_score_is_the_formula(x64):
    case = ellipse_case(noise=20.0, reference_length=0.8)
    model = ls.Model(shapes.FreeLength(case.model.shape), _with_length(case.model.prior), 1.0)
    start = ls.State(np.append(case.start.theta, 0.0), case.start.regions)
    fit = ls.fit(model, case.observation, start).check()
    profile = ls.profile_reference_length(case.model, case.observation, case.start, np.geomspace(0.3, 2.5, 5))
    assert np.exp(fit.parameters["log_length_ratio"]) == pytest.approx(profile.best_length, rel=0.03)
    assert fit.log_joint[-1] == pytest.approx(profile.best_fit.log_joint[-1] - np.log(5.0), abs=0.01)
    posterior = ls.laplace(model, case.observation, fit, "observed")
    low, high = fit.parameters["log_length_ratio"] + np.array([-3, 3]) * posterior.sd[-1]
    assert low < np.log(0.8) < high
    # dV/dlog l = -V: the score in log l is -sum (u - mu) V.
    state = ls.State(start.theta + 0.1, start.regions)
    V = prior_logit(model, state.theta, case.observation.points)
    u = e_step(V, state.regions.log_odds(case.observation.intensities))
    score = eqx.filter_jit(information)(model, case.observation, state).score[-1]
    assert float(score) == pytest.approx(float(-jnp.sum((u - jax.nn.sigmoid(V)) * V)), rel=1e-9)


def _with_length(prior):
    return ls.Prior(np.append(prior.lower, -2.5), np.append(prior.upper, 2.5))


def test_one_free_length_is_enough():
    with pytest.raises(ls.InputError, match="free length already"):
        shapes.FreeLength(shapes.FreeLength(shapes.Ball(2)))
