"""The spiral that a cochlea winds along: radius and height of its centreline by angle, corrected from the paper."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray, as_double


class SpiralConstants(eqx.Module):
    """What all cochleae share: start radius p0 (mm), the joint theta0 (rad), beta (1/rad) and q1 (mm/rad)."""

    start_radius: Float[AnyArray, ""] = eqx.field(default=5.0, converter=as_double)
    joint: Float[AnyArray, ""] = eqx.field(default=5 * np.pi / 6, converter=as_double)
    beta: Float[AnyArray, ""] = eqx.field(default=0.2, converter=as_double)
    rise: Float[AnyArray, ""] = eqx.field(default=0.225, converter=as_double)


class Curve(NamedTuple):
    """A function of the angle and its slope."""

    value: Float[AnyArray, "..."]
    slope: Float[AnyArray, "..."]


def radius(constants: SpiralConstants, a: AnyArray, b: AnyArray, angle: Float[AnyArray, "..."]) -> Curve:
    """r (mm) and dr/dtheta: p2 th^2 + p1 th + p0 below the joint, a e^(-b th) from there on.

    Continuously differentiable with p1 = (-C1 th0 + 2 C2 - 2 p0)/th0; the paper prints + 2 p0, a jump of 4 p0.
    """
    p0, joint = constants.start_radius, constants.joint
    c2 = a * jnp.exp(-b * joint)
    c1 = -b * c2
    p2 = (c1 * joint - c2 + p0) / joint**2
    p1 = (-c1 * joint + 2 * c2 - 2 * p0) / joint
    decay = a * jnp.exp(-b * angle)
    is_early = angle < joint
    value = jnp.where(is_early, (p2 * angle + p1) * angle + p0, decay)
    return Curve(value, jnp.where(is_early, 2 * p2 * angle + p1, -b * decay))


def height(
    constants: SpiralConstants, alpha: AnyArray, phi: AnyArray, end: AnyArray, angle: Float[AnyArray, "..."]
) -> Curve:
    """z (mm) and dz/dtheta: alpha e^(-beta th) cos(th + phi) + q1 th, flattened by a parabola in the last half turn.

    The parabola begins at end - pi with the curve's value and slope, and its slope is zero at `end` (theta_max).
    """
    joint = end - jnp.pi
    value, slope = _wave(constants, alpha, phi, angle)
    at_joint = _wave(constants, alpha, phi, joint)
    a2 = -at_joint.slope / (2 * jnp.pi)
    past, left = angle - joint, end - angle
    is_late = angle >= joint
    # a2 th^2 + a1 th + a0 with a1 = -2 a2 theta_max, written from the joint, where it loses no digits.
    flat = at_joint.value + a2 * past * (past - 2 * jnp.pi)
    return Curve(jnp.where(is_late, flat, value), jnp.where(is_late, -2 * a2 * left, slope))


def _wave(constants: SpiralConstants, alpha: AnyArray, phi: AnyArray, angle: AnyArray) -> Curve:
    beta = constants.beta
    swing = alpha * jnp.exp(-beta * angle)
    cosine, sine = jnp.cos(angle + phi), jnp.sin(angle + phi)
    return Curve(
        swing * cosine + constants.rise * angle, -swing * (beta * cosine + sine) + jnp.asarray(constants.rise)
    )
