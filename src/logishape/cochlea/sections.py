"""The tube's cross-sections by angle: centre, size and form in the half-plane of that angle."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.cochlea.centreline import Curve, SpiralConstants, height, radius
from logishape.core.arrays import AnyArray, as_double

COLUMNS = ("c0", "c2", "s2", "dr", "dz")


class SectionTable(eqx.Module):
    """c0, c2, s2, dr, dz as polynomials of the angle: smooth, and cheaper than a look-up on every machine.

    A section is log R(psi) = c0 + c2 cos 2 psi + s2 sin 2 psi (mm) about (r + dr, z + dz) in the half-plane of its
    angle: width, height and tilt of an ellipse in a form that stays well defined when it is nearly round.
    Outside [`first`, `last`] the values at the ends hold.
    """

    first: Float[AnyArray, ""] = eqx.field(converter=as_double)
    last: Float[AnyArray, ""] = eqx.field(converter=as_double)
    powers: Float[AnyArray, "5 degree"] = eqx.field(
        converter=as_double
    )  # of the angle scaled to [-1, 1], highest first

    @classmethod
    def from_chebyshev(cls, first: float, last: float, coefficients: Float[AnyArray, "5 degree"]) -> "SectionTable":
        """The table with these Chebyshev coefficients, lowest first, a row for each of `COLUMNS`."""
        rows = [np.polynomial.chebyshev.cheb2poly(row) for row in as_double(coefficients)]
        # Trailing zeros are trimmed by NumPy.
        size = np.shape(coefficients)[1]
        return cls(first, last, np.stack([np.pad(row, (0, size - len(row)))[::-1] for row in rows]))

    @classmethod
    def through(cls, angles: Sequence[float], columns: Mapping[str, Any], degree: int) -> "SectionTable":
        """The smooth table nearest to these values (least squares), given by column name."""
        fits = [
            np.polynomial.Chebyshev.fit(angles, columns[name], degree, [angles[0], angles[-1]]) for name in COLUMNS
        ]
        return cls.from_chebyshev(angles[0], angles[-1], np.stack([one.coef for one in fits]))

    def __call__(self, angle: Float[AnyArray, "..."]) -> Curve:
        """Values and slopes at each angle, a row for each of `COLUMNS`."""
        half = (self.last - self.first) / 2
        x = (jnp.clip(angle, self.first, self.last) - (self.first + half)) / half
        value, slope = _polynomials(jnp.asarray(self.powers, x.dtype), x)
        return Curve(value, jnp.where((angle < self.first) | (angle > self.last), 0, slope / half))


@jax.custom_jvp
def _polynomials(powers: Float[AnyArray, "k degree"], x: Float[AnyArray, "..."]) -> tuple[jax.Array, jax.Array]:
    """Values and slopes of polynomials at each x, a row each."""
    return _horner(powers, x)[:2]


@_polynomials.defjvp
def _(primals: tuple, tangents: tuple) -> tuple:
    # Slope and curvature come from the same pass; differentiating the pass itself would cost several.
    (powers, x), (powers_dot, x_dot) = primals, tangents
    value, slope, curvature = _horner(powers, x)
    direct = _horner(powers_dot, x)
    return (value, slope), (slope * x_dot + direct[0], curvature * x_dot + direct[1])


def _horner(powers: AnyArray, x: AnyArray) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Values, slopes and curvatures, highest power first."""
    powers = powers.reshape(*powers.shape, *[1] * x.ndim)
    value = powers[:, 0] + jnp.zeros_like(x)
    slope, curvature = jnp.zeros_like(value), jnp.zeros_like(value)
    for k in range(1, powers.shape[1]):
        curvature = curvature * x + 2 * slope
        slope = slope * x + value
        value = value * x + powers[:, k]
    return value, slope, curvature


class Section(NamedTuple):
    """One cross-section for each angle: its distance from the axis, its height, its form, and how they change."""

    radius: Curve
    height: Curve
    c0: Curve
    c2: Curve
    s2: Curve


class Form(eqx.Module):
    """A cochlea of given parameters in its own frame: the spiral, its sections, where it starts and ends.

    `section_scale` is added to c0, `section_c2` and `section_s2` to theirs; `apex_offset` (mm) lifts the last turn
    towards its end.
    """

    constants: SpiralConstants
    table: SectionTable
    start: AnyArray
    end: AnyArray
    a: AnyArray
    b: AnyArray
    alpha: AnyArray
    phi: AnyArray
    section_scale: AnyArray
    section_c2: AnyArray
    section_s2: AnyArray
    apex_offset: AnyArray
    depths: Float[AnyArray, " 2"]  # half-lengths of the end ellipsoids across their planes, in sizes

    def planes(self) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
        """Cosine and sine of the first and the last angle."""
        first, last = jnp.asarray(self.start), jnp.asarray(self.end)
        return (jnp.cos(first), jnp.sin(first)), (jnp.cos(last), jnp.sin(last))

    def section(self, angle: Float[AnyArray, "..."]) -> Section:
        """The section at each angle."""
        table = self.table(angle)
        c0, c2, s2, dr, dz = (Curve(value, slope) for value, slope in zip(*table, strict=True))
        lift = fade_in(self.end, angle)
        r = radius(self.constants, self.a, self.b, angle)
        z = height(self.constants, self.alpha, self.phi, self.end, angle)
        return Section(
            Curve(r.value + dr.value, r.slope + dr.slope),
            Curve(
                z.value + dz.value + self.apex_offset * lift.value, z.slope + dz.slope + self.apex_offset * lift.slope
            ),
            Curve(c0.value + self.section_scale, c0.slope),
            Curve(c2.value + self.section_c2, c2.slope),
            Curve(s2.value + self.section_s2, s2.slope),
        )


def fade_in(end: AnyArray, angle: AnyArray) -> Curve:
    """From 0 one turn before the end to 1 at the end, with zero slope at both."""
    x = jnp.clip((angle - end) / (2 * jnp.pi) + 1, 0, 1)
    return Curve(x * x * (3 - 2 * x), 6 * x * (1 - x) / (2 * jnp.pi))


def log_radius(section: Section, cosine: AnyArray, sine: AnyArray) -> tuple[jax.Array, jax.Array]:
    """log R at the direction (cosine, sine) of the section plane, and its slope in psi."""
    cosine2, sine2 = cosine * cosine - sine * sine, 2 * cosine * sine
    value = section.c0.value + section.c2.value * cosine2 + section.s2.value * sine2
    return value, 2 * (section.s2.value * cosine2 - section.c2.value * sine2)
