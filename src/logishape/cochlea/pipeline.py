"""One case from file to folder: read, place, segment, write; the only place that knows every stage."""

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
from logishape.cochlea.frame import Frame, Side
from logishape.cochlea.landmarks import check_inside, frame_from_points
from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.pose import Point
from logishape.cochlea.result import CaseResult
from logishape.cochlea.segment import Progress, segment
from logishape.cochlea.template import Template
from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io import (
    NamedPoints,
    Scan,
    atomic_file,
    atomic_folder,
    check_writable,
    read_landmarks,
    read_scan,
    write_stl,
    write_volume,
)

MAPS = ("segmentation", "shape", "probability", "marginal")
RESEARCH_USE = "Research use only; not a medical device."
_COARSEST_MM = 0.6
PathLike = str | os.PathLike[str]


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be segmented: the CT, a rough pose (landmarks, or a point with a side), where results go."""

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


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """A finished case: its folder, the result, the scan it came from, and the record that was written."""

    folder: Path
    result: CaseResult
    scan: Scan
    record: dict[str, Any]


def run(
    request: Request,
    progress: Progress | None = None,
    finish: Callable[[Path, Outcome], None] | None = None,
) -> Outcome:
    """Segments one ear and writes its folder, `out`/left or `out`/right, whole or not at all.

    `finish` may add files to the folder before it is put in place; `progress` is told each stage as it begins.
    """
    tell = progress or (lambda _: None)
    _check_request(request)
    tell("read")
    marks = None if request.landmarks is None else read_landmarks(request.landmarks)
    scan = read_scan(request.input, request.series)
    _check_spacing(scan.volume)
    pose = find_pose(request, marks, scan.volume)
    folder = Path(request.out) / pose.side
    if folder.exists() and not request.overwrite:
        raise InputError(f"{folder} is there already and would be lost; use --overwrite, or another folder.")
    result = segment(
        scan.volume,
        pose,
        calibration=request.calibration,
        template=request.template,
        options=request.options,
        progress=tell,
    )
    tell("write")
    outcome = Outcome(folder, result, scan, complete_record(result, scan, pose))
    with atomic_folder(folder, request.overwrite) as temporary:
        write_case(temporary, outcome)
        if finish is not None:
            finish(temporary, outcome)
    return outcome


def write_case(folder: Path, outcome: Outcome) -> None:
    """The maps, the surface and the record of one ear."""
    result = outcome.result
    for name in MAPS:
        write_volume(folder / f"{name}.nii.gz", result.labels.on_grid(name))
    write_stl(folder / "surface.stl", *result.surface())
    text = json.dumps(outcome.record, indent=1, allow_nan=False)
    with atomic_file(folder / "result.json") as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def complete_record(result: CaseResult, scan: Scan, pose: Frame | Point) -> dict[str, Any]:
    """The result's record with what was read and by what; nothing in it names a person or a file."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    provenance = {
        "software": "logishape",
        "version": logishape.__version__,
        "input": {
            "format": scan.kind,
            "sha256": scan.digest,
            "shape": list(scan.volume.shape),
            "spacing_mm": np.round(scan.volume.spacing, 6).tolist(),
            "notes": list(scan.notes),
        },
        "pose": _plain_pose(pose),
        "calibration_sha256": digest(result.cochlea.calibration),
        "time": now,
        "statement": RESEARCH_USE,
    }
    return {**result.record(), "provenance": provenance}


def digest(calibration: Calibration) -> str:
    """SHA-256 of a calibration's numbers: tells which one made a result."""
    numbers = [np.ascontiguousarray(leaf, np.float64).tobytes() for leaf in jax.tree.leaves(calibration)]
    return hashlib.sha256(b"".join(numbers)).hexdigest()


def _plain_pose(pose: Frame | Point) -> dict[str, Any]:
    """The pose that was given."""
    if isinstance(pose, Point):
        return {"point_ras_mm": np.asarray(pose.position, float).tolist()}
    return {"origin_ras_mm": np.asarray(pose.origin).tolist(), "axes": np.asarray(pose.axes).tolist()}


def _check_request(request: Request) -> None:
    check_writable(request.out)
    if Path(request.out).exists() and not Path(request.out).is_dir():
        raise InputError(f"{request.out} should be a folder for the results but is a file; choose another name.")
    if request.landmarks is None and request.at is None:
        raise InputError(
            "expected a rough pose but none was given; use --landmarks FILE (base centre, apex, round window), or "
            "--at X,Y,Z with --side."
        )
    if request.landmarks is not None and request.at is not None:
        raise InputError("landmarks and a point were both given; leave one of them out.")


def _check_spacing(volume: Volume) -> None:
    largest = float(volume.spacing.max())
    if largest > _COARSEST_MM:
        raise InputError(
            f"voxels should be {_COARSEST_MM} mm or smaller to show a cochlea but are up to {largest:.2f} mm; use "
            "the thin-slice reconstruction of the scan."
        )


def find_pose(request: Request, marks: NamedPoints | None, volume: Volume) -> Frame | Point:
    """The frame of the landmarks, or the point with its side."""
    if marks is not None:
        if marks.side is not None and request.side is not None and marks.side != request.side:
            raise InputError(
                f"the landmark file is of a {marks.side} ear but the side given is {request.side}; correct one."
            )
        return frame_from_points(marks.points, request.side or marks.side, volume)
    if request.side is None:
        raise InputError("a point alone does not say which ear it is; give --side left or --side right.")
    position = np.asarray(request.at, dtype=np.float64)
    check_inside(volume, position, "the point")
    return Point(position, request.side)
