"""The fit: checks at the border, one compiled loop of EM rounds for each reference length, and its outcome."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from logishape.core.arrays import double_precision, to_host, total
from logishape.core.errors import FitError
from logishape.core.observation import Observation
from logishape.core.status import Status
from logishape.inference.band import gather, is_active, padded_size
from logishape.inference.checks import check_start
from logishape.inference.model import Model, State
from logishape.inference.options import FitOptions
from logishape.inference.problem import ShapeProblem, unwhiten
from logishape.inference.rounds import Progress, begin, em_round

_TOUCHES = 1e-6  # of a box width: closer to a bound counts as on it


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
    check_start(model, observation, start)
    padded = observation.padded(padded_size(observation.num_voxels))
    state, num_steps, num_rounds, capacity = start, 0, 0, 0
    with double_precision():
        for factor in options.anneal:
            stage = model.with_reference_length(factor * model.reference_length)
            progress, _, capacity = _fit_at_one_length(stage, padded, state, capacity, options)
            state = State(unwhiten(model.prior, progress.phi), progress.regions)
            num_steps, num_rounds = num_steps + int(progress.num_steps), num_rounds + int(progress.num_rounds)
        progress, status, _ = _fit_at_one_length(model, padded, state, capacity, options)
        state = to_host(State(unwhiten(model.prior, progress.phi), progress.regions))
        progress = to_host(progress)
    names = model.shape.parameter_names
    touches = (progress.phi < _TOUCHES) | (progress.phi > 1 - _TOUCHES)
    return Fit(
        state=state,
        status=Status(int(status)),
        log_joint=progress.trace[np.isfinite(progress.trace)],
        num_steps=num_steps + int(progress.num_steps),
        num_rounds=num_rounds + int(progress.num_rounds),
        decrement=float(progress.decrement),
        at_bound=tuple(name for name, is_there in zip(names, touches, strict=True) if is_there),
        parameter_names=names,
    )


def _fit_at_one_length(
    model: Model, observation: Observation, state: State, capacity: int, options: FitOptions
) -> tuple[Progress, Any, int]:
    """Runs the compiled loop, with more rows for the band whenever it outgrows them.

    A new capacity is a new compilation: the one before is kept unless it is too small or four times too large.
    """
    num_voxels = observation.num_voxels
    progress = _begin(model, observation, state, options)
    while True:
        count = _count_active(observation, progress) if options.use_band else num_voxels
        needed = min(2 ** max(int(1.25 * count).bit_length(), 14), num_voxels)
        capacity = capacity if needed <= capacity <= 4 * needed else needed
        progress, status = _run(model, observation, progress, capacity, options)
        if not bool(progress.is_overfull):
            return progress, status, capacity


@eqx.filter_jit
def _begin(model: Model, observation: Observation, state: State, options: FitOptions) -> Progress:
    return begin(model, observation, state, options)


@eqx.filter_jit
def _count_active(observation: Observation, progress: Progress) -> Int[Array, ""]:
    return jnp.sum(is_active(progress.logits, progress.densities.log_odds, observation.weights))


@eqx.filter_jit
def _run(
    model: Model, observation: Observation, progress: Progress, capacity: int, options: FitOptions
) -> tuple[Progress, Int[Array, ""]]:
    progress = run_rounds(model, observation, progress, capacity, options)
    return progress, judge(model, observation, progress, capacity)


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


def judge(model: Model, observation: Observation, now: Progress, capacity: int) -> Int[Array, ""]:
    """The status: what makes a result unusable is said before what merely qualifies it."""
    in_use = observation.weights > 0
    fewest = 2**observation.ndim
    num_inside = jnp.sum(in_use & (now.logits > 0))
    num_outside = jnp.sum(in_use & (now.logits <= 0))
    is_thin = jnp.max(jnp.where(in_use, now.logits, -jnp.inf)) < 1  # nowhere deeper than the reference length
    has_collapsed = (num_inside < fewest) | (num_outside < fewest) | is_thin | ~jnp.isfinite(now.log_joint)
    on_bound = jnp.any((now.phi < _TOUCHES) | (now.phi > 1 - _TOUCHES))
    ended = jnp.where(on_bound, Status.AT_BOX, Status.CONVERGED)
    ended = jnp.where(now.is_stuck, Status.STALLED, ended)
    ended = jnp.where(~now.is_converged & ~now.is_stuck, Status.OUT_OF_STEPS, ended)
    intensities = jnp.asarray(observation.intensities)
    is_constant = jnp.max(intensities, where=in_use, initial=-jnp.inf) == jnp.min(
        intensities, where=in_use, initial=jnp.inf
    )
    says_nothing = is_constant | (_information(model, observation, now, capacity) < 1)
    ended = jnp.where(says_nothing, Status.NO_INFORMATION, ended)
    return jnp.where(has_collapsed, Status.COLLAPSED, ended)


def _information(model: Model, observation: Observation, now: Progress, capacity: int) -> Float[Array, ""]:
    """The largest diagonal entry of sum w (u - mu)^2 d d' in box widths: below one the box knows more."""
    rho = now.densities.log_odds
    active = is_active(now.logits, rho, observation.weights)
    problem = ShapeProblem(model, gather(observation, rho, active, capacity))
    V, D = problem.logits_and_jacobian(now.phi)
    pull = problem.pull(V)[:, None]
    return jnp.max(jax.vmap(total, in_axes=1)(jnp.square(pull * D)))
