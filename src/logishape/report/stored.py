"""What pictures and the page are made of: the stored parts of one result, around the cochlea."""

import dataclasses
import os
from pathlib import Path
from typing import Any, get_args

import numpy as np

from logishape.cochlea.coloured import ColouredSurface
from logishape.cochlea.frame import Frame, Side
from logishape.cochlea.labels import Labels
from logishape.cochlea.lumen import GAIN_RANGE, LARGEST_OFFSET
from logishape.cochlea.pipeline import MAPS
from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io import is_result, read_mask, read_ply, read_volume
from logishape.io.results import read_record

PARTS = ("ct.nii.gz", "level.nii.gz", "surface.ply", *(f"{name}.nii.gz" for name in MAPS))


@dataclasses.dataclass(frozen=True, eq=False)
class Stored:
    """One result: its record, and the CT and all maps on one block of the CT's voxels.

    level: mm to the fitted surface, positive inside. segmentation, shape: 0 and 1. probability, marginal: 0 to 1.
    """

    record: dict[str, Any]
    ct: Volume
    level: Volume
    segmentation: Volume
    shape: Volume
    probability: Volume
    marginal: Volume
    surface: ColouredSurface

    @property
    def spiral(self) -> Frame:
        """The frame of the fitted spiral: z is the modiolar axis, angles begin at x; a left ear's mirrors."""
        return frame_of(self.record["pose"]["spiral"])

    @property
    def smooth_segmentation(self) -> Volume:
        """A map as smooth as the probability, that is on the segmentation's side of one half at every voxel."""
        probability = self.probability.data
        inside = np.where(self.segmentation.data, np.maximum(probability, 0.502), np.minimum(probability, 0.498))
        return self.ct.with_data(inside)

    @property
    def is_hu(self) -> bool:
        """Whether the CT's values are Hounsfield units, as far as lumen and bone tell."""
        gain, offset = self.record["appearance"]["gain"], self.record["appearance"]["offset"]
        return GAIN_RANGE[0] <= gain <= GAIN_RANGE[1] and abs(offset) <= LARGEST_OFFSET


def frame_of(plain: dict[str, Any]) -> Frame:
    """The frame that a record gives as plain numbers."""
    return Frame(np.array(plain["axes"]), np.array(plain["origin_ras_mm"]))


def read_stored(folder: str | os.PathLike[str], labels: Labels | None = None) -> Stored:
    """The result in a folder such as OUT/left, without fitting or computing anything anew.

    `labels`, where they are still in memory, spare reading maps on the whole grid of a large CT.
    """
    folder = Path(folder)
    record = read_record(folder)
    missing = [name for name in PARTS if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"the result in {folder} should hold {', '.join(PARTS)} but lacks {', '.join(missing)}; segment the scan "
            "again."
        )
    ct, level = read_volume(folder / "ct.nii.gz"), read_volume(folder / "level.nii.gz")
    _check_same_grid(ct, level)
    maps = {}
    for name in MAPS:  # one whole map at a time in memory
        if labels is None:
            read = read_mask if name in ("segmentation", "shape") else read_volume
            whole = read(folder / f"{name}.nii.gz")
            maps[name] = Volume(whole.data[_block_of(ct, whole.affine, whole.shape)], ct.affine)
        else:
            maps[name] = labels.on_crop(name, _block_of(ct, labels.affine, labels.grid_shape))
    vertices, faces, values = read_ply(folder / "surface.ply")
    if not {"angle_degrees", "frequency_hz"} <= set(values):
        raise InputError("surface.ply should give angle and frequency at each vertex but does not; segment again.")
    surface = ColouredSurface(vertices, faces, values["angle_degrees"], values["frequency_hz"], values.get("sd_mm"))
    return Stored(record=record, ct=ct, level=level, **maps, surface=surface)


def results_in(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The folders of results that are meant: this one, those of its ears, or those of the ears of each input."""
    place = Path(folder)
    if not place.is_dir():
        found = "is a file" if place.exists() else "is not there"
        raise InputError(f"{place} should be a folder that logishape cochlea wrote but {found}; check the path.")
    if is_result(place):
        return (place,)
    inside = sorted(one for one in place.iterdir() if one.is_dir() and not one.name.startswith("."))
    results = tuple(
        one for name in inside for one in (name, *(name / ear for ear in get_args(Side))) if is_result(one)
    )
    if not results:
        raise InputError(
            f"{place} should hold results, in itself, in left and right or in a folder for each input, but no "
            "result.json is there; give a folder that logishape cochlea wrote."
        )
    return results


def _check_same_grid(ct: Volume, level: Volume) -> None:
    if ct.shape != level.shape or not np.allclose(ct.affine, level.affine, atol=1e-4):
        raise InputError("ct.nii.gz and level.nii.gz should lie on one grid but do not; segment the scan again.")


def _block_of(ct: Volume, affine: np.ndarray, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Where the CT around the cochlea lies on the whole grid."""
    whole = np.linalg.inv(affine)
    first = (whole @ ct.affine)[:3, 3]
    start = np.rint(first).astype(int)
    stop = start + ct.shape
    step = 1e-4 * float(np.min(ct.spacing))
    fits = np.allclose(first, start, atol=0.01) and np.allclose(affine[:3, :3], ct.affine[:3, :3], rtol=0, atol=step)
    if not fits or np.any(start < 0) or np.any(stop > shape):
        raise InputError("ct.nii.gz should be a part of the grid of the maps but is not; segment the scan again.")
    return tuple(slice(int(a), int(b)) for a, b in zip(start, stop, strict=True))
