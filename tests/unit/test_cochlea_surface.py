"""Coordinates along the duct, and the mesh's own rules."""

import numpy as np
import pytest

from logishape.cochlea import Cochlea, Frame, coordinates, mesh_volume, path, surface, volume
from logishape.core.arrays import double_precision
from tests.cochleae import PRESETS, draw, level, likely, make, random_points

each_preset = pytest.mark.parametrize("preset", PRESETS)
LEFT = Frame.from_landmarks([30, -20, 5], [31, -17, 8], [36, -22, 6], "left")
NUM = 200


@pytest.mark.parametrize("frame", [None, LEFT], ids=["right", "left"])
@each_preset
def test_coordinates_of_a_path_are_its_angles(preset, frame):
    cochlea, rng = make(preset, frame), np.random.default_rng(0)
    theta = likely(cochlea, 1, 1)[0]
    angles = np.sort(rng.uniform(0, theta[13], NUM))
    along = path(cochlea, theta, "centre", angles)
    found = coordinates(cochlea, theta, along.points)
    np.testing.assert_allclose(found.angle, angles, atol=1e-9)
    np.testing.assert_allclose(found.radius, along.radius, atol=1e-9)
    np.testing.assert_allclose(found.height, along.height, atol=1e-9)


@each_preset
def test_coordinates_say_where_a_point_is(preset):
    """(radius cos angle, radius sin angle, height) is the point, for any point of any shape."""
    cochlea = make(preset, LEFT)
    num_across = 0
    for k, theta in enumerate(draw(cochlea, 6, 2)):
        model = random_points(NUM, k)
        model[: NUM // 4, :2] *= 0.05  # near the axis
        with double_precision():
            points = np.asarray(cochlea.to_world(theta, model))
        found = coordinates(cochlea, theta, points)
        turned = found.radius * np.exp(1j * found.angle)
        np.testing.assert_allclose(np.stack([turned.real, turned.imag, found.height], axis=1), model, atol=1e-9)
        is_in = level(cochlea, theta, points) > 0
        start, end = float(cochlea.calibration.start), theta[13]
        # Rounded ends reach half a turn beyond their planes at most.
        assert np.all((found.angle[is_in] > start - np.pi) & (found.angle[is_in] < end + np.pi))
        num_across += np.sum(is_in & (found.radius < 0))
    assert num_across > 5


def test_a_point_across_the_axis_belongs_to_the_section_that_reaches_over():
    """A narrow spiral: half a turn before its end a section reaches over the axis, deeper than the apex does."""
    cochlea = make("paper")
    theta = cochlea.theta(
        dict(zip(cochlea.parameter_names, cochlea.mean(), strict=True))
        | {"a": 2.8, "b": 0.18, "section_scale": -0.2, "alpha": 0.3, "phi": 0.0}
    )
    angle = theta[13] - 3.2
    centre = path(cochlea, theta, "centre", [0.0, angle])
    radius, height = -0.1, centre.height[1]
    assert 0 < centre.radius[1] < 0.55
    model = np.array([[radius * np.cos(angle), radius * np.sin(angle), height]])
    with double_precision():
        world = np.asarray(cochlea.to_world(theta, model))
    found = coordinates(cochlea, theta, np.repeat(world, NUM, axis=0))
    np.testing.assert_allclose(found.angle, angle, atol=1e-9)
    np.testing.assert_allclose(found.radius, radius, atol=1e-9)


def test_the_volume_grows_with_the_sections():
    """All sections larger by a factor make a volume larger by about its square, and never by less than its own."""
    cochlea = make("calibrated")
    theta = cochlea.mean()
    small, large = theta.copy(), theta.copy()
    small[10], large[10] = -0.2, 0.2
    volumes = [volume(cochlea, one, 0.2) for one in (small, theta, large)]
    assert volumes[0] * np.exp(0.2) < volumes[1] < volumes[0] * np.exp(0.4) * 1.05
    assert volumes[1] * np.exp(0.2) < volumes[2] < volumes[1] * np.exp(0.4) * 1.05
    assert 40 < volumes[1] < 120  # mm^3, as cochleae are


def test_a_unit_tetrahedron_has_its_volume_and_turned_round_its_negative():
    from logishape.cochlea import Mesh

    vertices = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    assert mesh_volume(Mesh(vertices, faces)) == pytest.approx(1 / 6)
    assert mesh_volume(Mesh(vertices + 5.0, faces[:, ::-1])) == pytest.approx(-1 / 6)


def test_finer_meshes_say_the_same():
    cochlea = make("calibrated")
    theta = likely(cochlea, 1, 4)[0]
    coarse, fine = (mesh_volume(surface(cochlea, theta, edge)) for edge in (0.3, 0.1))
    assert coarse == pytest.approx(fine, rel=0.02)


def test_lengths_do_not_depend_on_how_many_angles_are_asked_for():
    cochlea = Cochlea()
    theta = cochlea.mean()
    lengths = [
        path(cochlea, theta, "lateral_wall", np.linspace(0, cochlea.calibration.end, num)).length[-1]
        for num in (401, 1001)
    ]
    np.testing.assert_allclose(lengths, path(cochlea, theta, "lateral_wall").length[-1], atol=1e-3)
