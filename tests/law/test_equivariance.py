"""Moving, turning, mirroring or rescaling the image does the same to the result, and nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logishape as ls
from logishape import appearance, shapes
from tests.problems import draw_intensities, ellipse_case, grid

few = settings(max_examples=4)
TIGHT = ls.FitOptions(decrement_tolerance=1e-7, rise_tolerance=1e-9)


def with_points(case, points):
    return ls.Observation.from_arrays(points, case.observation.intensities, dtype=np.float64)


@few
@given(shift=st.tuples(st.floats(-300, 300), st.floats(-300, 300)), seed=st.integers(0, 100))
def test_moving_the_image_moves_the_pose_and_nothing_else(shift, seed):
    case = ellipse_case(seed=seed)
    fit = ls.fit(case.model, case.observation, case.start, TIGHT)
    shape = shapes.Posed(shapes.Ellipsoid(2), np.array(shift))
    moved = ls.Model(shape, case.model.prior, case.model.reference_length)
    there = ls.fit(moved, with_points(case, case.observation.points + np.array(shift)), case.start, TIGHT)
    np.testing.assert_allclose(there.state.theta, fit.state.theta, atol=1e-6)
    here, where = (np.asarray(m.shape.to_world(fit.state.theta, np.zeros((1, 2)))) for m in (case.model, moved))
    np.testing.assert_allclose(where - here, [shift], atol=1e-3)  # printed through single precision


@few
@given(turn=st.floats(-0.5, 0.5), seed=st.integers(0, 100))
def test_turning_the_image_turns_the_pose(turn, seed):
    case = ellipse_case(seed=seed)
    fit = ls.fit(case.model, case.observation, case.start, TIGHT)
    c, s = np.cos(turn), np.sin(turn)
    turned = with_points(case, case.observation.points @ np.array([[c, -s], [s, c]]).T)
    start = ls.State(case.start.theta - np.array([0, 0, turn, 0, 0]), case.start.regions)
    there = ls.fit(case.model, turned, start, TIGHT)
    # level(R x + t): turning x by Q leaves t alone and takes the angle to angle - turn.
    np.testing.assert_allclose(there.state.theta, fit.state.theta - [0, 0, turn, 0, 0], atol=1e-6)
    np.testing.assert_allclose(there.log_joint[-1], fit.log_joint[-1], rtol=1e-10)


@few
@given(seed=st.integers(0, 100))
def test_a_mirrored_image_gives_the_mirrored_result(seed):
    case = ellipse_case(seed=seed)
    mirror = np.array([-1.0, 1.0])
    flip = np.array([-1.0, 1.0, -1.0, 1.0, 1.0])
    fit = ls.fit(case.model, case.observation, case.start, TIGHT)
    start = ls.State(case.start.theta * flip, case.start.regions)
    there = ls.fit(case.model, with_points(case, case.observation.points * mirror), start, TIGHT)
    np.testing.assert_allclose(there.state.theta, fit.state.theta * flip, atol=1e-6)
    labels = ls.label_probability(case.model, case.observation, fit.state)
    mirrored = ls.label_probability(case.model, with_points(case, case.observation.points * mirror), there.state)
    np.testing.assert_allclose(mirrored, labels, atol=1e-6)


@few
@given(
    gain=st.floats(0.01, 100.0), offset=st.floats(-2000, 2000), is_inverted=st.booleans(), seed=st.integers(0, 100)
)
def test_intensities_in_other_units_give_the_same_shape(gain, offset, is_inverted, seed):
    case = ellipse_case(seed=seed)
    gain = -gain if is_inverted else gain
    scaled = ls.Observation.from_arrays(
        case.observation.points, gain * case.observation.intensities + offset, dtype=np.float64
    )

    def rescale(one):
        mean, scale = one.components.means[0], one.components.scales[0]
        return appearance.gaussian(float(gain * mean + offset), float(abs(gain) * scale))

    regions = ls.Regions(rescale(case.start.regions.inside), rescale(case.start.regions.outside))
    fit = ls.fit(case.model, case.observation, case.start, TIGHT)
    there = ls.fit(case.model, scaled, ls.State(case.start.theta, regions), TIGHT)
    np.testing.assert_allclose(there.state.theta, fit.state.theta, atol=1e-5)
    shifted = there.log_joint[-1] + case.observation.num_voxels * np.log(abs(gain))
    np.testing.assert_allclose(shifted, fit.log_joint[-1], rtol=1e-8)


@pytest.mark.slow
def test_turning_a_3d_image_turns_the_pose():
    from scipy.spatial.transform import Rotation

    shape = shapes.Posed(shapes.Ellipsoid(3), np.zeros(3))
    theta = np.array([0.5, -0.3, 0.2, 0.1, 0.2, -0.1, 6.0, 4.5, 3.5])
    prior = ls.Prior([-3] * 3 + [-1.2] * 3 + [2] * 3, [3] * 3 + [1.2] * 3 + [9] * 3)
    model = ls.Model(shape, prior, 0.5)
    points = grid(17, 3)
    intensities = draw_intensities(model, theta, points, 30.0, 0)
    regions = ls.Regions(appearance.gaussian(100.0, 30.0), appearance.gaussian(0.0, 30.0))
    turn = Rotation.from_rotvec([0.2, -0.3, 0.15])
    start = theta + np.array([0.4, 0.3, -0.3, 0.05, -0.05, 0.05, -0.5, 0.4, 0.3])
    before = Rotation.from_rotvec(start[3:6])
    turned_start = np.concatenate([start[:3], (before * turn.inv()).as_rotvec(), start[6:]])
    fits = [
        ls.fit(model, ls.Observation.from_arrays(x, intensities, dtype=np.float64), ls.State(begin, regions), TIGHT)
        for x, begin in ((points, start), (turn.apply(points), turned_start))
    ]
    a, b = (fit.state.theta for fit in fits)
    np.testing.assert_allclose(b[[0, 1, 2, 6, 7, 8]], a[[0, 1, 2, 6, 7, 8]], atol=1e-5)
    relative = Rotation.from_rotvec(b[3:6]) * turn * Rotation.from_rotvec(a[3:6]).inv()
    assert relative.magnitude() < 1e-5
