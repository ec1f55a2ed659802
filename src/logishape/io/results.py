"""A folder that `logishape cochlea` wrote, read again: the record and the maps it stands beside."""

import dataclasses
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io.json_files import plain, read_json
from logishape.io.volumes import read_mask, read_volume

RECORD, FORMAT, VERSION = "result.json", "logishape result", 4
_FIELDS = {"trusted": bool, "flags": list, "notes": list, "status": str, "parameters": dict, "measurements": dict}


@dataclasses.dataclass(frozen=True, eq=False)
class StoredResult:
    """What a folder of results says: the masks and probabilities on the CT's grid, and the record as it was written.

    parameters: best values by name. measurements: value, lower and upper end by name; the ends may be None.
    """

    side: Literal["left", "right"]
    is_trusted: bool
    parameters: dict[str, float]
    measurements: dict[str, tuple[float, float | None, float | None]]
    segmentation: Volume
    shape: Volume
    probability: Volume
    marginal: Volume
    record: dict[str, Any]


def is_result(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a record of a result."""
    return os.path.isfile(Path(folder) / RECORD)


def read_result(folder: str | os.PathLike[str]) -> StoredResult:
    """The result in a folder such as OUT/left, checked: all parts are there and lie on the same grid."""
    folder = Path(folder)
    record = read_record(folder)
    numbers = {name: _number(entry, "value", name) for name, entry in record["parameters"].items()}
    measured = {
        name: (_number(entry, "value", name), _end(entry, "lower", name), _end(entry, "upper", name))
        for name, entry in record["measurements"].items()
    }
    masks = {name: read_mask(folder / f"{name}.nii.gz") for name in ("segmentation", "shape")}
    maps = {name: _read_probability(folder / f"{name}.nii.gz") for name in ("probability", "marginal")}
    first = masks["segmentation"]
    for name, volume in (masks | maps).items():
        if volume.shape != first.shape or not np.allclose(volume.affine, first.affine):
            raise InputError(
                f"the maps in {folder} should share one grid but {name} has another than segmentation; write the "
                "result again."
            )
    return StoredResult(record["side"], record["trusted"], numbers, measured, **masks, **maps, record=record)


def read_record(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of `result.json` in a folder, with its main parts checked."""
    record = read_json(Path(folder) / RECORD, "the record of a result")
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(f"{Path(folder) / RECORD} is no record of a result; give a folder that logishape wrote.")
    if record.get("version") != VERSION:
        raise InputError(
            f"the record in {folder} has version {plain(record.get('version'), 20)} but this logishape reads "
            f"{VERSION}; segment the scan again."
        )
    if record.get("side") not in ("left", "right"):
        raise _damaged("side")
    for name, kind in _FIELDS.items():
        if not isinstance(record.get(name), kind):
            raise _damaged(name)
    return record


def _read_probability(path: Path) -> Volume:
    volume = read_volume(path)
    if volume.data.min() < 0 or volume.data.max() > 1:
        raise InputError(f"{path.name} should hold probabilities but goes beyond 0 and 1; write the result again.")
    return volume


def _end(entry: Any, key: str, name: str) -> float | None:
    return None if isinstance(entry, dict) and entry.get(key) is None else _number(entry, key, name)


def _number(entry: Any, key: str, name: str) -> float:
    """A finite number of an entry."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise _damaged(name)
    return float(value)


def _damaged(name: str) -> InputError:
    return InputError(
        f"{RECORD} should give '{plain(name, 40)}' as logishape writes it but does not, so it is damaged; segment "
        "the scan again."
    )
