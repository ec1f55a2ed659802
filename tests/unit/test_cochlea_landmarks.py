"""Where a cochlea lies: frames from landmarks, the frame that a fitted model implies, and the cut that follows it."""

import jaxtyping
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from logishape.cochlea import Cochlea, Frame, load_template
from logishape.cochlea.landmarks import check_inside, frame_from_points
from logishape.cochlea.lumen import CENTRE
from logishape.cochlea.template import RADIUS, bone_code, code_at, template_points
from logishape.cochlea.vestibule import frame_of_model, frame_offset, is_beyond, pose_surprise
from logishape.core.arrays import double_precision
from logishape.core.volume import Volume
from tests.problems import assert_one_sentence

C, A, RW = np.array([30.0, -10.0, 5.0]), np.array([30.0, -10.0, 8.0]), np.array([36.0, -10.0, 5.0])
POINTS = {"C": C, "A": A, "RW": RW, "OW": C + 1}
RIGHT, UP = np.eye(3)[0], np.eye(3)[2]
HEAD = Volume.from_spacing(np.zeros((40, 40, 40), np.float32), 0.5, (20, -20, -5))


@pytest.fixture(autouse=True)
def as_a_user_runs_it(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def random_frame(rng, side="right") -> Frame:
    turn = Rotation.random(rng=rng).as_matrix()
    return Frame(turn @ np.asarray(Frame.identity(side).axes), rng.uniform(-50, 50, 3))


@pytest.mark.parametrize(
    "names",
    [
        ("C", "A", "RW"),
        (" c", "Apex ", "rw"),
        ("Base_Centre", "APEX", "round-window"),
        ("base center", "helicotrema", "Round Window"),
        ("centre", "cochlea apex", "RoundWindow"),
    ],
    ids=str,
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_landmarks_have_many_names(names, side):
    found = frame_from_points({**dict(zip(names, (C, A, RW), strict=True)), "OW": C + 1}, side, HEAD)
    expected = Frame.from_landmarks(C, A, RW, side)
    np.testing.assert_array_equal(found.axes, expected.axes)
    np.testing.assert_array_equal(found.origin, expected.origin)
    assert found.side == side


@pytest.mark.parametrize(
    ("points", "pattern"),
    [
        ({"A": A, "RW": RW}, "base centre .* there is none"),
        ({"C": C, "A": A, "OW": RW}, "round window .* there is none; the points are A, C, OW"),
        ({}, "there is none; the points are none"),
        ({**POINTS, "apex": A}, "the apex .* there are 2: A, apex"),
        ({**POINTS, "A": C + 0.8 * UP}, "apex should lie 1.5 to 6 mm .* lies 0.8 mm"),
        ({**POINTS, "RW": C + 12 * RIGHT}, "round window should lie 3 to 9 mm .* lies 12.0 mm"),
        ({name: point / 10 for name, point in POINTS.items()}, "in millimetres"),
        ({**POINTS, "A": C + 2.5 * RIGHT + UP}, "about 90 degrees .* are 22"),
        ({**POINTS, "A": C - 2.5 * RIGHT}, "are 180; check that the landmarks' names are not exchanged"),
        ({**POINTS, "A": RW, "RW": A - 0.1 * UP}, "round window should lie .* check the landmarks' names"),
        ({**POINTS, "C": RW, "RW": C}, "apex should lie .* check the landmarks' names"),
        ({name: point * [-1, -1, 1] for name, point in POINTS.items()}, "landmark base centre .* outside the CT"),
        ({name: point + 8 * RIGHT for name, point in POINTS.items()}, "landmark round window .* outside the CT"),
    ],
    ids=[
        *("no centre", "no window", "none", "two", "near", "far", "centimetres", "slanted", "backwards"),
        *("apex and window", "centre and window", "LPS", "half outside"),
    ],
)
def test_landmarks_that_cannot_be(points, pattern):
    assert_one_sentence(lambda: frame_from_points(points, "right", HEAD), pattern)


def test_landmarks_need_a_side_and_no_volume():
    assert_one_sentence(lambda: frame_from_points(POINTS, None, HEAD), "which ear they are of")
    far = {name: point + 500 for name, point in POINTS.items()}
    assert frame_from_points(far, "left").side == "left"


def test_the_ct_reaches_half_a_voxel_beyond_its_centres():
    check_inside(HEAD, np.array([19.76, -20.24, 14.74]), "it")
    for away in ([19.74, 0, 0], [30, -20.26, 0], [30, 0, 14.76], [30, np.nan, 0]):
        assert_one_sentence(
            lambda away=away: check_inside(HEAD, np.array(away), "the point"), r"the point lies at .* outside the CT"
        )


def test_beyond_the_cut_is_what_the_data_page_says():
    """Drop (x > 2.4 and y + z/2 < -0.8) and z <= -3, in the cochlear frame."""
    rng = np.random.default_rng(0)
    points = np.concatenate(
        [rng.uniform([-5, -5, -5], [7, 5, 6], (5000, 3)), rng.normal([2.4, -0.8, 0], 0.3, (500, 3))]
    )
    points = np.concatenate([points, [[2.4, -5, 0], [2.5, -0.8, 0], [0, 0, -3], [0, 0, -2.999], [3, 0, -2]]])
    expected = []
    for x, y, z in points.tolist():
        in_vestibule = x > 2.4 and y + z / 2 < -0.8
        below_base = not z > -3
        expected.append(in_vestibule or below_base)
    found = is_beyond(points)
    np.testing.assert_array_equal(found, expected)
    assert found[-5:].tolist() == [False, False, True, False, True]
    assert 0.05 < found.mean() < 0.7


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_frame_of_a_model_with_the_mean_pose_is_its_own(side):
    rng = np.random.default_rng(1)
    frame = random_frame(rng, side)
    cochlea = Cochlea(frame, ("section_scale",))
    theta = cochlea.mean() + np.r_[np.zeros(6), 0.1 * rng.normal(size=5)]  # whatever its size
    found = frame_of_model(cochlea, theta)
    np.testing.assert_allclose(found.axes, frame.axes, atol=1e-12)
    np.testing.assert_allclose(found.origin, frame.origin, atol=1e-12)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_point_keeps_its_place_in_the_model(side):
    """In the frame of the model the mean pose says what the fitted pose says in the given frame."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        frame = random_frame(rng, side)
        cochlea = Cochlea(frame, ("section_scale",))
        mean, pose = cochlea.mean(), np.r_[rng.uniform(-2, 2, 3), rng.uniform(-1, 1, 3)]
        theta = np.r_[pose, mean[6:]]
        found = frame_of_model(cochlea, theta)
        assert found.side == side
        points = np.asarray(frame.origin) + rng.uniform(-6, 6, (50, 3))
        with double_precision():
            there = cochlea.to_model(theta, points)
            here = Cochlea(found, ("section_scale",)).to_model(mean, points)
        np.testing.assert_allclose(here, there, atol=1e-9)


def test_surprise_is_a_squared_mahalanobis_distance():
    cochlea = Cochlea(free=("section_scale",))
    mean, rng = cochlea.mean(), np.random.default_rng(3)
    assert pose_surprise(cochlea, mean) == 0
    assert pose_surprise(cochlea, mean + np.r_[np.zeros(6), np.ones(5)]) == 0  # the size is no matter
    root = np.linalg.cholesky(np.asarray(cochlea.calibration.covariance)[:6, :6])
    steps = rng.normal(size=(20, 6))
    found = [pose_surprise(cochlea, mean + np.r_[root @ step, np.zeros(5)]) for step in steps]
    np.testing.assert_allclose(found, np.sum(steps**2, axis=1), rtol=1e-9)


@pytest.mark.parametrize("side", ["left", "right"])
def test_frames_are_apart_by_mm_and_degrees(side):
    rng = np.random.default_rng(4)
    one = random_frame(rng, side)
    axes, origin = np.asarray(one.axes), np.asarray(one.origin)
    np.testing.assert_allclose(frame_offset(one, one), 0, atol=1e-4)  # single precision at 50 mm; acos near one
    shifted = Frame(axes, origin + np.array([0.3, -0.4, 1.2]))
    np.testing.assert_allclose(frame_offset(one, shifted), [1.3, 0], atol=1e-4)
    turn = Rotation.from_rotvec(np.radians(20) * np.array([0.6, 0, 0.8])).as_matrix()
    about_middle = Frame(turn @ axes, origin + CENTRE @ axes - CENTRE @ turn @ axes)
    np.testing.assert_allclose(frame_offset(one, about_middle), [0, 20], atol=1e-4)
    np.testing.assert_allclose(frame_offset(about_middle, one), [0, 20], atol=1e-4)


def test_templates_of_all_folds():
    found = {fold: load_template(fold) for fold in ("all", "1", "2", "3", "4")}
    for template in found.values():
        np.testing.assert_array_equal(template.points, template_points())
        assert template.values.shape == (len(template.points),)
        assert np.all((template.values >= 0) & (template.values <= 1))
        assert 0.3 < template.values.mean() < 0.95  # mostly bone
        assert np.mean(template.values < 0.3) > 0.02  # and a lumen
    assert len({template.values.tobytes() for template in found.values()}) == 5
    assert_one_sentence(lambda: load_template("5"), "folds all, 1, 2, 3, 4 but not '5'")


def test_the_points_of_a_template_fill_a_ball():
    points = template_points()
    away = points - 0.5 * (points.min(axis=0) + points.max(axis=0))
    distance = np.linalg.norm(away, axis=1)
    assert RADIUS - 0.4 < distance.max() <= RADIUS
    assert len(points) * 0.4**3 == pytest.approx(4 / 3 * np.pi * RADIUS**3, rel=0.03)
    thin = load_template().thinned(2)
    assert len(thin.points) == len(thin.values) == pytest.approx(len(points) / 8, rel=0.05)
    np.testing.assert_allclose(np.unique(np.diff(np.unique(thin.points[:, 0].round(6)))), 0.8, atol=1e-6)


def test_bone_codes():
    hu = np.array([-1e9, -1000.0, 200.0, 1200.0, 1400.0, 2200.0, 1e9])
    found = bone_code(hu)
    np.testing.assert_allclose(
        found, [0, 0, np.exp(-5) / (1 + np.exp(-5)), 0.5, 1 / (1 + np.exp(-1)), 1, 1], atol=7e-3
    )
    assert np.all(np.diff(found) >= 0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_codes_do_not_depend_on_the_scale_and_end_with_the_ct(side):
    rng = np.random.default_rng(5)
    volume = HEAD.with_data(rng.uniform(-1000, 2500, HEAD.shape).astype(np.float32))
    frame, points = Frame(Frame.identity(side).axes, C), rng.uniform(-12, 12, (500, 3))
    found = code_at(volume, frame, points)
    scaled = code_at(volume.with_data(0.3 * volume.data + 77), frame, points, (0.3, 77.0))
    np.testing.assert_allclose(scaled, found, atol=1e-4)  # single precision
    position = points @ np.asarray(frame.axes) + C
    inside = np.all((position >= [20, -20, -5]) & (position <= [39.5, -0.5, 14.5]), axis=1)
    np.testing.assert_array_equal(np.isnan(found), ~inside)
    assert 50 < inside.sum() < 450
