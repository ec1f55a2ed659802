"""Tables and a figure of what `calibration.py` has left in a folder.

    python benchmarks/calibration_report.py FOLDER [--image docs/images/coverage.png] [--markdown]

For each class of phantoms: every parameter's and main measurement's bias, actual standard deviation, the median
reported one by each kind of covariance, and how often intervals of 50, 80, 90 and 95 % hold the truth, without and
with the correction for blur. Cases that were refused, or whose verdict is "do not use", are counted and left out.
`--markdown` prints the short tables of docs/coverage.md instead.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from engine import print_table

from logishape.metrics import Reliability

MAIN = ("A", "B", "H", "duct_length_organ_of_corti", "duct_length_lateral_wall", "turns", "volume")
PAIRS = {50: (3, 4), 80: (2, 5), 90: (1, 6), 95: (0, 7)}  # which of the quantiles that are kept
CLASSES = {0.0: "of the model's family", 1.0: "of another family"}
WAYS = ("plain", "corrected")


def load(folder: Path) -> list[dict[str, Any]]:
    """All cases, in their order."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("case-*.json"))]


def usable(cases: list[dict[str, Any]], misfit: float) -> list[dict[str, Any]]:
    """Those of a class that a person would use."""
    return [
        case
        for case in cases
        if case["settings"]["misfit"] == misfit and case.get("verdict") in ("good", "check") and holds_both(case)
    ]


def holds_both(case: dict[str, Any]) -> bool:
    """Whether there are intervals of both kinds, and a true pose to compare with."""
    return set(WAYS) <= set(case["estimates"]) and bool(np.all(np.isfinite(case["truth"])))


def columns(cases: list[dict[str, Any]], way: str, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Estimates, truths, quantiles (case, quantity, quantile) and names of parameters or measurements."""
    names = cases[0]["names" if what == "parameters" else "measurements"]
    key, truth = ("theta", "truth") if what == "parameters" else ("measured", "true_measurements")
    found = np.array([case["estimates"][way][key] for case in cases])
    quantiles = np.array([case["estimates"][way][what] for case in cases])
    return found, np.array([case[truth] for case in cases]), quantiles, names


def coverage(quantiles: np.ndarray, truth: np.ndarray, level: int) -> np.ndarray:
    """The share of intervals of this level that hold the truth, for each quantity."""
    low, high = PAIRS[level]
    return np.mean((quantiles[..., low] <= truth) & (truth <= quantiles[..., high]), axis=0)


def report_class(cases: list[dict[str, Any]], words: str) -> None:
    """The tables of one class."""
    for what in ("parameters", "measurements"):
        for way in WAYS:
            found, truth, quantiles, names = columns(cases, way, what)
            error, rows = found - truth, []
            for k, name in enumerate(names):
                if what == "measurements" and name not in MAIN:
                    continue
                width = np.median(quantiles[:, k, 6] - quantiles[:, k, 1]) / (2 * 1.6449)
                held = [f"{100 * coverage(quantiles, truth, level)[k]:.0f} %" for level in PAIRS]
                spread = (f"{np.mean(error[:, k]):.3f}", f"{np.std(error[:, k]):.3f}", f"{width:.3f}")
                rows.append((name, *spread, *held))
            title = f"{what}, {way}, {len(cases)} phantoms {words}"
            print_table(title, ["", "bias", "SD", "reported SD", *(f"{level} %" for level in PAIRS)], rows, [])
    header, rows = kinds_of(cases)
    print_table(f"reported SD by kind of covariance, {words}", header, rows, [])


def kinds_of(cases: list[dict[str, Any]]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Of each parameter the plain fit's actual standard deviation, and the median reported one by kind."""
    kinds = sorted({kind for case in cases for kind in case["kinds"]})
    rows = []
    for k, name in enumerate(cases[0]["names"]):
        by_kind = [[case["kinds"][kind][k] for case in cases if kind in case["kinds"]] for kind in kinds]
        error = np.array([case["estimates"]["plain"]["theta"][k] - case["truth"][k] for case in cases])
        rows.append((name, f"{np.std(error):.3f}", *(f"{np.median(column):.3f}" for column in by_kind)))
    return ["", "actual SD", *kinds], rows


def markdown(found: dict[str, list[dict[str, Any]]]) -> None:
    """The tables of the documentation: measurements of each class, parameters of both."""
    for words, cases in found.items():
        print(f"\nMeasurements {words}, {len(cases)} phantoms:\n")
        print(
            "| | bias, SD as fitted | hold, as fitted | bias, SD matched | reported SD | 50 % | 80 % | 90 % | 95 % |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        plain, matched = (columns(cases, way, "measurements") for way in WAYS)
        for k, name in enumerate(plain[3]):
            if name in MAIN:
                before, after = (one[0][:, k] - one[1][:, k] for one in (plain, matched))
                held = [f"{100 * coverage(matched[2], matched[1], level)[k]:.0f} %" for level in PAIRS]
                width = np.median(matched[2][:, k, 6] - matched[2][:, k, 1]) / (2 * 1.6449)
                own = f"{100 * coverage(plain[2], plain[1], 90)[k]:.0f} %"
                numbers = [f"{x.mean():.3f}, {x.std():.3f}" for x in (before, after)]
                print(f"| {name} | {numbers[0]} | {own} | {numbers[1]} | {width:.3f} | {' | '.join(held)} |")
    print(
        "\n| | as fitted | matched: bias, SD | reported SD | hold | other family, as fitted | other family, matched |"
    )
    print("|---|---|---|---|---|---|---|")
    tables = [[columns(cases, way, "parameters") for way in WAYS] for cases in found.values()]
    for k, name in enumerate(tables[0][0][3]):
        held = [[f"{100 * coverage(one[2], one[1], 90)[k]:.0f} %" for one in pair] for pair in tables]
        values, truth, quantiles, _ = tables[0][1]
        error, width = values[:, k] - truth[:, k], np.median(quantiles[:, k, 6] - quantiles[:, k, 1]) / (2 * 1.6449)
        numbers = f"{error.mean():.3f}, {error.std():.3f} | {width:.3f}"
        others = " | ".join(held[1]) if len(held) > 1 else " | "
        print(f"| {name} | {held[0][0]} | {numbers} | {held[0][1]} | {others} |")
    header, rows = kinds_of(next(iter(found.values())))
    print("\n| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def calibration_error(cases: list[dict[str, Any]], name: str) -> float:
    """The expected calibration error of a label map in the boundary band, all cases together."""
    return Reliability.of_sums(*np.sum([case["labels"][name] for case in cases], axis=0).T).expected_error


def draw(cases: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Coverage of 90 % intervals of parameters and main measurements, without and with the correction."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.4), layout="constrained")
    panels = figure.subplots(len(cases), 1, sharex=True, squeeze=False)[:, 0]
    for panel, (words, some) in zip(panels, cases.items(), strict=True):
        for offset, way in zip((-0.2, 0.2), WAYS, strict=True):
            heights, labels = [], []
            for what in ("parameters", "measurements"):
                _, truth, quantiles, names = columns(some, way, what)
                held = coverage(quantiles, truth, 90)
                chosen = [k for k, name in enumerate(names) if what == "parameters" or name in MAIN]
                heights += [held[k] for k in chosen]
                labels += [names[k].replace("duct_length_", "") for k in chosen]
            words_of = {"plain": "as fitted", "corrected": "matched"}
            panel.bar(np.arange(len(labels)) + offset, heights, 0.4, label=words_of[way])
            panel.set_xticks(range(len(labels)), labels, rotation=60, ha="right")
        panel.axhspan(0.85, 0.95, color="tab:green", alpha=0.15)
        panel.axhline(0.9, color="black", lw=0.8)
        panel.set(ylim=(0, 1), ylabel="90 % intervals\nthat hold the truth", title=f"{len(some)} phantoms {words}")
    panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Prints the tables and draws the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--image", type=Path)
    parser.add_argument("--markdown", action="store_true")
    chosen = parser.parse_args()
    cases = load(chosen.folder)
    counts = [sum("refused" in case for case in cases), sum(case.get("verdict") == "do not use" for case in cases)]
    broken = [case["broken"] for case in cases if "broken" in case]
    print(f"{len(cases)} phantoms: {counts[0]} refused, {counts[1]} not to be used, {len(broken)} broke", *broken)
    found = {words: usable(cases, misfit) for misfit, words in CLASSES.items()}
    found = {words: some for words, some in found.items() if some}
    if chosen.markdown:
        markdown(found)
    for words, some in found.items():
        if not chosen.markdown:
            report_class(some, words)
        blur = [case["blur_mm"] - case["settings"]["point_spread_mm"] for case in some if case["blur_mm"]]
        print(f"point spread, found less true: mean {np.mean(blur):.3f}, SD {np.std(blur):.3f} mm")
        strays = np.quantile([case["sections_sd_mm"] for case in some if case["sections_sd_mm"]], [0.05, 0.5, 0.95])
        print("sections stray (SD, mm; 5 %, median, 95 %):", *(f"{one:.3f}" for one in strays))
        errors = [f"{name} {calibration_error(some, name):.3f}" for name in ("probability", "marginal")]
        print(f"expected calibration error of labels within 0.5 mm of the surface: {', '.join(errors)}")
    if chosen.image is not None:
        draw(found, chosen.image)


if __name__ == "__main__":
    main()
