"""What users get wrong: each mistake meets one sentence, never another library's exception and never a NaN."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import logishape as ls
from logishape import appearance, shapes
from tests.problems import assert_one_sentence, grid


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
    THETA,
    THETA,
    np.eye(3),
    np.asarray(PRIOR.lower),
    np.asarray(PRIOR.upper),
    DISC.parameter_names,
    "observed",
    1.0,
    False,
)


def fit(theta: Any = THETA, observation=OBSERVATION, model=MODEL):
    return ls.fit(model, observation, ls.State(theta, REGIONS))


def fit_shape(shape, observation=OBSERVATION):
    theta = np.full(shape.num_parameters, 2.5)
    return fit(theta, observation, ls.Model(shape, prior(theta - 1, theta + 1), 0.5))


def fit_regions(inside, outside):
    return ls.fit(MODEL, OBSERVATION, ls.State(THETA, ls.Regions(inside, outside)))


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


def ended(theta: Any = THETA, regions=REGIONS, status=ls.Status.CONVERGED):
    """A fit that ended here, whatever it did before."""
    state = ls.State(theta, regions)
    return ls.Fit(state, status, np.zeros(1), 1, 1, 0.0, (), DISC.parameter_names)


def posterior(kind: Any = "observed", effective_fraction=1.0, fit=FIT, observation=OBSERVATION):
    return ls.laplace(MODEL, observation, fit, kind, effective_fraction)


def labels(reference_length=None, state=FIT.state, observation=OBSERVATION):
    return ls.label_probability(MODEL, observation, state, reference_length)


class Custom(shapes.AbstractShape):
    """A disc whose level is written by a user, given the disc's true one."""

    formula: Callable[..., Any] = eqx.field(static=True)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return DISC.parameter_names

    def level(self, theta: Any, points: Any) -> Any:
        return self.formula(theta, points, DISC.level(theta, points))


def fit_level(formula):
    return fit(model=ls.Model(Custom(formula), PRIOR, 0.5))


KEY = jax.random.key(0)
ONE_BAD = np.where(DISTANCE < 1, NAN, IMAGE)
LOOK_ALIKE = ls.State(THETA, ls.Regions(REGIONS.inside, REGIONS.inside))
BLIND = ended(regions=LOOK_ALIKE.regions)
UNCHECKED = ls.Observation(*(np.asarray(array, np.float32) for array in (POINTS, ONE_BAD, np.ones(len(POINTS)))))
HOLES = np.ma.masked_less(IMAGE, 0.0)
CUBE = ls.Observation.from_arrays(grid(6, 3), np.zeros(216))
TABLE = {
    # images
    "one axis": (lambda: ls.Volume.from_spacing(IMAGE), "2 or 3 axes but this one has 1 .*pick one channel"),
    "no voxel": (lambda: ls.Volume.from_spacing(np.zeros((3, 0))), r"\(3, 0\); check the crop"),
    "affine of space, image of the plane": (
        lambda: ls.Volume(VOLUME.data, np.eye(4)),
        r"\(3, 3\) but it is \(4, 4\)",
    ),
    "no spacing": (lambda: ls.Volume.from_spacing(VOLUME.data, 0.0), "must be invertible but .*; check spacing"),
    "spacing not a number": (
        lambda: ls.Volume.from_spacing(VOLUME.data, NAN),
        "affine must be finite but is not; check spacing",
    ),
    "data of another grid": (lambda: VOLUME.with_data(np.zeros((16, 15))), r"\(16, 15\) but the grid is \(16, 16\)"),
    "more spacings than axes": (
        lambda: ls.Volume.from_spacing(VOLUME.data, (1.0, 1.0, 3.0)),
        r"one number or 2 for spacing but found shape \(3,\); give",
    ),
    "more origins than axes": (
        lambda: ls.Volume.from_spacing(VOLUME.data, 1.0, (0, 0, 0)),
        r"for origin but found shape \(3,\)",
    ),
    "transposed affine": (
        lambda: ls.Volume(VOLUME.data, VOLUME.affine.T),
        r"last row .*is \[-7.5, -7.5, 1.0\]; .*trans",
    ),
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
    "negative weights": (lambda: observe(weights=-DISTANCE), r"not negative .* in \[-10.6\S*, -0.7\S*\]; use one"),
    "no weight": (lambda: observe(weights=0 * DISTANCE), r"not all zero but lie in \[0.0, 0.0\]; use one for voxels"),
    "nothing": (lambda: observe(points=np.zeros((0, 2)), intensities=[]), "at least one voxel"),
    "padded to less": (lambda: OBSERVATION.padded(100), "256 voxels to 100; choose a larger size"),
    "mask not a number": (lambda: ls.select_voxels(VOLUME, mask=NAN * VOLUME.data), "float64 with other .*threshold"),
    "mask not a number somewhere": (
        lambda: ls.select_voxels(VOLUME, mask=np.where(np.eye(16) > 0, NAN, 1.0)),
        "float64 with other values; threshold it first",
    ),
    "soft mask": (lambda: ls.select_voxels(VOLUME, mask=np.full((16, 16), 0.2)), "true and false, .*threshold it"),
    "mask of words": (lambda: ls.select_voxels(VOLUME, mask=np.full((16, 16), "in")), "whole numbers .*; threshold"),
    "box of one corner": (
        lambda: ls.select_voxels(VOLUME, ((0, 0),)),
        r"two corners but this one has 1; give \(lower, upper\)",
    ),
    "box of three corners": (lambda: ls.select_voxels(VOLUME, ((0, 0), (1, 1), (2, 2))), "has 3; give"),
    "box without corners": (lambda: ls.select_voxels(VOLUME, (-5, -5, 5, 5)), "has 4; give"),
    "observation of whole numbers": (lambda: observe(dtype=np.int16), "single or double .*int16.*; use np.float32"),
    "observation in half precision": (lambda: observe(dtype=np.float16), "single or double .*float16.*; use"),
    "complex observation": (lambda: observe(dtype=np.complex64), "single or double .*complex64.*; use"),
    "complex intensities": (
        lambda: observe(intensities=IMAGE + 1j),
        "must be plain real numbers, not masked or complex; use",
    ),
    "masked intensities": (lambda: observe(intensities=HOLES), "masked"),
    "masked image": (
        lambda: ls.Observation.from_volume(ls.Volume.from_spacing(HOLES.reshape(16, 16))),
        "masked",
    ),
    "weights infinite in single precision": (
        lambda: observe(weights=1e39 + 0 * DISTANCE),
        r"finite.* \[inf, inf\]; use",
    ),
    "weights zero in single precision": (
        lambda: observe(weights=1e-50 + 0 * DISTANCE),
        r"not all zero .*\[0.0, 0.0\]",
    ),
    "weights not a number": (lambda: observe(weights=NAN * DISTANCE), r"must be finite.* \[nan, nan\]; use one"),
    "points on a line": (lambda: observe(points=POINTS[:, :1]), "2 or 3 coordinates but have 1; "),
    "points in four dimensions": (lambda: observe(points=np.c_[POINTS, POINTS]), "3 coordinates but have 4; give"),
    # shapes
    "ball in four dimensions": (lambda: shapes.Ball(4), "must be 2 or 3 but is 4"),
    "line as an ellipsoid": (lambda: shapes.Ellipsoid(1), "must be 2 or 3 but is 1"),
    "missing parameter": (lambda: DISC.theta({"x": 0, "y": 0}), "missing: radius, unknown: none"),
    "unknown parameter": (lambda: DISC.theta({"x": 0, "y": 0, "radius": 2, "r": 2}), "missing: none, unknown: r"),
    "pose upon pose": (
        lambda: shapes.Posed(shapes.Posed(shapes.Ellipsoid(2), np.zeros(2)), np.zeros(2)),
        "has a pose already; one Posed is enough",
    ),
    "centre on a line": (
        lambda: shapes.Posed(DISC, [0.0]),
        r"2 or 3 numbers .*\(1,\); give the middle of the object",
    ),
    "centre in four dimensions": (lambda: shapes.Posed(DISC, np.zeros(4)), r"2 or 3 numbers \(mm\) .*\(4,\); give"),
    "centres of different lengths": (
        lambda: shapes.Posed(shapes.Ellipsoid(2), np.zeros(2), np.zeros(3)),
        r"for model_centre but found shape \(3,\); give",
    ),
    # priors
    "reversed bounds": (lambda: named(radius=(6.0, 1.0)), r"bounds of radius must be .* but are \(6.0, 1.0\); mend"),
    "interval of no width": (lambda: named(radius=(3.0, 3.0)), r"are \(3.0, 3.0\); mend"),
    "reversed bounds without names": (
        lambda: prior((0.0, 2.0)),
        "parameter 1 is not; swap them or widen the interval",
    ),
    "infinite bounds": (
        lambda: named(x=(-INF, INF)),
        r"box must stay below 1e15 .*\[-inf, -5.0, 1.0\] .*; .*widest plausible",
    ),
    "bound not a number": (lambda: named(x=(NAN, 1.0)), r"bounds of x must be .* but are \(nan, 1.0\); "),
    "unequal bounds": (lambda: prior(upper=[1.0]), r"as many lower as upper .*\(2,\) and \(1,\)"),
    "bounds for no parameter": (lambda: named(z=(0.0, 1.0)), "unknown: z"),
    "sd for no parameter": (lambda: named(sd={"z": 1.0}), "unknown: z"),
    "sd of zero": (lambda: named(sd={"x": 0.0}), "must be positive but are {'x': 0.0}; leave out flat ones"),
    "mean of another length": (
        lambda: prior(mean=[0.5] * 3, covariance=1.0),
        r"2 for the prior's mean but found shape \(3,\); give",
    ),
    "covariance of another size": (lambda: prior(covariance=np.eye(3)), r"2 parameters but .*covariance .*\(3, 3\)"),
    "negative variance": (lambda: prior(covariance=[1.0, -1.0]), "symmetric and positive definite"),
    "asymmetric covariance": (lambda: prior(covariance=[[1.0, 0.5], [0.0, 1.0]]), "symmetric and positive definite"),
    "correlation beyond one": (lambda: prior(covariance=[[1.0, 2.0], [2.0, 1.0]]), "symmetric and positive definite"),
    "bounds of one number": (lambda: named(x=5), r"bounds of x must be two numbers.* but are 5; "),
    "bounds of three numbers": (lambda: named(x=(0.0, 1.0, 2.0)), r"bounds of x .* are \(0.0, 1.0, 2.0\); "),
    "box of astronomers": (lambda: prior(-1e300, 1e300), r"from \[-1e\+300\] to \[1e\+300\]; .*widest plausible"),
    "box of astronomers by name": (lambda: named(x=(-1e300, 1e300)), r"from \[-1e\+300, .*widest plausible"),
    "prior mean not a number": (lambda: prior(mean=[0.5, NAN], covariance=1.0), r"finite but is \[0.5, nan\]; check"),
    "infinite prior mean": (lambda: prior(mean=INF, covariance=1.0), r"finite but is \[inf, inf\]; check"),
    "mean without covariance": (
        lambda: prior(mean=[0.5, 0.5]),
        "without a covariance; give both, or neither for a flat",
    ),
    "variance not a number": (
        lambda: prior(covariance=[1.0, NAN]),
        "not finite or vanish; use inf only on its diagonal",
    ),
    "variance of minus infinity": (
        lambda: prior(covariance=-INF),
        "not finite or vanish; use inf only on its diagonal",
    ),
    "variance of zero": (lambda: prior(covariance=0.0), "not finite or vanish; use inf"),
    "too many variances": (lambda: prior(covariance=[1.0, 1.0, 1.0]), r"variances but found shape \(3,\); give"),
    "infinite covariance": (lambda: prior(covariance=[[1.0, INF], [INF, 1.0]]), "use inf only on its diagonal"),
    "sd not a number": (lambda: named(sd={"x": NAN}), "positive but are {'x': nan}; leave out flat ones"),
    "sd of minus infinity": (lambda: named(sd={"x": -INF}), "positive but are {'x': -inf}; leave out"),
    "negative sd": (lambda: named(sd={"x": -1.0}), "positive but are {'x': -1.0}; leave out"),
    # models
    "no reference length": (
        lambda: ls.Model(DISC, PRIOR, 0.0),
        "must be one positive number but is 0.0; try a voxel size",
    ),
    "negative reference length": (lambda: MODEL.with_reference_length(-1.0), "positive number but is -1.0"),
    "reference length not a number": (lambda: MODEL.with_reference_length(NAN), "positive number but is nan"),
    "infinite reference length": (lambda: MODEL.with_reference_length(INF), "positive number but is inf"),
    "prior of another shape": (
        lambda: ls.Model(shapes.Ball(3), PRIOR, 1.0),
        "4 parameters .x, y, z, radius. but .*3;",
    ),
    "two reference lengths": (
        lambda: ls.Model(DISC, PRIOR, [0.5, 1.0]),
        r"one positive number but is .0.5, 1.0.; try",
    ),
    # appearances
    "scale of zero": (
        lambda: appearance.gaussian(100.0, 0.0),
        r"must be positive but are \[0.0\]; use a rough noise",
    ),
    "negative scale": (lambda: student(scales=(1.0, -1.0)), r"must be positive but are \[1.0, -1.0\]"),
    "scale not a number": (lambda: mixture(scales=NAN), "must be positive but are .nan, nan"),
    "mean not a number": (
        lambda: appearance.gaussian(NAN, 1.0),
        r"one finite mean a component but has \[nan\]; check",
    ),
    "means in a table": (
        lambda: mixture(means=[[0.0, 9.0]]),
        r"one finite mean a component but has \[\[0.0, 9.0\]\]",
    ),
    "no component": (lambda: mixture(means=[], weights=[], scales=[]), "all zero but are .."),
    "negative weight": (lambda: mixture(weights=(2.0, -1.0)), r"are \[2.0, -1.0\]"),
    "no mixture weight": (lambda: student(weights=0.0), r"are \[0.0, 0.0\]"),
    "dofs of zero": (lambda: student(dofs=0.0), r"in \(0, 10000\] but are \[0.0, 0.0\]; try 5, or a GaussianMixture"),
    "infinite dofs": (lambda: student(dofs=INF), r"in \(0, 10000\] but are \[inf, inf\]; try 5"),
    "negative counts": (lambda: appearance.PseudoCounts(means=-1.0), "not negative but are -1.0; zero is no prior"),
    "infinite counts": (
        lambda: appearance.PseudoCounts(INF),
        "must be finite .* but are inf; zero is no prior",
    ),
    "prevalence in percent": (lambda: appearance.supervised_regions(prevalence=20.0), "is 20.0; use 0.5 if unknown"),
    "prevalence of zero": (lambda: appearance.supervised_regions(prevalence=0.0), "is 0.0; use 0.5"),
    "full confidence": (lambda: appearance.supervised_regions(confidence=1.0), "between 0.5 and 1 but is 1.0; try"),
    "coin as a classifier": (lambda: appearance.supervised_regions(confidence=0.5), "between 0.5 and 1 but is 0.5"),
    "more weights than means": (
        lambda: mixture(weights=(1.0, 1.0, 1.0)),
        r"2 for mixture weights but found shape \(3,\); give",
    ),
    "more scales than means": (
        lambda: student(scales=(1.0, 1.0, 1.0)),
        r"2 for mixture scales but found shape \(3,\); give",
    ),
    "more dofs than means": (
        lambda: student(dofs=(5.0, 5.0, 5.0)),
        r"2 for degrees of freedom but found shape \(3,\); give",
    ),
    "more counts than means": (
        lambda: appearance.GaussianMixture(1.0, [0.0, 9.0], 1.0, appearance.PseudoCounts(means=[1.0, 2.0, 3.0])),
        r"2 for pseudo-counts but found shape \(3,\); give",
    ),
    "more counts than dofs": (
        lambda: appearance.StudentMixture(1.0, [0.0, 9.0], 1.0, 5.0, appearance.PseudoCounts([1.0, 2.0, 3.0])),
        r"2 for pseudo-counts but found shape \(3,\); give",
    ),
    "counts not a number": (lambda: appearance.PseudoCounts(scales=NAN), "but are nan; zero is no prior"),
    "held dofs of a million": (
        lambda: appearance.StudentMixture(1.0, [0.0, 9.0], 1.0, 1e6, estimate_dofs=False),
        r"in \(0, 10000\] but are \[1000000.0, .*a GaussianMixture",
    ),
    # options
    "unknown method": (lambda: options(method="newton"), "is 'newton' but must be 'gauss-newton' or 'bfgs'; use"),
    "anneal at zero": (lambda: options(anneal=(4.0, 0.0)), r"\(4.0, 0.0\); try \(4.0, 2.0\)"),
    "anneal not a number": (
        lambda: options(anneal=(NAN,)),
        r"above one, largest first, but is \(nan,\); try \(4.0, 2.0\)",
    ),
    "no rounds": (lambda: options(max_rounds=0), "max_rounds .*from 1 to 10000 but is 0; try the default"),
    "no shape steps": (lambda: options(max_shape_steps=0), "max_shape_steps .*but is 0; try"),
    "no appearance steps": (lambda: options(max_appearance_steps=-1), "max_appearance_steps .*but is -1; try"),
    "tolerance of zero": (
        lambda: options(decrement_tolerance=0.0),
        "decrement_tolerance must be positive and finite but is 0.0; try",
    ),
    "tolerance not a number": (
        lambda: options(rise_tolerance=NAN),
        "rise_tolerance must be positive and finite but is nan; try",
    ),
    "no drift": (
        lambda: options(band_drift=0.0),
        "band_drift must be positive and finite but is 0.0; try the default",
    ),
    "infinite decrement": (
        lambda: options(decrement_tolerance=INF),
        "decrement_tolerance .*but is inf; try the default",
    ),
    "infinite rise": (lambda: options(rise_tolerance=INF), "rise_tolerance .*but is inf; try the default"),
    "infinite drift": (lambda: options(band_drift=INF), "band_drift .*but is inf; try the default"),
    "infinite anneal": (lambda: options(anneal=(INF, 2.0)), r"above one, .*\(inf, 2.0\); try \(4.0, 2.0\)"),
    "anneal from below": (
        lambda: options(anneal=(2.0, 4.0)),
        r"largest first, but is \(2.0, 4.0\); try \(4.0, 2.0\)",
    ),
    "anneal at less than one": (lambda: options(anneal=(0.5,)), r"above one, .*\(0.5,\); try"),
    "rounds and a half": (lambda: options(max_rounds=2.5), "max_rounds must be a whole number .*is 2.5; try"),
    "rounds without end": (lambda: options(max_rounds=10**9), "from 1 to 10000 but is 1000000000; try the default"),
    # starts of a fit
    "start outside the box": (lambda: fit([0.5, -7.0, 2.5]), r"y = -7, outside .*\[-5, 5\]; move the start or widen"),
    "start of too few parameters": (
        lambda: fit([0.5, 0.5]),
        r"3 parameters \(x, y, radius\) but theta has shape \(2,\); give",
    ),
    "start of too many parameters": (
        lambda: fit([0.5, 0.5, 2.5, 1.0]),
        r"3 parameters .* but theta has shape \(4,\); give",
    ),
    "start not a number": (lambda: fit([0.5, NAN, 2.5]), r"must be finite but are \[0.5, nan, 2.5\]; check"),
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
    "shape over voxels of no weight": (
        lambda: fit(observation=observe(weights=DISTANCE > 5)),
        "contains no voxel .*; move the start",
    ),
    "unchecked observation": (lambda: fit(observation=UNCHECKED), "4 of 256 intensities are not finite; replace"),
    "scales of nothing": (
        lambda: fit_regions(appearance.gaussian(100.0, 1e-200), appearance.gaussian(0.0, 1e-200)),
        "log joint is not finite at the start; check the scales",
    ),
    "scales of everything": (
        lambda: fit_regions(appearance.gaussian(100.0, 1e200), appearance.gaussian(0.0, 1e200)),
        "log joint is not finite at the start; check the scales",
    ),
    "image as a map of probabilities": (
        lambda: ls.fit(MODEL, OBSERVATION, ls.State(THETA, appearance.supervised_regions())),
        r"probabilities but .*\[-31\S*, 116\S*\]; observe the classifier's map",
    ),
    # shapes of one space on images of another
    **{
        f"{type(shape).__name__} of {d}D on an image of {observation.ndim}D": (
            lambda shape=shape, observation=observation: fit_shape(shape, observation),
            f"failed on {observation.ndim}D points .*; shape and image must live in the same space",
        )
        for observation, d in ((OBSERVATION, 3), (CUBE, 2))
        for shape in (
            shapes.Ball(d),
            shapes.Ellipsoid(d),
            shapes.Superellipsoid(d),
            shapes.Posed(shapes.Ellipsoid(d), np.zeros(d)),
        )
    },
    "labels of a ball on the plane": (
        lambda: ls.label_probability(
            ls.Model(shapes.Ball(3), prior(np.zeros(4), np.ones(4)), 1.0), OBSERVATION, ls.State(np.ones(4), REGIONS)
        ),
        "failed on 2D points .*; shape and image must live in the same space",
    ),
    # levels that users write
    "level in a column": (
        lambda: fit_level(lambda _, __, d: d[:, None]),
        r"\(256,\), but returned shape \(256, 1\) of",
    ),
    "level of all points at once": (
        lambda: fit_level(lambda _, __, d: jnp.sum(d)),
        r"\(256,\), but returned shape \(\) of",
    ),
    "level as a plain number": (
        lambda: fit_level(lambda *_: 1.0),
        r"one float a point, .*but returned shape \(\) of",
    ),
    "level in numpy": (
        lambda: fit_level(lambda theta, x, _: theta[2] - np.linalg.norm(x - theta[:2], axis=-1)),
        "failed on 2D points .TracerArrayConversionError.*must use jax.numpy",
    ),
    "level with a choice": (
        lambda: fit_level(lambda theta, _, d: d if theta[2] > 0 else -d),
        "failed on 2D points .TracerBoolConversionError.*must use jax.numpy",
    ),
    # reference lengths
    "two lengths": (lambda: profile(0.5, 1.0), r"three positive, increasing .*\[0.5, 1.0\]; try np.geomspace"),
    "falling lengths": (lambda: profile(2.0, 1.0, 0.5), "at least three positive, increasing"),
    "length of zero among others": (lambda: profile(0.0, 0.5, 1.0), "at least three positive, increasing"),
    "length not a number among others": (lambda: profile(0.5, NAN, 1.0), "at least three positive, increasing"),
    "infinite length among others": (lambda: profile(0.5, 1.0, INF), "must be one positive number but is inf"),
    "no length at which there is an object": (
        lambda: profile(0.4, 0.5, 0.6, observation=observe(intensities=0 * IMAGE)),
        "no reference length gave a usable fit; move the start closer",
    ),
    # posteriors and labels
    "unknown kind": (
        lambda: posterior(kind="exact"),
        "is 'exact' but must be 'sandwich', 'observed' or 'complete' .*; use the first",
    ),
    "no voxel counts": (lambda: posterior(effective_fraction=0.0), r"in \(0, 1\] but is 0.0; use 1 for white noise"),
    "fraction in percent": (lambda: posterior(effective_fraction=30.0), r"in \(0, 1\] but is 30.0"),
    "fraction not a number": (lambda: posterior(effective_fraction=NAN), r"in \(0, 1\] but is nan"),
    "posterior at no number": (
        lambda: posterior(fit=ended([NAN, 0.5, 2.5])),
        r"finite but are \[nan, 0.5, 2.5\]; check",
    ),
    "posterior of too many parameters": (
        lambda: posterior(fit=ended([0.5] * 4)),
        r"3 parameters .* theta has shape \(4,\)",
    ),
    "posterior of an unchecked observation": (
        lambda: posterior(observation=UNCHECKED),
        "4 of 256 .*not finite; replace",
    ),
    "no draws": (lambda: POSTERIOR.sample(KEY, 0), "draws must be positive but is 0"),
    "level in percent": (lambda: POSTERIOR.interval(KEY, 90.0), "between 0 and 1 but is 90.0; try 0.9"),
    "labels at no length": (lambda: labels(0.0), "must be one positive number but is 0.0; try a voxel size"),
    "labels at no number": (
        lambda: labels(state=ls.State([0.5, INF, 2.5], REGIONS)),
        r"are \[0.5, inf, 2.5\]; check",
    ),
    "labels of too few parameters": (
        lambda: labels(state=ls.State([0.5], REGIONS)),
        r"3 parameters .* but theta has shape \(1,\)",
    ),
    "labels of an unchecked observation": (lambda: labels(observation=UNCHECKED), "4 of 256 .*not finite; replace"),
    "labels of an image as a map of probabilities": (
        lambda: labels(state=ls.State(THETA, appearance.supervised_regions())),
        "read probabilities but .*; observe the classifier's map",
    ),
    "marginal labels of no draws": (
        lambda: ls.marginal_label_probability(MODEL, OBSERVATION, FIT.state, POSTERIOR, KEY, num_draws=0),
        "draws must be positive but is 0",
    ),
}


@pytest.mark.parametrize("mistake", TABLE)
def test_a_mistake_meets_one_sentence(mistake):
    assert_one_sentence(*TABLE[mistake])


def test_a_collapsed_fit_has_no_posterior():
    with pytest.raises(ls.FitError, match=r"collapsed: The shape vanished.*; start closer"):
        posterior(fit=ended(status=ls.Status.COLLAPSED))


def test_no_contrast_and_no_prior_is_no_posterior():
    with pytest.raises(ls.FitError, match=r"undetermined, so there is no posterior; add a Gaussian prior"):
        posterior(fit=BLIND)


def test_one_variance_stands_for_all():
    np.testing.assert_allclose(prior(covariance=4.0).precision, np.eye(2) / 4)
    np.testing.assert_array_equal(prior(mean=0.25, covariance=4.0).mean, [0.25, 0.25])


@pytest.mark.parametrize("anneal", [[4.0, 2.0], np.array([4, 2]), (4, 2)])
def test_anneal_comes_in_any_sequence(anneal):
    # Equal and of equal hash: the compiler, which keeps options as keys, sees no difference.
    assert options(anneal=anneal) == options(anneal=(4.0, 2.0))
    assert hash(options(anneal=anneal)) == hash(options(anneal=(4.0, 2.0)))


@pytest.mark.parametrize("value", [0.0, 50.0, 1e9])  # as outside; between the two; far from both
def test_an_image_without_an_object_gives_a_status_and_no_nan(value):
    result = fit(observation=observe(intensities=np.full(len(IMAGE), value)))
    assert not result.status.is_usable
    assert result.log_joint.size > 0  # a log joint that is not a number is left out
    for leaf in jax.tree.leaves(result.state):
        assert np.all(np.isfinite(leaf))
    with pytest.raises(ls.FitError, match=result.status.advice):
        result.check()
