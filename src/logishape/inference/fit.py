"""The fit: checks at the border, one compiled loop of EM rounds for each reference length, and its outcome."""

import dataclasses
from collections.abc import Callable
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
from logishape.inference.checks import check_start
from logishape.inference.judge import judge, touches_bound
from logishape.inference.model import Model, State
from logishape.inference.options import FitOptions
from logishape.inference.problem import unwhiten
from logishape.inference.rounds import Progress, begin, em_round, goes_on


class Fit(eqx.Module):
    """The best state found, how the search ended, and the way there (last reference length).

    log_joint: at the start, then twice in each round. path: the parameters at the start and after each round.
    """

    state: State
    status: Status = eqx.field(static=True)
    log_joint: Float[np.ndarray, " t"]
    num_steps: int = eqx.field(static=True)
    num_rounds: int = eqx.field(static=True)
    decrement: float = eqx.field(static=True)
    at_bound: tuple[str, ...] = eqx.field(static=True)
    parameter_names: tuple[str, ...] = eqx.field(static=True)
    problem: str = eqx.field(static=True, default="")  # why a case of a batch was refused
    path: Float[np.ndarray, "r p"] = eqx.field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def parameters(self) -> dict[str, float]:
        """The shape's parameters by name."""
        # A refused start may have more or fewer.
        return dict(zip(self.parameter_names, np.ravel(self.state.theta).tolist(), strict=not self.problem))

    def check(self) -> "Fit":
        """Itself if the status is usable; otherwise an error with advice."""
        if not self.status.is_usable:
            raise FitError(f"{self.status.name.lower().replace('_', ' ')}: {self.problem or self.status.advice}")
        return self


def fit(model: Model, observation: Observation, start: State, options: FitOptions | None = None) -> Fit:
    """The shape and appearances that maximise the log joint near `start`, with a status that says how it ended."""
    options = FitOptions() if options is None else options
    padded = observation.padded(padded_size(observation.num_voxels))
    check_start(model, padded, start)
    with double_precision():
        ended, _ = fit_at_all_lengths(ONE, model, padded, start, options)
    return outcome(model, to_host(ended))


class Ended(NamedTuple):
    """A fit, or a batch of them, at the last reference length: what a reader wants, nothing as large as the image."""

    state: State
    phi: Any
    trace: Any
    path: Any
    verdict: Any  # status and Newton decrement
    num_steps: Any
    num_rounds: Any


class Calls(NamedTuple):
    """The compiled pieces of a fit, for one case or for a batch."""

    begin: Callable[..., Progress]
    count_active: Callable[..., Any]
    run: Callable[..., tuple[Progress, Any]]
    state: Callable[..., State]


def outcome(model: Model, ended: Ended) -> Fit:
    """The fit of one case that has ended."""
    names, touches = model.shape.parameter_names, touches_bound(ended.phi)
    path = np.asarray(ended.path)
    path = path[np.all(np.isfinite(path), axis=1)]
    lower, upper = np.asarray(model.prior.lower), np.asarray(model.prior.upper)
    return Fit(
        state=ended.state,
        status=Status(int(ended.verdict[0])),
        log_joint=np.asarray(ended.trace)[np.isfinite(ended.trace)],
        num_steps=int(ended.num_steps),
        num_rounds=int(ended.num_rounds),
        decrement=float(ended.verdict[1]),
        at_bound=tuple(name for name, is_there in zip(names, touches, strict=True) if is_there),
        parameter_names=names,
        path=np.clip(lower + path * (upper - lower), lower, upper),
    )


def fit_at_all_lengths(
    calls: Calls, model: Model, observation: Observation, state: State, options: FitOptions, capacity: int = 0
) -> tuple[Ended, int]:
    """Anneals the reference length down to the model's own, each fit starting where the one before ended.

    `capacity` is the number of rows for the band that an earlier fit was compiled for; the last comes back.
    """
    observation = jax.tree.map(jnp.asarray, observation)  # to the device once, not at every call
    num_steps, num_rounds = 0, 0
    factors, options = options.anneal, dataclasses.replace(options, anneal=())  # no program depends on the factors
    for factor in factors:
        stage = model.with_reference_length(factor * model.reference_length)
        progress, _, capacity = _fit_at_one_length(calls, stage, observation, state, capacity, options)
        state = calls.state(model, progress)
        num_steps, num_rounds = num_steps + progress.num_steps, num_rounds + progress.num_rounds
    progress, verdict, capacity = _fit_at_one_length(calls, model, observation, state, capacity, options)
    num_steps, num_rounds = num_steps + progress.num_steps, num_rounds + progress.num_rounds
    state = calls.state(model, progress)
    return Ended(state, progress.phi, progress.trace, progress.path, verdict, num_steps, num_rounds), capacity


def _fit_at_one_length(
    calls: Calls, model: Model, observation: Observation, state: State, capacity: int, options: FitOptions
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

    def advance(now: Progress) -> Progress:
        return em_round(model, observation, now, capacity, options)

    first = eqx.tree_at(lambda p: p.is_overfull, progress, jnp.array(False))
    return jax.lax.while_loop(lambda now: goes_on(now, options), advance, first)


def calls_over_cases(image_axes: Any) -> Calls:
    """The pieces for a batch, compiled; with axes of None all cases share one image, which is not copied."""
    each = eqx.if_array(0)

    def over_cases(function: Callable[..., Any], *in_axes: Any) -> Any:
        return eqx.filter_jit(eqx.filter_vmap(function, in_axes=in_axes))

    return Calls(
        begin=over_cases(begin, None, image_axes, each, None),
        count_active=over_cases(_count_active, image_axes, each),
        run=over_cases(_run, None, image_axes, each, None, None),
        state=over_cases(_state, None, each),
    )


ONE = Calls(
    begin=eqx.filter_jit(begin),
    count_active=eqx.filter_jit(_count_active),
    run=eqx.filter_jit(_run),
    state=eqx.filter_jit(_state),
)
