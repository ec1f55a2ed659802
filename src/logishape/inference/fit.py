"""The fit: checks at the border, one compiled loop of EM rounds for each reference length, and its outcome."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from logishape.core.arrays import double_precision, to_host
from logishape.core.errors import FitError
from logishape.core.observation import Observation
from logishape.core.status import Status
from logishape.inference.band import is_active, padded_size
from logishape.inference.checks import check_batch, check_start
from logishape.inference.judge import judge, touches_bound
from logishape.inference.model import Model, State
from logishape.inference.options import FitOptions
from logishape.inference.problem import unwhiten
from logishape.inference.rounds import Progress, begin, em_round


class Fit(eqx.Module):
    """The best state found, how the search ended, and the log joint on the way (last reference length)."""

    state: State
    status: Status = eqx.field(static=True)
    log_joint: Float[np.ndarray, " t"]
    num_steps: int = eqx.field(static=True)
    num_rounds: int = eqx.field(static=True)
    decrement: float = eqx.field(static=True)
    at_bound: tuple[str, ...] = eqx.field(static=True)
    parameter_names: tuple[str, ...] = eqx.field(static=True)

    @property
    def parameters(self) -> dict[str, float]:
        """The shape's parameters by name."""
        return dict(zip(self.parameter_names, self.state.theta.tolist(), strict=True))

    def check(self) -> "Fit":
        """Itself if the status is usable; otherwise an error with advice."""
        if not self.status.is_usable:
            raise FitError(f"{self.status.name.lower().replace('_', ' ')}: {self.status.advice}")
        return self


def fit(model: Model, observation: Observation, start: State, options: FitOptions | None = None) -> Fit:
    """The shape and appearances that maximise the log joint near `start`, with a status that says how it ended."""
    options = FitOptions() if options is None else options
    padded = observation.padded(padded_size(observation.num_voxels))
    check_start(model, padded, start)
    with double_precision():
        return _outcome(model, to_host(_fit_at_all_lengths(_ONE, model, padded, start, options)))


def fit_batch(
    model: Model, observations: Sequence[Observation], starts: Sequence[State], options: FitOptions | None = None
) -> list[Fit]:
    """A fit for each observation and start, all at once in one compiled program; each equals `fit` of its own.

    Observations are padded to the largest. A case that has ended waits for the others without changing, so one
    call lasts as long as its longest case; worth it on a GPU, or for many small images.
    """
    options = FitOptions() if options is None else options
    check_batch(observations, starts)
    size = padded_size(max(observation.num_voxels for observation in observations))
    padded = [observation.padded(size) for observation in observations]
    for observation, start in zip(padded, starts, strict=True):
        check_start(model, observation, start)
    with double_precision():
        ended = to_host(_fit_at_all_lengths(_MANY, model, stack(padded), stack(starts), options))
    return [_outcome(model, jax.tree.map(itemgetter(k), ended)) for k in range(len(starts))]


def stack(trees: Sequence[Any]) -> Any:
    """One tree whose arrays have a new first axis over the trees."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


class _Ended(NamedTuple):
    """A fit, or a batch of them, at the last reference length."""

    state: State
    progress: Progress
    verdict: Any  # status and Newton decrement
    num_steps: Any
    num_rounds: Any


class _Calls(NamedTuple):
    """The compiled pieces of a fit, for one case or for a batch."""

    begin: Callable[..., Progress]
    count_active: Callable[..., Any]
    run: Callable[..., tuple[Progress, Any]]
    state: Callable[..., State]


def _outcome(model: Model, ended: _Ended) -> Fit:
    progress, names = ended.progress, model.shape.parameter_names
    touches = touches_bound(progress.phi)
    return Fit(
        state=ended.state,
        status=Status(int(ended.verdict[0])),
        log_joint=np.asarray(progress.trace)[np.isfinite(progress.trace)],
        num_steps=int(ended.num_steps),
        num_rounds=int(ended.num_rounds),
        decrement=float(ended.verdict[1]),
        at_bound=tuple(name for name, is_there in zip(names, touches, strict=True) if is_there),
        parameter_names=names,
    )


def _fit_at_all_lengths(
    calls: _Calls, model: Model, observation: Observation, state: State, options: FitOptions
) -> _Ended:
    """Anneals the reference length down to the model's own, each fit starting where the one before ended."""
    num_steps, num_rounds, capacity = 0, 0, 0
    for factor in options.anneal:
        stage = model.with_reference_length(factor * model.reference_length)
        progress, _, capacity = _fit_at_one_length(calls, stage, observation, state, capacity, options)
        state = calls.state(model, progress)
        num_steps, num_rounds = num_steps + progress.num_steps, num_rounds + progress.num_rounds
    progress, verdict, _ = _fit_at_one_length(calls, model, observation, state, capacity, options)
    num_steps, num_rounds = num_steps + progress.num_steps, num_rounds + progress.num_rounds
    return _Ended(calls.state(model, progress), progress, verdict, num_steps, num_rounds)


def _fit_at_one_length(
    calls: _Calls, model: Model, observation: Observation, state: State, capacity: int, options: FitOptions
) -> tuple[Progress, Any, int]:
    """Runs the compiled loop, with more rows for the band whenever it outgrows them.

    A new capacity is a new compilation: the one before is kept unless it is too small or four times too large.
    """
    num_voxels = observation.points.shape[-2]
    progress = calls.begin(model, observation, state, options)
    while True:
        count = np.max(calls.count_active(observation, progress)) if options.use_band else num_voxels
        needed = min(2 ** max(int(1.25 * count).bit_length(), 14), num_voxels)
        capacity = capacity if needed <= capacity <= 4 * needed else needed
        progress, verdict = calls.run(model, observation, progress, capacity, options)
        if not np.any(progress.is_overfull):
            return progress, verdict, capacity


def _count_active(observation: Observation, progress: Progress) -> Int[Array, ""]:
    return jnp.sum(is_active(progress.logits, progress.densities.log_odds, observation.weights))


def _run(
    model: Model, observation: Observation, progress: Progress, capacity: int, options: FitOptions
) -> tuple[Progress, tuple[Int[Array, ""], Float[Array, ""]]]:
    progress = run_rounds(model, observation, progress, capacity, options)
    return progress, judge(model, observation, progress, capacity, options)


def _state(model: Model, progress: Progress) -> State:
    return State(unwhiten(model.prior, progress.phi), progress.regions)


def run_rounds(
    model: Model, observation: Observation, progress: Progress, capacity: int, options: FitOptions
) -> Progress:
    """The only loop: EM rounds until converged, stuck, out of rounds, or the band outgrows its rows."""

    def goes_on(now: Progress) -> jax.Array:
        is_over = now.is_converged | now.is_stuck | now.is_overfull
        return ~is_over & (now.num_rounds < options.max_rounds)

    def advance(now: Progress) -> Progress:
        return em_round(model, observation, now, capacity, options)

    first = eqx.tree_at(lambda p: p.is_overfull, progress, jnp.array(False))
    return jax.lax.while_loop(goes_on, advance, first)


_EACH = eqx.if_array(0)
_ONE = _Calls(
    begin=eqx.filter_jit(begin),
    count_active=eqx.filter_jit(_count_active),
    run=eqx.filter_jit(_run),
    state=eqx.filter_jit(_state),
)
_MANY = _Calls(
    begin=eqx.filter_jit(eqx.filter_vmap(begin, in_axes=(None, _EACH, _EACH, None))),
    count_active=eqx.filter_jit(eqx.filter_vmap(_count_active, in_axes=(_EACH, _EACH))),
    run=eqx.filter_jit(eqx.filter_vmap(_run, in_axes=(None, _EACH, _EACH, None, None))),
    state=eqx.filter_jit(eqx.filter_vmap(_state, in_axes=(None, _EACH))),
)
