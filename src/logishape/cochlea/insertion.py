"""How far along the duct: depth by angle and back, and the frequency that is heard there; from the round window."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.cochlea.sections import Form
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.surface import Along, path_speed, share_of
from logishape.core.arrays import AnyArray, as_numbers, double_precision
from logishape.core.errors import InputError

NUM_ANGLES = 721  # of the table in which depths are looked up: lengths are good to 1e-5 of themselves
ROWS = 32  # rows of parameters in one call: any number of draws takes the same program
_SLACK = 1e-9


def insertion_depth(cochlea: Cochlea, theta: Any, *, angle_degrees: Any, along: Along = "lateral_wall") -> np.ndarray:
    """Millimetres from the round window to an insertion angle, along one of the paths that `path` knows.

    `theta` is one vector of parameters or a row for each draw; the answer has a row for each, and a column for each
    angle if several were given.
    """
    rows, angles = _rows(cochlea, theta), _wanted(angle_degrees, "the insertion angle", "degrees")
    table = _tables(cochlea, rows, along)
    _check_within(np.degrees(table[:, 0]), angles, "the insertion angle", "degrees")
    return _shaped(_look_up(np.degrees(table[:, 0]), table[:, 1], angles), theta, angle_degrees)


def insertion_angle(cochlea: Cochlea, theta: Any, *, depth_mm: Any, along: Along = "lateral_wall") -> np.ndarray:
    """The insertion angle (degrees) at a depth in millimetres: `insertion_depth` the other way round."""
    rows, depths = _rows(cochlea, theta), _wanted(depth_mm, "the insertion depth", "mm")
    table = _tables(cochlea, rows, along)
    _check_within(table[:, 1], depths, "the insertion depth", "mm")
    return _shaped(_look_up(table[:, 1], np.degrees(table[:, 0]), depths), theta, depth_mm)


def frequency(
    cochlea: Cochlea,
    theta: Any,
    *,
    angle_degrees: Any = None,
    depth_mm: Any = None,
    along: Along = "lateral_wall",
) -> np.ndarray:
    """The frequency (Hz) that is heard at an angle, or at a depth along one of the paths, by Greenwood's formula.

    The relative place is that along the organ of Corti, whichever path the depth was measured on.
    """
    if (angle_degrees is None) == (depth_mm is None):
        raise InputError("expected either angle_degrees or depth_mm but found both or none; give one of them.")
    rows, given = _rows(cochlea, theta), depth_mm if angle_degrees is None else angle_degrees
    corti = _tables(cochlea, rows, "organ_of_corti")
    if angle_degrees is None:
        table, depths = _tables(cochlea, rows, along), _wanted(depth_mm, "the insertion depth", "mm")
        _check_within(table[:, 1], depths, "the insertion depth", "mm")
        angles = _look_up(table[:, 1], table[:, 0], depths)
    else:
        wanted = _wanted(angle_degrees, "the insertion angle", "degrees")
        _check_within(np.degrees(corti[:, 0]), wanted, "the insertion angle", "degrees")
        angles = np.broadcast_to(np.radians(wanted), (len(rows), wanted.size))
    passed = np.stack([np.interp(a, *row) for a, row in zip(angles, corti, strict=True)])
    return _shaped(np.asarray(greenwood(1 - passed / corti[:, 1, -1:])), theta, given)


def greenwood(place: Any) -> Any:
    """165.4 (10^(2.1 x) - 0.88) Hz, with x the relative distance from the apex along the organ of Corti.

    The human values of Greenwood (1990): 20 Hz at the apex, 20 677 Hz at the round window.
    """
    return 165.4 * (10 ** (2.1 * place) - 0.88)


def duct_table(form: Form, share: float) -> Float[jax.Array, "2 n"]:
    """Angles (rad) from 0 to the last one, and how long the path is up to each (mm).

    Between the angles the path's speed is taken for linear, and its length for what a trapezium holds.
    """
    angle = jnp.linspace(0.0, form.end, NUM_ANGLES)
    speed = path_speed(form, angle, share)[2]
    steps = 0.5 * (speed[1:] + speed[:-1]) * (angle[1] - angle[0])
    return jnp.stack([angle, jnp.concatenate([jnp.zeros(1), jnp.cumsum(steps)])])


def in_rows(function: Any, cochlea: Cochlea, *columns: Float[AnyArray, "s ..."]) -> Float[np.ndarray, "s ..."]:
    """What a compiled function of some rows gives for any number of them, in double precision."""
    size = len(columns[0])
    rows = np.minimum(np.arange(size + -size % ROWS), size - 1).reshape(-1, ROWS)
    with double_precision():
        found = [np.asarray(function(cochlea, *(jnp.asarray(one[part]) for one in columns))) for part in rows]
    return np.concatenate(found)[:size]


def _tables(cochlea: Cochlea, rows: np.ndarray, along: Along) -> np.ndarray:
    share = share_of(along)
    return in_rows(lambda shape, thetas: _duct_tables(shape, thetas, jnp.asarray(share)), cochlea, rows)


@eqx.filter_jit
def _duct_tables(cochlea: Cochlea, thetas: Float[AnyArray, "s p"], share: AnyArray) -> Float[jax.Array, "s 2 n"]:
    return jax.vmap(lambda theta: duct_table(cochlea.form(theta), share))(thetas)


def _rows(cochlea: Cochlea, theta: Any) -> np.ndarray:
    """One row for each vector of parameters, all of them in their box."""
    values = as_numbers(theta, "the parameters")
    if values.ndim not in (1, 2) or not values.size:
        raise InputError(
            f"expected one vector of parameters or a row for each draw but found shape {values.shape}; give either."
        )
    return np.stack([cochlea.check(row) for row in np.atleast_2d(values)])


def _wanted(values: object, name: str, unit: str) -> np.ndarray:
    wanted = as_numbers(values, name)
    if wanted.ndim > 1 or not wanted.size or not np.all(np.isfinite(wanted)):
        raise InputError(f"expected {name} as one number or a list, in {unit}, but found {values!r:.60}; check it.")
    return np.atleast_1d(wanted)


def _check_within(reach: np.ndarray, wanted: np.ndarray, name: str, unit: str) -> None:
    """An error where something lies before the round window or beyond the end of any of the ducts."""
    last = float(reach[:, -1].min())
    for value in wanted:
        if not -_SLACK <= value <= last + _SLACK:
            raise InputError(
                f"{name} must lie from 0 to the duct's end, {last:.1f} {unit}, but is {value:g}; check it."
            )


def _look_up(x: np.ndarray, y: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.stack([np.interp(wanted, one, other) for one, other in zip(x, y, strict=True)])


def _shaped(found: np.ndarray, theta: Any, wanted: Any) -> np.ndarray:
    """Without the axes that were not given: that of draws, that of several angles."""
    return found.reshape(np.shape(theta)[:-1] + np.shape(wanted))
