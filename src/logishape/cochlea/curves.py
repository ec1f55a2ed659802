"""What changes along the duct: frequency and length by angle with intervals, and the spiral's axis and centreline."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.cochlea.insertion import greenwood
from logishape.cochlea.sections import Form
from logishape.cochlea.shape import Cochlea
from logishape.core.arrays import AnyArray

ANGLES = np.arange(0, 991, 15)  # degrees, as far as any cochlea goes
NUM_CENTRES = 241
NAMES = ("frequency_hz", "length_organ_of_corti_mm", "length_lateral_wall_mm")
NUM_COLUMNS = 2 * len(ANGLES) + 4 * NUM_CENTRES + 12


class Band(NamedTuple):
    """A curve at the best fit, the median of the draws, and the band that holds 90 % of them at each angle."""

    value: Float[np.ndarray, " n"]
    median: Float[np.ndarray, " n"] | None
    lower: Float[np.ndarray, " n"] | None
    upper: Float[np.ndarray, " n"] | None


@dataclasses.dataclass(frozen=True, eq=False)
class Curves:
    """Curves by angle from the round window to the end of the best duct; the spiral's frame and its centreline.

    axes, origin: of the spiral in the world, rows x, y and z; z is the modiolar axis from base to apex, angles begin
    at x. A left ear's axes mirror. centre_angle: degrees, from the duct's first angle on. centreline: world mm.
    section_size: mm from the centres to the wall, about.
    """

    angle: Float[np.ndarray, " n"]
    bands: dict[str, Band]
    axes: Float[np.ndarray, "3 3"]
    origin: Float[np.ndarray, " 3"]
    centre_angle: Float[np.ndarray, " c"]
    centreline: Float[np.ndarray, "c 3"]
    section_size: Float[np.ndarray, " c"]

    def to_model(self, points: Float[AnyArray, "n 3"]) -> Float[np.ndarray, "n 3"]:
        """World points (mm) in the spiral's frame."""
        return (np.asarray(points, float) - self.origin) @ self.axes.T

    def record(self) -> dict[str, Any]:
        """The curves by angle as plain numbers."""

        def plain(values: np.ndarray | None) -> list[float] | None:
            return None if values is None else np.round(values, 4).tolist()

        bands = {name: {key: plain(one) for key, one in band._asdict().items()} for name, band in self.bands.items()}
        return {"angle_degrees": plain(self.angle), **bands}


def trace(
    cochlea: Cochlea, theta: Float[AnyArray, " p"], form: Form, tables: tuple[jax.Array, jax.Array]
) -> Float[jax.Array, " k"]:
    """All that `curves_of` needs of one set of parameters, in a row.

    `tables`: angle and length along the organ of Corti, and along the lateral wall.
    """
    lengths = [jnp.interp(jnp.radians(jnp.asarray(ANGLES, float)), *table) for table in tables]
    angle = jnp.linspace(form.start, form.end, NUM_CENTRES)
    section = form.section(angle)
    ends = cochlea.to_world(theta, jnp.concatenate([jnp.zeros((1, 3)), jnp.eye(3)]))
    centres = (angle, section.radius.value, section.height.value, jnp.exp(section.c0.value))
    return jnp.concatenate([*lengths, *centres, ends.ravel()])


def curves_of(rows: Float[np.ndarray, "s k"], totals: Float[np.ndarray, " s"], levels: list[float]) -> Curves:
    """The curves from rows of `trace`, the best first; `totals` are the lengths of the organ of Corti.

    `levels`: of the median, the lower and the upper end. Where a duct ends before an angle its end stands for it.
    """
    n, best = len(ANGLES), rows[0]
    corti, wall = rows[:, :n], rows[:, n : 2 * n]
    angle, radius, height, size = best[2 * n : -12].reshape(4, NUM_CENTRES)
    ends = best[-12:].reshape(4, 3)
    axes = ends[1:] - ends[0]
    is_passed = np.radians(ANGLES) <= angle[-1]
    made = (np.asarray(greenwood(1 - corti / totals[:, None])), corti, wall)
    bands = {name: _band(values[:, is_passed], levels) for name, values in zip(NAMES, made, strict=True)}
    centres = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    return Curves(
        angle=ANGLES[is_passed].astype(float),
        bands=bands,
        axes=axes,
        origin=ends[0],
        centre_angle=np.degrees(angle),
        centreline=centres @ axes + ends[0],
        section_size=size,
    )


def _band(values: np.ndarray, levels: list[float]) -> Band:
    if len(values) == 1:
        return Band(values[0], None, None, None)
    return Band(values[0], *np.quantile(values[1:], levels, axis=0))
