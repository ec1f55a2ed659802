"""How a fit ended: told apart by what the final state shows, not by whether the loop stopped."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from logishape.core.arrays import AnyArray, total
from logishape.core.observation import Observation
from logishape.core.status import Status
from logishape.inference.band import gather, is_active
from logishape.inference.model import Model
from logishape.inference.problem import Phi, ShapeProblem
from logishape.inference.rounds import Progress

_TOUCHES = 1e-6  # of a box width: closer to a bound counts as on it


def touches_bound(phi: Phi) -> Bool[AnyArray, " p"]:
    """Which whitened parameters lie on the border of the box."""
    return (phi < _TOUCHES) | (phi > 1 - _TOUCHES)


def judge(model: Model, observation: Observation, now: Progress, capacity: int) -> Int[Array, ""]:
    """The status: what makes a result unusable is said before what merely qualifies it."""
    in_use = observation.weights > 0
    fewest = 2**observation.ndim
    num_inside = jnp.sum(in_use & (now.logits > 0))
    num_outside = jnp.sum(in_use & (now.logits <= 0))
    is_thin = jnp.max(jnp.where(in_use, now.logits, -jnp.inf)) < 1  # nowhere deeper than the reference length
    has_collapsed = (num_inside < fewest) | (num_outside < fewest) | is_thin | ~jnp.isfinite(now.log_joint)
    ended = jnp.where(jnp.any(touches_bound(now.phi)), Status.AT_BOX, Status.CONVERGED)
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
