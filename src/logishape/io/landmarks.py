"""Named points from files: our JSON, and the markups of 3D Slicer (.mrk.json, .fcsv), in RAS millimetres."""

import csv
import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from logishape.core.errors import InputError
from logishape.io.json_files import plain, read_json, read_text

_SIGNS = {"RAS": (1, 1, 1), "0": (1, 1, 1), "LPS": (-1, -1, 1), "1": (-1, -1, 1)}  # Slicer once wrote numbers
_FCSV_COLUMNS = "id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID"
_OLDEST_LIST, _OLDEST_COLUMNS = "Fiducial List file", "label,x,y,z,sel,vis"  # of Slicer 3, which knew RAS alone
_MILLIMETRES = ("mm", "millimeter", "millimeters", "millimetre", "millimetres")


@dataclasses.dataclass(frozen=True, eq=False)
class NamedPoints:
    """Points by name (RAS mm), and the side of the body they were placed on, where the file says it."""

    points: dict[str, np.ndarray]
    side: Literal["left", "right"] | None = None


def read_landmarks(path: str | os.PathLike[str]) -> NamedPoints:
    """The named points of a .json file with `landmarks_ras_mm`, a Slicer .mrk.json, or a Slicer .fcsv."""
    path = Path(path)
    if not os.path.isfile(path):  # false also for a name that no file can have
        raise InputError(f"there is no landmark file {path}; check the path.")
    if not path.name.lower().endswith((".json", ".fcsv")):
        raise InputError(f"{path.name} is no landmark file that is read; give .json, .mrk.json or .fcsv.")
    if path.name.lower().endswith(".fcsv"):
        return NamedPoints(_collect(_parse_fcsv(read_text(path, "a list of landmarks"), path.name), path.name))
    return _parse_json(read_json(path, "a list of landmarks"), path.name)


def _parse_json(content: Any, name: str) -> NamedPoints:
    if isinstance(content, dict) and "markups" in content:
        return NamedPoints(_collect(_parse_markups(content["markups"], name), name))
    if isinstance(content, dict) and isinstance(content.get("landmarks_ras_mm"), dict):
        points = _collect(content["landmarks_ras_mm"].items(), name)
        return NamedPoints(points, _side(content.get("side"), name))
    raise InputError(
        f"{name} should name its points under landmarks_ras_mm (RAS, millimetres) or be a Slicer markup, but is "
        "neither; rename the key once space and unit are sure."
    )


def _parse_markups(markups: Any, name: str) -> list[tuple[str, Any]]:
    """Labels and RAS positions of the control points that were placed."""
    found: list[tuple[str, Any]] = []
    try:
        for markup in markups:
            signs = _signs(markup.get("coordinateSystem"), name)
            _check_units(markup.get("coordinateUnits", "mm"), name)
            for point in markup.get("controlPoints", []):
                if point.get("positionStatus", "defined") == "defined":
                    position = _numbers(point.get("position"))
                    found.append((str(point.get("label", "")), position and [s * x for s, x in zip(signs, position)]))  # noqa: B905
    except (AttributeError, TypeError) as error:
        raise InputError(f"{name} should be a Slicer markup but its structure is another; save it again.") from error
    return found


def _check_units(units: Any, name: str) -> None:
    """An error unless the unit is mm; newer files may give it as a code, its scheme and its meaning."""
    unit = units[0] if isinstance(units, list) and units else units
    if str(unit).lower() not in _MILLIMETRES:
        raise InputError(f"{name} should measure in mm but its unit is '{plain(unit, 20)}'; convert it.")


def _parse_fcsv(text: str, name: str) -> list[tuple[str, Any]]:
    """Labels and RAS positions of a Slicer fiducial list."""
    system, columns, rows = None, _FCSV_COLUMNS.split(","), []
    for line in text.splitlines():
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            if key.strip().startswith(_OLDEST_LIST):
                system, columns = "RAS", _OLDEST_COLUMNS.split(",")
            elif key.strip().lower() == "coordinatesystem":
                system = value.strip()
            elif key.strip().lower() == "columns":
                columns = [column.strip() for column in value.split(",")]
        elif line.strip():
            rows.append(line)
    signs = _signs(system, name)
    if not {"x", "y", "z", "label"} <= set(columns):
        raise InputError(f"{name} should have the columns label, x, y and z but has {plain(', '.join(columns), 80)}.")
    found: list[tuple[str, Any]] = []
    for row in _rows(rows, name):
        entry = dict(zip(columns, row, strict=False))
        position = _numbers([entry.get(axis) for axis in "xyz"], is_text=True)
        found.append((entry.get("label", ""), position and [s * x for s, x in zip(signs, position, strict=True)]))
    return found


def _rows(lines: list[str], name: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines))
    except csv.Error as error:
        raise InputError(f"{name} should be a table of points but cannot be parsed; export it again.") from error


def _signs(system: Any, name: str) -> tuple[int, int, int]:
    if str(system).upper() not in _SIGNS:
        found = "does not say" if system is None else f"says '{plain(system, 20)}'"
        raise InputError(
            f"{name} should say that its coordinate system is LPS or RAS but {found}; save it again from Slicer."
        )
    return _SIGNS[str(system).upper()]


def _numbers(position: Any, is_text: bool = False) -> list[float] | None:
    """Three numbers, or None for anything else."""
    kinds = str if is_text else (int, float)
    if not isinstance(position, list) or len(position) != 3:
        return None
    if any(isinstance(x, bool) or not isinstance(x, kinds) for x in position):
        return None
    try:
        return [float(x) for x in position]
    except (ValueError, OverflowError):
        return None


def _collect(pairs: Iterable[tuple[str, Any]], name: str) -> dict[str, np.ndarray]:
    """Points by name, checked: each has a name of its own and three finite numbers."""
    points: dict[str, np.ndarray] = {}
    for given, position in pairs:
        label = given.strip()
        numbers = _numbers(position)
        if not label:
            raise InputError(f"{name} should give every point a label but one has none; name it.")
        if label in points:
            raise InputError(
                f"{name} should have each label once but '{plain(label, 40)}' is there twice; rename one."
            )
        if numbers is None or not np.all(np.isfinite(numbers)):
            raise InputError(
                f"{name} should give '{plain(label, 40)}' three finite numbers (mm) but does not; place it again."
            )
        points[label] = np.array(numbers)
    if not points:
        raise InputError(f"{name} should hold at least one point but has none; place the landmarks and save again.")
    return points


def _side(side: Any, name: str) -> Literal["left", "right"] | None:
    if side is None:
        return None
    match str(side).strip().lower():
        case "left":
            return "left"
        case "right":
            return "right"
    raise InputError(f"{name} should give the side as left or right but gives '{plain(side, 20)}'; correct it.")
