"""The fit of a cochlea to its crop: several rough starts on a sample of it, the best refined near its surface."""

import dataclasses
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from logishape.appearance import Regions, supervised_regions
from logishape.cochlea.appearance import paper_regions, tied_regions
from logishape.cochlea.calibration import PARAMETERS
from logishape.cochlea.evaluation import level_at
from logishape.cochlea.lumen import Intensities
from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.reformat import Crop
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.vestibule import is_beyond
from logishape.core.observation import Observation
from logishape.core.status import Status
from logishape.inference.batch import fit_starts, heights_of
from logishape.inference.fit import Fit, fit
from logishape.inference.model import Model, State
from logishape.inference.multistart import choose_starts
from logishape.inference.options import FitOptions

Method = Literal["gauss-newton", "bfgs"]
POSE = PARAMETERS[:6]
ROWS = 4096  # voxels of every fit: one size, one compilation; neighbours say nearly the same
NUM_SCORED = 512  # voxels that tell good candidates for starts from bad
GROUP = 1  # starts in one program: the one that refines is then the same
NEAR = 1.0  # mm: appearances learn from voxels no farther than this from the surface
FIRST_ANNEAL = 1.5
ROUGHLY = FitOptions(decrement_tolerance=1.0, rise_tolerance=1.0)  # near enough to know which start is best
SAME_SD = 0.5  # in standard deviations of the prior, for each parameter
ELSEWHERE = 1.0, 0.35  # mm, rad: poses farther apart are different solutions
NUM_CANDIDATES = 256
SHARE_INSIDE = 0.1  # of a crop, about
PAPER_START = np.array([0, 0, 0, 0, 0, 0, 4.0, 0.15, 0.6, 0.2])
_SPREAD_MM, _SPREAD_RAD, _SPREAD_SD = 1.5, 0.5, 0.8  # of starts about the prior mean


class Found(NamedTuple):
    """The fit, what it saw, the log joint of each start, and how many nats the best is ahead of those elsewhere.

    `path`: the parameters after each round, from the best start on.
    """

    model: Model
    crop: Crop
    intensities: Intensities
    observation: Observation
    fit: Fit
    log_joints: Float[np.ndarray, " s"]
    rival_gap: float | None = None
    path: Float[np.ndarray, "r p"] = np.zeros((0, 0))

    @property
    def theta(self) -> Float[np.ndarray, " p"]:
        """The best parameters."""
        return np.asarray(self.fit.state.theta)


def search(model: Model, crop: Crop, found: Intensities, options: SegmentOptions) -> Found:
    """The best of several rough fits on a sample of the crop, refined on the voxels near its surface.

    Starts are different from one another; when two of them end in the same place the others are spared. They take the
    level where the model has a mesh.
    """
    cochlea = _by_level(model)
    quick = Model(cochlea, model.prior, model.reference_length)
    sample, start = begin(quick, crop, found, options)
    chosen = choose_starts(quick, sample, start, candidates(cochlea, options), options.num_starts, NUM_SCORED)
    return follow(model, crop, found, chosen, options)


def begin(model: Model, crop: Crop, found: Intensities, options: SegmentOptions) -> tuple[Observation, State]:
    """A sample of the crop, and the state from which rough fits begin: the prior's mean shape."""
    cochlea = model.shape
    assert isinstance(cochlea, Cochlea)
    sample = observe(crop, crop.is_covered & ~is_beyond(crop.points), options)
    return sample, State(cochlea.mean(), _regions(crop, found, _worth(sample, SHARE_INSIDE, options)))


def follow(
    model: Model,
    crop: Crop,
    found: Intensities,
    starts: Sequence[np.ndarray] | np.ndarray,
    options: SegmentOptions,
    method: Method = "gauss-newton",
) -> Found:
    """Rough fits from these starts, in their order and until two agree, and the best of them refined."""
    given, cochlea = model, _by_level(model)
    model = Model(cochlea, model.prior, model.reference_length)
    sample, start = begin(model, crop, found, options)
    blurred, roughly = model.with_reference_length(FIRST_ANNEAL * model.reference_length), _with(ROUGHLY, method)
    fits: list[Fit] = []
    for theta in starts:
        fits += fit_starts(blurred, sample, [State(theta, start.regions)], roughly, GROUP)
        if any(_agree(cochlea, fits[-1], other) for other in fits[:-1]):
            break
    heights = np.where(
        [_is_shape(one) for one in fits], heights_of(model, sample, [one.state for one in fits]), -np.inf
    )
    placed = np.array([not set(one.at_bound) & set(POSE) for one in fits]) & np.isfinite(heights)
    # A pose at the border of its box is on the way to something that is not in the crop, however likely that is.
    best = fits[int(np.argmax(np.where(placed, heights, -np.inf) if placed.any() else heights))]
    refined, near = refine(given, crop, found, np.asarray(best.state.theta), options, method)
    way = np.concatenate([best.path, refined.path[1:]])  # the refinement starts where the rough fit ended
    return Found(given, crop, found, near, refined, heights, _rival_gap(best, fits, heights), way)


def plain_fit(model: Model, crop: Crop, found: Intensities) -> Found:
    """The paper's way: one start, free mixtures, all voxels of the crop."""
    theta = np.clip(PAPER_START, model.prior.lower, model.prior.upper)
    observation = Observation.from_arrays(crop.points, crop.seen, crop.is_covered.astype(float))
    regions = paper_regions(found) if crop.probability is None else supervised_regions()
    refined = fit(model, observation, State(theta, regions))
    return Found(model, crop, found, observation, refined, np.array([_height(refined)]), path=refined.path)


def refine(
    model: Model,
    crop: Crop,
    found: Intensities,
    theta: np.ndarray,
    options: SegmentOptions,
    method: Method = "gauss-newton",
) -> tuple[Fit, Observation]:
    """The fit from one start on the voxels near its surface, where the appearances learn too."""
    levels = level_at(_by_level(model), theta, crop.points)
    near = crop.is_covered & ~is_beyond(crop.points) & (np.abs(levels) < NEAR)
    observation = observe(crop, near, options)
    share = float(np.mean(levels[near] > 0))
    start = State(theta, _regions(crop, found, _worth(observation, share, options)))
    (refined,) = fit_starts(model, observation, [start], _with(FitOptions(), method), GROUP)
    return refined, observation


def _by_level(model: Model) -> Cochlea:
    assert isinstance(model.shape, Cochlea)
    return model.shape.by_level()


def candidates(cochlea: Cochlea, options: SegmentOptions) -> Float[np.ndarray, "m p"]:
    """Starts about the prior mean: uniform in the pose, Gaussian in the rest, all in the box."""
    rng, prior, mean = np.random.default_rng(options.seed), cochlea.prior(), cochlea.mean()
    drawn = np.tile(mean, (NUM_CANDIDATES, 1))
    drawn[:, :3] += rng.uniform(-_SPREAD_MM, _SPREAD_MM, (len(drawn), 3))
    drawn[:, 3:6] += rng.uniform(-_SPREAD_RAD, _SPREAD_RAD, (len(drawn), 3))
    sd = cochlea.sd()[6:]
    drawn[:, 6:] += (
        _SPREAD_SD
        * np.where(np.isfinite(sd), sd, 0.25 * prior.widths[6:])
        * rng.standard_normal((len(drawn), mean.size - 6))
    )
    inner = 1e-3 * prior.widths
    return np.clip(drawn, prior.lower + inner, prior.upper - inner)


def observe(crop: Crop, in_use: Bool[np.ndarray, " n"], options: SegmentOptions) -> Observation:
    """At most `ROWS` of the voxels, always the same, padded to that size; together they weigh as much as all."""
    (rows,) = np.nonzero(in_use)
    weight = options.evidence
    if rows.size > ROWS:
        weight *= rows.size / ROWS
        # Each voxel has its rank, whatever others are in use: one more or less does not draw all of them anew.
        rank = np.random.default_rng(0).permutation(in_use.size)
        rows = np.sort(rows[np.argsort(rank[rows])[:ROWS]])
    weights = np.full(rows.size, weight)
    return Observation.from_arrays(crop.points[rows], crop.seen[rows], weights).padded(ROWS)


def _regions(crop: Crop, found: Intensities, worth: tuple[float, float]) -> Regions:
    """The appearances a fit starts from: mixtures tied to the image, or the map's odds, which do not learn."""
    return tied_regions(found, *worth) if crop.probability is None else supervised_regions()


def _with(options: FitOptions, method: Method) -> FitOptions:
    return dataclasses.replace(options, method=method)


def _agree(cochlea: Cochlea, one: Fit, other: Fit) -> bool:
    """Whether two rough fits ended in the same place: no parameter differs by much of what it varies by.

    At the border of the box, or where the shape explains nothing, many starts meet that are all wrong.
    """
    offset = np.asarray(one.state.theta) - np.asarray(other.state.theta)
    return one.status == other.status == Status.CONVERGED and bool(np.all(np.abs(offset) < SAME_SD * cochlea.sd()))


def _rival_gap(best: Fit, fits: Sequence[Fit], heights: np.ndarray) -> float | None:
    """How much higher the best start ended than any that lies elsewhere or another way (nats); None without one.

    A start that left the crop, by way of its box's border, is no rival.
    """
    pose = np.asarray(best.state.theta)[: len(POSE)]
    rivals = []
    for one, height in zip(fits, heights, strict=True):
        offset = np.asarray(one.state.theta)[: len(POSE)] - pose
        is_elsewhere = np.linalg.norm(offset[:3]) > ELSEWHERE[0] or np.linalg.norm(offset[3:]) > ELSEWHERE[1]
        if is_elsewhere and np.isfinite(height) and not set(one.at_bound) & set(POSE):
            rivals.append(float(height))
    own = float(heights[next(k for k, one in enumerate(fits) if one is best)])
    return own - max(rivals) if rivals and np.isfinite(own) else None


def _is_shape(ended: Fit) -> bool:
    return ended.status not in (Status.COLLAPSED, Status.REFUSED)


def _height(ended: Fit) -> float:
    return float(ended.log_joint[-1]) if _is_shape(ended) and ended.log_joint.size else -np.inf


def _worth(observation: Observation, share_inside: float, options: SegmentOptions) -> tuple[float, float]:
    """Pseudo-counts inside and outside, in the weight of voxels."""
    total = options.worth * float(np.sum(observation.weights, dtype=float))
    return total * share_inside, total * (1 - share_inside)
