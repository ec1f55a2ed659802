"""Block-matching registration to a reference against our own finder, on the specimens.

    python benchmarks/register.py [--only NAME ...] [--all-references | --turns]

Each specimen is found by `locate` (with the template made without its fold), by registration to the phantom, and by
registration to other specimens: to the next one in the list, or with --all-references to each of the eleven others.
The side is not told. Right: the side is right, the middle within 1.5 mm and the axes within 25 degrees of the
landmarks' frame, which is itself off by 5 degrees in the median. Everything else is refused or wrong. With --turns
three phantoms, each turned about three axes, are registered to the phantom: how far heads may lie differently.
"""

import argparse
import functools
import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from engine import print_table
from scipy.spatial.transform import Rotation
from specimens import FOLDS
from surroundings import specimen

from logishape.cochlea import Frame, Located, PhantomOptions, load_template, locate, make_phantom
from logishape.cochlea.reference import phantom_reference
from logishape.cochlea.register import LEAST_SCORE, Reference, register
from logishape.cochlea.vestibule import frame_of_model, frame_offset
from logishape.core.errors import InputError
from logishape.core.volume import Volume

NEAR_MM, NEAR_DEGREES = 1.5, 25.0
NAMES = sorted(sum(FOLDS.values(), ()))


class Row(NamedTuple):
    """One attempt: how, on which specimen, from which reference, what came of it."""

    way: str
    name: str
    reference: str
    outcome: str
    score: float
    mm: float
    degrees: float
    seconds: float


def attempt(way: str, name: str, reference: str, find: Callable[[Volume], tuple[Located, ...]]) -> Row:
    """Times one way to find the specimen's cochlea and compares with its landmarks."""
    return judge(Row(way, name, reference, "", 0, 0, 0, 0), specimen(name), find)


def judge(row: Row, case: tuple[Volume, Frame], find: Callable[[Volume], tuple[Located, ...]]) -> Row:
    """The row of one attempt on a CT whose frame is known."""
    (volume, truth), (way, name, reference) = case, row[:3]
    began = time.perf_counter()
    try:
        found = find(volume)[0]
    except InputError:
        return Row(way, name, reference, "refused", np.nan, np.nan, np.nan, time.perf_counter() - began)
    seconds = time.perf_counter() - began
    mm, degrees = distance(found.frame, truth)
    is_right = found.side == truth.side and mm < NEAR_MM and degrees < NEAR_DEGREES
    outcome = "right" if is_right else "wrong"
    if way == "register" and found.score < LEAST_SCORE:
        outcome = "refused, right" if is_right else "refused"
    return Row(way, name, reference, outcome, found.score, mm, degrees, seconds)


def distance(found: Frame, truth: Frame) -> tuple[float, float]:
    """mm and degrees between frames; 180 degrees where the side is wrong."""
    mm = float(np.linalg.norm(Located(found, 0.0).middle - Located(truth, 0.0).middle))
    return mm, frame_offset(found, truth)[1] if found.side == truth.side else 180.0


def attempts(name: str, has_all: bool) -> list[Row]:
    """All ways for one specimen."""
    fold = next(key for key, some in FOLDS.items() if name in some)
    others = [other for other in NAMES if other != name]
    if not has_all:
        others = [NAMES[(NAMES.index(name) + 1) % len(NAMES)]]
    rows = [
        attempt("locate", name, "template", lambda ct: locate(ct, template=load_template(fold))),
        attempt("register", name, "phantom", lambda ct: register(ct, phantom_reference(), least_score=-1)),
    ]
    for other in others:
        reference = Reference(*specimen(other))
        rows.append(attempt("register", name, other, lambda ct, to=reference: register(ct, to, least_score=-1)))
    return rows


def _offsets(rows: list[Row]) -> tuple[list[float], list[float]]:
    return [row.mm for row in rows], [row.degrees for row in rows]


def turned(angle: float) -> list[Row]:
    """Phantoms turned by this angle (degrees) about the world's axes, registered to the phantom of reference."""
    rows = []
    for seed, axis in itertools.product((1, 2, 3), np.eye(3)):
        made = make_phantom(PhantomOptions(spacing_mm=0.3, lumen=("fluid", "air")[seed % 2]), seed)
        motion, middle = np.eye(4), np.asarray(made.ear.frame.origin)
        motion[:3, :3] = Rotation.from_rotvec(np.radians(angle) * axis).as_matrix()
        motion[:3, 3] = middle - motion[:3, :3] @ middle
        own = frame_of_model(made.ear.cochlea, made.ear.theta)
        origin = motion[:3, :3] @ np.asarray(own.origin) + motion[:3, 3]
        truth = Frame(np.asarray(own.axes) @ motion[:3, :3].T, origin)
        volume = Volume(made.volume.data, motion @ made.volume.affine)
        find = functools.partial(register, reference=phantom_reference(), least_score=-1)
        rows.append(judge(Row("register", f"phantom {seed}", "phantom", "", 0, 0, 0, 0), (volume, truth), find))
    return rows


def summarise(way: str, rows: list[Row]) -> list[str]:
    """One line of the table."""
    right = [row for row in rows if row.outcome == "right"]
    score = [row.score for row in rows if row.outcome != "right" and np.isfinite(row.score)]
    refused = [row for row in rows if row.outcome.startswith("refused")]
    low, high = min((row.score for row in right), default=np.nan), max(score, default=np.nan)
    middle = [np.median(column) if right else np.nan for column in _offsets(right)]
    counts = [len(rows), len(right), len(refused), len(rows) - len(right) - len(refused)]
    seconds = float(np.median([row.seconds for row in rows]))
    last = (f"{middle[0]:.2f}", f"{middle[1]:.1f}", f">= {low:.2f}", f"<= {high:.2f}", f"{seconds:.1f}")
    return [way, *(str(count) for count in counts), *last]


def main() -> None:
    """Prints each attempt and a summary by way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=NAMES)
    parser.add_argument("--all-references", action="store_true")
    parser.add_argument("--turns", action="store_true")
    arguments = parser.parse_args()
    phantom_reference()  # made once, not timed
    header = ["way", "n", "right", "refused", "wrong", "median mm", "degrees", "score of right", "of others", "s"]
    if arguments.turns:
        lines = [summarise(f"turned by {angle} degrees", turned(angle)) for angle in (0, 10, 20, 30, 45)]
        return print_table("Phantoms to the phantom", header, lines, [])
    rows = []
    for name in arguments.only:
        rows += attempts(name, arguments.all_references)
        for row in rows[-(13 if arguments.all_references else 3) :]:
            print(" ".join(f"{value:.2f}" if isinstance(value, float) else value for value in row), flush=True)
    groups = {
        "locate": [row for row in rows if row.way == "locate"],
        "register to the phantom": [row for row in rows if row.reference == "phantom"],
        "register to another specimen": [row for row in rows if row.way == "register" and row.reference in NAMES],
    }
    print_table("Finding the frame", header, [summarise(way, some) for way, some in groups.items()], [])


if __name__ == "__main__":
    main()
