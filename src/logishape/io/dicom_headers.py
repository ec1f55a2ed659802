"""The DICOM files of a folder and what each says of its slices.

Tags that identify a person are not read, but by `read_source`, for a DICOM object that must name its patient.
"""

import dataclasses
import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logishape.io.dicom_limits import check_inflation

if TYPE_CHECKING:
    from pydicom import Dataset

_TAGS = [
    "BitsAllocated",
    "Columns",
    "ImageOrientationPatient",
    "ImagePositionPatient",
    "ImageType",
    "Modality",
    "NumberOfFrames",
    "PerFrameFunctionalGroupsSequence",
    "PixelPaddingValue",
    "PixelRepresentation",
    "PixelSpacing",
    "RescaleIntercept",
    "RescaleSlope",
    "Rows",
    "SOPClassUID",
    "SamplesPerPixel",
    "SeriesDescription",
    "SeriesInstanceUID",
    "SharedFunctionalGroupsSequence",
]
_MOST_FRAMES = 1 << 16
_SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"


@dataclasses.dataclass(frozen=True)
class Slice:
    """One slice: where its pixels are (file, frame), what it is, and where it lies (LPS mm; empty if not said)."""

    path: Path
    frame: int | None
    series_uid: str
    description: str
    modality: str
    image_type: tuple[str, ...]
    is_capture: bool
    samples: int
    rows: int
    columns: int
    orientation: tuple[float, ...]
    position: tuple[float, ...]
    spacing: tuple[float, ...]
    rescale: tuple[float, float] | None
    padding: int | None
    syntax: str
    is_packed: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """What the geometry lacks."""
        given = {
            "image position": self.position,
            "image orientation": self.orientation,
            "pixel spacing": self.spacing,
        }
        return tuple(name for name, value in given.items() if not value)


@dataclasses.dataclass(frozen=True, eq=False)
class DicomSource:
    """The headers of the slices of a volume, in the order of its third axis, patient and study included.

    `frames` are the numbers of the frames, from zero, where all slices are in one file; its header is there once.
    """

    headers: tuple["Dataset", ...]
    frames: tuple[int, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Folder:
    """The slices under a folder, and how many files were left out for which reason."""

    slices: tuple[Slice, ...]
    num_broken: int
    num_outside: int


def is_dicom_file(path: Path) -> bool:
    """Whether the file begins as DICOM files do: 128 bytes of anything, then DICM."""
    with path.open("rb") as stream:
        return stream.read(132)[128:] == b"DICM"


def read_folder(folder: Path) -> Folder:
    """All slices in a folder and the folders below it, in the order of their names."""
    paths, num_outside = _find_files(folder)
    slices: list[Slice] = []
    num_broken = 0
    for path in paths:
        try:
            if is_dicom_file(path):
                slices += read_slices(path)
        except Exception:  # a damaged header can fail in any way; the caller says how many did
            num_broken += 1
    return Folder(tuple(slices), num_broken, num_outside)


def read_slices(path: Path) -> list[Slice]:
    """The slices of one file: one, or one for each frame; none where the file holds no image; fails if damaged."""
    import pydicom

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydicom complains of values that we check ourselves
        check_inflation(path)
        header = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=_TAGS)
        if "Rows" not in header and "SeriesInstanceUID" in header and header.get("Modality") != "CT":
            return []  # a report, a plan, a presentation
        num_frames = int(header.get("NumberOfFrames") or 1)
        if not 1 <= num_frames <= _MOST_FRAMES:
            raise ValueError(num_frames)
        groups = list(header.get("PerFrameFunctionalGroupsSequence") or [])
        if num_frames == 1 and not groups:
            return [_make_slice(path, None, header, [header])]
        shared = list(header.get("SharedFunctionalGroupsSequence") or [])
        frames = groups if len(groups) == num_frames else [None] * num_frames  # without places, refused later
        return [
            _make_slice(path, index, header, [*([] if frame is None else [frame]), *shared])
            for index, frame in enumerate(frames)
        ]


def read_source(slices: Sequence[Slice]) -> DicomSource:
    """The whole headers of these slices, without their pixels."""
    import pydicom

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = dict.fromkeys(piece.path for piece in slices)
        headers = tuple(pydicom.dcmread(path, stop_before_pixels=True) for path in paths)
    frames = tuple(piece.frame for piece in slices if piece.frame is not None)
    return DicomSource(headers, frames or None)


def _find_files(folder: Path) -> tuple[list[Path], int]:
    """Plain files below a folder, each once, and the number of links that lead out of it and are not followed."""
    root = folder.resolve()
    found: dict[Path, None] = {}
    num_outside = 0
    for where, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(where, name)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                num_outside += 1
            elif path.is_file() and name.upper() != "DICOMDIR":
                found[path.resolve()] = None
    return list(found), num_outside


def _make_slice(path: Path, frame: int | None, header: "Dataset", groups: list) -> Slice:
    from pydicom.uid import UID

    kinds = _find(groups, "FrameType", "CTImageFrameTypeSequence") or header.get("ImageType") or []
    slope, intercept = (
        _numbers(groups, keyword, "PixelValueTransformationSequence", 1)
        for keyword in ("RescaleSlope", "RescaleIntercept")
    )
    padding = header.get("PixelPaddingValue")
    syntax = UID(header.file_meta.get("TransferSyntaxUID", ""))
    return Slice(
        path=path,
        frame=frame,
        series_uid=_plain(header.SeriesInstanceUID),
        description=_plain(header.get("SeriesDescription")),
        modality=_plain(header.get("Modality")).upper(),
        image_type=tuple(str(kind).upper() for kind in ([kinds] if isinstance(kinds, str) else kinds)),
        is_capture=str(header.get("SOPClassUID", "")).startswith(_SECONDARY_CAPTURE),
        samples=int(header.get("SamplesPerPixel") or 1),
        rows=int(header.Rows),
        columns=int(header.Columns),
        orientation=_numbers(groups, "ImageOrientationPatient", "PlaneOrientationSequence", 6),
        position=_numbers(groups, "ImagePositionPatient", "PlanePositionSequence", 3),
        spacing=_numbers(groups, "PixelSpacing", "PixelMeasuresSequence", 2),
        rescale=(slope[0], intercept[0]) if slope and intercept else None,
        padding=int(padding) if isinstance(padding, int) else None,
        syntax=_plain(syntax.name) or "not named",
        is_packed=syntax.is_transfer_syntax and (syntax.is_compressed or syntax.is_deflated),
    )


def _find(groups: list, keyword: str, sequence: str) -> Any:
    """A value given by a slice itself or by a sequence of its frame, or else of all frames."""
    for group in groups:
        if keyword in group:
            return group[keyword].value
        for item in group.get(sequence) or []:
            if keyword in item:
                return item[keyword].value
    return None


def _numbers(groups: list, keyword: str, sequence: str, count: int) -> tuple[float, ...]:
    """So many finite numbers, or none."""
    value = _find(groups, keyword, sequence)
    try:
        numbers = tuple(float(x) for x in ([value] if count == 1 else value))
    except (TypeError, ValueError):
        return ()
    return numbers if len(numbers) == count and all(map(math.isfinite, numbers)) else ()


def _plain(value: Any) -> str:
    """Text on one line, of a length fit for a sentence."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(value or ""))
    return " ".join(text.split())[:64]
