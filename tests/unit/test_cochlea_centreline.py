"""The spiral and its sections: smooth where pieces join, and slopes that are the slopes of the values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logishape.cochlea.centreline import SpiralConstants, height, radius
from logishape.cochlea.sections import SectionTable, fade_in
from logishape.core.arrays import double_precision
from tests.cochleae import PRESETS, draw, make

constants = st.builds(
    SpiralConstants, st.floats(3.0, 7.0), st.floats(1.5, 4.0), st.floats(0.0, 1.0), st.floats(0.0, 0.5)
)
PAPER = SpiralConstants()


def numbers(lower, upper):
    return st.floats(lower, upper).map(np.array)


def both_sides(function, joint):
    """Values and slopes at the last double before the joint and at the joint itself."""
    with double_precision():
        return np.asarray(function(np.array([np.nextafter(joint, -np.inf), joint])))


def printed_radius(a, b, angle):
    """The paper's formula as printed, with + 2 p0 in p1."""
    p0, joint = 5.0, 5 * np.pi / 6
    c2 = a * np.exp(-b * joint)
    c1 = -b * c2
    p2, p1 = (c1 * joint - c2 + p0) / joint**2, (-c1 * joint + 2 * c2 + 2 * p0) / joint
    return np.where(angle < joint, p2 * angle**2 + p1 * angle + p0, a * np.exp(-b * angle))


@given(constants, numbers(2.0, 6.0), numbers(0.0, 0.3))
def test_radius_is_smooth_at_its_joint(spiral, a, b):
    value, slope = both_sides(lambda angle: radius(spiral, a, b, angle), spiral.joint)
    np.testing.assert_allclose(value[0], value[1], atol=1e-12)
    np.testing.assert_allclose(slope[0], slope[1], atol=1e-12)
    assert value[1] == pytest.approx(a * np.exp(-b * spiral.joint))


@given(numbers(2.8, 5.2), numbers(0.09, 0.22))
def test_the_printed_radius_jumps_by_twenty_millimetres_and_ours_does_not(a, b):
    before, after = both_sides(lambda angle: printed_radius(a, b, angle), PAPER.joint)
    assert before - after == pytest.approx(4 * 5.0)
    value, _ = both_sides(lambda angle: radius(PAPER, a, b, angle), PAPER.joint)
    assert abs(value[0] - value[1]) < 1e-12
    with double_precision():
        start = np.asarray(radius(PAPER, a, b, np.zeros(1)).value)
    assert start[0] == 5.0


@given(constants, numbers(0.0, 2.5), numbers(-2.5, 2.5), numbers(12.0, 18.0))
def test_height_is_smooth_at_its_joint_and_flat_at_its_end(spiral, alpha, phi, end):
    joint = float(end) - np.pi
    value, slope = both_sides(lambda angle: height(spiral, alpha, phi, jnp.asarray(end), angle), joint)
    np.testing.assert_allclose(value[0], value[1], atol=1e-12)
    np.testing.assert_allclose(slope[0], slope[1], atol=1e-12)
    with double_precision():
        at = np.array([joint, end - 1.0, end])
        late, flat = np.asarray(height(spiral, alpha, phi, jnp.asarray(end), at))
    assert abs(flat[2]) < 1e-12
    # The parabola as the paper writes it.
    a2 = -slope[1] / (2 * np.pi)
    a1 = -2 * a2 * end
    a0 = value[1] - a2 * joint**2 - a1 * joint
    np.testing.assert_allclose(late, a2 * at**2 + a1 * at + a0, atol=1e-10)


@pytest.mark.parametrize("preset", PRESETS)
def test_slopes_are_the_derivatives_of_values(preset, x64):
    """All ten numbers of a section, below and beyond every joint, by automatic differentiation of the values."""
    cochlea = make(preset)

    @jax.jit
    def both(theta, angles):
        form = cochlea.duct.form(theta, angles)
        values = jax.vmap(jax.jacfwd(lambda angle: [curve.value for curve in form.section(angle)]))(angles)
        return values, [curve.slope for curve in form.section(angles)]

    for theta in draw(cochlea, 5, 0):
        angles = np.linspace(float(cochlea.calibration.start) + 1e-3, theta[13] - 1e-3, 97)
        for derivative, slope in zip(*both(theta[6:], angles), strict=True):
            np.testing.assert_allclose(slope, derivative, rtol=1e-10, atol=1e-12)


def random_table(seed=0, first=-1.0, last=16.0):
    coefficients = np.random.default_rng(seed).normal(size=(5, 8))
    coefficients[:, 6:] = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]  # NumPy trims zeros
    return coefficients, SectionTable.from_chebyshev(first, last, coefficients)


def test_tables_are_their_chebyshev_series(x64):
    coefficients, table = random_table()
    angles = np.linspace(-1, 16, 50)
    expected = [np.polynomial.Chebyshev(row, [-1, 16])(angles) for row in coefficients]
    np.testing.assert_allclose(table(angles).value, expected, atol=1e-11)


def test_slopes_of_tables_are_differences(x64):
    _, table = random_table()
    angles, step = np.linspace(-0.9, 15.9, 60), 1e-5
    up, down = table(angles + step), table(angles - step)
    found, curvature = jax.jvp(lambda x: table(x).slope, (angles,), (np.ones_like(angles),))
    # Truncation step^2 and rounding 1e-15 / step.
    np.testing.assert_allclose(found, (up.value - down.value) / (2 * step), atol=1e-7)
    np.testing.assert_allclose(curvature, (up.slope - down.slope) / (2 * step), atol=1e-7)


def test_tables_hold_their_end_values_beyond_their_range(x64):
    _, table = random_table()
    beyond, ends = table(np.array([-3.0, -1.5, 17.0, 30.0])), table(np.array([-1.0, -1.0, 16.0, 16.0]))
    np.testing.assert_allclose(beyond.value, ends.value, atol=1e-14)
    np.testing.assert_array_equal(beyond.slope, 0.0)  # what holds has no slope


def test_tables_go_through_smooth_values(x64):
    angles = np.linspace(0, 15, 40)
    columns = {name: k + 0.1 * angles - 0.01 * k * angles**2 for k, name in enumerate(("c0", "c2", "s2", "dr", "dz"))}
    table = SectionTable.through(list(angles), columns, 3)
    np.testing.assert_allclose(table(angles).value, list(columns.values()), atol=1e-10)


def test_the_lift_of_the_apex_fades_in_over_the_last_turn(x64):
    end = np.array(15.0)
    value, slope = fade_in(end, np.array([2.0, 15.0 - 2 * np.pi, 15.0 - np.pi, 15.0]))
    np.testing.assert_allclose(value, [0, 0, 0.5, 1], atol=1e-12)
    np.testing.assert_allclose(slope, [0, 0, 1.5 / (2 * np.pi), 0], atol=1e-12)
