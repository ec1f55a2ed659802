"""What must hold for any image: EM never lowers the log joint, and nothing but the data matters."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logishape as ls
from logishape import appearance
from logishape.core.arrays import double_precision
from logishape.inference import log_joint
from tests.problems import ellipse_case

few = settings(max_examples=5)
TIGHT = ls.FitOptions(decrement_tolerance=1e-7, rise_tolerance=1e-9)
exact_log_joint = eqx.filter_jit(log_joint)  # here, not in a test: once compiled it serves all examples


def student_regions():
    return ls.Regions(
        appearance.StudentMixture([0.8, 0.2], [110.0, 50.0], [30.0, 40.0], 5.0),
        appearance.StudentMixture([0.7, 0.3], [-10.0, 40.0], [30.0, 40.0], 5.0),
    )


@few
@given(
    seed=st.integers(0, 1000),
    noise=st.sampled_from([5.0, 30.0, 120.0]),
    shift=st.tuples(*[st.floats(-0.4, 0.4)] * 5),
    method=st.sampled_from(["gauss-newton", "bfgs"]),
    regions=st.sampled_from(["gaussian", "student"]),
)
def test_log_joint_never_falls(seed, noise, shift, method, regions):
    case = ellipse_case(noise, seed)
    theta = np.clip(
        case.truth + np.array(shift) * case.model.prior.widths, case.model.prior.lower, case.model.prior.upper
    )
    start = ls.State(theta, case.start.regions if regions == "gaussian" else student_regions())
    fit = ls.fit(case.model, case.observation, start, ls.FitOptions(method=method))
    assert np.all(np.diff(fit.log_joint) >= 0)
    with double_precision():
        exact = float(exact_log_joint(case.model, case.observation, fit.state))
    assert fit.log_joint[-1] == pytest.approx(exact, rel=1e-10)  # what is monitored is the true log joint
    assert len(fit.path) == fit.num_rounds + 1
    np.testing.assert_allclose(fit.path[[0, -1]], [theta, fit.state.theta], rtol=1e-12, atol=1e-12)
    assert np.all((fit.state.theta >= case.model.prior.lower) & (fit.state.theta <= case.model.prior.upper))


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
@few
@given(seed=st.integers(0, 1000))
def test_order_and_padding_do_not_matter(dtype, seed):
    case = ellipse_case(seed=seed, dtype=dtype)
    order = np.random.default_rng(seed).permutation(case.observation.num_voxels)
    shuffled = jax.tree.map(lambda leaf: leaf[order], case.observation)
    fits = [
        ls.fit(case.model, observation, case.start, TIGHT if dtype == np.float64 else None)
        for observation in (case.observation, shuffled, case.observation.padded(1792))
    ]
    # In double to rounding; in single the sums round differently and the fit stops within its tolerance.
    atol = 1e-6 if dtype == np.float64 else 0.02
    for other in fits[1:]:
        np.testing.assert_allclose(other.state.theta, fits[0].state.theta, atol=atol)


def test_weights_count_voxels():
    """A voxel of weight two is two voxels."""
    case = ellipse_case()
    half = jax.tree.map(lambda leaf: leaf[::2], case.observation)
    doubled = jax.tree.map(lambda leaf: np.concatenate([leaf, leaf]), half)
    # Padded to the size of the other: one compilation.
    weighted = eqx.tree_at(lambda o: o.weights, half, 2 * half.weights).padded(doubled.num_voxels)
    a, b = (ls.fit(case.model, observation, case.start, TIGHT) for observation in (doubled, weighted))
    np.testing.assert_allclose(a.state.theta, b.state.theta, atol=1e-7)
    assert a.log_joint[-1] == pytest.approx(b.log_joint[-1], rel=1e-12)


@few
@given(seed=st.integers(0, 1000), noise=st.sampled_from([10.0, 40.0]))
def test_the_band_changes_the_work_and_not_the_answer(seed, noise):
    case = ellipse_case(noise, seed, reference_length=0.4)
    banded, full = (
        ls.fit(case.model, case.observation, case.start, dataclasses.replace(TIGHT, use_band=use))
        for use in (True, False)
    )
    sd = ls.laplace(case.model, case.observation, full).sd
    assert np.all(np.abs(banded.state.theta - full.state.theta) < 0.03 * sd)


def test_units_of_the_parameters_do_not_matter():
    """The paper stops on a relative step that mixes millimetres and radians; ours is free of units."""

    class InOtherUnits(ls.shapes.AbstractShape):
        shape: ls.shapes.AbstractShape
        units: tuple = eqx.field(static=True)

        @property
        def parameter_names(self):
            return self.shape.parameter_names

        def level(self, theta, points):
            return self.shape.level(theta / jnp.array(self.units, theta.dtype), points)

    case = ellipse_case()
    units = np.array([1000.0, 1e-3, 57.3, 10.0, 1.0])
    shape = InOtherUnits(case.model.shape, tuple(units.tolist()))
    prior = ls.Prior(case.model.prior.lower * units, case.model.prior.upper * units)
    ours = ls.fit(case.model, case.observation, case.start)
    other = ls.fit(
        ls.Model(shape, prior, case.model.reference_length),
        case.observation,
        ls.State(case.start.theta * units, case.start.regions),
    )
    assert other.num_steps == ours.num_steps
    np.testing.assert_allclose(other.state.theta / units, ours.state.theta, rtol=1e-6)


def test_the_callers_precision_is_left_alone():
    case = ellipse_case(dtype=np.float32)
    before = jax.config.jax_enable_x64
    fit = ls.fit(case.model, case.observation, case.start)
    ls.laplace(case.model, case.observation, fit)
    assert jax.config.jax_enable_x64 == before
    assert jnp.ones(2).dtype == jnp.float32
    assert fit.state.theta.dtype == np.float64


def test_single_precision_is_enough():
    double, single = ellipse_case(), ellipse_case(dtype=np.float32)
    fits = [ls.fit(case.model, case.observation, case.start) for case in (double, single)]
    sd = ls.laplace(double.model, double.observation, fits[0]).sd
    assert np.all(np.abs(fits[0].state.theta - fits[1].state.theta) < 0.02 * sd)


@pytest.mark.slow  # half a minute of single operations; the contracts of shapes and appearances hold the same
def test_jit_equals_eager():
    """One whole EM round, compiled and op by op."""
    from logishape.inference.options import FitOptions
    from logishape.inference.rounds import begin, em_round

    case = ellipse_case()
    options = FitOptions(max_shape_steps=1, max_appearance_steps=1, max_rounds=1)
    observation = jax.tree.map(lambda leaf: leaf[::16], case.observation)

    def one_round(model, state):
        return em_round(
            model, observation, begin(model, observation, state, options), observation.num_voxels, options
        )

    with double_precision():
        compiled = eqx.filter_jit(one_round)(case.model, case.start)
        with jax.disable_jit():
            eager = one_round(case.model, case.start)
    np.testing.assert_allclose(compiled.phi, eager.phi, rtol=1e-9)
    np.testing.assert_allclose(compiled.trace, eager.trace, rtol=1e-12)


@pytest.mark.slow
def test_vmap_equals_a_loop():
    """Compiled rounds over a batch of images give what each gives alone."""
    from logishape.inference.batch import stack
    from logishape.inference.fit import run_rounds
    from logishape.inference.options import FitOptions
    from logishape.inference.rounds import begin

    cases = [ellipse_case(noise, seed) for seed, noise in enumerate((10.0, 30.0, 60.0))]
    options = FitOptions()
    n = cases[0].observation.num_voxels

    @eqx.filter_jit
    def solve(observation, state):
        model = cases[0].model
        return run_rounds(model, observation, begin(model, observation, state, options), n, options)

    with double_precision():
        batch = eqx.filter_vmap(solve)(stack([c.observation for c in cases]), stack([c.start for c in cases]))
        for k, case in enumerate(cases):
            alone = solve(case.observation, case.start)
            np.testing.assert_allclose(batch.phi[k], alone.phi, rtol=1e-7)
            assert int(batch.num_rounds[k]) == int(alone.num_rounds)
