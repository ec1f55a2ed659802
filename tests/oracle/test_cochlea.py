"""The cochlea against formulas written anew in NumPy, quadrature, counted voxels and differences."""

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.integrate import simpson

import logishape as ls
from logishape import appearance
from logishape.cochlea import Cochlea, Frame, mesh_volume, paper_calibration, path, surface
from logishape.cochlea.calibration import PARAMETERS
from logishape.core.arrays import double_precision
from tests.cochleae import PRESETS, SIZE, derivatives, draw, level, likely, make, random_points
from tests.problems import draw_intensities

each_preset = pytest.mark.parametrize("preset", PRESETS)


class PlainCochlea:
    """The formulas as the method states them: any angle, in NumPy."""

    def __init__(self, calibration, theta):
        self.calibration, self.values = calibration, dict(zip(PARAMETERS, theta, strict=True))
        self.start, self.end = float(calibration.start), self.values["theta_max"]

    def radius(self, angle):
        c, v = self.calibration.constants, self.values
        p0, th0 = float(c.start_radius), float(c.joint)
        c2 = v["a"] * np.exp(-v["b"] * th0)
        c1 = -v["b"] * c2
        p2, p1 = (c1 * th0 - c2 + p0) / th0**2, (-c1 * th0 + 2 * c2 - 2 * p0) / th0
        return np.where(angle < th0, p2 * angle**2 + p1 * angle + p0, v["a"] * np.exp(-v["b"] * angle))

    def height(self, angle):
        c, v, joint, end = self.calibration.constants, self.values, self.end - np.pi, self.end
        beta, rise = float(c.beta), float(c.rise)
        swing = v["alpha"] * np.exp(-beta * joint)
        slope = -swing * (beta * np.cos(joint + v["phi"]) + np.sin(joint + v["phi"])) + rise
        at_joint = swing * np.cos(joint + v["phi"]) + rise * joint
        a2 = -slope / (2 * np.pi)
        a1 = -2 * a2 * end
        a0 = at_joint - a2 * joint**2 - a1 * joint
        early = v["alpha"] * np.exp(-beta * angle) * np.cos(angle + v["phi"]) + rise * angle
        return np.where(angle < joint, early, a2 * angle**2 + a1 * angle + a0)

    def section(self, angle):
        """Centre and form of the section: radius, height, c0, c2, s2."""
        table, v = self.calibration.table, self.values
        first, last = float(table.first), float(table.last)
        x = 2 * (np.clip(angle, first, last) - first) / (last - first) - 1
        c0, c2, s2, dr, dz = (np.polyval(row, x) for row in table.powers)
        share = np.clip(1 - (self.end - angle) / (2 * np.pi), 0, 1)
        lift = v["apex_offset"] * (3 * share**2 - 2 * share**3)
        form = c0 + v["section_scale"], c2 + v["section_c2"], s2 + v["section_s2"]
        return self.radius(angle) + dr, self.height(angle) + dz + lift, *form

    def relative(self, angle, radial, height):
        """q/R: how far out in its section a point is, in the section's own size."""
        r, z, c0, c2, s2 = self.section(angle)
        e, f = radial - r, height - z
        psi = np.arctan2(f, e)
        return np.hypot(e, f) / np.exp(c0 + c2 * np.cos(2 * psi) + s2 * np.sin(2 * psi)), np.exp(c0)

    def is_inside(self, points):
        x, y, z = points.T
        rho, azimuth = np.hypot(x, y), np.arctan2(y, x)
        found = np.zeros(len(points), bool)
        for side in (1, -1):
            for k in range(-3, 5):
                angle = azimuth + (0 if side > 0 else np.pi) + 2 * np.pi * k
                q, _ = self.relative(angle, side * rho, z)
                found |= (q < 1) & (self.start <= angle) & (angle <= self.end)
        for angle, depth in zip((self.start, self.end), self.calibration.depths, strict=True):
            along, over = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
            q, size = self.relative(angle, along, z)
            found |= np.hypot(q, over / (depth * size)) < 1
        return found

    def path(self, angle, share):
        """Distance from the axis and height of a path, M + share (W - M)."""
        r, z, c0, c2, s2 = self.section(angle)
        psi = np.linspace(-np.pi / 2, np.pi / 2, 1001)[:, None]
        reach = np.exp(c0 + c2 * np.cos(2 * psi) + s2 * np.sin(2 * psi)) * np.cos(psi)
        return r + share * reach.max(axis=0), z


@each_preset
def test_the_sign_is_that_of_the_plain_inside_test(preset):
    cochlea = make(preset)
    for k, theta in enumerate(draw(cochlea, 20, 0)):
        points = random_points(SIZE, k)
        found = level(cochlea.duct, theta[6:], points)
        expected = PlainCochlea(cochlea.calibration, theta).is_inside(points)
        assert 50 < expected.sum() < SIZE - 50
        is_off = np.abs(found) > 1e-9
        np.testing.assert_array_equal((found > 0)[is_off], expected[is_off])


def test_the_paper_sections_are_ellipses():
    """w = 1.10 e^(-.044 th), h = 1.03 e^(-.044 th): within 1.2 micrometres, everywhere on them."""
    plain = PlainCochlea(paper_calibration(), paper_calibration().mean)
    psi = np.linspace(0, 2 * np.pi, 721)
    for angle in (0.0, 2.0, 7.5, 5 * np.pi):
        w, h = np.array([1.10, 1.03]) * np.exp(-0.044 * angle)
        _, _, c0, c2, s2 = plain.section(angle)
        ellipse = w * h / np.hypot(h * np.cos(psi), w * np.sin(psi))
        ours = np.exp(c0 + c2 * np.cos(2 * psi) + s2 * np.sin(2 * psi))
        assert np.abs(ours - ellipse).max() < 1.2e-3


@pytest.mark.parametrize(("along", "share"), [("centre", 0.0), ("organ_of_corti", 0.69), ("lateral_wall", 1.0)])
@each_preset
def test_paths_are_as_long_as_quadrature_says(preset, along, share):
    cochlea = make(preset, Frame.from_landmarks([3, -2, 5], [4, 1, 6], [9, -3, 4], "left"))
    theta = draw(cochlea, 1, 3)[0]
    plain, found = PlainCochlea(cochlea.calibration, theta), path(cochlea, theta, along)
    assert found.angle[0] == 0
    assert found.angle[-1] == pytest.approx(plain.end)

    fine = np.linspace(0, plain.end, 4001)
    radius, height = plain.path(fine, share)
    turned = radius * np.exp(1j * fine)
    polyline = np.linalg.norm(np.diff(np.stack([turned.real, turned.imag, height])), axis=0)
    speed = np.sqrt(np.gradient(radius, fine) ** 2 + radius**2 + np.gradient(height, fine) ** 2)
    for number in (300, 1000):  # every fourth of the fine angles
        expected = simpson(speed[: 4 * number + 1], x=fine[: 4 * number + 1])
        assert polyline[: 4 * number].sum() == pytest.approx(expected, rel=1e-5)
        assert found.length[number] == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(found.radius, radius[::4], atol=5e-5)  # walls are looked for every half degree
    np.testing.assert_allclose(found.height, height[::4], atol=1e-9)
    with double_precision():
        model = np.asarray(cochlea.to_model(theta, found.points))
    turned = found.radius * np.exp(1j * found.angle)
    np.testing.assert_allclose(model, np.stack([turned.real, turned.imag, found.height], axis=1), atol=1e-10)


@each_preset
def test_the_mesh_holds_what_a_fine_grid_counts(preset):
    cochlea = make(preset)
    for theta in likely(cochlea, 2, 4):
        mesh, h = surface(cochlea, theta, 0.15), 0.1
        lower, upper = cochlea.duct.extent(theta[6:])
        grid = np.stack(np.meshgrid(*(np.arange(a, b, h) for a, b in zip(lower, upper, strict=True))), axis=-1)
        counted = h**3 * np.sum(level(cochlea.duct, theta[6:], grid.reshape(-1, 3)) > 0)
        assert mesh_volume(mesh) == pytest.approx(counted, rel=0.01)
        away = np.abs(level(cochlea, theta, mesh.vertices))
        assert np.quantile(away, 0.9) < 1e-4
        assert away.max() < 0.05  # on creases, where one tangent plane does not lead onto the surface
        lower, upper = cochlea.extent(theta)
        assert np.all(mesh.vertices > lower)
        assert np.all(mesh.vertices < upper)


@each_preset
def test_derivatives_are_those_of_the_level(preset):
    """Automatic differentiation of the level, point by point, and central differences of it."""
    cochlea, step = make(preset), 1e-6
    theta = likely(cochlea, 1, 5)[0]
    with double_precision():
        points = np.asarray(cochlea.to_world(theta, random_points(SIZE, 6)))
        by_both = automatic(cochlea, theta, points)
    found = derivatives(cochlea, theta, points)
    np.testing.assert_allclose(found.level, level(cochlea, theta, points), atol=1e-12)
    for ours, exact in zip(found[1:], by_both, strict=True):
        np.testing.assert_allclose(ours, exact, rtol=1e-9, atol=1e-9)
    for k in range(cochlea.num_parameters):
        delta = step * np.eye(cochlea.num_parameters)[k]
        up, down = (level(cochlea, theta + sign * delta, points) for sign in (1, -1))
        error = np.abs(found.jacobian[:, k] - (up - down) / (2 * step)) / (1 + np.abs(found.jacobian[:, k]))
        # A step may cross a crease between two pieces.
        assert np.mean(error < 1e-6) > 0.998, cochlea.parameter_names[k]


@eqx.filter_jit
def automatic(cochlea, theta, points):
    def at_point(theta, point):
        return cochlea.level(theta, point[None])[0]

    return jax.vmap(jax.grad(at_point, argnums=(0, 1)), in_axes=(None, 0))(theta, points)


@pytest.mark.slow  # most of a minute to compile a fit with its posterior
def test_a_fit_finds_the_cochlea_that_an_image_was_drawn_from():
    """A voxel of 0.5 mm, noise of a third of the contrast: within a few posterior standard deviations."""
    cochlea = Cochlea(Frame.from_landmarks([30, -20, 5], [31, -17, 8], [36, -22, 6], "left"))
    model = ls.Model(cochlea, cochlea.prior(), 0.2)
    sd = np.sqrt(np.diag(cochlea.calibration.covariance))[:10]
    truth = cochlea.mean() + sd * np.array([1, -1, 0.5, 0.5, -0.5, 1, 0.8, -0.6, 0.5, 0.5])
    lower, upper = cochlea.extent(truth)
    axes = (np.arange(a - 1, b + 1, 0.5) for a, b in zip(lower, upper, strict=True))
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    intensities = draw_intensities(model, truth, points, 30.0, 0)
    observation = ls.Observation.from_arrays(points, intensities)
    regions = ls.Regions(appearance.gaussian(100.0, 30.0), appearance.gaussian(0.0, 30.0))
    fit = ls.fit(model, observation, ls.State(cochlea.mean(), regions)).check()
    posterior = ls.laplace(model, observation, fit)
    deviation = np.sqrt(np.diag(posterior.covariance))
    assert np.all(np.abs(fit.state.theta - truth) < 4 * deviation)
    assert np.all(deviation < 0.8 * sd)  # the image, not the prior, says so
    np.testing.assert_allclose(fit.state.theta[6], truth[6], atol=0.1)
