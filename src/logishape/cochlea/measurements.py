"""What people want to know of a cochlea, in millimetres, turns, degrees and Hz, each with an interval from draws."""

import csv
import dataclasses
import io
from collections.abc import Mapping
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logishape.cochlea.curves import NUM_COLUMNS, Curves, curves_of, trace
from logishape.cochlea.draws import Draws, as_draws
from logishape.cochlea.evaluation import level_at
from logishape.cochlea.insertion import duct_table, greenwood, in_rows
from logishape.cochlea.sections import Form, log_radius
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.surface import wall_radius
from logishape.core.arrays import AnyArray

Unit = Literal["mm", "mm3", "1", "degree", "Hz"]
LEVEL = 0.9
LENGTH_ANGLES = (180, 360, 540, 720)  # degrees
DEPTHS_MM = (10, 15, 20, 25)
FREQUENCY_ANGLES = (90, 180, 270, 360, 450, 540, 630, 720)
_NUM_HEIGHTS, _NUM_DIRECTIONS = 721, 64
_GRID_MM, _NEAR_MM = 0.25, 0.5  # of the volume: cells, and how far draws may move the surface


@dataclasses.dataclass(frozen=True)
class Quantity:
    """What a measurement is: its unit, the words for it, and whether it belongs to the few that are shown first."""

    unit: Unit
    words: str
    is_main: bool = False


def _quantities() -> dict[str, Quantity]:
    paths = {"organ_of_corti": "organ of Corti", "lateral_wall": "lateral wall"}
    found = {
        "A": Quantity("mm", "A, diameter of the basal turn from 0 to 180 degrees", True),
        "B": Quantity("mm", "B, diameter across it", True),
        "H": Quantity("mm", "H, height along the axis", True),
    }
    for name, words in paths.items():
        found[f"duct_length_{name}"] = Quantity("mm", f"Duct length along the {words}", True)
    for name, words in paths.items():
        for angle in LENGTH_ANGLES:
            found[f"length_{name}_{angle}"] = Quantity("mm", f"Length along the {words} to {angle} degrees")
    found["turns"] = Quantity("1", "Turns", True)
    for depth in DEPTHS_MM:
        words = f"Insertion angle {depth} mm deep along the lateral wall"
        found[f"insertion_angle_{depth}_mm"] = Quantity("degree", words)
    for angle in FREQUENCY_ANGLES:
        found[f"frequency_{angle}"] = Quantity("Hz", f"Greenwood frequency at {angle} degrees")
    for axis, words in zip("xyz", ("right", "anterior", "superior"), strict=True):
        found[f"axis_{axis}"] = Quantity("1", f"Modiolar axis from base to apex, part towards {words}")
    return {**found, "volume": Quantity("mm3", "Volume of the fitted shape", True)}


QUANTITIES = _quantities()


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One quantity: its value at the best fit, the median of the draws, and the interval that holds 90 % of them.

    Without a posterior there is neither median nor interval.
    """

    value: float
    median: float | None
    lower: float | None
    upper: float | None
    unit: Unit


def measure(
    cochlea: Cochlea, theta: np.ndarray, draws: Draws | Float[np.ndarray, "s p"] | None
) -> dict[str, Measurement]:
    """All measurements by name, in the order of `QUANTITIES`: the first of what `measure_all` gives."""
    return measure_all(cochlea, theta, draws)[0]


def measure_all(
    cochlea: Cochlea, theta: np.ndarray, draws: Draws | Float[np.ndarray, "s p"] | None
) -> tuple[dict[str, Measurement], Curves]:
    """All measurements by name, in the order of `QUANTITIES`, and the curves along the duct.

    A and B are the diameters of the basal turn at the lateral wall, from 0 through the axis to 180 degrees and from
    90 to 270; H is the height of the duct along the axis; lengths and angles run from the round window. Where a duct
    ends before an angle or a depth, its end stands for it. The axis is a direction in the world (RAS). The volume is
    that of the fitted shape, as far as the cut to the vestibule does not matter.
    """
    every = as_draws(cochlea, np.asarray(theta)[None])
    if draws is not None:
        every = Draws(*map(np.concatenate, zip(every, as_draws(cochlea, draws), strict=True)))
    rows, traced = _rows(cochlea, every)
    levels = [0.5, (1 - LEVEL) / 2, (1 + LEVEL) / 2]
    found = {}
    for (name, quantity), column in zip(QUANTITIES.items(), rows.T, strict=True):
        ends = (None, None, None) if draws is None else np.quantile(column[1:], levels).tolist()
        found[name] = Measurement(float(column[0]), *ends, unit=quantity.unit)
    totals = rows[:, list(QUANTITIES).index("duct_length_organ_of_corti")]
    return found, curves_of(traced, totals, levels)


def measured_rows(cochlea: Cochlea, draws: Draws | Float[np.ndarray, "s p"]) -> Float[np.ndarray, "s k"]:
    """All quantities for each draw or row of parameters, a column each in the order of `QUANTITIES`."""
    return _rows(cochlea, as_draws(cochlea, draws))[0]


def plain_rows(cochlea: Cochlea, thetas: Float[np.ndarray, "s p"]) -> Float[np.ndarray, "s k"]:
    """The same without the last, the volume, which takes longer than all others."""
    return in_rows(_measure, cochlea, *as_draws(cochlea, thetas))[:, :-NUM_COLUMNS]


def _rows(cochlea: Cochlea, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """All quantities for each draw, and what the curves need."""
    rows = in_rows(_measure, cochlea, *draws)
    return np.column_stack([rows[:, :-NUM_COLUMNS], volumes(cochlea, draws)]), rows[:, -NUM_COLUMNS:]


def table_of(measurements: Mapping[str, Measurement]) -> str:
    """All measurements as a table for a spreadsheet: CSV, a row each, empty where there is no interval."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "value", "median", "lower", "upper", "unit", "what it is"])
    for name, one in measurements.items():
        numbers = ("" if x is None else f"{x:.6g}" for x in (one.value, one.median, one.lower, one.upper))
        writer.writerow([name, *numbers, one.unit, QUANTITIES[name].words])
    return text.getvalue()


def volumes(cochlea: Cochlea, draws: Draws) -> Float[np.ndarray, " s"]:
    """Volume (mm^3) of the shape for each draw: cells of 0.25 mm, those on the surface counted in part.

    The pose is left out: a volume does not depend on it. Only cells near the first shape's surface are looked at
    again for the others.
    """
    own = draws.theta.copy()
    own[:, :6] = own[0, :6]
    lower, upper = cochlea.duct.extent(own[0, 6:])
    axes = [np.arange(a - 0.5, b + 0.5, _GRID_MM) for a, b in zip(lower, upper, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    points = np.asarray(cochlea.to_world(own[0], points))
    first = level_at(cochlea.with_sections(draws.powers[0]), own[0], points)
    is_near = np.abs(first) < _NEAR_MM
    whole = np.count_nonzero(first >= _NEAR_MM)
    near = points[is_near]
    drawn = zip(draws.powers, own, strict=True)
    levels = (level_at(cochlea.with_sections(powers), theta, near) for powers, theta in drawn)
    shares = [np.clip(one / _GRID_MM + 0.5, 0, 1).sum() for one in levels]
    return (whole + np.array(shares)) * _GRID_MM**3


@eqx.filter_jit
def _measure(
    cochlea: Cochlea, thetas: Float[AnyArray, "s p"], powers: Float[AnyArray, "s 5 degree"]
) -> Float[Array, "s k"]:
    return jax.vmap(lambda theta, own: _measure_one(cochlea.with_sections(own), theta))(thetas, powers)


def _measure_one(cochlea: Cochlea, theta: Float[AnyArray, " p"]) -> Float[Array, " k"]:
    """All quantities but the volume, in the order of `QUANTITIES`, and then what the curves need."""
    form = cochlea.form(theta)
    quarter = wall_radius(form, jnp.pi / 2 * jnp.arange(4))
    size = jnp.stack([quarter[0] + quarter[2], quarter[1] + quarter[3], _height(form)])
    corti, wall = duct_table(form, 0.69), duct_table(form, 1.0)
    whole = jnp.stack([corti[1, -1], wall[1, -1]])
    parts = [jnp.interp(jnp.radians(jnp.array(LENGTH_ANGLES, float)), *table) for table in (corti, wall)]
    turns = jnp.atleast_1d(form.end / (2 * jnp.pi))
    inserted = jnp.degrees(jnp.interp(jnp.array(DEPTHS_MM, float), wall[1], wall[0]))
    passed = jnp.interp(jnp.radians(jnp.array(FREQUENCY_ANGLES, float)), *corti)
    traced = trace(cochlea, theta, form, (corti, wall))
    axis = traced[-3:] - traced[-12:-9]  # in the world, from base to apex, of length one
    return jnp.concatenate([size, whole, *parts, turns, inserted, greenwood(1 - passed / corti[1, -1]), axis, traced])


def _height(form: Form) -> Float[Array, ""]:
    """From the lowest to the highest point of all sections, along the axis."""
    section = form.section(jnp.linspace(form.start, form.end, _NUM_HEIGHTS))
    psi = np.linspace(-np.pi, np.pi, _NUM_DIRECTIONS)[:, None]
    log_r, _ = log_radius(section, np.cos(psi), np.sin(psi))
    z = section.height.value + jnp.exp(log_r) * np.sin(psi)
    return jnp.max(z) - jnp.min(z)
