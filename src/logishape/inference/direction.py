"""Where to go: Gauss-Newton on the expected labels, or BFGS on the log joint; both exact within the box."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from logishape.core.arrays import total
from logishape.inference.box import minimise_in_box
from logishape.inference.labels import e_step
from logishape.inference.problem import Phi, ShapeProblem, weighted_gram, weighted_rows

_MAX_NEWTON = 4  # inner Newton steps on one linearisation; more change nothing once it is re-linearised
_SHORTEST = 2.0**-10


class Memory(eqx.Module):
    """What BFGS remembers: its Hessian, and the last point with its gradient once there is one."""

    hessian: Float[Array, "p p"]
    phi: Float[Array, " p"]
    gradient: Float[Array, " p"]
    has_hessian: Bool[Array, ""]
    has_point: Bool[Array, ""]

    def without_point(self) -> "Memory":
        """For when the objective changed: the last gradient belongs to another function."""
        return eqx.tree_at(lambda m: m.has_point, self, jnp.array(False))


class Direction(eqx.Module):
    """A step that stays in the box, and the Newton decrement (unit-free) it promises."""

    delta: Float[Array, " p"]
    decrement: Float[Array, ""]


def empty_memory(num_parameters: int) -> Memory:
    """Nothing remembered yet."""
    zero = jnp.zeros(num_parameters)
    return Memory(jnp.eye(num_parameters), zero, zero, jnp.array(False), jnp.array(False))


def gauss_newton(problem: ShapeProblem, phi: Phi, damping: Float[Array, ""], is_on: Bool[Array, ""]) -> Direction:
    """The MS-step's direction: E-step at phi, then Newton on the linearised, concave expected log prior.

    Minimises F(delta) = -sum w [u log sigmoid(V + D delta) + (1-u) log sigmoid(-V - D delta)] - log p + damping,
    with gradient -D'(u - mu) + P0 (phi - m0) and matrix D' diag(mu (1 - mu)) D + P0. The paper's signs of the
    prior are wrong, and its prior on the increment is what `damping` is here: it never reaches the covariance.
    """
    V, D = problem.logits_and_jacobian(phi)
    weights, P0 = problem.band.weights, problem.prior_precision
    u = e_step(V, problem.band.log_odds)
    offset = problem.prior_gradient(phi)

    def curvature(logits: jax.Array) -> jax.Array:
        mu = jax.nn.sigmoid(logits)
        return weighted_gram(D, weights * mu * (1 - mu)) + P0

    undamped = curvature(V)
    ridge = damping * jnp.diag(undamped)

    def moved(delta: jax.Array) -> jax.Array:
        return V + jnp.matmul(D, delta.astype(D.dtype))

    def energy(delta: jax.Array) -> jax.Array:
        logits = moved(delta)
        data = total(weights * (u * jax.nn.softplus(-logits) + (1 - u) * jax.nn.softplus(logits)))
        return data + offset @ delta + 0.5 * delta @ P0 @ delta + 0.5 * jnp.sum(ridge * delta**2)

    def gradient(delta: jax.Array, logits: jax.Array) -> jax.Array:
        data = weighted_rows(D, weights * (u - jax.nn.sigmoid(logits)))
        return offset + P0 @ delta + ridge * delta - data

    def turn(carry: tuple, g: jax.Array, hessian: jax.Array) -> tuple:
        delta, current, _, count = carry
        step = minimise_in_box(hessian + jnp.diag(ridge), g, -phi - delta, 1 - phi - delta)
        # A step that promises next to nothing is taken whole or not at all: halving it would only meet rounding.
        is_tiny = -g @ step < 1e-2 * decrement
        length, new = _backtrack(energy, delta, step, current, goes_on(carry) & ~is_tiny)
        is_done = (length == 0) | is_tiny
        return delta + length * step, new, is_done, count + 1

    def newton(carry: tuple) -> tuple:
        logits = moved(carry[0])
        return turn(carry, gradient(carry[0], logits), curvature(logits))

    def goes_on(carry: tuple) -> jax.Array:
        return is_on & ~carry[2] & (carry[3] < _MAX_NEWTON)

    # How far from the optimum we are is judged without damping: a short step is no sign of having arrived.
    start = jnp.zeros_like(phi)
    slope = gradient(start, V)
    decrement = -slope @ minimise_in_box(undamped, slope, -phi, 1 - phi)
    # The first turn has its gradient and matrix already; a matrix is the costliest piece of a step.
    carry = turn((start, energy(start), jnp.array(False), jnp.array(0)), slope, undamped)
    carry = jax.lax.while_loop(goes_on, newton, carry)
    return Direction(carry[0], decrement)


def bfgs(problem: ShapeProblem, phi: Phi, memory: Memory) -> tuple[Direction, Memory]:
    """The comparison method: Powell-damped BFGS on minus the log joint, its quadratic model solved in the box."""
    g = problem.energy_gradient(phi)
    s, y = phi - memory.phi, g - memory.gradient
    fresh = jnp.eye(phi.shape[0]) * jnp.maximum(jnp.max(jnp.abs(g)) / 0.05, 1e-8)  # first step: 5 % of the box
    scaled = jnp.eye(phi.shape[0]) * jnp.clip((y @ y) / jnp.maximum(s @ y, 1e-30), 1e-8, 1e12)
    use_pair = memory.has_point & (s @ s > 0)
    base = jnp.where(memory.has_hessian, memory.hessian, jnp.where(use_pair & (s @ y > 0), scaled, fresh))
    hessian = jnp.where(use_pair, _bfgs_update(base, s, y), base)
    delta = minimise_in_box(hessian, g, -phi, 1 - phi)
    memory = Memory(hessian, phi, g, memory.has_hessian | use_pair, jnp.array(True))
    return Direction(delta, -g @ delta), memory


def _bfgs_update(hessian: jax.Array, s: jax.Array, y: jax.Array) -> jax.Array:
    """The damped update: y is drawn towards B s where the curvature along s is too small or negative."""
    bs = hessian @ s
    sbs = jnp.maximum(s @ bs, 1e-300)
    sy = s @ y
    mix = jnp.where(sy >= 0.2 * sbs, 1.0, 0.8 * sbs / jnp.maximum(sbs - sy, 1e-300))
    r = mix * y + (1 - mix) * bs
    return hessian - jnp.outer(bs, bs) / sbs + jnp.outer(r, r) / jnp.maximum(s @ r, 1e-300)


def _backtrack(
    energy: Callable[[jax.Array], jax.Array], delta: jax.Array, step: jax.Array, current: jax.Array, is_on: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The first length of 1, 1/2, 1/4 ... at which the energy falls (zero if none), and the energy there."""

    def halve(carry: tuple) -> tuple:
        length, _ = carry
        return length / 2, energy(delta + length / 2 * step)

    first = (jnp.ones(()), energy(delta + step))

    def goes_on(carry: tuple) -> jax.Array:
        return is_on & ~(carry[1] < current) & (carry[0] > _SHORTEST)

    length, new = jax.lax.while_loop(goes_on, halve, first)
    has_fallen = new < current
    return jnp.where(has_fallen, length, 0.0), jnp.where(has_fallen, new, current)
