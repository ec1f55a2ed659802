"""What must be true of any cochlea in its box: one closed surface, no tears, and a level that says where it is."""

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from logishape.cochlea import Cochlea, Frame, mesh_volume, surface
from logishape.cochlea.level import NUM_PIECES, piece_levels, place_of
from logishape.core.arrays import double_precision
from tests.cochleae import PRESETS, SIZE, awkward_points, derivatives, draw, level, likely, make, random_points

each_preset = pytest.mark.parametrize("preset", PRESETS)
EPS = 1e-6  # mm


def seams(cochlea, theta):
    """Azimuths of the half-planes where pieces begin, end or change places, and one where nothing happens."""
    start, end = float(cochlea.calibration.start), theta[13]
    return [start, start + np.pi, end, end + np.pi, 0.0, np.pi, 1.0]


def across(azimuths, num, rng):
    """Pairs of points at the distance EPS on both sides of half-planes, and their distance from the axis (mm)."""
    azimuth = np.repeat(azimuths, num)
    rho, height = rng.uniform(0, 6.5, azimuth.size), rng.uniform(-3, 7, azimuth.size)
    rho[::4] *= 0.05
    on = np.stack([rho * np.cos(azimuth), rho * np.sin(azimuth), height], axis=1)
    normal = np.stack([-np.sin(azimuth), np.cos(azimuth), 0 * azimuth], axis=1)
    return np.stack([on - 0.5 * EPS * normal, on + 0.5 * EPS * normal]), rho


def seam_levels(preset, thetas, num=585):
    """Levels on either side of all seams of many shapes, the distance from the axis, and the shape's number."""
    cochlea, rng, rows = make(preset), np.random.default_rng(0), []
    for number, theta in enumerate(thetas):
        points, rho = across(seams(cochlea, theta), num, rng)
        before, after = level(cochlea.duct, theta[6:], points.reshape(-1, 3)).reshape(2, -1)
        rows.append(np.stack([before, after, rho, np.full(rho.shape, number)]))
    return np.concatenate(rows, axis=1)


def steepest(rho):
    """How fast the level may change by angle (1/mm): near the axis a short way is a wide angle."""
    return 20 + 10 / rho


@each_preset
def test_nothing_tears_at_any_seam(preset):
    """50 shapes from all over the box: next to the surface the level goes on smoothly across every seam."""
    before, after, rho, _ = seam_levels(preset, draw(make(preset), 50, 0))
    jump, allowed = np.abs(before - after), EPS * steepest(rho)
    is_near = np.minimum(np.abs(before), np.abs(after)) < np.minimum(0.1, 0.5 * rho)
    assert is_near.sum() > 5000
    assert np.all(jump[is_near] < allowed[is_near])
    flips = (before > 0) != (after > 0)
    assert np.all(np.maximum(np.abs(before), np.abs(after))[flips] < allowed[flips])


@each_preset
def test_the_level_goes_on_across_every_seam_deep_inside_and_outside_too(preset):
    before, after, rho, _ = seam_levels(preset, likely(make(preset), 20, 0))
    jump = np.abs(before - after)
    is_torn = jump > EPS * steepest(rho)
    assert not np.any(is_torn), (
        f"{is_torn.mean():.2%} of pairs jump, by up to {jump.max():.2f} mm; within 0.3 mm of the surface "
        f"{np.sum(is_torn & (np.abs(before) < 0.3))}"
    )


@each_preset
def test_the_level_goes_on_between_turns_and_sheets(preset):
    """Pairs in random directions, many near the creases where one turn hands over to another."""
    cochlea, rng = make(preset), np.random.default_rng(1)
    for theta in draw(cochlea, 20, 1):
        points = random_points(SIZE // 2, 2, 5.0)
        direction = rng.normal(size=points.shape)
        moved = points + EPS * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        a, b = level(cochlea.duct, theta[6:], np.concatenate([points, moved])).reshape(2, -1)
        rho = np.linalg.norm(points[:, :2], axis=1)
        # A seam is hit by one pair in a million.
        assert np.all(np.abs(a - b) < EPS * steepest(rho))


@each_preset
def test_signs_change_near_the_axis_only_where_the_level_is_small(preset):
    """Neighbours on a grid about the axis (not on it: there is no azimuth) that lie on different sides."""
    cochlea, h = make(preset), 0.02
    axis = (np.arange(-3, 3) + 0.5) * h
    grid = np.stack(np.meshgrid(axis, axis, np.arange(-2, 6, h), indexing="ij"), axis=-1)
    num_flips = 0
    for theta in draw(cochlea, 25, 3):
        values = level(cochlea.duct, theta[6:], grid.reshape(-1, 3)).reshape(grid.shape[:3])
        for along in range(3):
            a, b = np.moveaxis(values, along, 0)[:-1], np.moveaxis(values, along, 0)[1:]
            flips = (a > 0) != (b > 0)
            num_flips += flips.sum()
            rho = np.linalg.norm(np.moveaxis(grid, along, 0)[:-1, ..., :2], axis=-1)
            smaller, larger = (pick(np.abs(a), np.abs(b)) for pick in (np.minimum, np.maximum))
            assert np.all(larger[flips & (rho > 1.5 * h)] < 4 * h)
            # Nearer than that a step is a wide angle, in which a section may come and go.
            assert np.all(smaller[flips] < 2 * h)
            assert np.all(larger[flips] < 0.3)
    assert num_flips > 1000


@eqx.filter_jit
def all_pieces(duct, theta, points):
    return piece_levels(duct.form(theta, points), place_of(points))


@each_preset
def test_the_union_is_nowhere_smaller_than_any_turn(preset):
    cochlea, shown = make(preset), set()
    for k, theta in enumerate(draw(cochlea, 20, 4)):
        points = random_points(SIZE, k)
        union = level(cochlea.duct, theta[6:], points)
        with double_precision():
            pieces = np.asarray(all_pieces(cochlea.duct, theta[6:], points))
        assert pieces.shape == (NUM_PIECES, SIZE)
        assert np.all(union >= pieces - 1e-12)
        np.testing.assert_allclose(union, pieces.max(axis=0), atol=1e-12)
        shown |= set(pieces.argmax(axis=0))
    assert shown == set(range(NUM_PIECES)), "every piece is needed somewhere"


@each_preset
def test_derivatives_are_finite_everywhere(preset):
    cochlea = make(preset)
    for theta in [cochlea.mean(), *draw(cochlea, 4, 5)]:
        found = derivatives(cochlea, theta, awkward_points(cochlea, theta))
        for values in found:
            assert np.all(np.isfinite(values))
        assert np.abs(found.gradient).max() < 1e3


MIRROR = np.array([1.0, -1.0, 1.0])


@each_preset
def test_a_left_ear_is_a_mirrored_right_ear(preset):
    left, right = make(preset, Frame.identity("left")), make(preset)
    assert (left.frame.side, right.frame.side) == ("left", "right")
    for theta in draw(right, 3, 9):
        points = random_points(SIZE, 40)
        np.testing.assert_allclose(level(left, theta, points), level(right, theta, points * MIRROR), atol=1e-12)
        there, here = (surface(ear, theta, 0.5) for ear in (left, right))
        assert mesh_volume(there) == pytest.approx(mesh_volume(here), rel=1e-9)
        assert mesh_volume(there) > 10
        found = np.sort(there.vertices * MIRROR, axis=0), np.sort(here.vertices, axis=0)
        np.testing.assert_allclose(*found, atol=1e-9)


@pytest.mark.parametrize("side", ["left", "right"])
def test_moving_the_world_moves_nothing_but_the_pose(side):
    rng = np.random.default_rng(10)
    centre, apex, window = np.array([[3.0, -20.0, 5.0], [4.0, -17.0, 6.5], [8.0, -22.0, 5.5]])
    here = make("calibrated", Frame.from_landmarks(centre, apex, window, side))
    theta, points = likely(here, 1, 11)[0], random_points(SIZE, 50) + centre
    expected = level(here, theta, points)
    assert 100 < np.sum(expected > 0) < SIZE
    for _ in range(4):
        turn, shift = Rotation.random(rng=rng), rng.uniform(-300, 300, 3)
        moved = [turn.apply(landmark) + shift for landmark in (centre, apex, window)]
        there = make("calibrated", Frame.from_landmarks(*moved, side))
        assert there.frame.side == side
        np.testing.assert_allclose(level(there, theta, turn.apply(points) + shift), expected, atol=1e-9)
    # A mirror turns a left ear into a right one.
    mirrored = [landmark * MIRROR for landmark in (centre, apex, window)]
    other = make("calibrated", Frame.from_landmarks(*mirrored, "left" if side == "right" else "right"))
    np.testing.assert_allclose(level(other, theta, points * MIRROR), expected, atol=1e-9)


def assert_closed_and_outward(mesh):
    """Every directed edge occurs once, and so does its reverse; the volume is positive."""
    edges = np.concatenate([mesh.faces[:, [0, 1]], mesh.faces[:, [1, 2]], mesh.faces[:, [2, 0]]]).astype(np.int64)
    there, back = (edges[:, i] * len(mesh.vertices) + edges[:, 1 - i] for i in (0, 1))
    assert np.all(edges[:, 0] != edges[:, 1])
    assert len(np.unique(there)) == len(there)
    np.testing.assert_array_equal(np.sort(there), np.sort(back))
    assert np.all(np.isfinite(mesh.vertices))
    assert mesh_volume(mesh) > 0


@each_preset
@pytest.mark.parametrize("num", [10, pytest.param(250, marks=pytest.mark.slow)])
def test_every_surface_is_closed_and_looks_outward(preset, num):
    cochlea = make(preset)
    for theta in draw(cochlea, num, 12):
        assert_closed_and_outward(surface(cochlea, theta, 0.5))


@pytest.mark.slow
def test_single_precision_stays_single_where_doubles_exist():
    """As in a fit: the engine works on single-precision points while doubles are switched on."""
    points = random_points(64, 5, 4.0).astype(np.float32)
    for distance in ("level", "exact"):
        cochlea = Cochlea(distance=distance)
        theta = cochlea.mean().astype(np.float32)
        with double_precision():
            pieces = piece_levels(cochlea.duct.form(theta[6:], points), place_of(points))
            found = jax.eval_shape(cochlea.derivatives, theta, points)
        assert pieces.dtype == np.float32
        assert {leaf.dtype for leaf in found} == {np.dtype(np.float32)}
