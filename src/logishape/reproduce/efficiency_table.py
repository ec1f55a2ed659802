"""The section on computational efficiency: iterations timed, whole fits extrapolated where they would take hours."""

import os
from typing import Any

import numpy as np

from logishape.reproduce import paper
from logishape.reproduce.blocks import Section, Table, duration
from logishape.reproduce.efficiency import WAYS, count, measure
from logishape.reproduce.study import Study

NUM_TURNS = 3
WORDS = {
    "bfgs-mesh": "BFGS, mesh distance, finite differences",
    "newton-mesh": "Gauss-Newton, mesh distance, finite differences",
    "newton-learned": "Gauss-Newton, learned distance",
    "newton-level": "Gauss-Newton, our level with exact derivatives",
}


def efficiency(study: Study) -> Section:
    """Iterations of the paper's ways and ours, in turns on one case."""
    name = study.first()
    turns = 1 if study.is_quick else NUM_TURNS
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    made = study.part(
        f"efficiency-{name}",
        lambda: {**measure(study.scene(name), turns, study.tell), "cores": cores},
        turns=turns,
        ways=list(WAYS),
    )
    counted = study.part(f"efficiency-{name}-steps", lambda: count(study.scene(name)))
    for one in (made, counted):
        if "refused" in one:
            return Section("Computational efficiency", f"Not measured: {one['refused']}")
    made = {**made, "counted": counted}
    num_timed = len(made["iteration_seconds"]["newton-level"])
    iteration = {way: float(np.median(seconds)) for way, seconds in made["iteration_seconds"].items()}
    return Section(
        "Computational efficiency",
        f"One problem, {name}: {made['voxels']} voxels, {made['parameters']} parameters, one start (the paper's "
        f"values, in the frame in which the case was found), {made['cores']} CPU cores. An iteration is one shape "
        "step and one appearance step on all voxels; the ways take turns.",
        (_ways(made, iteration), _shares(made, iteration)),
        (),
        (
            f"Seconds per iteration are medians of {num_timed} timed iterations after one that compiles. How many "
            "shape steps a fit takes was counted with our level, on all voxels, where a whole fit is short enough "
            "to be run; whole fits by mesh or learned distance are the product of the two, not measured.",
            f"The mesh is made anew for every distance map, 0.15 mm, the nearest face by {made['query']}; "
            "differences take two maps for each of the four parameters of the form, the pose comes from the map's "
            "gradient, as in the paper. The paper's times are of VTK maps, its own stopping rule (a step below "
            "10 %), dataset 2 and another computer.",
            *_endings(made),
            *(f"{WORDS[way]}: left out, {reason}." for way, reason in made["skipped"].items()),
            "Other work on the computer changes seconds; ratios less.",
        ),
    )


def _ways(made: dict[str, Any], iteration: dict[str, float]) -> Table:
    """A row for each way: an iteration, how many, the whole fit, and how many times ours that is."""
    own = made["fit_seconds"]
    ours = float(np.median(own))
    rows = []
    for way, (method, _) in WAYS.items():
        printed = duration(paper.SECONDS[way]) if way in paper.SECONDS else "-"
        if way not in iteration:
            rows.append((WORDS[way], "left out", "-", "-", "-", printed))
            continue
        steps = made["counted"][method]["steps"]
        whole = steps * iteration[way]
        words = f"{duration(whole)}, extrapolated"
        rows.append((WORDS[way], duration(iteration[way]), f"{steps}", words, f"{whole / ours:.0f}", printed))
    rows.append(("our fit of this problem, as a user gets it", "-", "-", duration(ours), "1", "-"))
    header = ("way", "an iteration", "steps", "a whole fit", "times our fit", "paper: a fit")
    return Table("The same problem and voxels", header, tuple(rows))


def _shares(made: dict[str, Any], iteration: dict[str, float]) -> Table:
    """What the paper's way takes, as a multiple of ours: when one thing differs, and when all do."""
    mesh = made["counted"]["gauss-newton"]["steps"] * iteration["newton-mesh"]
    alone = {key: float(np.median(seconds)) for key, seconds in made["derivative_seconds"].items() if seconds}
    fit, default = (float(np.median(made[key])) for key in ("fit_seconds", "default_seconds"))
    pairs = (
        ("level and all derivatives once, all voxels", alone["mesh"], alone["level"]),
        ("an iteration, only level and derivatives differ", iteration["newton-mesh"], iteration["newton-level"]),
        ("the whole fit against ours of the same problem: band of voxels, several shape steps at once", mesh, fit),
        ("the whole fit against our default one: 13 parameters, up to six starts, 4096 voxels", mesh, default),
    )
    rows = tuple((words, duration(a), duration(b), f"{a / b:.0f}") for words, a, b in pairs)
    header = ("", "Gauss-Newton, mesh, differences", "ours", "times")
    return Table("What makes the difference", header, rows)


def _endings(made: dict[str, Any]) -> tuple[str, ...]:
    """How the counted fits ended."""
    newton, bfgs = (made["counted"][method] for method in ("gauss-newton", "bfgs"))
    below = newton["log_joint"] - bfgs["log_joint"]
    return (
        f"By our level Gauss-Newton ended after {newton['steps']} steps ({newton['status']}) and BFGS after "
        f"{bfgs['steps']} ({bfgs['status']}), {abs(below):.2g} nats {'below' if below >= 0 else 'above'} it.",
    )
