"""Segment the twelve specimens, each with what was calibrated without its fold, and score them by the yardstick.

    python benchmarks/crossvalidate.py [--out DIR] [--pose found|landmarks|point|rough] [--preset paper]
        [--only F01 T01] [--degrade coarse03|coarse04|noise|scale] [--part segment|score]
    python benchmarks/crossvalidate.py --turned
    python benchmarks/crossvalidate.py --phantoms 50

Each specimen is segmented from its CT file by the same code as `logishape cochlea`, with the table of sections, the
prior and the template that were made without it and the two others of its fold. The appearance's constants and the
two reference lengths were chosen by hand on all twelve. `--pose found` gives nothing but the CT, `--pose point` a
point up to 1 mm (along each axis) from the cochlea's middle and the side, `--pose rough` landmarks moved by 1.2 mm
and turned by 0.3 rad (SD along each axis). `--degrade` resamples the CT to 0.3 or 0.4 mm voxels, blurred with them,
adds white noise of 150 HU, or changes values to 0.7 HU + 200; coarse CTs are scored on their own grid, to which the
truth is resampled (voxels of which it fills half). `--turned` gives the affine another rotation, and a mirror image,
and compares the masks with those of the CT as it is. The yardstick is `score.py` beside the data; it shares no code
with this package.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from engine import print_table, report
from scipy import ndimage
from scipy.spatial.transform import Rotation
from specimens import FOLDS, data_folder

from logishape.cochlea import (
    CaseResult,
    Frame,
    PhantomOptions,
    Point,
    SegmentOptions,
    load_calibration,
    load_template,
    locate,
    segment,
)
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.cochlea.landmarks import frame_from_points
from logishape.cochlea.phantom import make_phantom
from logishape.cochlea.pipeline import Outcome, complete_record, write_case
from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io import atomic_folder, read_landmarks, read_scan, read_volume, write_volume
from logishape.metrics import compare, dice
from logishape.reproduce.cases import fold_of

MIDDLE = np.array([[0.6, 0.2, 0.8]])
AIR = ("F01", "F02", "F03", "F05", "F08", "F10", "F14")
KINDS = {"cochlea": "manual", "cochlea_uct": "micro-CT"}


def rough_pose(frame: Frame, how: str, seed: int) -> Frame | Point | None:
    """The landmarks' frame itself, a point near its middle, the frame moved and turned, or nothing."""
    rng = np.random.default_rng(seed)
    if how == "found":
        return None
    if how == "point":
        return Point(np.asarray(frame.to_world(MIDDLE))[0] + rng.uniform(-1, 1, 3), frame.side)
    if how == "rough":
        turn = Rotation.from_rotvec(rng.normal(0, 0.3, 3)).as_matrix()
        moved = Frame(turn @ np.asarray(frame.axes), np.asarray(frame.origin))
        shift = np.asarray(frame.to_world(MIDDLE) - moved.to_world(MIDDLE))[0] + rng.normal(0, 1.2, 3)
        return Frame(moved.axes, np.asarray(frame.origin) + shift)
    return frame


def degraded(volume: Volume, how: str, seed: int) -> Volume:
    """The CT as a worse scanner would give it."""
    data = volume.data.astype(np.float32)
    if how == "noise":
        return volume.with_data(data + np.random.default_rng(seed).normal(0, 150, data.shape).astype(np.float32))
    if how == "scale":
        return volume.with_data(np.float32(0.7) * data + np.float32(200))
    return coarser(volume, float(how[-2:]) / 10) if how.startswith("coarse") else volume


def coarser(volume: Volume, spacing: float) -> Volume:
    """An image with larger voxels, each about the mean over its extent."""
    blur = np.sqrt(np.maximum(spacing**2 - volume.spacing**2, 0) / 12) / volume.spacing
    smooth = np.asarray(ndimage.gaussian_filter(volume.data.astype(np.float32), blur))
    shape = np.floor((np.array(volume.shape) - 1) * volume.spacing / spacing).astype(int) + 1
    index = np.stack(np.meshgrid(*[np.arange(n) * spacing for n in shape], indexing="ij"))
    affine = volume.affine.copy()
    affine[:3, :3] *= spacing / volume.spacing
    return Volume(
        np.asarray(ndimage.map_coordinates(smooth, index / volume.spacing[:, None, None, None], order=1)), affine
    )


def write_truth(folder: Path, name: str, spacing: float) -> None:
    """The truth of a specimen on the grid of a coarser CT, and the region where it is scored."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    for path in sorted((data_folder() / name).glob("*.nii.gz")):
        if path.name != "ct.nii.gz":
            mask = coarser(read_volume(path), spacing)
            write_volume(folder / name / path.name, mask.with_data((mask.data >= 0.5).astype(np.uint8)))


def segment_specimen(name: str, out: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Segments one specimen into `out`/NAME/SIDE; the record and the seconds it took."""
    folder, fold, options = data_folder() / name, fold_of(name), SegmentOptions(preset=chosen.preset)
    calibration = None if options.is_paper else load_calibration(DEFAULT_FILE, fold)
    scan, marks = read_scan(folder / "ct.nii.gz"), read_landmarks(folder / "landmarks.json")
    frame, seed = frame_from_points(marks.points, marks.side), int(fold) * 100 + int(name[1:])
    volume, template = degraded(scan.volume, chosen.degrade, seed), load_template(fold)
    began = time.perf_counter()
    pose = rough_pose(frame, chosen.pose, seed)
    place = pose if isinstance(pose, Frame) else locate(volume, point=pose, template=template)[0]
    result = segment(volume, place, calibration=calibration, template=template, options=options)
    seconds = time.perf_counter() - began
    target = out / name / result.side
    outcome = Outcome(target, result, scan, complete_record(result, scan, place))
    with atomic_folder(target, overwrite=True) as temporary:
        write_case(temporary, outcome)
    if chosen.degrade.startswith("coarse"):
        write_truth(out.with_name(out.name + "-truth"), name, float(chosen.degrade[-2:]) / 10)
    found = {} if isinstance(place, Frame) else {"score": place.score, "margin": place.margin}
    return {**outcome.record, "seconds": seconds, "is_right": result.side == marks.side, **found}


def scores(out: Path, mask: str) -> dict[tuple[str, str], dict[str, float]]:
    """What the yardstick says of each specimen and truth."""
    scorer = data_folder().parents[1] / "eval" / "score.py"
    coarse = out.with_name(out.name + "-truth")
    truth = coarse if coarse.is_dir() else data_folder()
    command = [sys.executable, str(scorer), str(truth), str(out), "--name", f"{mask}.nii.gz"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = {}
    for line in printed.splitlines():
        words = line.split()
        if len(words) > 3 and words[1] in KINDS and words[2] == "dice":
            rows[words[0], words[1]] = dict(zip(words[2:14:2], map(float, words[3:14:2]), strict=True))
    return rows


def mean_rows(rows: dict[tuple[str, str], dict[str, float]], names: list[str], label: str) -> list[list[str]]:
    """A row for each truth: means over the specimens named, the worst Dice and the largest spill."""
    table = []
    for kind, words in KINDS.items():
        chosen = [row for (name, truth), row in rows.items() if truth == kind and name in names]
        if chosen:
            means = [
                f"{np.mean([row[key] for row in chosen]):.3f}"
                for key in ("dice", "precision", "hd95", "hd100", "assd")
            ]
            worst = f"{min(row['dice'] for row in chosen):.3f}"
            spill = f"{np.mean([row['spill'] for row in chosen]):.1f} / {max(row['spill'] for row in chosen):.1f}"
            table.append([label, words, f"{len(chosen)}", *means, worst, spill])
    return table


def segment_all(names: list[str], out: Path, chosen: argparse.Namespace) -> None:
    """Segments the specimens and keeps how each fit ended."""
    records = {}
    for name in names:
        try:
            one = segment_specimen(name, out, chosen)
        except InputError as error:
            report(f"{name}: refused, {error}")
            continue
        records[name] = one
        found = f", likeness {one['score']:.3f}" if "score" in one else ""
        words = "right side" if one["is_right"] else "WRONG SIDE"
        flags = [flag["name"] for flag in one["flags"]]
        report(f"{name}: {words}, {one['status']}, {one['seconds']:.1f} s, flags {flags}{found}")
    kept = ("status", "flags", "notes", "seconds", "is_right", "score", "margin")
    summary = {name: {key: one[key] for key in kept if key in one} for name, one in records.items()}
    (out / "records.json").write_text(json.dumps(summary, indent=1))
    print(f"right side: {sum(one['is_right'] for one in records.values())} of {len(names)}")


def mask_of(result: CaseResult) -> np.ndarray:
    """The segmentation, voxel by voxel as in the file."""
    return result.labels.on_grid("segmentation").data > 0


def compare_turned(names: list[str]) -> None:
    """Segments each specimen as it is, with its affine turned at random, and mirrored: sides, and Dice of masks."""
    rows = []
    for name in names:
        scan, fold = read_scan(data_folder() / name / "ct.nii.gz"), fold_of(name)
        turn, mirror = np.eye(4), np.diag([-1.0, 1.0, 1.0, 1.0])
        turn[:3, :3] = Rotation.random(rng=np.random.default_rng(int(name[1:]))).as_matrix()
        turn[:3, 3] = [31.0, -47.0, 12.0]
        kept = {"calibration": load_calibration(DEFAULT_FILE, fold), "template": load_template(fold)}
        options = SegmentOptions(num_draws=10)
        plain, *others = (
            segment(Volume(scan.volume.data, motion @ scan.volume.affine), options=options, **kept)
            for motion in (np.eye(4), turn, mirror, turn @ mirror)
        )
        words = [f"{one.side} {dice(mask_of(one), mask_of(plain)):.4f}" for one in others]
        rows.append([name, plain.side, *words])
        report("  ".join(rows[-1]))
    header = ["specimen", "as it is", "turned", "mirrored", "mirrored and turned"]
    print_table("Side, and Dice with the mask of the CT as it is", header, rows, [])


def print_scores(names: list[str], out: Path, how: str) -> None:
    """Scores what was segmented and prints tables, air- and fluid-filled apart."""
    header = ["specimens", "truth", "n", "Dice", "precision", "HD95", "HD100", "mean distance", "worst Dice", "spill"]
    groups = {"all": names, "air": [n for n in names if n in AIR], "fluid": [n for n in names if n not in AIR]}
    for mask, words in (("segmentation", "Posterior segmentation"), ("shape", "Fitted shape")):
        rows = scores(out, mask)
        rows = {key: row for key, row in rows.items() if key[0] in names}
        table = [line for label, chosen in groups.items() for line in mean_rows(rows, chosen, label)]
        print_table(f"{words}, pose from {how}; mm, mm3 (spill mean / largest)", header, table, [])
        each = [
            [name, KINDS[kind], *(f"{row[key]:.3f}" for key in ("dice", "hd95", "assd", "spill"))]
            for (name, kind), row in sorted(rows.items())
        ]
        print_table(f"{words}, each", ["specimen", "truth", "Dice", "HD95", "mean distance", "spill"], each, [])


def validate_phantoms(count: int) -> None:
    """Phantoms of both sides and lumens, oblique grids and rough landmarks: Dice against their truth."""
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for seed in range(count):
        side: Any = ("left", "right")[seed % 2]
        lumen: Any = ("fluid", "air")[seed // 2 % 2]
        options = PhantomOptions(side=side, lumen=lumen, orientation="random", landmark_error_mm=0.3)
        phantom = make_phantom(options, 1000 + seed)
        ear = phantom.ear
        frame = frame_from_points(ear.landmarks, ear.side, phantom.volume)
        result = segment(phantom.volume, frame, options=SegmentOptions(num_draws=10))
        agreements = [compare(result.labels.on_grid(name), ear.truth) for name in ("segmentation", "shape")]
        row = (agreements[0].dice, np.nan if agreements[0].hd95 is None else agreements[0].hd95, agreements[1].dice)
        found.setdefault((side, lumen), []).append(row)
        report(f"phantom {seed}: {side} {lumen} Dice {row[0]:.3f}, shape {row[2]:.3f}, {result.fit.status.name}")
    rows = []
    every = [row for group in found.values() for row in group]
    for (side, lumen), group in [*sorted(found.items()), (("both", "both"), every)]:
        dice, hd95, shape = (np.array(column) for column in zip(*group, strict=True))
        numbers = [dice.mean(), dice.min(), hd95.mean(), shape.mean(), shape.min()]
        rows.append([side, lumen, f"{len(group)}", *(f"{value:.3f}" for value in numbers)])
    header = ["side", "lumen", "n", "Dice", "worst", "HD95", "shape Dice", "worst"]
    print_table("Phantoms, landmarks with errors of 0.3 mm", header, rows, [])


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="out/crossvalidate-POSE-DEGRADE")
    parser.add_argument("--pose", choices=("found", "landmarks", "point", "rough"), default="found")
    parser.add_argument("--degrade", choices=("none", "coarse03", "coarse04", "noise", "scale"), default="none")
    parser.add_argument("--turned", action="store_true")
    parser.add_argument("--preset", choices=("default", "paper"), default="default")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--part", choices=("both", "segment", "score"), default="both")
    parser.add_argument("--phantoms", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.phantoms:
        validate_phantoms(chosen.phantoms)
        return
    chosen.out = chosen.out or Path("out") / f"crossvalidate-{chosen.pose}-{chosen.degrade}"
    names = chosen.only or sorted(sum(FOLDS.values(), ()))
    if chosen.turned:
        compare_turned(names)
        return
    if chosen.part != "score":
        segment_all(names, chosen.out, chosen)
    if chosen.part != "segment":
        print_scores(names, chosen.out, chosen.pose)


if __name__ == "__main__":
    main()
