"""How a fit ended: told apart by what the final state shows, not by whether the loop stopped."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
from jaxtyping import Array, Bool, Float, Int

from logishape.core.arrays import AnyArray, total
from logishape.core.observation import Observation
from logishape.core.status import Status
from logishape.inference.band import choose_active, gather
from logishape.inference.labels import e_step
from logishape.inference.model import Model
from logishape.inference.objective import log_likelihood
from logishape.inference.options import FitOptions
from logishape.inference.problem import Phi, ShapeProblem
from logishape.inference.rounds import Progress

_TOUCHES = 1e-6  # of a box width: closer to a bound counts as on it


def touches_bound(phi: Phi) -> Bool[AnyArray, " p"]:
    """Which whitened parameters lie on the border of the box."""
    return (phi < _TOUCHES) | (phi > 1 - _TOUCHES)


def judge(
    model: Model, observation: Observation, now: Progress, capacity: int, options: FitOptions
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """The status and the Newton decrement: what makes a result unusable is said before what merely qualifies it."""
    active = choose_active(observation, now.logits, now.densities.log_odds, options.use_band)
    band = gather(observation, now.densities.log_odds, active, capacity)
    decrement = ShapeProblem(model, band).newton_decrement(now.phi)
    # Judged by the point, not by how the search felt there: with room for a band chosen anew where it says converged,
    # and kindly where rounding stopped it at a point that is stationary after all.
    tolerance = options.decrement_tolerance
    is_stationary = (now.is_converged & (decrement < 4 * tolerance)) | (now.is_stuck & (decrement < tolerance))
    ended = jnp.where(jnp.any(touches_bound(now.phi)), Status.AT_BOX, Status.CONVERGED)
    ended = jnp.where(is_stationary, ended, Status.STALLED)
    says_nothing = _gain_over_no_shape(observation, now) < _least_gain(observation, now)
    ended = jnp.where(says_nothing, Status.NO_INFORMATION, ended)
    is_unfinished = ~now.is_converged & ~now.is_stuck
    ended = jnp.where(is_unfinished, Status.OUT_OF_STEPS, ended)
    return jnp.where(_has_collapsed(observation, now), Status.COLLAPSED, ended), decrement


def _has_collapsed(observation: Observation, now: Progress) -> Bool[Array, ""]:
    """Whether the shape vanished, swallowed the region, or is nowhere deeper than the reference length."""
    in_use = observation.weights > 0
    fewest = 2**observation.ndim
    num_inside = jnp.sum(in_use & (now.logits > 0))
    num_outside = jnp.sum(in_use & (now.logits <= 0))
    is_thin = jnp.max(jnp.where(in_use, now.logits, -jnp.inf)) < 1
    return (num_inside < fewest) | (num_outside < fewest) | is_thin | ~jnp.isfinite(now.log_joint)


def _gain_over_no_shape(observation: Observation, now: Progress) -> Float[Array, ""]:
    """Nats by which the shape explains the image better than one share of inside voxels everywhere.

    The share is found by EM from the mean label; stopping early can only flatter the shape a little.
    """
    weights = jnp.asarray(observation.weights)
    rho = now.densities.log_odds

    def improve(_: Any, share: jax.Array) -> jax.Array:
        return total(weights * e_step(jnp.full_like(rho, jax.scipy.special.logit(share)), rho)) / total(weights)

    share = jnp.clip(total(weights * e_step(now.logits, rho)) / total(weights), 1e-6, 1 - 1e-6)
    share = jnp.clip(jax.lax.fori_loop(0, 10, improve, share), 1e-6, 1 - 1e-6)
    flat = jnp.full_like(now.logits, jax.scipy.special.logit(share))
    return log_likelihood(observation, now.logits, now.densities) - log_likelihood(observation, flat, now.densities)


def _least_gain(observation: Observation, now: Progress) -> Float[Array, ""]:
    """(p/2) log n nats: what p parameters gain on pure noise, as the Bayesian information criterion counts it."""
    return 0.5 * now.phi.shape[0] * jnp.log(jnp.sum(observation.weights > 0))
