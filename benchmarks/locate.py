"""Find cochleae in large volumes, refuse volumes without one, and say when the field of view cuts one.

    python benchmarks/locate.py [--part large|without|cut] [--processes N] [--only K ...]

large: 24 volumes of 70 mm and more: each specimen in made surroundings (every other one mirrored), six pairs of them,
phantoms of one and of two ears; templates are those made without the specimens' fold. A cochlea counts as found where
its side is right, its middle within 1.5 mm and its axes within 25 degrees of the landmarks' frame (which is itself up
to 17 degrees off). without: 50 volumes of noise, bone, soft tissue, a skull, specimens whose cochlea was filled, and
specimens cropped to their canals. cut: every specimen cropped at three distances from the cochlea's middle, each
along another axis, then segmented; where more than 1 mm3 of the truth is lost the result must be refused or flagged.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from engine import print_table, report
from specimens import FOLDS, data_folder
from surroundings import KINDS, Scene, cut, embedded, embedded_pair, middle_of, phantom, specimen, without_cochlea

from logishape.cochlea import load_calibration, load_template, locate, segment
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.cochlea.vestibule import frame_offset
from logishape.core.errors import InputError
from logishape.io import read_mask

NEAR_MM, NEAR_DEGREES, LOST_MM3 = 1.5, 25.0, 1.0
NUM_WITHOUT = 50
NAMES = sorted(sum(FOLDS.values(), ()))


class Case(NamedTuple):
    """One volume to look at: which part of the study, its number, and what it shows."""

    part: str
    number: int
    what: str


class Row(NamedTuple):
    """What came of it: "right", "refused", "wrong", and for a cut one "flagged" or "silent"."""

    case: Case
    outcome: str
    scores: tuple[float, ...]
    seconds: float
    words: str


def cases(part: str) -> list[Case]:
    """All cases of a part of the study."""
    if part == "large":
        pairs = [f"{names[k]}+{names[k + 1]}" for names in FOLDS.values() for k in range(2)][:6]
        made = ["phantom 1", "phantom 2"] * 3
        return [Case(part, k, what) for k, what in enumerate([*NAMES, *pairs, *made])]
    if part == "without":
        return [Case(part, k, KINDS[k % len(KINDS)]) for k in range(NUM_WITHOUT)]
    return [Case(part, k, f"{NAMES[k // 3]} at {(1.5, 3.0, 4.5)[k % 3]} mm") for k in range(3 * len(NAMES))]


def make_scene(case: Case) -> tuple[Scene, str]:
    """The volume with its truth, and the fold whose template is used."""
    rng = np.random.default_rng([{"large": 1, "without": 2}[case.part], case.number])
    if case.part == "without":
        return without_cochlea(case.what, rng), "all"
    if case.what.startswith("phantom"):
        return phantom(int(case.what[-1]), rng, lumen=("fluid", "air")[case.number % 2]), "all"
    names = case.what.split("+")
    fold = next(key for key, some in FOLDS.items() if names[0] in some)
    if len(names) == 2:
        return embedded_pair(specimen(names[0]), specimen(names[1]), rng), fold
    ct, frame = specimen(names[0])
    other = "left" if frame.side == "right" else "right"
    return embedded(ct, frame, frame.side if case.number % 2 else other, rng), fold


def run(case: Case) -> Row:
    """One case."""
    if case.part == "cut":
        return run_cut(case)
    scene, fold = make_scene(case)
    began = time.perf_counter()
    try:
        found = locate(scene.volume, template=load_template(fold))
    except InputError as error:
        return Row(case, "refused", (), time.perf_counter() - began, str(error))
    seconds, scores = time.perf_counter() - began, tuple(one.score for one in found)
    missing, offsets = dict(scene.truth), []
    for one in found:
        truth = missing.pop(one.side, None)
        offsets.append((np.inf, np.inf) if truth is None else frame_offset(one.frame, truth))
    is_right = all(mm < NEAR_MM and degrees < NEAR_DEGREES for mm, degrees in offsets)
    outcome = "wrong" if not is_right else "incomplete" if missing else "right"
    return Row(case, outcome, scores, seconds, "; ".join(f"{a:.1f} mm, {b:.0f} degrees" for a, b in offsets))


def run_cut(case: Case) -> Row:
    """One specimen whose field of view ends near its cochlea."""
    name, distance = case.what.split()[0], float(case.what.split()[2])
    fold = next(key for key, some in FOLDS.items() if name in some)
    ct, frame = specimen(name)
    direction = np.roll([1.0, 0.0, 0.0], case.number % 3) * (1 if case.number % 2 else -1)
    rest = cut(ct, frame, direction, distance)
    truth = read_mask(data_folder() / name / "cochlea.nii.gz")
    inside = rest.to_index(truth.to_world(np.argwhere(truth.data)))
    lost = np.any((inside < -0.5) | (inside > np.array(rest.shape) - 0.5), axis=1).sum() * truth.voxel_size
    began = time.perf_counter()
    try:
        result = segment(rest, calibration=load_calibration(DEFAULT_FILE, fold), template=load_template(fold))
    except InputError as error:
        return Row(case, "refused", (), time.perf_counter() - began, f"{lost:.1f} mm3 lost; {error}")
    outcome = "flagged" if not result.is_trusted else "silent" if lost > LOST_MM3 else "whole"
    names = ", ".join(flag.name for flag in result.flags) or "no flag"
    away = np.linalg.norm(middle_of(frame) - middle_of(result.cochlea.frame))
    return Row(case, outcome, (), time.perf_counter() - began, f"{lost:.1f} mm3 lost; {names}; {away:.1f} mm")


def main() -> None:
    """Runs the parts asked for and prints what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("large", "without", "cut"), action="append", default=[])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int, nargs="*", default=[])
    chosen = parser.parse_args()
    for part in chosen.part or ("large", "without", "cut"):
        some: list[Any] = [case for case in cases(part) if not chosen.only or case.number in chosen.only]
        rows = []
        with ProcessPoolExecutor(chosen.processes) as pool:
            for row in pool.map(run, some):
                rows.append(row)
                scores = " ".join(f"{score:.3f}" for score in row.scores)
                report(f"{row.case.what}: {row.outcome} {scores} {row.seconds:.0f} s; {row.words}")
        kinds = sorted({row.outcome for row in rows})
        table = [[kind, f"{sum(row.outcome == kind for row in rows)}"] for kind in kinds]
        print_table(f"{part}: {len(rows)} volumes", ["outcome", "volumes"], table, [])
        print(f"Median {np.median([row.seconds for row in rows]):.1f} s each, {chosen.processes} at a time.")


if __name__ == "__main__":
    main()
