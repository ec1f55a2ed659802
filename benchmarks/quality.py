"""What the verdict catches, whether it leaves good results alone, and whether the surface error stands for Dice.

    python benchmarks/quality.py [--out DIR] [--cases N] [--processes N] [--only KIND ...] [--figure FILE]
        [--specimens DIR] [--part run|print] [--share K/N]

Phantoms of 18 mm, each case by its kind and number, kept as DIR/KIND-NUMBER.json: a case that is there is not run
again, and any number of processes or machines may share the folder; tables judge what is stored by the thresholds of
today. Needs jax, equinox, numpy and scipy.

clean: as clean as the specimens; found in the image alone. Broken ones: start, a pose 2.5 to 5 mm and 40 to 180
degrees off, said to be found there; side, the mirror image of the true pose, said to be found there; noise, of 700 to
2000 HU; cut, a field of view that ends 0.5 to 3 mm from the cochlea's middle; without, a volume that has none,
searched or, for every other one, with a pose said to be found in its middle. hard: phantoms of varied noise, blur,
voxel size and form, with landmarks.

What was settled before any case was run: a result is bad if its Dice is below 0.8, its side is wrong or its middle is
more than 2 mm off. A case is broken if it was refused or its result is bad; it is caught if it was refused or its
verdict is not "good". A false alarm is a clean case that was refused, or whose result is not bad and not called good.
`--specimens` adds what crossvalidate.py wrote there to the clean ones.
"""

import argparse
import dataclasses
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from engine import print_table, report
from scipy.spatial.transform import Rotation
from scipy.stats import spearmanr
from surroundings import cut, without_cochlea

from logishape.cochlea import Frame, Located, Phantom, PhantomOptions, SegmentOptions, make_phantom, segment
from logishape.cochlea.quality import flags_of_signs
from logishape.cochlea.signs import Signs
from logishape.cochlea.verdict import Flag, verdict_of
from logishape.cochlea.vestibule import frame_of_model
from logishape.core.errors import InputError
from logishape.core.volume import Volume

BAD_DICE, FAR_MM = 0.8, 2.0
BROKEN = ("start", "side", "noise", "cut", "without")
MADE = ("noise", "bone", "soft", "skull")  # volumes without a cochlea that need no specimen
SIZE_MM = 18.0
SIGNS = (
    "likeness",
    "score",
    "margin",
    "rival",
    "contrast",
    "surface_error",
    "shape_surface_error",
)  # flags of these
OPTIONS = SegmentOptions(num_draws=10)
MIDDLE = np.array([[0.6, 0.2, 0.8]])


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """A volume, the pose that is claimed for it (None: it is searched), and the phantom it shows."""

    volume: Volume
    pose: Frame | Located | None
    phantom: Phantom | None


def made(rng: np.random.Generator, **choice: Any) -> Phantom:
    """A phantom of a random ear, side and orientation."""
    usual = {
        "lumen": str(rng.choice(["fluid", "air"])),
        "side": str(rng.choice(["left", "right"])),
        "spacing_mm": float(rng.uniform(0.2, 0.3)),
        "orientation": "random",
        "size_mm": SIZE_MM,
    }
    return make_phantom(PhantomOptions(**(usual | choice)), int(rng.integers(1 << 31)))


def true_frame(phantom: Phantom) -> Frame:
    """The frame that landmarks on this cochlea would have on average."""
    return frame_of_model(phantom.ear.cochlea, phantom.ear.theta)


def turned(frame: Frame, turn: Rotation, shift: np.ndarray) -> Frame:
    """A frame turned about the cochlea's middle and moved."""
    axes = turn.as_matrix() @ np.asarray(frame.axes)
    middle = np.asarray(frame.to_world(MIDDLE))[0] + shift
    return Frame(axes, middle - MIDDLE[0] @ axes)


def make_clean(rng: np.random.Generator, _: int) -> Trial:
    """As clean as the specimens, to be found."""
    phantom = made(rng)
    return Trial(phantom.volume, None, phantom)


def make_start(rng: np.random.Generator, _: int) -> Trial:
    """A wrong pose of the right side."""
    phantom = made(rng)
    turn = Rotation.from_rotvec(np.radians(rng.uniform(40, 180)) * _direction(rng))
    pose = turned(true_frame(phantom), turn, rng.uniform(2.5, 5.0) * _direction(rng))
    return Trial(phantom.volume, Located(pose, 0.85), phantom)


def make_side(rng: np.random.Generator, _: int) -> Trial:
    """The other side forced: the mirror image of the true pose."""
    phantom = made(rng)
    frame = true_frame(phantom)
    axes = np.asarray(frame.axes) * np.array([[1], [-1], [1]])
    middle = np.asarray(frame.to_world(MIDDLE))[0]
    return Trial(phantom.volume, Located(Frame(axes, middle - MIDDLE[0] @ axes), 0.85), phantom)


def make_noise(rng: np.random.Generator, _: int) -> Trial:
    """Heavy noise; the pose is the true one, so that something is fitted."""
    phantom = made(rng, noise_hu=float(rng.uniform(700, 2000)), noise_correlation_mm=float(rng.uniform(0, 0.3)))
    return Trial(phantom.volume, Located(true_frame(phantom), 0.85), phantom)


def make_cut(rng: np.random.Generator, number: int) -> Trial:
    """A field of view that ends in the cochlea; every other one is searched, the others know the pose."""
    phantom = made(rng)
    frame = true_frame(phantom)
    volume = cut(phantom.volume, frame, _direction(rng), float(rng.uniform(0.5, 3.0)))
    return Trial(volume, Located(frame, 0.85) if number % 2 else None, phantom)


def make_without(rng: np.random.Generator, number: int) -> Trial:
    """No cochlea; every other one is searched, the others claim one in their middle."""
    volume = without_cochlea(MADE[number // 2 % len(MADE)], rng).volume
    if number % 2 == 0:
        return Trial(volume, None, None)
    middle = volume.to_world((np.array(volume.shape) - 1) / 2)
    axes = Rotation.random(rng=rng).as_matrix()
    return Trial(volume, Located(Frame(axes, middle - MIDDLE[0] @ axes), 0.85), None)


def make_hard(rng: np.random.Generator, _: int) -> Trial:
    """Anything from easy to hopeless: noise, blur, voxels and form."""
    phantom = made(
        rng,
        noise_hu=float(80 * 20 ** rng.uniform()),
        noise_correlation_mm=float(rng.uniform(0, 0.3)),
        point_spread_mm=float(rng.uniform(0.1, 0.5)),
        spacing_mm=float(rng.uniform(0.2, 0.5)),
        shape_spread=float(rng.uniform(0.5, 2.0)),
        landmark_error_mm=0.3,
    )
    marks = phantom.ear.landmarks
    return Trial(phantom.volume, Frame.from_landmarks(marks["C"], marks["A"], marks["RW"], phantom.ear.side), phantom)


KINDS: dict[str, Callable[[np.random.Generator, int], Trial]] = {
    **{"clean": make_clean, "start": make_start, "side": make_side, "noise": make_noise},
    **{"cut": make_cut, "without": make_without, "hard": make_hard},
}


def _direction(rng: np.random.Generator) -> np.ndarray:
    vector = rng.normal(size=3)
    return vector / np.linalg.norm(vector)


def run_case(out: Path, case: tuple[str, int]) -> dict[str, Any]:
    """One case, or what is stored of it."""
    kind, number = case
    path = out / f"{kind}-{number}.json"
    if path.is_file():
        return json.loads(path.read_text())
    began = time.perf_counter()
    trial = KINDS[kind](np.random.default_rng([17, list(KINDS).index(kind), number]), number)
    found: dict[str, Any] = {"kind": kind, "number": number, "refused": None}
    try:
        result = segment(trial.volume, trial.pose, options=OPTIONS)
    except InputError as error:
        found["refused"] = str(error)
    else:
        found |= {"verdict": result.verdict, "flags": {flag.name: flag.is_serious for flag in result.flags}}
        found |= {"quality": dataclasses.asdict(result.signs), "status": result.fit.status.name}
        found |= scores(trial, result)
    found["seconds"] = time.perf_counter() - began
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(found, indent=1))
    temporary.replace(path)
    return found


def scores(trial: Trial, result: Any) -> dict[str, Any]:
    """Dice of segmentation and shape against the truth, and how far the fitted model's middle is off."""
    if trial.phantom is None:
        return {"dice": 0.0, "shape_dice": 0.0, "away_mm": None, "is_side": False}
    truth = trial.phantom.ear.truth
    points = truth.to_world(np.argwhere(truth.data))
    values = {}
    for key, name in (("dice", "segmentation"), ("shape_dice", "shape")):
        mask = result.labels.on_grid(name)
        index = np.round(mask.to_index(points)).astype(int)
        is_in = np.all((index >= 0) & (index < mask.shape), axis=1)
        both = np.count_nonzero(mask.data[tuple(index[is_in].T)])
        values[key] = 2 * both / max(np.count_nonzero(mask.data) + len(points), 1)
    true, own = true_frame(trial.phantom), frame_of_model(result.cochlea, result.theta)
    is_side = result.side == trial.phantom.ear.side
    away = float(np.linalg.norm(np.asarray(own.to_world(MIDDLE)) - np.asarray(true.to_world(MIDDLE))))
    return {**values, "away_mm": away, "is_side": bool(is_side)}


def is_bad(row: dict[str, Any]) -> bool:
    """The definition that was settled beforehand."""
    return row["refused"] is None and (
        row["dice"] < BAD_DICE or not row["is_side"] or row["away_mm"] is None or row["away_mm"] > FAR_MM
    )


def print_broken(rows: list[dict[str, Any]]) -> None:
    """What came of the broken cases."""
    table, total = [], np.zeros(6, int)
    for kind in BROKEN:
        some = [row for row in rows if row["kind"] == kind]
        bad = [row for row in some if is_bad(row)]
        refused = sum(row["refused"] is not None for row in some)
        called = [sum(row["verdict"] == word for row in bad) for word in ("do not use", "check", "good")]
        counts = np.array([len(some), refused, *called, len(some) - refused - len(bad)])
        total += counts
        table.append([kind, *map(str, counts)])
    table.append(["all", *map(str, total)])
    header = ["broken by", "cases", "refused", "bad: do not use", "bad: check", "bad: good", "mended"]
    print_table("Broken cases", header, table, [])
    broken, bad = total[1:5].sum(), total[2:5].sum()
    print(f"Caught: {(broken - total[4]) / max(broken, 1):.1%} of {broken} broken, of the bad results that were ")
    print(
        f"given {(bad - total[4]) / max(bad, 1):.1%} of {bad}; 'do not use' for {total[2] / max(bad, 1):.1%} of them."
    )


def print_clean(rows: list[dict[str, Any]], words: str) -> None:
    """False alarms."""
    alarms = [row for row in rows if row["refused"] is not None or (row["verdict"] != "good" and not is_bad(row))]
    bad = sum(is_bad(row) for row in rows)
    print(f"Clean {words}: {len(alarms)} false alarms in {len(rows)}; {bad} of them bad.")
    for row in alarms:
        print(f"  {row['kind']} {row['number']}: {row['refused'] or row['flags']}")


def print_ranks(rows: list[dict[str, Any]], figure: Path | None) -> None:
    """Rank correlation of Dice with the surface errors: of hard cases, with clean ones, with broken ones too."""
    kept = [row for row in rows if row["refused"] is None and row["quality"]["surface_error_mm"] is not None]
    kept = [row for row in kept if row["kind"] != "without"]  # there is no Dice of what is not there
    pairs = [
        ("surface_error_mm", "dice"),
        ("shape_surface_error_mm", "dice"),
        ("shape_surface_error_mm", "shape_dice"),
    ]
    table = []
    for words, kinds in (("hard", ["hard"]), ("and clean", ["hard", "clean"]), ("and broken", list(KINDS))):
        some = [row for row in kept if row["kind"] in kinds]
        for sign, score in pairs if len(some) > 2 else ():  # fewer have no ranks
            found: Any = spearmanr([row["quality"][sign] for row in some], [row[score] for row in some])
            dices = [row[score] for row in some]
            span = f"{min(dices):.2f} to {max(dices):.2f}"
            table.append([words, sign, score, f"{len(some)}", span, f"{found.statistic:.2f}"])
    header = ["phantoms", "error", "score", "n", "scores", "Spearman"]
    print_table("Surface error and Dice, of what was not refused", header, table, [])
    if figure is not None:
        draw(kept, figure)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Dice against the average surface error, as the paper has it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {"good": "#2e7d32", "check": "#e69100", "do not use": "#c62828"}
    drawn, axes = plt.subplots(figsize=(5.5, 4), constrained_layout=True)
    for verdict, colour in colours.items():
        some = [row for row in rows if row["verdict"] == verdict]
        x = [row["quality"]["surface_error_mm"] for row in some]
        axes.scatter(x, [row["dice"] for row in some], s=18, color=colour, label=verdict)
    axes.axhline(BAD_DICE, color="0.7", lw=0.8)
    axes.set(xlabel="average surface error (mm)", ylabel="Dice against the truth")
    axes.legend(frameon=False, title="verdict")
    drawn.savefig(path, dpi=110, metadata={"Software": None})


def judged(row: dict[str, Any]) -> dict[str, Any]:
    """A stored row with the flags and the verdict that today's thresholds give its signs."""
    if row["refused"] is not None:
        return row
    raised = flags_of_signs(Signs(**row["quality"]))
    kept = {name: serious for name, serious in row["flags"].items() if name not in SIGNS}
    flags = kept | {flag.name: flag.is_serious for flag in raised}
    return row | {"flags": flags, "verdict": verdict_of(Flag(name, "", serious) for name, serious in flags.items())}


def specimens(folder: Path) -> list[dict[str, Any]]:
    """What crossvalidate.py wrote of each specimen; that they are not bad is what its own table says."""
    rows = []
    for path in sorted(folder.glob("*/*/result.json")):
        record = json.loads(path.read_text())
        flags = {flag["name"]: flag["is_serious"] for flag in record["flags"]}
        kept = {"verdict": record["verdict"], "flags": flags, "quality": record["quality"]}
        good = {"dice": 1.0, "is_side": True, "away_mm": 0.0, "refused": None}
        rows.append(judged({"kind": "specimen", "number": path.parts[-3], **kept, **good}))
    return rows


def main() -> None:
    """Runs what is missing and prints what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/quality"))
    parser.add_argument("--cases", type=int, default=40, help="of clean ones; twice as many hard, 0.3 of each broken")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--share", default="0/1", help="K/N: of N machines or processors the K-th, from 0")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--specimens", type=Path)
    parser.add_argument("--part", choices=("both", "run", "print"), default="both")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.part != "print":
        counts = {kind: round(0.3 * chosen.cases) for kind in BROKEN} | {"clean": chosen.cases}
        counts["hard"] = 2 * chosen.cases
        cases = [(kind, k) for k in range(max(counts.values())) for kind in chosen.only if k < counts[kind]]
        own, all_of_them = map(int, chosen.share.split("/"))
        cases = cases[own::all_of_them]
        with ProcessPoolExecutor(chosen.processes) as pool:
            for done in as_completed([pool.submit(run_case, chosen.out, case) for case in cases]):
                row = done.result()
                words = row["refused"] or f"{row['verdict']}, Dice {row['dice']:.2f}, {row['flags']}"
                report(f"{row['kind']} {row['number']}: {words}; {row['seconds']:.0f} s")
    rows = [judged(json.loads(path.read_text())) for path in sorted(chosen.out.glob("*-*.json"))]
    by_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
    print_broken(rows)
    print_clean(by_kind["clean"], "phantoms")
    if chosen.specimens is not None:
        print_clean(specimens(chosen.specimens), "specimens")
    print_ranks(rows, chosen.figure)


if __name__ == "__main__":
    main()
