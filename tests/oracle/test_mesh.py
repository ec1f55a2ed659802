"""Signed distances to meshes against libigl, closed forms and finite differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.path import Path

import logishape as ls
from logishape import shapes
from logishape.core.arrays import double_precision
from logishape.posterior import information
from tests.meshes import BallMesh, regular_polygon, star
from tests.problems import draw_intensities, grid, two_gaussians

igl = pytest.importorskip("igl")

SOLIDS = {
    "ball": (shapes.icosphere(2), (4.0, 4.0, 4.0)),
    "ellipsoid": (shapes.icosphere(2), (4.5, 2.0, 3.0)),
    "torus": (shapes.torus(3.0, 1.0, 20, 10), (1.0, 1.2, 0.9)),
}
POLYGONS = {"ellipse": (regular_polygon(40), (4.5, 2.0)), "star": (star(), (4.5, 3.5))}
QUERIES = {"dense": shapes.DenseQuery(), "tree": shapes.TreeQuery(), "libigl": shapes.LibiglQuery()}
level = eqx.filter_jit(lambda shape, theta, points: shape.level(theta, points))
all_derivatives = eqx.filter_jit(shapes.derivatives)


def make(name, query=None):
    mesh, theta = (SOLIDS | POLYGONS)[name]
    return shapes.MeshShape(shapes.StretchedMesh(*mesh), 1.0, query), np.array(theta)


def awkward_points(shape, theta, num=1000, seed=0):
    """All over space, next to the surface, and next to its vertices and edges, where the side is hardest to tell."""
    rng = np.random.default_rng(seed)
    vertices = np.asarray(shape.surface.vertices(jnp.asarray(theta)))
    corners = vertices[rng.choice(shape.faces, num)]
    on_faces = np.einsum("nc,ncd->nd", rng.dirichlet(np.ones(vertices.shape[1]), num), corners)
    on_edges = 0.5 * (corners[:, 0] + corners[:, 1])
    near = [x + 10.0 ** rng.uniform(-5, 0, (num, 1)) * rng.normal(size=x.shape) for x in (on_faces, on_edges)]
    corner = corners[:, 0] + 10.0 ** rng.uniform(-5, 0, (num, 1)) * rng.normal(size=on_faces.shape)
    return np.concatenate([rng.uniform(-6, 6, on_faces.shape), *near, corner])


def libigl_level(shape, theta, points):
    """libigl's unsigned distance, with the sign of the winding number (in the plane, matplotlib's inside test)."""
    vertices, faces = np.asarray(shape.surface.vertices(jnp.asarray(theta))), np.asarray(shape.faces, np.int64)
    distance = np.sqrt(igl.point_mesh_squared_distance(points, vertices, faces)[0])
    if points.shape[1] == 3:
        is_inside = igl.winding_number(vertices, faces, points) > 0.5
    else:
        is_inside = Path(vertices).contains_points(points)
    return np.where(is_inside, distance, -distance)


# One solid and one polygon in every run, neither of them convex; the others compile the same once more.
EVERY_RUN = ("torus", "star")
each_mesh = pytest.mark.parametrize(
    "name",
    [name if name in EVERY_RUN else pytest.param(name, marks=pytest.mark.slow) for name in [*SOLIDS, *POLYGONS]],
)


@pytest.mark.parametrize("query", QUERIES)
@each_mesh
def test_level_is_the_signed_distance(name, query, x64):
    shape, theta = make(name, QUERIES[query])
    points = awkward_points(shape, theta)
    np.testing.assert_allclose(level(shape, theta, points), libigl_level(shape, theta, points), atol=1e-12)


@each_mesh
def test_derivatives_are_those_of_meshes_made_anew(name, x64):
    """libigl's distance to the meshes at theta +- step: nothing of our level is in these differences."""
    shape, theta = make(name)
    points = awkward_points(shape, theta, 500, seed=1)
    points = points[np.abs(libigl_level(shape, theta, points)) > 1e-2]
    found, step, d = all_derivatives(shape, theta, points), 1e-6, len(theta)
    for k in range(d):
        delta = step * np.eye(d)[k]
        moved = [libigl_level(shape, theta + sign * delta, points) for sign in (1, -1)]
        shifted = [libigl_level(shape, theta, points + sign * delta) for sign in (1, -1)]
        for exact, (up, down) in ((found.jacobian[:, k], moved), (found.gradient[:, k], shifted)):
            # Truncation (step / least distance)^2 = 1e-8 and rounding 1e-15 / step.
            error = np.abs(exact - (up - down) / (2 * step))
            # A point between two nearest faces has no derivative; a step may change its face.
            assert np.mean(error < 1e-7) > 0.998


def test_level_and_derivatives_approach_the_ball_by_the_square_of_the_edge(x64):
    """Closed forms: the distance to the ball, and its derivative n_j^2 in the semi-axis j."""
    points = np.random.default_rng(2).normal(size=(2000, 3))
    points *= np.random.default_rng(3).uniform(3.5, 4.5, (2000, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    radius, normal = np.linalg.norm(points, axis=1), points / np.linalg.norm(points, axis=1, keepdims=True)
    errors = []
    for subdivisions in (2, 3):
        shape = shapes.MeshShape(shapes.StretchedMesh(*shapes.icosphere(subdivisions)), 1.0)
        found = all_derivatives(shape, np.full(3, 4.0), points)
        slope_error = np.sqrt(np.mean((found.jacobian - normal**2) ** 2))
        errors.append((np.abs(found.level - (4.0 - radius)).max(), slope_error))
    assert errors[1][0] < 0.019  # (longest edge 0.66 mm)^2 / (6 * 4 mm): how far below the sphere a triangle dips
    assert errors[0][0] / errors[1][0] == pytest.approx(4.0, abs=0.4)
    assert (
        1.7 < errors[0][1] / errors[1][1] < 4.4
    )  # normals of facets: first order, second where edges round them off


@pytest.mark.parametrize("name", [pytest.param("torus", marks=pytest.mark.slow), "star"])
def test_second_derivatives_are_differences_of_the_first(name, x64):
    shape, theta = make(name)
    points = awkward_points(shape, theta, 100, seed=4)
    points = points[np.abs(np.asarray(level(shape, theta, points))) > 0.05]
    bend = jax.jacfwd(jax.jacfwd(lambda theta, points: shape.level(theta, points)))
    hessians = eqx.filter_jit(bend)(jnp.asarray(theta), points)
    for k in range(len(theta)):
        delta = 1e-5 * np.eye(len(theta))[k]
        up, down = (np.asarray(all_derivatives(shape, theta + sign * delta, points).jacobian) for sign in (1, -1))
        # Truncation step^2 / 0.05^2 and rounding 1e-15 / step; at the border of two parts of a face the second
        # derivative jumps, and a step may cross it.
        error = np.abs(hessians[:, :, k] - (up - down) / 2e-5).max(axis=1)
        assert np.mean(error < 1e-6) > 0.99


def test_on_the_surface_the_normal_is_the_pseudonormal(x64):
    """At the tip of an octahedron the faces' normals add up along the axis; on its edges, half-way between two."""
    vertices = np.concatenate([np.eye(3), -np.eye(3)])
    signs = [(a, b, c) for a in (0, 3) for b in (1, 4) for c in (2, 5)]
    shape = shapes.MeshShape(
        shapes.StretchedMesh(
            vertices, [(a, b, c)[:: 1 if np.linalg.det(vertices[[a, b, c]]) > 0 else -1] for a, b, c in signs]
        ),
        1.0,
    )
    points = np.array([[2.0, 0, 0], [0, -2.0, 0], [1.0, 1.0, 0]])
    found = all_derivatives(shape, np.full(3, 2.0), points)
    np.testing.assert_allclose(found.level, 0.0, atol=1e-14)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(-found.gradient, [[1, 0, 0], [0, -1, 0], [half, half, 0]], atol=1e-12)
    # A tip moves out by one with its own scale; half-way along an edge both scales count alike.
    np.testing.assert_allclose(found.jacobian, [[1, 0, 0], [0, 1, 0], [half / 2, half / 2, 0]], atol=1e-12)


def test_information_of_a_polygon_is_that_of_the_disc():
    """Second derivatives of facets know nothing of the bends between them, and are left out."""
    disc, polygon = shapes.Ball(2), shapes.MeshShape(BallMesh(40, 2), np.array([0.0, 0.0, 5.0]))
    theta, points = np.array([0.5, -0.8, 5.0]), grid(20, 2)
    prior = ls.Prior.named(disc, {"x": (-5, 5), "y": (-5, 5), "radius": (1.5, 9)})
    image = draw_intensities(ls.Model(disc, prior, 0.6), theta, points, 30.0, 0)
    observation = ls.Observation.from_arrays(points, image, dtype=np.float64)
    deviations = []
    for shape in (disc, polygon):
        with double_precision():
            info = eqx.filter_jit(information)(
                ls.Model(shape, prior, 0.6), observation, ls.State(theta, two_gaussians())
            )
        deviations.append([np.sqrt(np.diag(np.linalg.inv(one))) for one in (info.complete, info.observed)])
    complete, observed = np.array(deviations[1]) / np.array(deviations[0])
    # First derivatives only: off by the polygon's resolution, (edge / radius)^2 / 8 = 0.3 %, with room for noise.
    np.testing.assert_allclose(complete, 1.0, atol=0.01)
    np.testing.assert_allclose(observed, 1.0, atol=0.03)  # the disc's own bending term is noise of a per cent or two
