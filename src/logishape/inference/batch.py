"""Many images at once: groups of cases in one compiled program, and a reason for each case that could not begin."""

import dataclasses
import numbers
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import double_precision, to_host
from logishape.core.errors import InputError
from logishape.core.observation import Observation
from logishape.core.status import Status
from logishape.inference.band import padded_size
from logishape.inference.checks import (
    check_batch,
    check_level,
    check_start,
    check_state,
    find_problem,
    has_right_shapes,
    is_sound,
    looks_sound,
)
from logishape.inference.fit import ONE, Calls, Fit, calls_over_cases, fit_at_all_lengths, outcome
from logishape.inference.model import Model, State
from logishape.inference.options import FitOptions

# Voxels in one group of cases. A processor gains from groups only while calls cost more than their work, and cases
# that wait are work. An accelerator wants millions at once; with ten parameters each takes about 300 bytes.
_MOST_VOXELS_CPU, _MOST_VOXELS = 2**16, 2**25
Case = tuple[Observation, State]


def fit_batch(
    model: Model,
    observations: Sequence[Observation],
    starts: Sequence[State],
    options: FitOptions | None = None,
    *,
    group_size: int | None = None,
) -> list[Fit]:
    """A fit for each observation and start, many at once in one compiled program; each equals `fit` of its own.

    A case that cannot begin gets the status `REFUSED` and the reason as its `problem`; the others go on.
    Observations are padded to the largest. Cases run in groups of `group_size` (chosen for speed within memory if
    not given); one that has ended waits for the longest of its group without changing.
    """
    options = FitOptions() if options is None else options
    check_batch(observations, starts)
    cases = list(zip(observations, starts, strict=True))
    is_whole = [has_right_shapes(model, *case) for case in cases]
    whole = [k for k, fine in enumerate(is_whole) if fine]
    fits = {
        k: _refused(model, case[1], find_problem(check_state, model, *case))
        for k, case in enumerate(cases)
        if not is_whole[k]
    }
    if whole:
        check_level(model, observations[whole[0]])
        size = padded_size(max(observations[k].num_voxels for k in whole))
        capacity = 0
        for rows in _groups(whole, _group_size(len(whole), size, group_size)):
            group = [cases[k] for k in rows]
            found, capacity = _fit_group(_EACH_ITS_OWN, model, stack_padded(group, size), group, options, capacity)
            fits |= dict(zip(rows, found, strict=True))
    return [fits[k] for k in range(len(cases))]


def fit_starts(
    model: Model,
    observation: Observation,
    starts: Sequence[State],
    options: FitOptions,
    group_size: int | None = None,
) -> list[Fit]:
    """A fit from each start on one observation, which all share and nobody copies; as `fit_batch` otherwise.

    Raises if no start can begin.
    """
    size = padded_size(observation.num_voxels)
    padded, capacity = observation.padded(size), 0
    fits: dict[int, Fit] = {}
    for rows in _groups(range(len(starts)), _group_size(len(starts), size, group_size)):
        if len(rows) == 1:
            found, capacity = _fit_alone(model, padded, starts[rows[0]], options, capacity)
        else:
            group = [(padded, starts[k]) for k in rows]
            found, capacity = _fit_group(_ONE_FOR_ALL, model, padded, group, options, capacity)
        fits |= dict(zip(rows, found, strict=True))
    if all(fit.problem for fit in fits.values()):
        raise InputError(fits[0].problem)
    return [fits[k] for k in range(len(starts))]


def heights_of(model: Model, observation: Observation, states: Sequence[State]) -> Float[np.ndarray, " s"]:
    """The log joint of each state, by the program with which a fit begins."""
    padded = observation.padded(padded_size(observation.num_voxels))
    with double_precision():
        padded = jax.tree.map(jnp.asarray, padded)
        return np.array([float(ONE.begin(model, padded, state, FitOptions()).log_joint) for state in states])


class _Kind(NamedTuple):
    """The compiled pieces for cases with an image each, or with one for all."""

    calls: Calls
    look: Callable[..., Any]
    is_shared: bool

    @classmethod
    def compiled(cls, is_shared: bool) -> "_Kind":
        each = eqx.if_array(0)
        axes = None if is_shared else each
        look = eqx.filter_jit(eqx.filter_vmap(looks_sound, in_axes=(None, axes, each)))
        return cls(calls_over_cases(axes), look, is_shared)


def stack(trees: Sequence[Any]) -> Any:
    """One tree whose arrays have a new first axis over the trees."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def stack_padded(cases: Sequence[Case], size: int) -> Any:
    """The observations, each padded to `size` as `Observation.padded` does, stacked with one copy."""
    observations = [observation for observation, _ in cases]
    dtype = observations[0].points.dtype
    shape = (len(observations), size)
    points, intensities = np.empty((*shape, observations[0].ndim), dtype), np.empty(shape, dtype)
    weights = np.zeros(shape, dtype)
    for k, one in enumerate(observations):
        n = one.num_voxels
        for array, values in ((points[k], one.points), (intensities[k], one.intensities)):
            array[:n], array[n:] = values, values[-1]
        weights[k, :n] = one.weights
    # A stack is not an observation: its arrays have an axis more, and nobody but the mapped calls sees them.
    return jax.tree.unflatten(jax.tree.structure(observations[0]), (points, intensities, weights))


def _group_size(num_cases: int, size: int, wish: int | None) -> int:
    """How many cases run together, all groups being about equal."""
    if wish is not None and not (isinstance(wish, numbers.Integral) and wish >= 1):
        raise InputError(f"group_size must be a whole number from 1 but is {wish}; leave it out to have it chosen.")
    most_voxels = _MOST_VOXELS_CPU if jax.default_backend() == "cpu" else _MOST_VOXELS
    most = max(most_voxels // size, 1) if wish is None else int(wish)
    num_groups = -(-num_cases // most)
    return -(-num_cases // num_groups)


def _groups(rows: Sequence[int], size: int) -> Iterator[list[int]]:
    """The rows in groups; the last is filled up with its own, for a group of another size is another compilation."""
    for first in range(0, len(rows), size):
        yield np.resize(rows[first : first + size], size).tolist()


def _fit_group(
    kind: _Kind, model: Model, observation: Any, cases: Sequence[Case], options: FitOptions, capacity: int
) -> tuple[list[Fit], int]:
    """A fit for each case, and the rows of the last band. In place of a case that cannot begin another runs twice."""
    starts = [start for _, start in cases]
    with double_precision():
        observation, state = jax.tree.map(jnp.asarray, observation), stack(starts)
        are_sound = np.array(kind.look(model, observation, state))
    # Sentences are for the few that need them: each costs calls of its own.
    problems = ["" if fine else _problem(model, *case) for fine, case in zip(are_sound, cases, strict=True)]
    begins = np.array([not problem for problem in problems])
    if not begins.any():
        return [_refused(model, start, problem) for start, problem in zip(starts, problems, strict=True)], capacity
    rows = np.where(begins, np.arange(begins.size), np.argmax(begins))
    with double_precision():
        state = jax.tree.map(itemgetter(rows), state)
        if not (begins.all() or kind.is_shared):
            observation = jax.tree.map(itemgetter(rows), observation)
        ended, capacity = fit_at_all_lengths(kind.calls, model, observation, state, options, capacity)
    ended = to_host(ended)
    fits = [outcome(model, jax.tree.map(itemgetter(k), ended)) for k in range(len(cases))]
    return [_refused(model, starts[k], why) if why else fits[k] for k, why in enumerate(problems)], capacity


def _fit_alone(
    model: Model, observation: Observation, start: State, options: FitOptions, capacity: int
) -> tuple[list[Fit], int]:
    """The fit of one case by the program of `fit`: mapped over a group of one it would take three times as long to
    trace.
    """
    with double_precision():
        on_device = jax.tree.map(jnp.asarray, observation)
        # The program with which the fit begins looks at the start, too.
        first = ONE.begin(model, on_device, start, dataclasses.replace(options, anneal=()))
        is_fine = is_sound(np, observation, start, np.asarray(first.logits), np.asarray(first.log_joint))
    problem = "" if is_fine else _problem(model, observation, start)
    if problem:
        return [_refused(model, start, problem)], capacity
    with double_precision():
        ended, capacity = fit_at_all_lengths(ONE, model, on_device, start, options, capacity)
    return [outcome(model, to_host(ended))], capacity


def _problem(model: Model, observation: Observation, start: State) -> str:
    """Why a case cannot begin; empty if it can after all. Numbers are those of the image without padding."""
    padded = observation.padded(padded_size(observation.num_voxels))
    return find_problem(check_state, model, observation, start) or find_problem(check_start, model, padded, start)


def _refused(model: Model, start: State, problem: str) -> Fit:
    """The fit of a case that could not begin: its start, and why."""
    return Fit(start, Status.REFUSED, np.zeros(0), 0, 0, np.inf, (), model.shape.parameter_names, problem)


_EACH_ITS_OWN, _ONE_FOR_ALL = _Kind.compiled(is_shared=False), _Kind.compiled(is_shared=True)
