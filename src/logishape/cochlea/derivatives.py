"""Level and derivatives of one piece, by hand where that saves passes: one evaluation of the section serves all."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from logishape.cochlea.centreline import Curve, height, radius
from logishape.cochlea.level import Meeting, Place, hold, meet, met_level, place_of
from logishape.cochlea.sections import Form, Section, fade_in
from logishape.core.arrays import AnyArray, side_by_side
from logishape.shapes.base import Derivatives


def piece_derivatives(
    form: Form, free: tuple[str, ...], piece: Int[AnyArray, " n"], points: Float[AnyArray, "n 3"]
) -> Derivatives:
    """The level of each point's piece, its derivatives in a, b, alpha, phi and the free parameters, and its gradient.

    The level depends on parameters and angle through the ten numbers of one section, and on where the tube ends:
    their cotangents come from one backward pass, and what follows is a product with derivatives that are known in
    closed form.
    """
    place = place_of(points)
    meeting = meet(form, piece, place.azimuth)
    section, turning = jax.jvp(form.section, (meeting.at,), (jnp.ones_like(meeting.at),))
    section, turning = hold((section, turning), place.x)

    def level_of(section: Section, angle: jax.Array, place: Place, end: jax.Array) -> jax.Array:
        return met_level(dataclasses.replace(form, end=end), meeting._replace(angle=angle), section, place)

    end = jnp.broadcast_to(form.end, place.x.shape)  # one for each point, so that each has its own derivative
    level, pull = jax.vjp(level_of, section, meeting.angle, place, end)
    by_section, by_angle, by_place, by_end = hold(pull(jnp.ones_like(level)), place.x)
    by_turning = sum(jax.tree.leaves(jax.tree.map(jnp.multiply, by_section, turning)))
    is_turning = meeting.is_tube & (meeting.at == meeting.angle)
    gradient = _gradient(place, by_place, by_angle + jnp.where(is_turning, by_turning, 0))
    columns = _parameter_columns(form, meeting, by_section)
    is_last = meeting.is_apex | (meeting.is_tube & (meeting.angle > form.end))
    columns["theta_max"] += by_end + jnp.where(is_last, by_turning, 0)
    jacobian = side_by_side([columns[name] for name in ("a", "b", "alpha", "phi", *free)])
    return Derivatives(level, jacobian, gradient)


def _gradient(place: Place, by_place: Place, by_angle: Float[AnyArray, " n"]) -> Float[jax.Array, "n 3"]:
    """The gradient in x, y, z; the azimuth, which turns the angle, is undefined on the axis and left out there."""
    is_off = place.distance > 0
    inverse = jnp.where(is_off, 1 / jnp.where(is_off, place.distance, 1.0), 0.0)
    cosine, sine, turn = place.x * inverse, place.y * inverse, by_angle * inverse
    along_x = by_place.x + by_place.distance * cosine - turn * sine
    along_y = by_place.y + by_place.distance * sine + turn * cosine
    return side_by_side([along_x, along_y, by_place.height])


def _parameter_columns(form: Form, meeting: Meeting, by_section: Section) -> dict[str, jax.Array]:
    """Derivatives in all parameters, by name; that in theta_max with the section's angle held."""
    at, constants = meeting.at, form.constants

    def lifted(end: jax.Array) -> Curve:
        z, lift = height(constants, form.alpha, form.phi, end, at), fade_in(end, at)
        return Curve(z.value + form.apex_offset * lift.value, z.slope + form.apex_offset * lift.slope)

    return {
        "a": _dot(by_section.radius, _slope(lambda a: radius(constants, a, form.b, at), form.a)),
        "b": _dot(by_section.radius, _slope(lambda b: radius(constants, form.a, b, at), form.b)),
        "alpha": _dot(by_section.height, _slope(lambda v: height(constants, v, form.phi, form.end, at), form.alpha)),
        "phi": _dot(by_section.height, _slope(lambda v: height(constants, form.alpha, v, form.end, at), form.phi)),
        "section_scale": by_section.c0.value,
        "section_c2": by_section.c2.value,
        "section_s2": by_section.s2.value,
        "theta_max": _dot(by_section.height, _slope(lifted, form.end)),
        "apex_offset": _dot(by_section.height, fade_in(form.end, at)),
    }


def _slope(function: Callable[[jax.Array], Any], at: AnyArray) -> Any:
    at = jnp.asarray(at)
    return jax.jvp(function, (at,), (jnp.ones_like(at),))[1]


def _dot(by: Curve, change: Curve) -> jax.Array:
    return by.value * change.value + by.slope * change.slope
