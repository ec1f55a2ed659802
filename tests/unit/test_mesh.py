"""Meshes: what is refused and how, which way faces look, modes, queries under batches and on one core."""

import importlib
import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import logishape as ls
from logishape import shapes
from logishape.shapes.procrustes import align_meshes, best_rotation
from tests.meshes import BallMesh, regular_polygon, star, training_meshes
from tests.problems import assert_one_sentence, draw_intensities, grid, two_gaussians

BALL, FACES = shapes.icosphere(1)
DISC, SEGMENTS = regular_polygon(8)
MESHES, MESH_FACES = training_meshes()


def mesh(vertices=BALL, faces=FACES):
    return shapes.MeshShape(shapes.StretchedMesh(vertices, faces), 1.0)


def changed(array, index, value):
    array = np.array(array)
    array[index] = value
    return array


def two(first, second, offset):
    """Two meshes as one."""
    return np.concatenate([first[0], second[0] + offset]), np.concatenate([first[1], second[1] + len(first[0])])


FLIPPED = changed(FACES, 3, FACES[3][::-1])
DENT = changed(BALL, 0, -1.3 * BALL[0])  # a vertex pushed through the other side
TABLE = {
    "faces of floats": (lambda: mesh(faces=FACES * 1.0), r"whole numbers of shape \(f, 3\).*are float64 of shape"),
    "faces of four": (lambda: mesh(faces=np.zeros((5, 4), int)), r"shape \(5, 4\); give the vertex numbers"),
    "segments in space": (lambda: mesh(faces=SEGMENTS), r"\(v, 2\) but found \(42, 3\); use triangles in space"),
    "another mesh's faces": (
        lambda: mesh(faces=shapes.icosphere(2)[1]),
        "0 to 161 but there are 42, counted from 0;",
    ),
    "negative face": (lambda: mesh(faces=changed(FACES, (0, 0), -1)), "faces name the vertices -1 to 41 but"),
    "vertex not a number": (lambda: mesh(changed(BALL, 2, np.nan)), "1 of 42 vertices are not finite; check"),
    "unused vertex": (lambda: mesh(np.concatenate([BALL, BALL[:2]])), "2 of 44 vertices belong to no face; drop"),
    "flat face": (
        lambda: mesh(changed(BALL, FACES[0, 0], BALL[FACES[0, 1]])),
        r"2 of 80 faces have no extent, one near \(.*\) mm; remove",
    ),
    "hole": (lambda: mesh(faces=FACES[1:]), r"closed but 3 edges belong to one face alone, one near \(.*\) mm; fill"),
    "open polygon": (lambda: mesh(DISC, SEGMENTS[:-1]), "closed but 2 vertices belong to one face alone"),
    "inner wall": (
        lambda: mesh(faces=np.concatenate([FACES, FACES[:1, [1, 0, 2]]])),
        "at 3 more do, one near .* mm; remove inner walls",
    ),
    "one face flipped": (lambda: mesh(faces=FLIPPED), "oriented alike but across 3 edges they are not, one near"),
    "one segment flipped": (
        lambda: mesh(DISC, changed(SEGMENTS, 3, SEGMENTS[3][::-1])),
        "oriented alike but across 2 vertices they are not",
    ),
    "crosses itself": (lambda: mesh(DENT), r"the mesh crosses itself near \(.*\) mm; stay closer"),
    "two balls that overlap": (lambda: mesh(*two((BALL, FACES), (BALL, FACES), 0.7)), "crosses itself near"),
    "edges that meet edges": (
        lambda: mesh(*two((BALL, FACES), (BALL, FACES), np.array([1.0, 0, 0]))),
        "crosses itself near",
    ),
    "a figure of eight": (lambda: mesh(DISC[[0, 1, 2, 3, 7, 6, 5, 4]], SEGMENTS), "crosses itself near"),
    "fit that crosses itself": (
        lambda: shapes.MeshShape(Pinched(), 0.0).check(np.array([2.0])),
        "crosses itself near",
    ),
    "fit inside out": (lambda: mesh().check(np.array([-1.0, 1.0, 1.0])), "inside out at these parameters; keep"),
    "theta of another length": (lambda: mesh().check(np.zeros(2)), "3 for the parameters of the surface but"),
    "too few meshes": (lambda: shapes.from_meshes(MESHES[:2], MESH_FACES), r"at least 3 meshes.* \(2, 162, 3\); add"),
    "meshes that differ": (
        lambda: shapes.from_meshes([MESHES[0], MESHES[1][:50], MESHES[2]], MESH_FACES),
        r"shapes are \(50, 3\), \(162, 3\); bring them into correspondence",
    ),
    "identical but for the pose": (
        lambda: shapes.from_meshes([MESHES[0] @ Rotation.from_rotvec(r).as_matrix() for r in np.eye(3)], MESH_FACES),
        "do not differ, so there are no modes; give",
    ),
    "faces of another mesh": (lambda: shapes.from_meshes(MESHES, FACES), "120 of 162 vertices belong to no face"),
    "more modes than meshes": (
        lambda: shapes.from_meshes(MESHES, MESH_FACES, 12),
        "modes but 12 were asked for; ask",
    ),
    "more than all variance": (lambda: shapes.from_meshes(MESHES, MESH_FACES, explained=1.5), r"is 1\.5; try 0\.95"),
    "unknown alignment": (lambda: shapes.from_meshes(MESHES, MESH_FACES, align="affine"), "but is 'affine'; choose"),
    "modes of another mesh": (
        lambda: shapes.MeshModes(FACES, BALL, np.zeros((2, 41, 3)), np.ones(2)),
        r"shape \(p, 42, 3\), but have shape \(2, 41, 3\); give",
    ),
    "modes not a number": (
        lambda: shapes.MeshModes(FACES, BALL, np.full((2, 42, 3), np.nan), np.ones(2)),
        "the modes must be finite but are not; check",
    ),
    "shares of other modes": (
        lambda: shapes.MeshModes(FACES, BALL, np.zeros((2, 42, 3)), np.ones(3)),
        r"2 modes but explained has shape \(3,\); give",
    ),
    "far too fine": (lambda: shapes.icosphere(12), "0 to 8 subdivisions but 12 were asked for; try 3"),
    "thick torus": (lambda: shapes.torus(1.0, 2.0), "but they are 2 and 1; swap"),
    "coarse torus": (lambda: shapes.torus(2.0, 1.0, 2), "3 vertices each way but has 2 and 24; ask"),
    "polygon of two": (lambda: shapes.polygon_faces(2), "at least 3 vertices but has 2; add"),
}


class Pinched(shapes.AbstractSurface):
    """A ball whose poles are pushed towards each other, and through each other beyond theta = 1."""

    parameter_names = ("push",)
    faces = FACES

    def vertices(self, theta):
        height = jnp.exp(-8 * jnp.sum(jnp.square(BALL[:, :2]), axis=1))
        return jnp.asarray(BALL) * jnp.stack([jnp.ones(42), jnp.ones(42), 1 - theta[0] * height], axis=1)


@pytest.mark.parametrize("mistake", TABLE)
def test_a_mistake_meets_one_sentence(mistake, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    assert_one_sentence(*TABLE[mistake])


def test_without_libigl_its_query_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "igl", None)
    with pytest.raises(ls.InputError, match=r'not installed; run pip install "logishape\[distance\]"\.'):
        shapes.LibiglQuery()
    importlib.import_module("logishape.shapes")  # all else does without it


@pytest.mark.parametrize("turn", [1, -1])
def test_faces_are_turned_outward_and_cavities_inward(turn, x64):
    hollow = two((2 * BALL, FACES[:, ::turn]), (BALL, FACES), 0.0)
    both = two(hollow, (BALL, FACES[:, ::-turn]), np.array([5.0, 0.0, 0.0]))
    level = eqx.filter_jit(lambda shape, x: shape.level(np.ones(x.shape[1]), x))
    levels = level(mesh(*both), np.array([[0.0, 0, 0], [1.4, 0, 0], [3.0, 0, 0], [5.0, 0, 0]]))
    np.testing.assert_array_equal(np.sign(levels), [-1, 1, -1, 1])
    ring = mesh(*two((2 * DISC, SEGMENTS[:, ::turn]), (DISC, SEGMENTS), 0.0))
    np.testing.assert_array_equal(np.sign(level(ring, np.array([[0.0, 0], [1.5, 0], [3.0, 0]]))), [-1, 1, -1])


def test_a_flat_side_of_many_triangles_does_not_cross_itself():
    """Within one plane every volume is rounding; a turned box has nothing else on its sides."""
    vertices, faces = shapes.torus(2.0, 1.0, 4, 4)  # all sides flat
    middle = vertices[faces].mean(axis=1)
    number = len(vertices) + np.arange(len(faces))
    finer = np.concatenate([np.stack([faces[:, k], faces[:, (k + 1) % 3], number], axis=1) for k in range(3)])
    turn = Rotation.from_rotvec([0.3, -0.5, 0.7]).as_matrix()
    mesh(np.concatenate([vertices, middle]) @ turn, finer).check(np.full(3, 3.7))


def test_made_meshes_are_closed_and_of_the_right_size():
    for (vertices, faces), holes, volume in (
        (shapes.icosphere(4), 0, 4 * np.pi / 3),
        (shapes.torus(3.0, 1.0, 90, 45), 1, 2 * np.pi**2 * 3.0),
    ):
        assert len(vertices) - len(faces) / 2 == 2 - 2 * holes  # Euler: v - e + f with e = 3 f / 2
        content = np.linalg.det(vertices[faces]).sum() / 6
        assert content == pytest.approx(volume, rel=0.01)  # inscribed, so a little less
        assert content < volume


def test_rotations_are_scipys_and_never_reflections():
    rng = np.random.default_rng(0)
    for flip in (1, -1):
        moving, fixed = rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) * [1, 1, flip]
        expected = Rotation.align_vectors(fixed, moving)[0].as_matrix().T
        np.testing.assert_allclose(best_rotation(moving, fixed), expected, atol=1e-6)  # SciPy's own tolerance
    mirrored = best_rotation(BALL, BALL * [-1, 1, 1])
    assert np.linalg.det(mirrored) == pytest.approx(1.0)


def test_alignment_undoes_poses_and_sizes():
    rng = np.random.default_rng(1)
    one = BALL * [4.0, 3.0, 2.0] + 0.1 * rng.normal(size=BALL.shape)
    turns = Rotation.from_rotvec(rng.normal(size=(5, 3))).as_matrix()
    moved = np.stack([one @ turn + rng.normal(size=3) for turn in turns])
    aligned = align_meshes(moved, with_scale=False)
    np.testing.assert_allclose(aligned, np.broadcast_to(aligned[:1], aligned.shape), atol=1e-9)
    np.testing.assert_allclose(aligned[0] - aligned[0].mean(axis=0), moved[0] - moved[0].mean(axis=0), atol=1e-9)
    sizes = np.array([0.5, 1.0, 1.5, 1.0, 1.0])[:, None, None]
    scaled = align_meshes(moved * sizes, with_scale=True)
    np.testing.assert_allclose(scaled, np.broadcast_to(scaled[:1], scaled.shape), atol=1e-9)


def test_modes_are_those_the_meshes_were_drawn_from():
    rng = np.random.default_rng(2)
    directions = np.linalg.qr(rng.normal(size=(BALL.size, 2)))[0].T.reshape(2, *BALL.shape)
    drawn = 5 * BALL + np.einsum("kp,pvd->kvd", rng.normal(size=(400, 2)) * [0.5, 0.2], directions)
    surface = shapes.from_meshes(drawn, FACES, explained=0.999, align="none").surface
    assert surface.parameter_names == ("mode_1", "mode_2")
    sizes = np.linalg.norm(surface.modes.reshape(2, -1), axis=1)
    np.testing.assert_allclose(sizes, [0.5, 0.2], rtol=0.1)  # standard deviations of 400 draws: 3.5 % each
    np.testing.assert_allclose(surface.explained, np.square(sizes) / np.sum(np.square(sizes)), rtol=1e-9)
    overlap = np.abs(np.sum(surface.modes * directions, axis=(1, 2))) / sizes
    np.testing.assert_allclose(overlap, 1.0, atol=0.01)
    assert shapes.from_meshes(drawn, FACES, explained=0.8, align="none").num_parameters == 1


def test_default_query_is_dense_but_for_large_meshes_on_a_cpu(monkeypatch):
    assert isinstance(shapes.default_query(1280), shapes.DenseQuery)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert isinstance(shapes.default_query(80_000), shapes.TreeQuery)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert isinstance(shapes.default_query(80_000), shapes.DenseQuery)


@pytest.mark.parametrize("query", [shapes.DenseQuery(), shapes.TreeQuery()], ids=["dense", "tree"])
def test_queries_under_batches_of_points_and_of_meshes(query, x64):
    rng = np.random.default_rng(3)
    shape = shapes.MeshShape(shapes.StretchedMesh(BALL, FACES), 1.0, query)
    thetas, points = rng.uniform(0.5, 2.0, (3, 3)), rng.uniform(-2, 2, (2, 3, 50, 3))
    one = eqx.filter_jit(lambda theta, x: shape.level(theta, x))
    alone = np.array([[one(theta, x) for theta, x in zip(thetas, row, strict=True)] for row in points])
    each = jax.vmap(lambda theta, x: shape.level(theta, x))
    both = jax.jit(jax.vmap(each, in_axes=(None, 0)))(thetas, points)
    np.testing.assert_allclose(both, alone, atol=1e-13)


@pytest.mark.parametrize("query", [shapes.TreeQuery(), shapes.LibiglQuery()], ids=["tree", "libigl"])
def test_what_is_not_finite_harms_nobody_else(query):
    shape = shapes.MeshShape(shapes.StretchedMesh(BALL, FACES), 1.0, query)
    level = np.asarray(eqx.filter_jit(shape.level)(np.ones(3, np.float32), np.float32([[0, 0, 0], [np.nan, 0, 0]])))
    assert np.isfinite(level[0])
    assert np.isnan(level[1])
    assert np.all(np.isnan(eqx.filter_jit(shape.level)(np.full(3, np.nan, np.float32), np.zeros((2, 3), np.float32))))


ONE_CORE = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import jax, numpy as np
from logishape import shapes
shape = shapes.MeshShape(shapes.StretchedMesh(*shapes.icosphere(1)), 1.0, shapes.TreeQuery())
points = np.random.default_rng(0).uniform(-0.1, 0.1, (300_000, 3)).astype(np.float32) + np.float32([1, 0, 0])
def once(carry):
    return carry[0] + 1, carry[1] + shape.level(np.ones(3, np.float32), points * carry[1]).mean()
loop = jax.jit(lambda: jax.lax.while_loop(lambda carry: carry[0] < 2, once, (0, np.float32(1))))
print(float(loop()[1]))
"""


@pytest.mark.slow  # a process of its own
@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system does not let a process keep to one core"
)
def test_the_host_answers_on_one_core():
    """Where one thread computes and calls back, a large argument once waited for the thread that waited for it."""
    done = subprocess.run([sys.executable, "-c", ONE_CORE], capture_output=True, text=True, timeout=120, check=True)
    assert 0.8 < float(done.stdout) < 1.2


@pytest.mark.slow  # three programs that call back from their loops
def test_a_batch_of_polygons_is_a_loop_whatever_the_query():
    models = []
    for query in (shapes.DenseQuery(), shapes.TreeQuery()):
        shape = shapes.MeshShape(BallMesh(24, 2), np.array([0.0, 0.0, 3.0]), query)
        models.append(ls.Model(shape, ls.Prior.named(shape, {"x": (-4, 4), "y": (-4, 4), "radius": (1, 7)}), 0.5))
    truths, points = np.array([[0.5, -0.5, 4.0], [-1.0, 1.0, 3.0]]), grid(20, 2)
    images = [draw_intensities(models[0], truth, points, 30.0, k) for k, truth in enumerate(truths)]
    observations = [ls.Observation.from_arrays(points, image, dtype=np.float64) for image in images]
    # Off the diagonals of the grid, where two facets are equally near and rounding chooses the derivative.
    starts = [ls.State(truth + np.array([0.63, 0.58, 0.6]), two_gaussians()) for truth in truths]
    alone = [ls.fit(models[0], *each).check().state.theta for each in zip(observations, starts, strict=True)]
    np.testing.assert_allclose(alone, truths, atol=0.5)
    for model in models:
        batch = ls.fit_batch(model, observations, starts)
        np.testing.assert_allclose([one.state.theta for one in batch], alone, rtol=1e-6)


@pytest.mark.slow
def test_a_fit_of_modes_finds_them():
    shape = shapes.from_meshes(*training_meshes(resolution=1), 3, query=shapes.TreeQuery())
    centre = np.asarray(shape.surface.mean).mean(axis=0)
    points, truth = grid(13, 3) + centre, np.array([1.2, -0.8, 0.5])
    model = ls.Model(shape, ls.Prior.of_modes(shape), 0.4)
    observation = ls.Observation.from_arrays(points, draw_intensities(model, truth, points, 25.0, 5))
    fit = ls.fit(model, observation, ls.State(np.zeros(3), two_gaussians(25.0))).check()
    deviations = np.sqrt(np.diag(ls.laplace(model, observation, fit, "complete").covariance))
    assert np.all(deviations < 0.9)  # the image says something: the prior alone has one
    assert np.all(np.abs(fit.state.theta - truth) < 3 * deviations)
    assert shape.check(fit.state.theta) is shape


def test_reverse_mode_passes_by_the_host(x64):
    """BFGS pulls gradients back through the level; what the host answered is a constant to it."""
    shape, x = mesh(), np.random.default_rng(6).uniform(-2, 2, (50, 3))
    asked = shapes.MeshShape(shape.surface, 1.0, shapes.TreeQuery())
    pull = eqx.filter_jit(lambda theta: jax.vjp(lambda t: asked.level(t, x), theta)[1](jnp.ones(50))[0])
    expected = np.sum(eqx.filter_jit(shapes.derivatives)(shape, np.ones(3), x).jacobian, axis=0)
    np.testing.assert_allclose(pull(jnp.ones(3)), expected, rtol=1e-9)


def test_a_star_keeps_single_precision_and_tells_its_box():
    shape = shapes.MeshShape(shapes.StretchedMesh(*star(), centre=(1.0, 0.0)), 1.0)
    lower, upper = shape.extent(np.array([2.0, 3.0]))
    np.testing.assert_allclose(upper, 1 + 2 * (star()[0].max(axis=0) - [1, 0]) * [1, 1.5] - [0, 1], atol=1e-12)
    assert np.all(lower < upper)
    found = eqx.filter_jit(shapes.derivatives)(shape, np.float32([2, 3]), np.zeros((4, 2), np.float32))
    assert {array.dtype for array in found} == {np.dtype(np.float32)}
