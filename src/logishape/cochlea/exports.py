"""What other programs open: a result as DICOM or Slicer segmentation, or as Slicer markups."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from logishape.cochlea.landmarks import landmarks_of
from logishape.cochlea.result import CaseResult
from logishape.cochlea.surface import path
from logishape.core.errors import InputError
from logishape.io.dicom_headers import DicomSource
from logishape.io.dicom_segmentation import write_dicom_segmentation
from logishape.io.markups import Point, write_markups
from logishape.io.segments import Segment, write_seg_nrrd

ALWAYS = ("nifti", "stl", "ply", "json", "csv")  # what every result holds, whatever is asked for
COLOURS = {"segmentation": (1.0, 0.30, 0.30), "shape": (1.0, 0.82, 0.25), "marginal": (0.30, 0.76, 1.0)}
_WORDS = {"segmentation": "Cochlea", "shape": "Cochlea, fitted shape", "marginal": "Cochlea, probability"}
_SERIES = {"left": 7701, "right": 7703}  # numbers that no scanner's own series is likely to have
_EVERY = 5  # one of so many of a path's points: some five degrees


def check_formats(names: Iterable[str]) -> tuple[str, ...]:
    """The formats by name, each once; an error for one that is not known."""
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in (*ALWAYS, *_WRITERS):
            raise InputError(
                f"formats must be among {', '.join((*ALWAYS, *_WRITERS))} but one is {name!r}; name some of these."
            )
    return chosen


def write_formats(folder: Path, result: CaseResult, source: DicomSource | None, formats: Iterable[str]) -> None:
    """The files of these formats, beside those that every result holds."""
    for name in formats:
        if name not in ALWAYS:
            _WRITERS[name](folder, result, source)


def _segment(result: CaseResult, name: str) -> Segment:
    return Segment(f"{_WORDS[name]}, {result.side}", result.labels.on_grid(name), COLOURS[name], result.side)


def _write_dicom(folder: Path, result: CaseResult, source: DicomSource | None) -> None:
    assert source is not None  # checked before the fit
    masks, number = [_segment(result, name) for name in ("segmentation", "shape")], _SERIES[result.side]
    write_dicom_segmentation(folder / "segmentation.seg.dcm", masks, source, series_number=number)
    write_dicom_segmentation(
        folder / "marginal.seg.dcm", [_segment(result, "marginal")], source, True, series_number=number + 1
    )


def _write_seg_nrrd(folder: Path, result: CaseResult, source: DicomSource | None) -> None:
    del source
    write_seg_nrrd(folder / "segmentation.seg.nrrd", [_segment(result, name) for name in ("segmentation", "shape")])


def _write_markups(folder: Path, result: CaseResult, source: DicomSource | None) -> None:
    """The line through the sections' centres, from the round window to the apex, and the landmarks."""
    del source
    centres = path(result.cochlea, result.theta)
    rows = zip(np.degrees(centres.angle), centres.points, centres.length, strict=True)
    curve = [
        Point(f"{degrees:.0f}", place, f"{degrees:.1f} degrees, {length:.2f} mm") for degrees, place, length in rows
    ][::_EVERY]
    write_markups(folder / "centreline.mrk.json", f"Cochlea, {result.side}, centreline", curve, "Curve")
    marks = [Point(name, *rest) for name, rest in landmarks_of(result.cochlea, result.theta).items()]
    write_markups(folder / "landmarks.mrk.json", f"Cochlea, {result.side}, landmarks", marks)


_WRITERS: dict[str, Callable[[Path, CaseResult, DicomSource | None], None]] = {
    "dicom-seg": _write_dicom,
    "seg-nrrd": _write_seg_nrrd,
    "markups": _write_markups,
}
FORMATS = (*ALWAYS, *_WRITERS)
