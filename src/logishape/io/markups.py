"""Points and curves as 3D Slicer's markups (.mrk.json), in LPS millimetres as Slicer itself writes them."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from logishape.core.errors import InputError
from logishape.io.atomic import atomic_file

# Slicer opens no file that does not name its schema by this address; nothing is looked up there.
_SCHEMA = (
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/Schema/"
    "markups-schema-v1.0.3.json#"
)
_TO_LPS = np.array([-1.0, -1.0, 1.0])


class Point(NamedTuple):
    """A point in RAS mm, its label, and words that say what it is."""

    label: str
    position: Any
    description: str = ""


def write_markups(
    path: str | os.PathLike[str], name: str, points: Sequence[Point], kind: Literal["Fiducial", "Curve"] = "Fiducial"
) -> None:
    """A .mrk.json file of points, or of a curve through them, there whole or not at all."""
    path = Path(path)
    if not path.name.lower().endswith(".mrk.json"):
        raise InputError(f"{path.name} should end in .mrk.json; choose such a name.")
    positions = np.array([point.position for point in points], dtype=np.float64)
    if positions.ndim != 2 or positions.shape[1] != 3 or not np.all(np.isfinite(positions)):
        raise InputError("markups need one point or more, each of three finite numbers in RAS mm; check them.")
    markup: dict[str, Any] = {
        "type": kind,
        "name": name,
        "coordinateSystem": "LPS",
        "coordinateUnits": "mm",
        "locked": True,
        "controlPoints": [
            {
                "id": str(number),
                "label": point.label,
                "description": point.description,
                "position": (_TO_LPS * position).tolist(),
                "positionStatus": "defined",
            }
            for number, (point, position) in enumerate(zip(points, positions, strict=True), start=1)
        ],
        # Sizes in per cent of the window would hide a cochlea: a tenth of a millimetre does not.
        "display": {
            "visibility": True,
            "pointLabelsVisibility": kind == "Fiducial",
            "propertiesLabelVisibility": kind == "Curve",
            "glyphSize": 0.3 if kind == "Fiducial" else 0.1,
            "useGlyphScale": False,
        },
    }
    text = json.dumps({"@schema": _SCHEMA, "markups": [markup]}, indent=1, allow_nan=False)
    with atomic_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
