"""One scan from file to folders: read, find, segment, write; the only place that knows every stage."""

import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import logishape
from logishape.cochlea.calibration import Calibration
from logishape.cochlea.checks import check_ct, check_spacing
from logishape.cochlea.exports import check_formats, write_formats
from logishape.cochlea.frame import Frame, Side
from logishape.cochlea.landmarks import check_inside, frame_from_points
from logishape.cochlea.locate import Located, locate
from logishape.cochlea.measurements import table_of
from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.pose import Point
from logishape.cochlea.probability import check_map
from logishape.cochlea.reference import phantom_reference, read_reference
from logishape.cochlea.register import register
from logishape.cochlea.result import CaseResult
from logishape.cochlea.segment import Progress, segment
from logishape.cochlea.surroundings import block_around, ct_around
from logishape.cochlea.template import Template
from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io import (
    NamedPoints,
    Scan,
    atomic_file,
    atomic_folder,
    check_writable,
    is_result,
    read_landmarks,
    read_scan,
    remove_folder,
    write_ply,
    write_stl,
    write_volume,
)
from logishape.io.dicom_segmentation import check_source
from logishape.posterior import check_sampler

MAPS = ("segmentation", "shape", "probability", "marginal")
RESEARCH_USE = "Research use only; not a medical device."
PathLike = str | os.PathLike[str]


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be segmented: the CT and where results go; landmarks, a point or a side narrow the search.

    `is_registered` lays a reference on the CT instead of searching: that of a folder or scan, or a phantom. `formats`
    are written beside what is always written; "dicom-seg" takes patient and study over from a DICOM input.
    `appearance_probability` is a map (.nii, .nrrd, .mha) of a network's p(inside), read instead of intensities.
    """

    input: PathLike
    out: PathLike
    landmarks: PathLike | None = None
    at: tuple[float, float, float] | None = None
    side: Side | None = None
    series: str | None = None
    overwrite: bool = False
    options: SegmentOptions = dataclasses.field(default_factory=SegmentOptions)
    calibration: Calibration | None = None
    template: Template | None = None
    is_registered: bool = False
    reference: PathLike | None = None
    formats: tuple[str, ...] = ()
    appearance_probability: PathLike | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """A finished case: its folder, the result, the scan it came from, the record, and what else is written."""

    folder: Path
    result: CaseResult
    scan: Scan
    record: dict[str, Any]
    formats: tuple[str, ...] = ()


def run(
    request: Request,
    progress: Progress | None = None,
    finish: Callable[[Path, Outcome], None] | None = None,
) -> tuple[Outcome, ...]:
    """Segments the ears of one scan and writes a folder for each, `out`/left and `out`/right, whole or not at all.

    `finish` may add files to a folder before it is put in place; `progress` is told each stage as it begins,
    and "locate 40%" while the search goes on.
    """
    tell = progress or (lambda _: None)
    _check_request(request)
    tell("read")
    marks = None if request.landmarks is None else read_landmarks(request.landmarks)
    is_dicom_asked = "dicom-seg" in request.formats
    scan = read_scan(request.input, request.series, with_source=is_dicom_asked)
    check_ct(scan.volume)
    check_spacing(scan.volume)
    if is_dicom_asked:
        check_source(scan.source, scan.volume)
    probability = _read_map(request, scan.volume)
    poses = find_poses(request, marks, scan.volume, tell)
    for pose in poses:
        _check_free(Path(request.out) / pose.side, request)
    outcomes = _segment_each(request, (scan, probability), poses, tell)
    for outcome in outcomes:  # a rival pose may have had the other side
        _check_free(outcome.folder, request)
    tell("write")
    write_cases(outcomes, request.overwrite, finish)
    _remove_stale(request, {outcome.result.side for outcome in outcomes} | {pose.side for pose in poses})
    return outcomes


def write_cases(
    outcomes: tuple[Outcome, ...], overwrite: bool, finish: Callable[[Path, Outcome], None] | None = None
) -> None:
    """Writes the folder of each ear; all are written before the first is put in place."""
    with contextlib.ExitStack() as stack:
        for outcome in outcomes:
            temporary = stack.enter_context(atomic_folder(outcome.folder, overwrite))
            write_case(temporary, outcome)
            if finish is not None:
                finish(temporary, outcome)


def _remove_stale(request: Request, found: set[str]) -> None:
    """Takes away an earlier result of an ear that was looked for this time and not found."""
    is_narrow = request.is_registered or any(one is not None for one in (request.side, request.at, request.landmarks))
    if not request.overwrite or is_narrow:
        return
    for side in {"left", "right"} - found:
        if is_result(Path(request.out) / side):
            remove_folder(Path(request.out) / side)


def _check_free(folder: Path, request: Request) -> None:
    if folder.exists() and not request.overwrite:
        raise InputError(f"{folder} is there already and would be lost; use --overwrite, or another folder.")


def _segment_each(
    request: Request, scans: tuple[Scan, Scan | None], poses: tuple[Frame | Located, ...], tell: Progress
) -> tuple[Outcome, ...]:
    """Both ears, or the one that can be segmented with a note of what is the matter with the other.

    `scans` are the CT and a probability map, if one was given.
    """
    scan, probability = scans
    chosen: dict[str, Any] = {
        "calibration": request.calibration,
        "template": request.template,
        "options": request.options,
        "appearance_probability": None if probability is None else probability.volume,
    }
    done: list[tuple[Frame | Located, CaseResult]] = []
    refused: list[tuple[str, InputError]] = []
    for pose in poses:
        try:
            done.append((pose, segment(scan.volume, pose, progress=tell, **chosen)))
        except InputError as error:
            refused.append((pose.side, error))
    if not done:
        raise refused[0][1]
    notes = [f"The {side} ear was found but not segmented: {error}" for side, error in refused]
    if len(poses) == 1 and isinstance(poses[0], Located) and request.side is None and request.at is None:
        notes.append(
            f"One cochlea was found, of the {done[0][1].side} ear; nothing else in the CT looks enough like one."
        )
    outcomes = []
    for side in dict.fromkeys(result.side for _, result in done):  # the surer one, where both end as the same side
        pose, result = next((pose, result) for pose, result in done if result.side == side)
        noted = dataclasses.replace(result, notes=(*result.notes, *notes))
        folder = Path(request.out) / result.side
        record = complete_record(noted, scan, pose, probability)
        outcomes.append(Outcome(folder, noted, scan, record, request.formats))
    return tuple(outcomes)


def write_case(folder: Path, outcome: Outcome) -> None:
    """The maps, the CT around them, the surface, the record and the table of measurements of one ear."""
    result = outcome.result
    for name in MAPS:
        write_volume(folder / f"{name}.nii.gz", result.labels.on_grid(name))
    around = block_around(outcome.scan.volume, result)
    write_volume(folder / "ct.nii.gz", ct_around(outcome.scan.volume, around, result.intensities.step))
    write_volume(folder / "level.nii.gz", result.labels.on_crop("level", around))
    surface = result.coloured_surface()
    write_stl(folder / "surface.stl", surface.vertices, surface.faces)
    write_ply(folder / "surface.ply", surface.vertices, surface.faces, surface.values(), surface.colours())
    text = json.dumps(outcome.record, indent=1, allow_nan=False)
    with atomic_file(folder / "result.json") as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    with atomic_file(folder / "measurements.csv") as temporary:
        temporary.write_text(table_of(result.measurements), encoding="utf-8")
    write_formats(folder, result, outcome.scan.source, outcome.formats)


def _read_map(request: Request, volume: Volume) -> Scan | None:
    """The probability map, checked; None where none was given."""
    path = request.appearance_probability
    if path is None:
        return None
    scan = read_scan(path)
    if scan.kind == "dicom":
        raise InputError("the probability map should be one file but is DICOM; save it as .nii.gz, .nrrd or .mha.")
    check_map(scan.volume, volume)
    return scan


def complete_record(
    result: CaseResult, scan: Scan, pose: Frame | Located, probability: Scan | None = None
) -> dict[str, Any]:
    """The result's record with what was read and by what; nothing in it names a person or a file."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    provenance = {
        "software": "logishape",
        "version": logishape.__version__,
        "input": _plain_scan(scan),
        "appearance_probability": None if probability is None else _plain_scan(probability),
        "pose": _plain_pose(pose),
        "calibration_sha256": digest(result.cochlea.calibration),
        "time": now,
        "statement": RESEARCH_USE,
    }
    return {**result.record(), "provenance": provenance}


def _plain_scan(scan: Scan) -> dict[str, Any]:
    return {
        "format": scan.kind,
        "sha256": scan.digest,
        "shape": list(scan.volume.shape),
        "spacing_mm": np.round(scan.volume.spacing, 6).tolist(),
        "notes": list(scan.notes),
    }


def digest(calibration: Calibration) -> str:
    """SHA-256 of a calibration's numbers: tells which one made a result."""
    numbers = [np.ascontiguousarray(leaf, np.float64).tobytes() for leaf in jax.tree.leaves(calibration)]
    return hashlib.sha256(b"".join(numbers)).hexdigest()


def _plain_pose(pose: Frame | Located) -> dict[str, Any]:
    """The frame that landmarks gave or that was found, with its score."""
    frame = pose if isinstance(pose, Frame) else pose.frame
    plain = {"origin_ras_mm": np.asarray(frame.origin).tolist(), "axes": np.asarray(frame.axes).tolist()}
    if isinstance(pose, Frame):
        return {"from": "landmarks", **plain}
    return {"from": pose.by, **plain, "score": pose.score, "margin": pose.margin, "rivals": len(pose.rivals)}


def _check_request(request: Request) -> None:
    check_formats(request.formats)
    if request.options.posterior == "mcmc":
        check_sampler()
    check_writable(request.out)
    if Path(request.out).exists() and not Path(request.out).is_dir():
        raise InputError(f"{request.out} should be a folder for the results but is a file; choose another name.")
    if request.landmarks is not None and request.at is not None:
        raise InputError("landmarks and a point were both given; leave one of them out.")
    if request.landmarks is not None and request.is_registered:
        raise InputError("landmarks and a registration were both asked for; leave one of them out.")
    if request.reference is not None and not request.is_registered:
        raise InputError("a reference is for a registration but none is asked for; add --locate register.")


def find_poses(
    request: Request, marks: NamedPoints | None, volume: Volume, tell: Progress
) -> tuple[Frame | Located, ...]:
    """The frame of the landmarks, or the ears that are found: at the point, of the side, or all."""
    if marks is not None:
        if marks.side is not None and request.side is not None and marks.side != request.side:
            raise InputError(
                f"the landmark file is of a {marks.side} ear but the side given is {request.side}; correct one."
            )
        return (frame_from_points(marks.points, request.side or marks.side, volume),)
    point = None
    if request.at is not None:
        position = np.asarray(request.at, dtype=np.float64)
        check_inside(volume, position, "the point")
        point = Point(position)

    if request.is_registered:
        tell("register")
        reference = phantom_reference() if request.reference is None else read_reference(request.reference)
        return register(volume, reference, point=point, side=request.side)

    def share(done: float) -> None:
        tell(f"locate {done:.0%}")

    tell("locate")
    return locate(volume, point=point, side=request.side, template=request.template, tell=share)
