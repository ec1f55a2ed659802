"""A crop about a state, to first order: against differences of its rendering, and a lattice of known noise."""

import dataclasses

import numpy as np
import pytest
from scipy import ndimage
from scipy.special import expit

from logishape.cochlea import Cochlea, SegmentOptions
from logishape.cochlea.evaluation import level_at
from logishape.cochlea.labels import drawn_length
from logishape.cochlea.lumen import Intensities
from logishape.cochlea.matched import match
from logishape.cochlea.reformat import SHAPE, SPACING, Crop, grid_points
from logishape.cochlea.render import EDGE_MM, Scene, render, smooth
from logishape.cochlea.search import Found
from logishape.cochlea.straying import NUM_MODES
from logishape.cochlea.view import _columns, _share, most_alike, view
from logishape.core.observation import Observation
from logishape.inference.fit import Fit
from logishape.inference.model import Model, State
from logishape.posterior import ShapePosterior
from logishape.posterior.correlation import correlation_on_lattice

LUMEN, BONE, BLUR = 0.0, 2000.0, 0.3


@pytest.fixture(scope="module")
def cochlea() -> Cochlea:
    return Cochlea(free=SegmentOptions().free)


def image_of(cochlea: Cochlea, theta: np.ndarray, blur: float = BLUR) -> np.ndarray:
    """A crop of lumen in even bone, seen through a point spread, from the level and nothing of the renderer."""
    levels = level_at(cochlea, theta, grid_points()).astype(float)
    share = np.clip((levels + EDGE_MM) / SPACING + 0.5, 0, 1).reshape(SHAPE)
    return ndimage.gaussian_filter(LUMEN * share + BONE * (1 - share), blur / SPACING, mode="nearest").ravel()


def found_in(cochlea: Cochlea, image: np.ndarray, theta: np.ndarray) -> Found:
    """What a fit that ended at these parameters leaves, as far as a view needs it."""
    points = grid_points()
    crop = Crop(points, image.astype(np.float32), np.ones(len(points), bool))
    model = Model(cochlea, cochlea.prior(), 0.07)
    fit = object.__new__(Fit)
    object.__setattr__(fit, "state", State(theta, None))
    seen = object.__new__(Intensities)
    return Found(model, crop, seen, Observation.from_arrays(points[:1], image[:1]), fit, np.zeros(1))


def test_columns_are_differences_of_the_image(cochlea):
    """Of parameters that move the surface by 0.02 mm, either way, lumen, bone and point spread held."""
    theta = cochlea.mean()
    found = found_in(cochlea, image_of(cochlea, theta), theta)
    scene = Scene(found.crop, level_at(cochlea, theta, found.crop.points), np.zeros(len(found.crop.points), bool))
    seen = render(scene, BLUR)._replace(blur_mm=BLUR, lumen=LUMEN, bone=np.full(len(found.crop.points), BONE))
    columns = _columns(found, np.concatenate([theta, np.zeros(NUM_MODES)]), scene, seen)
    for name, step in (("tx", 0.02), ("a", 0.02), ("section_scale", 0.02)):
        k = cochlea.parameter_names.index(name)
        ends = [image_of(cochlea, theta + sign * step * np.eye(theta.size)[k])[scene.is_near] for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * step)
        # A voxel at the edge is half swept or not at all: what is left of that after the point spread.
        assert np.corrcoef(columns[:, k], slope)[0, 1] > 0.99, name
        assert np.linalg.norm(columns[:, k]) == pytest.approx(np.linalg.norm(slope), rel=0.05), name


def test_the_rendering_most_like_a_crop_is_its_own(cochlea):
    """From parameters half a prior SD off: back to a tenth of that, with the point spread that was used."""
    true = cochlea.mean()
    start = true + 0.5 * cochlea.sd() * np.random.default_rng(0).choice([-1, 1], true.size)
    noise = np.random.default_rng(1).normal(0, 30, len(grid_points()))
    theta, blur = most_alike(found_in(cochlea, image_of(cochlea, true) + noise, start))
    assert np.median(np.abs(theta - true) / cochlea.sd()) < 0.05
    assert blur == pytest.approx(BLUR, abs=0.02)
    seen = view(found_in(cochlea, image_of(cochlea, true) + noise, true), theta, blur)
    assert np.median(np.abs(np.linalg.solve(seen.information, seen.score)) / cochlea.sd()) < 0.05  # another step


def test_an_image_that_says_nothing_of_the_apex_is_not_matched(cochlea):
    found, prior = found_in(cochlea, image_of(cochlea, cochlea.mean()), cochlea.mean()), cochlea.prior()
    found = found._replace(crop=dataclasses.replace(found.crop, is_covered=found.crop.points[:, 0] > 3.5))
    posterior = ShapePosterior(
        *(cochlea.mean(), cochlea.mean(), np.diag(cochlea.sd() ** 2), prior.lower, prior.upper),
        *(cochlea.parameter_names, "observed", 1.0, False),
    )
    assert match(found, posterior, SegmentOptions()) is None


@pytest.mark.parametrize("sd", [0.0, 0.5, 1.0])
def test_the_share_is_one_over_the_sum_of_the_correlation(sd):
    """For columns smoother than the noise; noise made by SciPy, its sum known: 1 / sum of the squared kernel."""
    rng = np.random.default_rng(2)
    noise = rng.normal(size=SHAPE)
    kernel = np.zeros((25, 25, 25))
    kernel[12, 12, 12] = 1
    if sd:
        noise, kernel = (ndimage.gaussian_filter(one, sd, mode="constant") for one in (noise, kernel))
    true = np.sum(np.square(kernel))  # the kernel adds up to one
    near = np.ones(noise.size, bool)
    index = np.stack(np.unravel_index(np.arange(noise.size), SHAPE), axis=1)
    length = correlation_on_lattice(index, noise.ravel()).length
    J = np.stack([smooth(rng.normal(size=noise.size), 1.6) for _ in range(4)], axis=1)
    assert _share(J, J.T @ J, near, length) == pytest.approx(true, rel=0.15)


@pytest.mark.parametrize(("spread", "most"), [(0.1, 0.004), (0.25, 0.02)])
def test_draws_with_their_length_give_the_labels_of_the_fit(spread, most):
    """On a flat wall: the mean over levels x + e, e normal, of labels of the shorter length, by quadrature."""
    x, length = np.linspace(-1, 1, 81), 0.2
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    drawn = expit((x[:, None] + spread * nodes) / drawn_length(length, spread**2)) @ weights / weights.sum()
    plain = expit((x[:, None] + spread * nodes) / length) @ weights / weights.sum()
    assert np.abs(drawn - expit(x / length)).max() < most
    assert np.abs(plain - expit(x / length)).max() > 3 * np.abs(drawn - expit(x / length)).max()


def test_a_length_is_never_below_a_half():
    assert drawn_length(0.2, 1.0) == pytest.approx(0.1)
    assert drawn_length(0.2, 0.0) == pytest.approx(0.2)
