"""The page's tables: each number with its interval, beside the population it belongs to."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from logishape.cochlea.measurements import QUANTITIES
from logishape.report.charts import strip
from logishape.report.drawing import signed
from logishape.report.facts import Record

_UNITS = {"mm": "mm", "mm3": "mm³", "1": "", "degree": "°", "Hz": "Hz", "rad": "rad"}
_PLACES = {"mm": 2, "mm3": 1, "1": 3, "degree": 1, "Hz": 0, "rad": 3}
_PARAMETERS = {
    "tx": ("Shift along x", "mm"),
    "ty": ("Shift along y", "mm"),
    "tz": ("Shift along z, the axis", "mm"),
    "rx": ("Rotation about x", "rad"),
    "ry": ("Rotation about y", "rad"),
    "rz": ("Rotation about z", "rad"),
    "a": ("Radius of the spiral", "mm"),
    "b": ("Rate at which it narrows", "1"),
    "alpha": ("Height of the spiral", "mm"),
    "phi": ("Phase of its height", "rad"),
    "section_scale": ("Log size of the sections", "1"),
    "theta_max": ("Last angle of the duct", "rad"),
    "apex_offset": ("Offset of the apex along the axis", "mm"),
}


class Row(NamedTuple):
    """One line of a table, as words and a small drawing."""

    words: str
    median: str
    interval: str
    population: str
    strip: Markup


def measurement_rows(record: Record, is_main: bool) -> list[Row]:
    """The measurements shown first, the segmented volume at their head, or all others."""
    measured = record["measurements"]
    rows = [
        _row(record, name, quantity.words, quantity.unit, measured[name])
        for name, quantity in QUANTITIES.items()
        if quantity.is_main == is_main and name in measured
    ]
    if not is_main:
        return rows
    volume = _words(record["segmented_volume_mm3"], "mm3")
    return [Row("Segmented volume", volume, "", "", Markup()), *rows]


def parameter_rows(record: Record) -> list[Row]:
    """The parameters of the shape in their order."""
    rows = []
    for name, entry in record["parameters"].items():
        words, unit = _PARAMETERS.get(name, ("", "1"))
        rows.append(_row(record, name, f"{name}: {words}" if words else name, unit, entry))
    return rows


def _row(record: Record, name: str, words: str, unit: str, entry: Mapping[str, Any]) -> Row:
    median = entry["value"] if entry["median"] is None else entry["median"]
    ends = None if entry["lower"] is None else (entry["lower"], entry["upper"])
    interval = "" if ends is None else f"{_number(ends[0], unit)} to {_number(ends[1], unit)}"
    usual = (record["population"] or {}).get(name)
    if usual is None:
        return Row(words, _words(median, unit), interval, "", Markup())
    population = f"{_number(usual['mean'], unit)} ± {_number(usual['sd'], unit)}"
    drawing = strip(median, ends, usual["mean"], usual["sd"])
    return Row(words, _words(median, unit), interval, population, drawing)


def _number(value: float, unit: str) -> str:
    return signed(f"{value:.{_PLACES[unit]}f}")


def _words(value: float, unit: str) -> str:
    space = "" if unit == "degree" else "\u00a0"
    return f"{_number(value, unit)}{space}{_UNITS[unit]}".rstrip()
