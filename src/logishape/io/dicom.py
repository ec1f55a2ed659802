"""DICOM: from a folder of slices, or one file of many frames, to one CT volume."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from logishape.core.errors import InputError
from logishape.io.dicom_geometry import SAME_PLACE_MM, sort_slices, stack_affine
from logishape.io.dicom_headers import Slice, is_dicom_file, read_folder, read_slices, read_source
from logishape.io.dicom_limits import can_hold
from logishape.io.dicom_pixels import read_pixels
from logishape.io.dicom_series import FEWEST_SLICES, choose, make_stacks
from logishape.io.grids import check_axes
from logishape.io.payload import FileImage

__all__ = ["is_dicom_file", "read_dicom_file", "read_dicom_folder"]


def read_dicom_folder(folder: Path, series: str | None = None, with_source: bool = False) -> FileImage:
    """The CT volume of a folder and the folders below it: the largest, or the series that is named.

    `with_source` keeps the headers, which name the patient.
    """
    found = read_folder(folder)
    if not found.slices:
        broken = f" (DICOM files with a damaged header: {found.num_broken})" if found.num_broken else ""
        raise InputError(
            f"{folder} should hold DICOM images but none was found{broken}; give the folder with the slices, or a "
            ".nii.gz, .nrrd or .mha file."
        )
    notes: list[str] = []
    if found.num_broken:
        notes.append(f"DICOM files left out because their header is damaged: {found.num_broken}.")
    if found.num_outside:
        notes.append(f"Links that lead out of the folder, not followed: {found.num_outside}.")
    image = _read_slices(found.slices, series, with_source)
    return dataclasses.replace(image, notes=(*notes, *image.notes))


def read_dicom_file(path: Path, series: str | None = None, with_source: bool = False) -> FileImage:
    """The CT volume of one file with many frames; a file with one slice is not enough."""
    try:
        slices = read_slices(path)
    except Exception as error:  # a damaged header can fail in any way
        raise InputError(
            f"{path.name} is a DICOM file but its header is damaged; copy or export it again."
        ) from error
    if len(slices) < 2:
        raise InputError(
            f"{path.name} should hold a volume but is a single DICOM slice or no image; give the folder that holds "
            "the whole series."
        )
    return _read_slices(slices, series, with_source)


def _read_slices(slices: Sequence[Slice], series: str | None, with_source: bool) -> FileImage:
    chosen, notes, listing = choose(make_stacks(slices), series)
    _check_room(chosen.slices)
    single, duplicate_notes = _drop_duplicates(sort_slices(chosen.slices))
    if len(single) < FEWEST_SLICES:
        raise InputError(
            f"a CT volume needs {FEWEST_SLICES} slices or more but only {len(single)} lie at different places; "
            "give the whole series."
        )
    affine, place_notes = stack_affine(single)
    check_axes(affine, "the series")
    data = np.empty((single[0].columns, single[0].rows, len(single)), dtype=np.float32, order="F")
    for k, pixels in enumerate(read_pixels(single)):
        data[:, :, k] = pixels.T
    notes = (*notes, *duplicate_notes, *place_notes, *_value_notes(single))
    return FileImage(data, affine, notes, listing, read_source(single) if with_source else None)


def _check_room(slices: Sequence[Slice]) -> None:
    """An error, before any memory is taken, where the files cannot hold the pixels their headers describe."""
    first = slices[0]
    num_voxels = first.rows * first.columns * len(slices)
    num_bytes = sum(path.stat().st_size for path in {piece.path for piece in slices})
    if not can_hold(num_voxels, num_bytes, any(piece.is_packed for piece in slices)):
        raise InputError(
            f"the series describes {first.columns} x {first.rows} x {len(slices)} voxels, which its {num_bytes} "
            "bytes cannot hold or memory should not, so it is truncated or corrupt; copy or export it again."
        )


def _drop_duplicates(levels: list[list[Slice]]) -> tuple[list[Slice], tuple[str, ...]]:
    """One slice at each level, and a note; slices at the same level must be the same image."""
    num_dropped = 0
    for level in levels:
        if len(level) == 1:
            continue
        first, *others = read_pixels(level)
        for piece, pixels in zip(level[1:], others, strict=True):
            distance = np.linalg.norm(np.subtract(piece.position, level[0].position))
            if distance > SAME_PLACE_MM or not np.array_equal(pixels, first):
                place = ", ".join(f"{x:.2f}" for x in level[0].position)
                raise InputError(
                    f"a series should have one slice at each place but two different ones lie at the level of "
                    f"({place}) mm (LPS); separate the reconstructions or phases, or name one with the series."
                )
            num_dropped += 1
    notes = (f"Slices at the place of another with the same pixels, dropped: {num_dropped}.",) if num_dropped else ()
    return [level[0] for level in levels], notes


def _value_notes(slices: Sequence[Slice]) -> tuple[str, ...]:
    """What is worth knowing of the values: padding, rescaling, derivation."""
    notes = []
    scales = {piece.rescale for piece in slices}
    if None in scales:
        notes.append("Slices give no rescale slope and intercept; their stored values were taken as they are.")
    if len(scales) > 1:
        notes.append("Rescale slope and intercept differ between slices; each slice was scaled by its own.")
    paddings = sorted({piece.padding for piece in slices if piece.padding is not None})
    if paddings:
        text = ", ".join(map(str, paddings))
        notes.append(f"The header marks padding by the stored value {text}; such voxels were left as they are.")
    if any(piece.image_type[:1] == ("DERIVED",) for piece in slices):
        notes.append("The images are marked as derived (reformatted or processed), not as the scanner's own.")
    return tuple(notes)
