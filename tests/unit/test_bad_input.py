"""What users get wrong: each mistake meets one sentence, never another library's exception and never a NaN."""

from typing import Any

import jax
import jaxtyping
import numpy as np
import pytest

import logishape as ls
from logishape import appearance, shapes
from tests.problems import grid


@pytest.fixture(autouse=True)
def _as_a_user_runs_it(monkeypatch):
    """Without the suite's run-time type checks, which would speak first where a user has none."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


NAN, INF = np.nan, np.inf
DISC = shapes.Ball(2)
BOUNDS: dict[str, Any] = {"x": (-5.0, 5.0), "y": (-5.0, 5.0), "radius": (1.0, 6.0)}
PRIOR = ls.Prior.named(DISC, BOUNDS)
MODEL = ls.Model(DISC, PRIOR, 0.5)
POINTS = grid(16, 2)
DISTANCE = np.hypot(*POINTS.T)
IMAGE = np.where(DISTANCE < 3, 100.0, 0.0) + np.random.default_rng(0).normal(0, 10, len(POINTS))
OBSERVATION = ls.Observation.from_arrays(POINTS, IMAGE)
REGIONS = ls.Regions(appearance.gaussian(100.0, 10.0), appearance.gaussian(0.0, 10.0))
THETA = np.array([0.5, 0.5, 2.5])
VOLUME = ls.Volume.from_spacing(IMAGE.reshape(16, 16), origin=-7.5)
FIT = ls.Fit(ls.State(THETA, REGIONS), ls.Status.CONVERGED, np.zeros(1), 1, 1, 0.0, (), DISC.parameter_names)
POSTERIOR = ls.ShapePosterior(
    THETA, np.eye(3), np.asarray(PRIOR.lower), np.asarray(PRIOR.upper), DISC.parameter_names, "observed", 1.0, False
)


def fit(theta: Any = THETA, observation=OBSERVATION, model=MODEL):
    return ls.fit(model, observation, ls.State(theta, REGIONS))


def fit_superellipsoid(dimension, observation):
    theta = np.full(2 * dimension - 1, 2.5)
    model = ls.Model(shapes.Superellipsoid(dimension), prior(theta - 1, theta + 1), 0.5)
    return fit(theta, observation, model)


def observe(**changes):
    given: dict[str, Any] = {"points": POINTS, "intensities": IMAGE} | changes
    return ls.Observation.from_arrays(**given)


def prior(lower: Any = (0.0, 0.0), upper: Any = (1.0, 1.0), **gaussian):
    return ls.Prior(lower, upper, **gaussian)


def named(sd=None, **changes):
    return ls.Prior.named(DISC, BOUNDS | changes, sd)


def student(means: Any = (0.0, 9.0), weights: Any = 1.0, scales: Any = 1.0, dofs: Any = 5.0):
    return appearance.StudentMixture(weights, means, scales, dofs)


def mixture(means: Any = (0.0, 9.0), weights: Any = 1.0, scales: Any = 1.0):
    return appearance.GaussianMixture(weights, means, scales)


def options(**changes):
    return ls.FitOptions(**changes)


def profile(*lengths, observation=OBSERVATION):
    return ls.profile_reference_length(MODEL, observation, ls.State(THETA, REGIONS), lengths)


def posterior(kind: Any = "observed", effective_fraction=1.0):
    return ls.laplace(MODEL, OBSERVATION, FIT, kind, effective_fraction)


def labels(reference_length):
    return ls.label_probability(MODEL, OBSERVATION, FIT.state, reference_length)


KEY = jax.random.key(0)
ONE_BAD = np.where(DISTANCE < 1, NAN, IMAGE)
LOOK_ALIKE = ls.State(THETA, ls.Regions(REGIONS.inside, REGIONS.inside))
BLIND = ls.Fit(LOOK_ALIKE, ls.Status.CONVERGED, np.zeros(1), 1, 1, 0.0, (), DISC.parameter_names)
TABLE = {
    # images
    "one axis": (lambda: ls.Volume.from_spacing(IMAGE), "2 or 3 axes but this one has 1 .*pick one channel"),
    "no voxel": (lambda: ls.Volume.from_spacing(np.zeros((3, 0))), r"\(3, 0\); check the crop"),
    "affine of space, image of the plane": (
        lambda: ls.Volume(VOLUME.data, np.eye(4)),
        r"\(3, 3\) but it is \(4, 4\)",
    ),
    "no spacing": (lambda: ls.Volume.from_spacing(VOLUME.data, 0.0), "must be finite and invertible .*check spacing"),
    "spacing not a number": (lambda: ls.Volume.from_spacing(VOLUME.data, NAN), "must be finite and invertible"),
    "data of another grid": (lambda: VOLUME.with_data(np.zeros((16, 15))), r"\(16, 15\) but the grid is \(16, 16\)"),
    # observations
    "NaN in an image": (
        lambda: ls.Observation.from_volume(VOLUME.with_data(ONE_BAD.reshape(16, 16))),
        "4 of 256 .*mask",
    ),
    "infinite intensities": (
        lambda: observe(intensities=IMAGE + INF),
        "256 of 256 .*finite",
    ),
    "huge intensities": (lambda: observe(intensities=1e9 * IMAGE), "beyond 1e.09; rescale the image"),
    "empty mask": (lambda: ls.Observation.from_volume(VOLUME, mask=0 * VOLUME.data), "no voxel is left .*not empty"),
    "mask of another grid": (lambda: ls.select_voxels(VOLUME, mask=np.ones((16, 15))), r"mask has shape \(16, 15\)"),
    "box in voxels": (lambda: ls.select_voxels(VOLUME, ((10, 10), (14, 14))), "no voxel is left .*world millimetres"),
    "box of space": (lambda: ls.select_voxels(VOLUME, ((0, 0, 0), (1, 1, 1))), "two corners of 2 .*lower, upper"),
    "reversed box": (lambda: ls.select_voxels(VOLUME, ((3, 3), (-3, 3))), "lower must not exceed upper"),
    "intensities not flattened": (lambda: observe(intensities=VOLUME.data), r"\(16, 16\) .*flatten the image"),
    "negative weights": (lambda: observe(weights=-DISTANCE), "not negative and not all zero; check the mask"),
    "no weight": (lambda: observe(weights=0 * DISTANCE), "not all zero"),
    "nothing": (lambda: observe(points=np.zeros((0, 2)), intensities=[]), "at least one voxel"),
    "padded to less": (lambda: OBSERVATION.padded(100), "256 voxels to 100; choose a larger size"),
    # shapes
    "ball in four dimensions": (lambda: shapes.Ball(4), "must be 2 or 3 but is 4"),
    "line as an ellipsoid": (lambda: shapes.Ellipsoid(1), "must be 2 or 3 but is 1"),
    "missing parameter": (lambda: DISC.theta({"x": 0, "y": 0}), "missing: radius, unknown: none"),
    "unknown parameter": (lambda: DISC.theta({"x": 0, "y": 0, "radius": 2, "r": 2}), "missing: none, unknown: r"),
    # priors
    "reversed bounds": (lambda: named(radius=(6.0, 1.0)), "below its upper bound but parameter 2 is not; swap"),
    "interval of no width": (lambda: named(radius=(3.0, 3.0)), "parameter 2 is not; swap them or widen"),
    "infinite bounds": (lambda: named(x=(-INF, INF)), "box must be finite.*use wide bounds"),
    "bound not a number": (lambda: named(x=(NAN, 1.0)), "box must be finite"),
    "unequal bounds": (lambda: prior(upper=[1.0]), r"as many lower as upper .*\(2,\) and \(1,\)"),
    "bounds for no parameter": (lambda: named(z=(0.0, 1.0)), "unknown: z"),
    "sd for no parameter": (lambda: named(sd={"z": 1.0}), "unknown: z"),
    "sd of zero": (lambda: named(sd={"x": 0.0}), "symmetric and positive definite; check"),
    "mean of another length": (lambda: prior(mean=[0.5]), r"2 parameters but the Gaussian's mean has shape \(1,\)"),
    "covariance of another size": (lambda: prior(covariance=np.eye(3)), r"covariance \(3, 3\); they must agree"),
    "negative variance": (lambda: prior(covariance=[1.0, -1.0]), "symmetric and positive definite"),
    "asymmetric covariance": (lambda: prior(covariance=[[1.0, 0.5], [0.0, 1.0]]), "symmetric and positive definite"),
    "correlation beyond one": (lambda: prior(covariance=[[1.0, 2.0], [2.0, 1.0]]), "symmetric and positive definite"),
    # models
    "no reference length": (lambda: ls.Model(DISC, PRIOR, 0.0), "must be positive but is 0.0; try one voxel size"),
    "negative reference length": (lambda: MODEL.with_reference_length(-1.0), "positive but is -1.0"),
    "reference length not a number": (lambda: MODEL.with_reference_length(NAN), "positive but is nan"),
    "infinite reference length": (lambda: MODEL.with_reference_length(INF), "positive but is inf"),
    "prior of another shape": (
        lambda: ls.Model(shapes.Ball(3), PRIOR, 1.0),
        "4 parameters .x, y, z, radius. but .*3;",
    ),
    # appearances
    "scale of zero": (
        lambda: appearance.gaussian(100.0, 0.0),
        r"must be positive but are \[0.0\]; use a rough noise",
    ),
    "negative scale": (lambda: student(scales=(1.0, -1.0)), r"must be positive but are \[1.0, -1.0\]"),
    "scale not a number": (lambda: mixture(scales=NAN), "must be positive but are .nan, nan"),
    "mean not a number": (lambda: appearance.gaussian(NAN, 1.0), "one finite mean and weight"),
    "means in a table": (lambda: mixture(means=[[0.0, 9.0]]), "one finite mean and weight a component"),
    "no component": (lambda: mixture(means=[], weights=[], scales=[]), "all zero but are .."),
    "negative weight": (lambda: mixture(weights=(2.0, -1.0)), r"are \[2.0, -1.0\]"),
    "no mixture weight": (lambda: student(weights=0.0), r"are \[0.0, 0.0\]"),
    "dofs of zero": (lambda: student(dofs=0.0), r"positive and finite but are \[0.0, 0.0\]; try 5"),
    "infinite dofs": (lambda: student(dofs=INF), "positive and finite but are .inf"),
    "negative counts": (lambda: appearance.PseudoCounts(means=-1.0), "not negative; use zero for no prior"),
    "infinite counts": (lambda: appearance.PseudoCounts.same(INF), "finite and not negative"),
    "prevalence in percent": (lambda: appearance.supervised_regions(prevalence=20.0), "is 20.0; use 0.5 if unknown"),
    "prevalence of zero": (lambda: appearance.supervised_regions(prevalence=0.0), "is 0.0; use 0.5"),
    "full confidence": (lambda: appearance.supervised_regions(confidence=1.0), "between 0.5 and 1 but is 1.0; try"),
    "coin as a classifier": (lambda: appearance.supervised_regions(confidence=0.5), "between 0.5 and 1 but is 0.5"),
    # options
    "unknown method": (lambda: options(method="newton"), "'gauss-newton' or 'bfgs' but is 'newton'"),
    "anneal at zero": (lambda: options(anneal=(4.0, 0.0)), r"\(4.0, 0.0\); try \(4.0, 2.0\)"),
    "anneal not a number": (lambda: options(anneal=(NAN,)), "positive factors but is .nan"),
    "no rounds": (lambda: options(max_rounds=0), "max_rounds, .*at least one"),
    "no shape steps": (lambda: options(max_shape_steps=0), "max_shape_steps .*at least one"),
    "no appearance steps": (lambda: options(max_appearance_steps=-1), "max_appearance_steps must be at least one"),
    "tolerance of zero": (lambda: options(decrement_tolerance=0.0), "tolerances and band_drift must be positive"),
    "tolerance not a number": (lambda: options(rise_tolerance=NAN), "tolerances and band_drift must be positive"),
    "no drift": (lambda: options(band_drift=0.0), "tolerances and band_drift must be positive"),
    # starts of a fit
    "start outside the box": (lambda: fit([0.5, -7.0, 2.5]), r"y = -7, outside .*\[-5, 5\]; move the start or widen"),
    "start of too few parameters": (lambda: fit([0.5, 0.5]), r"3 parameters \(x, y, radius\) .*shape \(2,\)"),
    "start of too many parameters": (lambda: fit([0.5, 0.5, 2.5, 1.0]), r"3 parameters .*shape \(4,\)"),
    "start not a number": (lambda: fit([0.5, NAN, 2.5]), "start must be finite but is not"),
    "shape outside the image": (
        lambda: fit(observation=observe(points=POINTS + 50.0)),
        "contains no voxel .*millimetres",
    ),
    "shape between voxels": (lambda: fit([0.0, 0.0, 1.0], observe(points=4 * POINTS)), "contains no voxel"),
    "one voxel": (
        lambda: fit(observation=observe(points=[[0, 0]], intensities=[9])),
        "has 1 voxels .*at least 8; enlarge",
    ),
    "weight for seven voxels": (
        lambda: fit(observation=observe(weights=np.arange(256) < 7)),
        "has 7 voxels .*least 8",
    ),
    "semi-axis of zero": (
        lambda: fit([0.0, 2.0], model=ls.Model(shapes.Ellipsoid(2), prior((0, 0), (9, 9)), 1.0)),
        "level is not finite at the start; check the formula",
    ),
    "shape of space, image of the plane": (lambda: fit_superellipsoid(3, OBSERVATION), "dimension 2 .*same space"),
    "shape of the plane, image of space": (
        lambda: fit_superellipsoid(2, observe(points=np.c_[POINTS, 0 * DISTANCE])),
        "dimension 3 .*same space",
    ),
    # reference lengths
    "two lengths": (lambda: profile(0.5, 1.0), "at least three positive, increasing reference lengths"),
    "falling lengths": (lambda: profile(2.0, 1.0, 0.5), "at least three positive, increasing"),
    "length of zero among others": (lambda: profile(0.0, 0.5, 1.0), "at least three positive, increasing"),
    "length not a number among others": (lambda: profile(0.5, NAN, 1.0), "at least three positive, increasing"),
    "infinite length among others": (lambda: profile(0.5, 1.0, INF), "must be positive but is inf"),
    "no length at which there is an object": (
        lambda: profile(0.4, 0.5, 0.6, observation=observe(intensities=0 * IMAGE)),
        "no reference length gave a usable fit; move the start closer",
    ),
    # posteriors and labels
    "unknown kind": (lambda: posterior(kind="exact"), "'observed' or 'complete' but is 'exact'"),
    "no voxel counts": (lambda: posterior(effective_fraction=0.0), r"in \(0, 1\] but is 0.0; use 1 for white noise"),
    "fraction in percent": (lambda: posterior(effective_fraction=30.0), r"in \(0, 1\] but is 30.0"),
    "fraction not a number": (lambda: posterior(effective_fraction=NAN), r"in \(0, 1\] but is nan"),
    "no contrast and no prior": (lambda: ls.laplace(MODEL, OBSERVATION, BLIND), "undetermined.*add a Gaussian prior"),
    "no draws": (lambda: POSTERIOR.sample(KEY, 0), "draws must be positive but is 0"),
    "level in percent": (lambda: POSTERIOR.interval(KEY, 90.0), "between 0 and 1 but is 90.0; try 0.9"),
    "labels at no length": (lambda: labels(0.0), "must be positive but is 0.0; try one voxel size"),
    "marginal labels of no draws": (
        lambda: ls.marginal_label_probability(MODEL, OBSERVATION, FIT.state, POSTERIOR, KEY, num_draws=0),
        "draws must be positive but is 0",
    ),
}


@pytest.mark.parametrize("mistake", TABLE)
def test_a_mistake_meets_one_sentence(mistake):
    call, pattern = TABLE[mistake]
    with pytest.raises(ls.InputError, match=pattern) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in message
    assert message.endswith(".")
    assert ". " not in message


@pytest.mark.parametrize("value", [0.0, 50.0, 1e9])  # as outside; between the two; far from both
def test_an_image_without_an_object_gives_a_status_and_no_nan(value):
    result = fit(observation=observe(intensities=np.full(len(IMAGE), value)))
    assert not result.status.is_usable
    assert result.log_joint.size > 0  # a log joint that is not a number is left out
    for leaf in jax.tree.leaves(result.state):
        assert np.all(np.isfinite(leaf))
    with pytest.raises(ls.FitError, match=result.status.advice):
        result.check()
