"""Correlated noise and uncertain appearances: against closed forms, finite differences and simulation."""

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

import logishape as ls
from logishape import appearance
from logishape.core.arrays import double_precision
from logishape.core.lattice import lattice_index, on_lattice
from logishape.core.rotations import rotation_matrix
from logishape.inference import log_joint
from logishape.posterior import appearance_information, information, voxel_scores
from logishape.posterior.correlation import correlation_on_lattice
from logishape.posterior.sandwich import score_covariance
from tests.problems import ellipse_case

REGIONS = ls.Regions(
    appearance.GaussianMixture([0.4, 0.6], [80.0, 110.0], [30.0, 45.0]),
    appearance.StudentMixture(1.0, [5.0], [35.0], [6.0], counts=appearance.PseudoCounts.worth(50, [1.0])),
)


@settings(max_examples=15)
@given(
    shape=st.tuples(st.integers(3, 9), st.integers(3, 9), st.integers(3, 9)),
    spacing=st.tuples(st.floats(0.1, 0.3), st.floats(0.1, 0.3), st.floats(0.3, 2.0)),
    turn=st.tuples(*[st.floats(-1.5, 1.5)] * 3),
    seed=st.integers(0, 100),
)
def test_the_lattice_behind_points_is_found(shape, spacing, turn, seed):
    """Oblique, anisotropic, in any order, with a hole: neighbours on the grid are neighbours on the lattice."""
    index = np.indices(shape).reshape(3, -1).T
    with double_precision():
        rotation = np.asarray(rotation_matrix(np.array(turn)))
    keep = np.random.default_rng(seed).permutation(len(index))[: max(len(index) * 9 // 10, 20)]
    points = ((index * spacing) @ rotation.T + np.array([3.0, -2.0, 7.0])).astype(np.float32)[keep]
    found = lattice_index(points)
    # Axes may come back in another order or direction; which cells are one step apart may not change.
    steps = np.abs(index[keep][:, None] - index[keep][None]).sum(axis=-1)
    found_steps = np.abs(found[:, None] - found[None]).sum(axis=-1)
    np.testing.assert_array_equal(found_steps, steps)


def test_scattered_points_get_cells_of_their_typical_distance():
    points = np.random.default_rng(0).uniform(0, 10, (500, 2))
    index = lattice_index(points)
    cells = on_lattice(index, np.ones(500))
    assert cells.sum() == 500
    assert np.all((np.array(cells.shape) > 14) & (np.array(cells.shape) < 32))  # 22 on each side would hold one each
    assert np.corrcoef(index[:, 0], points[:, 0])[0, 1] > 0.99


def test_a_fine_grid_far_from_the_origin_is_one_in_single_precision():
    """0.05 mm at 200 mm: the rounding of one step, 400 voxels on, is a tenth of a voxel."""
    with double_precision():
        rotation = np.asarray(rotation_matrix(np.array([0.4, -0.9, 0.3])))
    index = np.indices((400, 12, 8)).reshape(3, -1).T
    points = ((index * [0.05, 0.05, 0.15]) @ rotation.T + 200).astype(np.float32)
    assert len(np.unique(lattice_index(points), axis=0)) == len(points)


@pytest.mark.parametrize("points", [np.stack([np.arange(50.0), np.arange(50.0)], axis=1), np.zeros((30, 3))])
def test_points_that_span_no_space_are_refused(points):
    with pytest.raises(ls.InputError, match=r"line or a plane, not in \dD space; widen"):
        lattice_index(points)


@pytest.mark.parametrize(("dimension", "size", "smoothing"), [(2, 400, 1.0), (2, 800, 2.0), (3, 70, 0.8)])
def test_effective_fraction_of_smoothed_noise_is_the_closed_form(dimension, size, smoothing):
    """kappa = (4 pi s^2)^(-d/2) for white noise smoothed by a Gaussian of s voxels."""
    noise = gaussian_filter(np.random.default_rng(0).normal(size=(size,) * dimension), smoothing, mode="wrap")
    found = correlation_on_lattice(np.indices(noise.shape).reshape(dimension, -1).T, noise.ravel())
    # A sum over some hundred lags of 160 000 voxels is good to a few per cent; the discrete kernel adds one.
    assert found.effective_fraction == pytest.approx((4 * np.pi * smoothing**2) ** (-dimension / 2), rel=0.1)
    assert found.length == pytest.approx(smoothing, rel=0.08)
    np.testing.assert_allclose(found.values[:3], np.exp(-np.square(found.lags[:3] / smoothing) / 4), atol=0.03)


def test_white_noise_counts_in_full():
    noise = np.random.default_rng(1).normal(size=(60, 60))
    found = correlation_on_lattice(np.indices(noise.shape).reshape(2, -1).T, noise.ravel())
    assert found.effective_fraction == 1.0
    assert found.length == 0.0


def test_noise_correlation_sees_the_noise_and_not_the_object():
    case = ellipse_case(noise=20.0)
    fit = ls.fit(case.model, case.observation, case.start).check()
    white = ls.noise_correlation(case.model, case.observation, fit.state)
    assert white.effective_fraction > 0.9
    residual = np.asarray(eqx.filter_jit(voxel_scores)(case.model, case.observation, fit.state).residual)
    inside = np.asarray(case.model.shape.level(fit.state.theta, case.observation.points)) > 3
    components = fit.state.regions.inside.components
    gaussian = -(case.observation.intensities - components.means[0]) / components.scales[0] ** 2
    np.testing.assert_allclose(residual[inside], gaussian[inside], atol=2e-3)  # labels there are all but certain


def test_appearance_information_is_the_curvature(x64):
    """Against central differences of the public log joint in the free parameters of both regions."""
    case = ellipse_case()
    state = ls.State(case.truth + 0.05, REGIONS)
    info = eqx.filter_jit(appearance_information)(case.model, case.observation, state)
    phi = np.asarray(REGIONS.free_parameters())
    value = eqx.filter_jit(lambda phi: log_joint(case.model, case.observation, state.with_appearance(phi)))
    shape_score = eqx.filter_jit(
        lambda phi: information(case.model, case.observation, state.with_appearance(phi)).score
    )
    own, cross = np.zeros((phi.size, phi.size)), np.zeros((5, phi.size))
    step = 1e-3 * np.maximum(1.0, np.abs(phi) / 10)
    for i in range(phi.size):
        a = step * np.eye(phi.size)[i]
        cross[:, i] = -(shape_score(phi + a) - shape_score(phi - a)) / (2 * step[i])
        for j in range(i + 1):
            b = step * np.eye(phi.size)[j]
            second = value(phi + a + b) - value(phi + a - b) - value(phi - a + b) + value(phi - a - b)
            own[i, j] = own[j, i] = -second / (4 * step[i] * step[j])
    scale = np.sqrt(np.outer(np.diag(own), np.diag(own)))
    np.testing.assert_allclose(
        (info.own + info.prior) / scale, own / scale, atol=3e-5
    )  # differences of 1e-3 of a unit
    np.testing.assert_allclose(info.cross, cross, rtol=1e-4, atol=1e-4 * np.abs(cross).max())


def test_scores_add_up_to_the_gradient(x64):
    case = ellipse_case()
    state = ls.State(case.truth + 0.05, REGIONS)
    scores = eqx.filter_jit(voxel_scores)(case.model, case.observation, state)
    info = eqx.filter_jit(information)(case.model, case.observation, state)
    np.testing.assert_allclose(scores.shape.sum(axis=0), info.score, rtol=1e-9)
    np.testing.assert_allclose(scores.shape.T @ scores.shape, info.outer, rtol=1e-9)


@pytest.mark.slow
def test_estimated_appearance_widens_the_posterior_and_a_known_one_does_not():
    case = ellipse_case(noise=80.0)
    fit = ls.fit(case.model, case.observation, case.start).check()
    known = ls.laplace(case.model, case.observation, fit, "observed", appearance_is_known=True)
    learnt = ls.laplace(case.model, case.observation, fit, "observed")
    difference = np.linalg.eigvalsh(learnt.covariance - known.covariance)
    assert difference.min() > -1e-9  # never narrower in any direction
    assert learnt.sd[3] > 1.005 * known.sd[3]
    fixed = ls.Regions(*(appearance.Fixed(one) for one in (fit.state.regions.inside, fit.state.regions.outside)))
    held = ls.fit(case.model, case.observation, ls.State(fit.state.theta, fixed)).check()
    np.testing.assert_allclose(
        ls.laplace(case.model, case.observation, held, "observed").sd, known.sd, rtol=1e-3
    )  # the same point but for one more shape step


def brute_force(scores, index, bandwidth):
    """The same sums over all pairs, written out."""
    squared = np.square(index[:, None] - index[None]).sum(axis=-1)
    kernel = np.exp(-squared / (2 * bandwidth**2))
    values, vectors = np.linalg.eigh(scores.T @ scores)
    z = scores @ (vectors / np.sqrt(values))
    summed, lost = z.T @ kernel @ z, np.einsum("nm,na,nb,mb,mc->ac", kernel, z, z, z, z, optimize=True)
    left, axes = np.linalg.eigh(np.eye(len(values)) - (lost + lost.T) / 2)
    scale = axes / np.sqrt(np.maximum(left, 0.1)) @ axes.T
    degrees = max(len(values) ** 2 / np.trace(lost), 4.0)
    root = vectors * np.sqrt(values)
    return root @ scale @ summed @ scale @ root.T * degrees / (degrees - 2)


def test_score_covariance_is_the_sum_over_pairs():
    rng = np.random.default_rng(2)
    index = np.indices((17, 19)).reshape(2, -1).T
    index = index[rng.permutation(len(index))[:280]]
    scores = rng.normal(size=(280, 3)) * np.array([1.0, 10.0, 0.1])
    found = score_covariance(scores, index, 1.0)
    # The filter ends at four bandwidths, where the kernel is 3e-4.
    scale = np.sqrt(np.outer(np.diag(found.matrix), np.diag(found.matrix)))
    np.testing.assert_allclose(found.matrix / scale, brute_force(scores, index, 3.5) / scale, atol=5e-3)


def test_correction_makes_the_covariance_of_scores_unbiased():
    """A border of 200 pixels, noise correlated over 1.5, regressed on 4 waves: the plain sum is far too small."""
    n, smoothing = 200, 1.5
    angle = 2 * np.pi * np.arange(n) / n
    design = np.stack([np.ones(n), np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)
    index = np.stack([np.arange(n), np.zeros(n, int)], axis=1)
    rng = np.random.default_rng(3)
    ours, plain, actual = [], [], []
    for _ in range(400):
        noise = gaussian_filter(rng.normal(size=n), smoothing, mode="wrap")
        residual = noise - design @ np.linalg.lstsq(design, noise, rcond=None)[0]
        scores = residual[:, None] * design
        ours.append(score_covariance(scores, index, smoothing).matrix)
        plain.append(score_covariance(scores, index, smoothing / 1e6).matrix)
        actual.append(np.outer(design.T @ noise, design.T @ noise))
    truth, found, white = (np.diag(np.mean(list_, axis=0)) for list_ in (actual, ours, plain))
    assert np.all(white < 0.35 * truth)
    np.testing.assert_allclose(found, truth, rtol=0.35)  # the factor for Student's t adds a tenth on purpose


def test_mirrored_and_moved_images_have_the_same_posterior():
    case = ellipse_case()
    fit = ls.fit(case.model, case.observation, case.start).check()
    here = ls.laplace(case.model, case.observation, fit)
    order = np.random.default_rng(4).permutation(case.observation.num_voxels)
    shuffled = ls.Observation(
        *(array[order] for array in (case.observation.points, case.observation.intensities, case.observation.weights))
    )
    np.testing.assert_allclose(ls.laplace(case.model, shuffled, fit).covariance, here.covariance, rtol=1e-8)
    assert here.kind == "sandwich"
    assert 0.5 < here.effective_fraction <= 1


@pytest.mark.slow  # law/test_batch.py pads by weights of zero as well, and compares with no padding
def test_weights_of_zero_do_not_count():
    case = ellipse_case()
    fit = ls.fit(case.model, case.observation, case.start).check()
    padded = case.observation.padded(1900)
    np.testing.assert_allclose(
        ls.laplace(case.model, padded, fit).covariance,
        ls.laplace(case.model, case.observation, fit).covariance,
        rtol=1e-9,
    )


@pytest.mark.slow
def test_fixed_appearances_in_many_pieces(monkeypatch):
    """Nothing is learnt, so the appearances' scores have no column, in one piece or in several."""
    case = ellipse_case()
    held = ls.Regions(appearance.Fixed(case.start.regions.inside), appearance.Fixed(case.start.regions.outside))
    fit = ls.fit(case.model, case.observation, ls.State(case.start.theta, held)).check()
    whole = ls.laplace(case.model, case.observation, fit).covariance
    monkeypatch.setattr("logishape.core.arrays.CHUNK", 300)
    jax.clear_caches()
    np.testing.assert_allclose(ls.laplace(case.model, case.observation, fit).covariance, whole, rtol=1e-6)
    jax.clear_caches()


def test_sandwich_takes_no_fraction():
    case = ellipse_case()
    fit = ls.fit(case.model, case.observation, case.start)
    with pytest.raises(ls.InputError, match=r"measures the correlation of the noise itself .* leave it out"):
        ls.laplace(case.model, case.observation, fit, effective_fraction=0.5)
