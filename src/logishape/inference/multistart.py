"""Many starts on one image: the best solution, and what the others say about how far to trust it."""

import dataclasses
import numbers
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logishape.appearance import Regions
from logishape.core.arrays import double_precision
from logishape.core.errors import InputError
from logishape.core.observation import Observation
from logishape.core.truncated import draw_truncated
from logishape.inference.batch import fit_starts
from logishape.inference.checks import check_in_box, check_state
from logishape.inference.fit import Fit
from logishape.inference.labels import prior_logit
from logishape.inference.model import Model, Prior, State
from logishape.inference.objective import log_joint_at
from logishape.inference.options import FitOptions

_NUM_SCORED = 4096  # voxels a candidate is scored on
_FIRST_DISTANCE, _LEAST_DISTANCE = 0.25, 1e-6  # between starts, of a box width
_SAME_PLACE, _SAME_HEIGHT = 0.02, 1.0  # fits closer in every parameter (of a box width) and in nats are one solution


@dataclasses.dataclass(frozen=True)
class Multistart:
    """Fits of one image from several starts, best first; those that are not usable come last.

    log_joints: of each fit, in nats, at the model's reference length over all voxels; minus infinity if refused.
    solutions: which solution each fit ended at, numbered from the best; -1 where the fit is not usable. Fits within
        2 % of the box in every parameter and 1 nat of each other are the same solution.
    """

    fits: tuple[Fit, ...]
    log_joints: np.ndarray
    solutions: np.ndarray

    @property
    def best(self) -> Fit:
        """The usable fit of the highest log joint; if none is usable, the highest of all (`check` says why not)."""
        return self.fits[0]

    @property
    def num_solutions(self) -> int:
        """How many different places the usable fits ended at."""
        return int(self.solutions.max()) + 1

    @property
    def num_agreeing(self) -> int:
        """How many fits ended at the best solution: one alone may have been luck."""
        return int(np.count_nonzero(self.solutions == 0))

    @property
    def margin(self) -> float:
        """Nats from the best solution to the next; infinite if all usable fits agree, zero if none is usable."""
        if self.num_solutions == 0:
            return 0.0
        others = self.log_joints[self.solutions > 0]
        return float(self.log_joints[0] - others.max()) if others.size else np.inf

    def spread(self, within_nats: float = np.inf) -> dict[str, float]:
        """Standard deviation of each parameter, by name, over the usable fits at most so many nats below the best."""
        counts = (self.solutions >= 0) & (self.log_joints >= self.log_joints[0] - within_nats)
        if not counts.any():
            raise InputError(
                "no fit of the multistart is usable, so there is no spread; ask `best.check()` for advice."
            )
        thetas = np.stack([fit.state.theta for fit, one in zip(self.fits, counts, strict=True) if one])
        return dict(zip(self.best.parameter_names, np.std(thetas, axis=0).tolist(), strict=True))


def multistart(
    model: Model,
    observation: Observation,
    start: State,
    options: FitOptions | None = None,
    *,
    key: jax.Array,
    candidates: Any = 256,
    num_fits: int = 6,
) -> Multistart:
    """The best of `num_fits` fits: from `start` and from the most promising, mutually different candidates.

    `candidates` says how many to draw from the prior, or gives them as parameter vectors `(m, p)`. All are scored by
    the log joint at the model's own reference length, where wrong solutions are told apart, with the start's
    appearances on a few thousand voxels. Never worse than `fit` from the start alone, whenever that is usable.
    """
    options = FitOptions() if options is None else options
    if not isinstance(num_fits, numbers.Integral) or num_fits < 1:
        raise InputError(f"num_fits must be a whole number from 1 but is {num_fits}; try the default.")
    check_state(model, observation, start)
    check_in_box(model, start.theta, "the start")
    thetas = _drawn_or_checked(model, key, candidates)
    chosen = choose_starts(model, observation, start, thetas, num_fits)
    fits = fit_starts(model, observation, [State(theta, start.regions) for theta in chosen], options)
    return _rank(model.prior, fits)


def draw_prior(prior: Prior, key: jax.Array, num_draws: int) -> Float[np.ndarray, "s p"]:
    """Draws from the prior: uniform in the box, and the Gaussian, correlations included, truncated to it."""
    first, second = jax.random.split(key)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(first)).ravel().tolist())
    draws = np.asarray(rng.uniform(prior.lower, prior.upper, (num_draws, prior.lower.size)))
    has_gaussian = np.diag(prior.precision) > 0
    if has_gaussian.any():
        lower, upper, mean = (a[has_gaussian] for a in (prior.lower, prior.upper, prior.mean))
        covariance = np.linalg.inv(prior.precision[np.ix_(has_gaussian, has_gaussian)])
        inside = np.clip(mean, lower, upper)
        draws[:, has_gaussian] = draw_truncated(second, mean, covariance, (lower, upper), num_draws, start=inside)
    return draws


def choose_starts(
    model: Model,
    observation: Observation,
    start: State,
    candidates: Float[np.ndarray, "m p"],
    num_fits: int,
    num_scored: int = _NUM_SCORED,
) -> Float[np.ndarray, "f p"]:
    """The start and the best candidates that keep their distance from it and each other, at most `num_fits` in all.

    Only the better quarter is looked at; the distance, a root mean square over whitened parameters, is halved until
    enough are found. Ties go by the parameters, so that the order of candidates does not matter. Scores are taken on
    `num_scored` voxels.
    """
    thinned = _thin(observation, num_scored)
    with double_precision():
        scores = np.array(_score(model, thinned, start.regions, candidates))
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    order = np.lexsort([*candidates.T, -scores])
    order = order[np.isfinite(scores[order])][: max(len(candidates) // 4, num_fits)]
    chosen, distance = [np.asarray(start.theta)], _FIRST_DISTANCE
    while len(chosen) < num_fits and distance > _LEAST_DISTANCE:
        for theta in candidates[order]:
            apart = np.sqrt(np.mean(((theta - np.array(chosen)) / model.prior.widths) ** 2, axis=1))
            if len(chosen) < num_fits and apart.min() >= distance:
                chosen.append(theta)
        distance /= 2
    return np.array(chosen)


def _thin(observation: Observation, num_rows: int) -> Observation:
    """So many voxels, always the same, that weigh as much as all."""
    weights = np.asarray(observation.weights)
    (rows,) = np.nonzero(weights > 0)
    if rows.size > num_rows:
        rows = np.sort(np.random.default_rng(0).choice(rows, num_rows, replace=False))
    scale = weights.sum(dtype=float) / weights[rows].sum(dtype=float)
    points, intensities = np.asarray(observation.points)[rows], np.asarray(observation.intensities)[rows]
    return Observation(points, intensities, (weights[rows] * scale).astype(weights.dtype)).padded(num_rows)


@eqx.filter_jit
def _score(
    model: Model, observation: Observation, regions: Regions, candidates: Float[Array | np.ndarray, "m p"]
) -> Float[Array, " m"]:
    """The log joint of each candidate; minus infinity for a shape that holds no voxel, which would win too often."""

    def one(theta: jax.Array) -> jax.Array:
        logits = prior_logit(model, theta, observation.points)
        is_empty = ~jnp.any((logits > 0) & (observation.weights > 0))
        return jnp.where(is_empty, -jnp.inf, log_joint_at(model, observation, State(theta, regions), logits))

    return jax.lax.map(one, jnp.asarray(candidates), batch_size=256)  # bounds the memory


def _drawn_or_checked(model: Model, key: jax.Array, candidates: Any) -> np.ndarray:
    given = np.asarray(candidates)
    if given.ndim == 0:
        if not isinstance(candidates, numbers.Integral) or candidates < 1:
            raise InputError(f"the number of candidates must be a whole number from 1 but is {candidates}; try 256.")
        return draw_prior(model.prior, key, int(candidates))
    p = model.shape.num_parameters
    if given.ndim != 2 or given.shape[1] != p or not len(given) or given.dtype.kind not in "iuf":
        raise InputError(
            f"candidates must be rows of {p} numbers but have shape {given.shape} of {given.dtype}; give (m, {p})."
        )
    for k, theta in enumerate(given):
        check_in_box(model, theta, f"candidate {k}")
    return given.astype(np.float64)


def _rank(prior: Prior, fits: list[Fit]) -> Multistart:
    """The fits in order, and which of them are the same solution."""
    heights = np.array([fit.log_joint[-1] if fit.log_joint.size else -np.inf for fit in fits])
    is_usable = np.array([fit.status.is_usable for fit in fits])
    order = np.lexsort((-heights, ~is_usable))
    ranked, heights = tuple(fits[k] for k in order), heights[order]
    solutions = np.full(len(fits), -1)
    seen: list[int] = []  # the best fit of each solution
    for k, fit in enumerate(ranked):
        if not fit.status.is_usable:
            break
        apart = [np.max(np.abs(fit.state.theta - ranked[j].state.theta) / prior.widths) for j in seen]
        same = [
            a <= _SAME_PLACE and heights[j] - heights[k] <= _SAME_HEIGHT for a, j in zip(apart, seen, strict=True)
        ]
        if not any(same):
            seen.append(k)
        solutions[k] = same.index(True) if any(same) else len(seen) - 1
    return Multistart(ranked, heights, solutions)
