"""What was learnt from specimens: spiral constants, the table of sections, and the prior of the parameters."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from logishape.cochlea.centreline import SpiralConstants
from logishape.cochlea.network import Network
from logishape.cochlea.sections import COLUMNS, SectionTable
from logishape.core.arrays import AnyArray, as_double
from logishape.core.errors import InputError
from logishape.io.json_files import plain, read_json

FORMAT, VERSION = "logishape cochlea calibration", 1
_LARGEST = 1e6  # of any number in a file: millimetres, radians and their squares are far below
PARAMETERS = (
    *("tx", "ty", "tz", "rx", "ry", "rz", "a", "b", "alpha", "phi"),
    *("section_scale", "section_c2", "section_s2", "theta_max", "apex_offset"),
)
DEFAULT_FILE = Path(__file__).parent / "data" / "calibration.json"


class Calibration(eqx.Module):
    """All that a `Cochlea` takes from data: constants, sections, ends, and the prior of all fifteen parameters.

    `start` and `end` are the first and last angle (rad), `depths` the half-lengths of the end ellipsoids in sizes of
    their sections, `centre` the point (mm) that rotations turn about. Parameters without a Gaussian have infinite
    variance. `network` is the learned distance of these sections, if one was trained (`load_network`).
    """

    constants: SpiralConstants
    table: SectionTable
    start: AnyArray = eqx.field(converter=as_double)
    end: AnyArray = eqx.field(converter=as_double)
    depths: Float[AnyArray, " 2"] = eqx.field(converter=as_double)
    centre: Float[AnyArray, " 3"] = eqx.field(converter=as_double)
    mean: Float[AnyArray, " 15"] = eqx.field(converter=as_double)
    covariance: Float[AnyArray, "15 15"] = eqx.field(converter=as_double)
    lower: Float[AnyArray, " 15"] = eqx.field(converter=as_double)
    upper: Float[AnyArray, " 15"] = eqx.field(converter=as_double)
    network: Network | None = None


def paper_calibration() -> Calibration:
    """The paper's constants with uncalibrated ellipses (w = 1.10 e^(-.044 th), h = 1.03 e^(-.044 th) mm), box alone.

    The paper fixes its sections from micro-CT and prints no numbers; these are of the right size. log sqrt(w h) and
    log sqrt(w / h) are c0 and c2; an ellipse that is nearly round differs from that by 0.0012 mm at most.
    """
    end = 5 * np.pi
    angles = np.linspace(0, 1.2 * end, 3)
    columns = {name: np.zeros(3) for name in COLUMNS}
    columns["c0"] = 0.5 * np.log(1.10 * 1.03) - 0.044 * angles
    columns["c2"] = np.full(3, 0.5 * np.log(1.10 / 1.03))
    lower = [-2, -2, -2, -0.6, -0.6, -0.6, 2.8, 0.09, 0.05, -1.5, -0.35, -0.4, -0.4, 4.6 * np.pi, -1]
    upper = [2, 2, 2, 0.6, 0.6, 0.6, 5.2, 0.22, 1.3, 1.5, 0.35, 0.4, 0.4, 5.5 * np.pi, 1]
    mean = [0, 0, 0, 0, 0, 0, 4, 0.15, 0.6, 0.2, 0, 0, 0, end, 0]
    return Calibration(
        SpiralConstants(),
        SectionTable.through(list(angles), columns, 1),
        start=0,
        end=end,
        depths=[0.3, 1],
        centre=[0.6, 0.2, 0.8],
        mean=mean,
        covariance=np.diag(np.full(15, np.inf)),
        lower=lower,
        upper=upper,
    )


def load_calibration(file: str | Path | None = None, fold: str | None = None) -> Calibration:
    """The calibration in a file (the one that comes with logishape if none is given).

    `fold` names a part of the specimens that was held out (`load_folds`); scores on them are to be made with it.
    """
    path = DEFAULT_FILE if file is None else Path(file)
    record = _read(path)
    key = "all" if fold is None else str(fold)
    tables = _get(record, "tables", dict, path)
    if key not in tables:
        known = ", ".join(name for name in tables if name != "all")
        raise InputError(
            f"{path.name} has no fold {fold!r} but {known or 'none'}; choose one of them or leave it out."
        )
    return _calibration(_get(tables, key, dict, path), path)


def load_folds(file: str | Path | None = None) -> dict[str, tuple[str, ...]]:
    """The specimens that each fold of a calibration file was made without, by the fold's name."""
    path = DEFAULT_FILE if file is None else Path(file)
    folds = _get(_read(path), "folds", dict, path)
    return {name: tuple(str(one) for one in _get(folds, name, list, path)) for name in folds}


def _read(path: Path) -> dict:
    record = read_json(path, "a calibration")
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(f"{path.name} is no calibration of a cochlea; make one with benchmarks/calibrate.py.")
    if record.get("version") != VERSION:
        raise InputError(
            f"{path.name} has version {plain(record.get('version'), 20)} of the format but this logishape reads "
            f"{VERSION}; make it anew with benchmarks/calibrate.py."
        )
    return record


def _calibration(table: Mapping[str, Any], path: Path) -> Calibration:
    spiral, prior = _get(table, "spiral", dict, path), _get(table, "prior", dict, path)
    names = ("start_radius", "joint", "beta", "rise")
    constants = SpiralConstants(*(float(_numbers(spiral, name, (), path)) for name in names))
    rows = _get(_get(table, "sections", dict, path), "chebyshev", dict, path)
    coefficients = [_numbers(rows, name, (-1,), path) for name in COLUMNS]
    first, last = _numbers(_get(table, "sections", dict, path), "angle_range", (2,), path)
    if len({len(row) for row in coefficients}) != 1 or not first < last:
        raise InputError(f"the sections in {path.name} differ in degree or have no range; make the file anew.")
    if tuple(_get(prior, "names", list, path)) != PARAMETERS:
        raise InputError(f"{path.name} must name the parameters {', '.join(PARAMETERS)}; make it anew.")
    p = len(PARAMETERS)
    found = Calibration(
        constants,
        SectionTable.from_chebyshev(float(first), float(last), np.stack(coefficients)),
        start=_numbers(table, "theta_start", (), path),
        end=_numbers(table, "theta_max", (), path),
        depths=_numbers(table, "cap_depths", (2,), path),
        centre=_numbers(table, "centre", (3,), path),
        mean=_numbers(prior, "mean", (p,), path),
        covariance=_numbers(prior, "covariance", (p, p), path),
        lower=_numbers(prior, "lower", (p,), path),
        upper=_numbers(prior, "upper", (p,), path),
    )
    _check(found, path)
    return found


def _check(calibration: Calibration, path: Path) -> None:
    """A file may be well formed and still describe no cochlea."""
    last = PARAMETERS.index("theta_max")
    is_sound = (
        calibration.constants.joint > 0
        and calibration.constants.start_radius > 0
        and calibration.start < calibration.lower[last]
        and calibration.upper[last] < calibration.start + 6 * np.pi
        and np.isclose(calibration.mean[last], calibration.end, atol=1e-3)
        and calibration.start < calibration.end < calibration.start + 6 * np.pi
        and np.all(calibration.depths > 0)
        and np.all(calibration.lower < calibration.upper)
        and np.all((calibration.lower <= calibration.mean) & (calibration.mean <= calibration.upper))
        and np.allclose(calibration.covariance, calibration.covariance.T)
        and np.all(np.linalg.eigvalsh(calibration.covariance) > 0)
    )
    if not is_sound:
        raise InputError(
            f"the angles, cap depths or prior in {path.name} contradict each other (angles must rise over less than "
            "three turns, the mean lie in the box, the covariance be positive definite); make the file anew."
        )


def _get(record: Mapping[str, Any], name: str, kind: type, path: Path) -> Any:
    if not isinstance(record.get(name), kind):
        raise InputError(f"{path.name} lacks {name!r}; it is damaged or not a calibration: make it anew.")
    return record[name]


def _numbers(record: Mapping[str, Any], name: str, shape: tuple[int, ...], path: Path) -> np.ndarray:
    """Numbers of this shape that a cochlea can have; -1 stands for any length."""
    try:
        values = np.array(record.get(name), dtype=float)
    except (TypeError, ValueError, OverflowError):
        values = np.array(np.nan)
    fits = len(shape) == values.ndim and all(a in (-1, b) for a, b in zip(shape, values.shape, strict=True))
    if not fits or values.size == 0 or not np.all(np.abs(values) < _LARGEST):
        size = " x ".join("n" if a < 0 else str(a) for a in shape) or "one"
        raise InputError(
            f"{name!r} in {path.name} must be {size} finite numbers below a million; it is damaged: make it anew."
        )
    return values
