"""What people want to know of a cochlea, in millimetres and turns, each with an interval from posterior draws."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logishape.cochlea.evaluation import level_at
from logishape.cochlea.sections import Form, log_radius
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.surface import path_speed, wall_radius
from logishape.core.arrays import AnyArray, double_precision

UNITS = {
    "A": "mm",
    "B": "mm",
    "H": "mm",
    "duct_length_organ_of_corti": "mm",
    "duct_length_lateral_wall": "mm",
    "turns": "1",
    "volume": "mm3",
}
LEVEL = 0.9
_NUM_ANGLES, _NUM_DIRECTIONS, _GRID_MM = 721, 64, 0.2


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One quantity: its value at the best fit, and the interval that holds it with 90 % posterior probability.

    Without a posterior there is no interval.
    """

    value: float
    lower: float | None
    upper: float | None
    unit: str


def measure(cochlea: Cochlea, theta: np.ndarray, draws: Float[np.ndarray, "s p"] | None) -> dict[str, Measurement]:
    """All measurements by name.

    A and B are the diameters of the basal turn at the lateral wall, from 0 through the axis to 180 degrees and from
    90 to 270; H is the height of the duct along the axis; lengths run from the round window to the apex; the volume
    is that of the fitted shape, as far as the cut to the vestibule does not matter.
    """
    best = np.asarray(theta)[None]
    every = best if draws is None else np.concatenate([best, draws])
    with double_precision():
        found = dict(zip(UNITS, np.asarray(_measure(cochlea, every)).T, strict=False))
    found["volume"] = volumes(cochlea, every)
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    ends = {
        name: (None, None) if draws is None else np.quantile(row[1:], tails).tolist() for name, row in found.items()
    }
    return {name: Measurement(float(row[0]), *ends[name], unit=UNITS[name]) for name, row in found.items()}


def volumes(cochlea: Cochlea, thetas: Float[np.ndarray, "s p"]) -> Float[np.ndarray, " s"]:
    """Volume (mm^3) of the shape for each row of parameters: cells of 0.2 mm, those on the surface counted in part.

    The pose is left out: a volume does not depend on it. Only cells near the first shape's surface are looked at
    again for the others.
    """
    pose, own = thetas[0][:6], thetas.copy()
    own[:, :6] = pose
    lower, upper = cochlea.duct.extent(thetas[0][6:])
    axes = [np.arange(a - 0.5, b + 0.5, _GRID_MM) for a, b in zip(lower, upper, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    points = np.asarray(cochlea.to_world(own[0], points))
    first = level_at(cochlea, own[0], points)
    is_near = np.abs(first) < 0.6
    whole = np.count_nonzero(first >= 0.6)
    shares = [np.clip(level_at(cochlea, theta, points[is_near]) / _GRID_MM + 0.5, 0, 1).sum() for theta in own]
    return (whole + np.array(shares)) * _GRID_MM**3


@eqx.filter_jit
def _measure(cochlea: Cochlea, thetas: Float[AnyArray, "s p"]) -> Float[Array, "s k"]:
    return jax.lax.map(lambda theta: _measure_one(cochlea.form(theta)), jnp.asarray(thetas))


def _measure_one(form: Form) -> Float[Array, " k"]:
    """A, B, H, both lengths and the number of turns."""
    quarter = wall_radius(form, jnp.pi / 2 * jnp.arange(4))
    angle = jnp.linspace(0.0, form.end, _NUM_ANGLES)
    lengths = [jnp.trapezoid(path_speed(form, angle, share)[2], angle) for share in (0.69, 1.0)]
    turns = form.end / (2 * jnp.pi)
    return jnp.stack([quarter[0] + quarter[2], quarter[1] + quarter[3], _height(form), *lengths, turns])


def _height(form: Form) -> Float[Array, ""]:
    """From the lowest to the highest point of all sections, along the axis."""
    section = form.section(jnp.linspace(form.start, form.end, _NUM_ANGLES))
    psi = np.linspace(-np.pi, np.pi, _NUM_DIRECTIONS)[:, None]
    log_r, _ = log_radius(section, np.cos(psi), np.sin(psi))
    z = section.height.value + jnp.exp(log_r) * np.sin(psi)
    return jnp.max(z) - jnp.min(z)
