"""The pieces of the search for cochleae: correlation, orientations, the lattice of a CT, and poses as frames."""

import jaxtyping
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from logishape.cochlea import Frame, Point, load_template
from logishape.cochlea import lattice as lattices
from logishape.cochlea.lattice import PITCH, make_lattice
from logishape.cochlea.locate import Located, locate
from logishape.cochlea.pose import LEAST_COVERED, Pose, correlate, degrees, refine
from logishape.cochlea.sweep import quasi_uniform_turns
from logishape.cochlea.template import CENTRE, code_at
from logishape.core.volume import Volume
from tests.problems import assert_one_sentence

HEAD = Volume.from_spacing(np.random.default_rng(0).normal(40, 20, (60, 60, 60)).astype(np.float32), 0.5)


@pytest.fixture(autouse=True)
def as_a_user_runs_it(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


# Correlation.


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["all seen", "a fifth missing"])
def test_correlation_is_that_of_numpy(missing):
    rng = np.random.default_rng(0)
    codes, templates = rng.uniform(size=(7, 80)), rng.uniform(size=(5, 80))
    codes[0] = 0.5 + 0.1 * templates[3]  # gain and offset do not matter
    is_missing = rng.random(codes.shape) < missing
    codes[is_missing] = np.nan
    found = correlate(codes, templates)
    expected = [
        [np.corrcoef(a[~gone], b[~gone])[0, 1] for b in templates] for a, gone in zip(codes, is_missing, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found[0, 3] == pytest.approx(1, abs=1e-6)


def test_correlation_of_little_or_nothing_is_zero():
    rng = np.random.default_rng(1)
    template = rng.uniform(size=(1, 100))
    codes = np.tile(template, (4, 1))
    least = round(100 * LEAST_COVERED)
    codes[0, least:] = codes[2, :] = np.nan
    codes[1, least + 1 :] = np.nan
    codes[3] = 0.7
    np.testing.assert_allclose(correlate(codes, template)[:, 0], [0, 1, 0, 0], atol=1e-6)


# Orientations and poses.


def test_turns_are_rotations_and_leave_no_gap():
    turns = quasi_uniform_turns(600)
    np.testing.assert_allclose(turns @ turns.transpose(0, 2, 1), np.broadcast_to(np.eye(3), turns.shape), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(turns), 1)
    anything = Rotation.random(2000, rng=np.random.default_rng(2)).as_matrix()
    traces = np.einsum("aij,bij->ab", anything, turns)
    nearest = np.degrees(np.arccos(np.clip((traces.max(axis=1) - 1) / 2, -1, 1)))
    assert nearest.max() < 32  # a pose so far away still resembles the template, and is refined
    assert nearest.mean() < 18


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_pose_is_a_frame_and_its_middle_the_shift(side):
    rng = np.random.default_rng(3)
    place = Frame(Rotation.random(rng=rng).as_matrix(), rng.uniform(-50, 50, 3))
    turn = np.asarray(Frame.identity(side).axes) @ Rotation.random(rng=rng).as_matrix()
    pose = Pose(0.9, turn, rng.uniform(0, 30, 3))
    frame = pose.frame(place)
    assert frame.side == side
    shift = pose.shift @ np.asarray(place.axes) + np.asarray(place.origin)
    np.testing.assert_allclose(Located(frame, 0.9).middle, shift, atol=1e-9)
    away = rng.normal(size=3)  # a template point p lies at turn' (p - CENTRE) + shift
    there = (away @ turn + pose.shift) @ np.asarray(place.axes) + np.asarray(place.origin)
    np.testing.assert_allclose(
        (there - np.asarray(frame.origin)) @ np.asarray(frame.axes).T, away + CENTRE, atol=1e-9
    )


def test_poses_are_apart_by_mm_degrees_or_a_mirror():
    one = Pose(0.9, np.eye(3), np.zeros(3))
    turned = Rotation.from_rotvec(np.radians([0, 20, 0])).as_matrix()
    assert degrees(turned) == pytest.approx(20)
    assert not one.is_apart(Pose(0.8, turned, np.array([1.0, 0, 0])), 1.2, 25)
    assert one.is_apart(Pose(0.8, turned, np.zeros(3)), 1.2, 15)
    assert one.is_apart(Pose(0.8, np.eye(3), np.array([1.0, 1.0, 0])), 1.2, 25)
    assert one.is_apart(Pose(0.8, np.diag([1.0, -1.0, 1.0]), np.zeros(3)), 1.2, 25)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pose_is_refined_to_where_the_template_is(dtype):
    template = load_template()
    half, pitch = 6.4, 0.4
    axis = np.arange(-half, half + pitch / 2, pitch)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    codes = np.exp(-np.sum((points - [1.0, 0.5, -0.4]) ** 2 / [6.0, 2.0, 1.0], axis=-1))  # one ellipsoid, not round
    seen = np.exp(-np.sum((template.points - CENTRE) ** 2 / [6.0, 2.0, 1.0], axis=-1))
    start = Pose(0.0, Rotation.from_rotvec([0.2, -0.15, 0.2]).as_matrix(), half + np.array([0.5, 0.9, 0.0]))
    found = refine(codes.astype(dtype), pitch, type(template)(template.points, seen), start)
    np.testing.assert_allclose(found.shift - half, [1.0, 0.5, -0.4], atol=0.02)  # mm: twentieths of a step
    assert degrees(found.turn) < 1
    assert found.score > 0.999


# The lattice.


def odd_volume(name: str) -> Volume:
    """Smooth values on a grid whose axes are unequal and turned, reversed or even slanted."""
    rng = np.random.default_rng(4)
    columns = Rotation.from_rotvec([0.3, -0.5, 0.9]).as_matrix() * [0.4, 0.55, 0.3]
    if name == "sheared":
        columns[:, 2] += 0.35 * columns[:, 0]
    if name == "flipped":
        columns[:, 1] *= -1
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = columns, [12.0, -31.0, 5.0]
    shape = (28, 20, 34)
    waves = sum(np.cos(rng.uniform(0.2, 0.5, 3) @ np.indices(shape).reshape(3, -1) + k) for k in range(4))
    return Volume((1200 + 300 * waves).reshape(shape).astype(np.float32), affine)


@pytest.mark.parametrize("name", ["turned", "flipped", "sheared"])
def test_the_lattice_holds_the_codes_of_its_cells(name, monkeypatch):
    monkeypatch.setattr(lattices, "_SLAB_SIZE", 4000)  # many slabs
    volume = odd_volume(name)
    scaled = volume.with_data(0.7 * volume.data + np.float32(200))
    found = make_lattice(scaled, (0.7, 200.0))
    assert found.place.side == ("left" if name == "flipped" else "right")
    index = np.argwhere(np.isfinite(found.codes))
    inner = np.stack(np.meshgrid(*[(-0.25, 0.25)] * 3, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    expected = np.mean([code_at(volume, found.place, (index + part) * PITCH) for part in inner], axis=0)
    is_inside = np.isfinite(expected)  # a cell at the border reaches half a voxel farther than the centres of voxels
    assert is_inside.mean() > 0.6
    assert len(index) * PITCH**3 == pytest.approx(np.prod(volume.shape) * volume.voxel_size, rel=0.2)
    here = found.codes[tuple(index.T)]
    np.testing.assert_allclose(
        here[is_inside], expected[is_inside], atol=2e-4
    )  # single precision, times 1/4 per 200 HU
    assert here.std() > 0.1


def test_a_volume_moved_in_the_world_has_the_same_lattice():
    volume = odd_volume("sheared")
    motion = np.eye(4)
    motion[:3, :3] = np.diag([1.0, 1.0, -1.0]) @ Rotation.from_rotvec([1.0, 0.2, -2.0]).as_matrix()
    motion[:3, 3] = [80.0, -300.0, 40.0]
    one, other = make_lattice(volume), make_lattice(Volume(volume.data, motion @ volume.affine))
    np.testing.assert_allclose(other.codes, one.codes, atol=1e-4)  # indices of single precision
    np.testing.assert_allclose(other.place.axes, np.asarray(one.place.axes) @ motion[:3, :3].T, atol=1e-12)


# What cannot be looked for.


@pytest.mark.parametrize(
    ("point", "pattern"),
    [
        (Point((1.0, 2.0), "left"), "expected x, y, z"),
        (Point((1.0, 2.0, np.nan)), "expected x, y, z"),
        (Point("here"), "numbers for the point"),
        (Point((1.0, 2.0, 3.0), "middle"), "side must be left or right but is 'middle'"),
        (Point((1.0, 2.0, 3.0), "left"), r"no left cochlea was found within 2.5 mm of \[1.0, 2.0, 3.0\]"),
        (Point((30.0, -10.0, 5.0)), "no cochlea was found within .* nothing there looks like bone"),
    ],
    ids=["two", "nan", "words", "side", "outside", "nothing there"],
)
def test_points_that_are_none(point, pattern):
    assert_one_sentence(lambda: locate(HEAD, point=point), pattern)


def test_a_side_that_is_none():
    assert_one_sentence(lambda: locate(HEAD, side="both"), "left or right but is 'both'")
    assert_one_sentence(lambda: locate(HEAD, side="left"), "no left cochlea was found: nothing there")
