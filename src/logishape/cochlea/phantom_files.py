"""Phantoms as files: the CT, and for each ear its truth, landmarks and parameters."""

import dataclasses
import json
from pathlib import Path

import numpy as np

from logishape.cochlea.phantom import Phantom, PhantomEar
from logishape.core.volume import Volume
from logishape.io import atomic_folder, write_volume


def write_phantom(folder: Path, phantom: Phantom, overwrite: bool = False) -> None:
    """`ct.nii.gz`, `phantom.json`, and `left`, `right` with truth, labyrinth, landmarks and parameters."""
    with atomic_folder(folder, overwrite) as temporary:
        write_volume(temporary / "ct.nii.gz", _as_stored(phantom))
        _write_json(temporary / "phantom.json", {"seed": phantom.seed, "options": _plain(phantom.options)})
        for ear in phantom.ears:
            _write_ear(temporary / ear.side, ear)


def _as_stored(phantom: Phantom) -> Volume:
    """The CT in whole Hounsfield units, as scanners store it; as it is where values are others."""
    data, options = phantom.volume.data, phantom.options
    is_hu = options.hu_gain == 1 and options.hu_offset == 0 and np.abs(data).max() < 32000
    return Volume(np.round(data).astype(np.int16), phantom.volume.affine) if is_hu else phantom.volume


def _write_ear(folder: Path, ear: PhantomEar) -> None:
    folder.mkdir()
    for name in ("truth", "labyrinth"):
        mask: Volume = getattr(ear, name)
        write_volume(folder / f"{name}.nii.gz", Volume(mask.data.astype(np.uint8), mask.affine))
    points = {name: np.round(point, 4).tolist() for name, point in ear.landmarks.items()}
    _write_json(folder / "landmarks.json", {"side": ear.side, "landmarks_ras_mm": points})
    parameters = dict(zip(ear.cochlea.parameter_names, np.asarray(ear.theta).tolist(), strict=True))
    _write_json(folder / "parameters.json", {"side": ear.side, "parameters": parameters, "lumen_hu": ear.lumen_hu})


def _write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _plain(options: object) -> dict:
    """The options as plain numbers and words."""
    values = dataclasses.asdict(options)  # pyright: ignore[reportArgumentType]
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
