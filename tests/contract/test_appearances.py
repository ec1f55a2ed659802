"""What every appearance must do; see tests/problems.py."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from logishape import appearance
from logishape.appearance.mixture import SCALE_FLOOR
from logishape.core.arrays import double_precision
from tests.problems import APPEARANCES

each_appearance = pytest.mark.parametrize("name", APPEARANCES)
learning = [name for name, one in APPEARANCES.items() if not one.is_fixed]


@eqx.filter_jit
def objective(one, intensity, weight):
    return jnp.sum(weight * one.log_prob(intensity)) + one.log_prior()


@eqx.filter_jit
def update(one, intensity, weight):
    return one.update(intensity, weight)


def sample(seed, num=400):
    rng = np.random.default_rng(seed)
    intensity = np.concatenate([rng.normal(25, 10, num // 2), 85 + 15 * rng.standard_t(4, num // 2)])
    return intensity, rng.uniform(0, 1, num)


@each_appearance
def test_density_integrates_to_one(name, x64):
    one = APPEARANCES[name]
    density = eqx.filter_jit(lambda x: one.log_prob(x))
    total, _ = quad(lambda x: float(np.exp(density(np.array([x]))[0])), -3000, 3000, points=[20, 50, 90], limit=400)
    assert total == pytest.approx(1, abs=1e-3)  # a t with 4 degrees of freedom keeps 2e-6 beyond the limits


@pytest.mark.parametrize("name", learning)
@given(seed=st.integers(0, 10_000), spread=st.floats(0.2, 5.0))
def test_update_never_lowers_the_objective(name, seed, spread):
    intensity, weight = sample(seed)
    intensity = 50 + spread * (intensity - 50)
    with double_precision():
        one = APPEARANCES[name]
        for _ in range(5):
            new = update(one, intensity, weight)
            # Exact maxima: only rounding of a sum of 400 terms of size 5 may show.
            assert objective(new, intensity, weight) >= objective(one, intensity, weight) - 1e-9
            one = new


@each_appearance
def test_empty_constant_and_extreme_data_stay_finite(name, x64):
    one = APPEARANCES[name]
    intensity, weight = sample(0)
    wild = intensity.copy()
    wild[::50] = 1e6
    wild[1::50] = -32768
    for data, mass in (
        (intensity, np.zeros_like(weight)),
        (np.full_like(intensity, 50.0), weight),
        (np.full_like(intensity, 1e9), weight),
        (wild, weight),
    ):
        new = one
        for _ in range(20):
            new = update(new, data, mass)
        leaves = jax.tree.leaves(eqx.filter(new, eqx.is_array_like))
        assert all(np.all(np.isfinite(leaf)) for leaf in leaves)
        assert np.all(np.isfinite(new.log_prob(data)))
        assert np.all(np.isfinite(new.log_prob(intensity)))


@each_appearance
def test_free_parameters_come_back_and_are_all_that_is_learnt(name, x64):
    one = APPEARANCES[name]
    intensity, weight = sample(3)
    learnt = one.update(intensity, weight)
    values = one.free_parameters()
    assert (values.shape[0] == 0) == one.is_fixed
    np.testing.assert_allclose(
        one.with_free_parameters(values).log_prob(intensity), one.log_prob(intensity), rtol=1e-12
    )
    again = one.with_free_parameters(learnt.free_parameters())
    np.testing.assert_allclose(again.log_prob(intensity), learnt.log_prob(intensity), rtol=1e-12)
    np.testing.assert_allclose(again.log_prior(), learnt.log_prior(), rtol=1e-12)


@each_appearance
def test_jit_equals_eager(name, x64):
    one = APPEARANCES[name]
    intensity, weight = sample(1)
    eager, compiled = one.update(intensity, weight), update(one, intensity, weight)
    np.testing.assert_allclose(compiled.log_prob(intensity), eager.log_prob(intensity), rtol=1e-9)


@each_appearance
def test_single_precision_agrees(name):
    one = APPEARANCES[name]
    intensity, weight = sample(2)
    with double_precision():
        single = one.update(intensity.astype(np.float32), weight.astype(np.float32))
        double = one.update(intensity, weight)
        assert one.log_prob(intensity.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(single.log_prob(intensity), double.log_prob(intensity), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", learning)
def test_an_unsupported_component_stays_where_it_was(name, x64):
    one = APPEARANCES[name]
    if one.components.means.size < 2 or np.any(one.counts.means > 0):
        one = appearance.GaussianMixture([0.5, 0.5], [0.0, 1e4], [1.0, 1.0])
    lonely = np.full(50, one.components.means[0])
    new = one.update(lonely, np.zeros(50))
    np.testing.assert_allclose(new.components.means, one.components.means)
    np.testing.assert_allclose(new.components.scales, one.components.scales)
    np.testing.assert_allclose(np.sum(new.components.weights), 1)


def test_a_constant_image_stops_at_the_scale_floor(x64):
    one = appearance.gaussian(40.0, 20.0)
    for _ in range(5):
        one = update(one, np.full(30, 50.0), np.ones(30))
    np.testing.assert_allclose(one.components.means, 50.0)
    np.testing.assert_allclose(one.components.scales, SCALE_FLOOR * 20.0)
