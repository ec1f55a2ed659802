"""One round of EM on all voxels: choose the band, move the shape, let the appearances learn."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from logishape.appearance import Regions
from logishape.core.arrays import AnyArray
from logishape.core.observation import Observation
from logishape.inference.appearance_step import mi_step
from logishape.inference.band import choose_active, chosen_rows, gather
from logishape.inference.direction import empty_memory
from logishape.inference.labels import prior_logit
from logishape.inference.model import Model, State
from logishape.inference.objective import Densities, evaluate_densities, log_likelihood
from logishape.inference.options import FitOptions
from logishape.inference.problem import Phi, ShapeProblem, unwhiten, whiten
from logishape.inference.shape_step import ShapeProgress, StepMemory, ms_step

_FIRST_REACH, _SHORTEST_REACH = 4.0, 0.1  # logits


class Progress(eqx.Module):
    """Where a fit stands at one reference length; every array is over all voxels."""

    phi: Float[Array, " p"]
    regions: Regions
    logits: Float[Array, " n"]
    densities: Densities
    log_joint: Float[Array, ""]
    trace: Float[Array, " t"]  # log joint at the start, then after the shape and appearance steps of each round
    path: Float[Array, "r p"]  # phi at the start, then after each round
    memory: StepMemory
    num_rounds: Int[Array, ""]
    num_steps: Int[Array, ""]
    is_converged: Bool[Array, ""]
    is_stuck: Bool[Array, ""]
    is_overfull: Bool[Array, ""]  # the band has more voxels than rows; the caller asks again with more


def begin(model: Model, observation: Observation, state: State, options: FitOptions) -> Progress:
    """Progress before the first round."""
    state = jax.tree.map(jnp.asarray, state)
    logits = prior_logit(model, state.theta, observation.points)
    densities = evaluate_densities(observation, state)
    value = _log_joint(model, observation, state.theta, logits, densities) + state.regions.log_prior()
    trace = jnp.full(2 * options.max_rounds + 1, jnp.nan).at[0].set(value)
    phi = whiten(model.prior, state.theta)
    path = jnp.full((options.max_rounds + 1, phi.size), jnp.nan).at[0].set(phi)
    no = jnp.array(False)
    return Progress(
        phi=phi,
        regions=state.regions,
        logits=logits,
        densities=densities,
        log_joint=value,
        trace=trace,
        path=path,
        memory=StepMemory(jnp.array(1e-3), empty_memory(state.theta.shape[0]), jnp.array(jnp.inf)),
        num_rounds=jnp.array(0),
        num_steps=jnp.array(0),
        is_converged=no,
        is_stuck=no,
        is_overfull=no,
    )


def goes_on(now: Progress, options: FitOptions) -> Bool[Array, ""]:
    """Whether there is another round to do; a log joint that is not a number will not become one."""
    is_over = now.is_converged | now.is_stuck | now.is_overfull | jnp.isnan(now.log_joint)
    return ~is_over & (now.num_rounds < options.max_rounds)


def em_round(model: Model, observation: Observation, now: Progress, capacity: int, options: FitOptions) -> Progress:
    """Progress after one round; the log joint over all voxels never falls.

    In a batch, rounds are computed for all cases until the last has ended. `is_on` is false for those that have
    ended before: no loop within the round then takes a turn for them, so that nobody waits for what nobody reads.
    """
    is_on = goes_on(now, options)
    active = choose_active(observation, now.logits, now.densities.log_odds, options.use_band)
    band, V = gather(observation, now.densities.log_odds, active, capacity), now.logits
    if capacity < observation.num_voxels:
        V = V[chosen_rows(active, capacity)]
    shape = ms_step(ShapeProblem(model, band), now.phi, V, now.memory, options, is_on)
    phi, logits, value, is_whole = _accept_on_all_voxels(model, observation, now, shape, is_on)
    is_settled = shape.is_converged & (is_whole | (shape.rise < options.rise_tolerance))
    state = State(unwhiten(model.prior, phi), now.regions)
    # While the shape still travels from band to band, the appearances wait.
    is_settling = is_on & (is_settled | ~shape.has_moved)
    looks = mi_step(observation, logits, state, now.densities, options, is_settling)
    after = looks.value + model.prior.log_prob(state.theta)
    learnt = after - value
    row = 2 * now.num_rounds + 1
    new = Progress(
        phi=phi,
        regions=looks.regions,
        logits=logits,
        densities=looks.densities,
        log_joint=after,
        trace=now.trace.at[row].set(value).at[row + 1].set(after),
        path=now.path.at[now.num_rounds + 1].set(phi),
        memory=StepMemory(shape.damping, shape.memory.without_point(), _next_reach(now.memory.reach, is_whole)),
        num_rounds=now.num_rounds + 1,
        num_steps=now.num_steps + shape.num_steps,
        is_converged=is_settled & (learnt < options.rise_tolerance),
        is_stuck=~is_settled & (after <= now.log_joint) & (shape.is_stuck | (now.memory.reach < _SHORTEST_REACH)),
        is_overfull=jnp.array(False),
    )
    is_overfull = jnp.sum(active) > capacity
    kept = jax.tree.map(lambda a, b: jnp.where(is_overfull, b, a), new, now)
    return eqx.tree_at(lambda p: p.is_overfull, kept, is_overfull)


def _log_joint(
    model: Model, observation: Observation, theta: jax.Array, V: Float[AnyArray, " n"], densities: Densities
) -> jax.Array:
    """The log joint without the appearances' prior, which a shape step leaves alone."""
    return log_likelihood(observation, V, densities) + model.prior.log_prob(theta)


def _next_reach(reach: Float[Array, ""], is_whole: Bool[Array, ""]) -> Float[Array, ""]:
    """How far the next band may be trusted: less after a step that all voxels refused, more after one they took."""
    return jnp.where(is_whole, 4 * reach, jnp.minimum(reach / 4, _FIRST_REACH))


def _accept_on_all_voxels(
    model: Model, observation: Observation, now: Progress, shape: ShapeProgress, is_on: Bool[Array, ""]
) -> tuple[Phi, Float[Array, " n"], Float[Array, ""], Bool[Array, ""]]:
    """The band's step, shortened until the log joint over all voxels does not fall; the old point if need be.

    Last comes whether the whole step was taken. Voxels outside the band count as they did when it was chosen, which
    a long step can make wrong.
    """
    prior_of_looks = now.regions.log_prior()

    def attempt(carry: tuple) -> tuple:
        _, count = carry
        phi = now.phi + (shape.phi - now.phi) / 4.0**count
        theta = unwhiten(model.prior, phi)
        logits = prior_logit(model, theta, observation.points)
        return (phi, logits, _log_joint(model, observation, theta, logits, now.densities) + prior_of_looks), count + 1

    def falls(carry: tuple) -> jax.Array:
        return is_on & ~(carry[0][2] >= now.log_joint) & (carry[1] < 7)

    # The first attempt is made in the loop, too: the level is the largest piece of the program.
    nothing = (now.phi, now.logits, jnp.full_like(now.log_joint, -jnp.inf))
    trial, count = jax.lax.while_loop(falls, attempt, (nothing, jnp.array(0)))
    is_good = trial[2] >= now.log_joint
    kept = jax.tree.map(lambda a, b: jnp.where(is_good, a, b), trial, (now.phi, now.logits, now.log_joint))
    return *kept, is_good & (count == 1)
