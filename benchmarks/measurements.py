"""Sizes of segmented specimens against those of their truth masks, cross-validated, from the raw CT.

    python benchmarks/crossvalidate.py --part segment --out DIR
    python benchmarks/measurements.py [--segmented DIR] [--only NAME ...]
    python benchmarks/measurements.py --seconds

Volume: of both masks within the region where predictions are scored. A and B: how far they reach from the axis, in
a slab of 0.5 mm through it, at 0 plus at 180 degrees and at 90 plus at 270. The axis and its zero are those of the
fitted model for both masks, so that only the masks differ; both are clipped to the region, which ends towards the
vestibule. Beside them A and B of the fitted shape (`result.json`), which are defined by its sections and know of no
region. `--seconds` times all measurements of 100 draws.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from engine import print_table
from specimens import FOLDS, data_folder

from logishape.cochlea import Cochlea, Frame, load_calibration
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.cochlea.measurements import measure
from logishape.core.arrays import double_precision
from logishape.core.volume import Volume
from logishape.io import read_mask

HALF_SLAB_MM = 0.25
KINDS = {"cochlea": "manual", "cochlea_uct": "micro-CT"}
QUARTERS = {"A": (0.0, np.pi), "B": (np.pi / 2, 3 * np.pi / 2)}


def fitted(record: dict[str, Any], name: str) -> tuple[Cochlea, np.ndarray]:
    """The shape that was fitted to a specimen, from its record."""
    fold = next(key for key, names in FOLDS.items() if name in names)
    frame = Frame(record["pose"]["frame"]["axes"], record["pose"]["frame"]["origin_ras_mm"])
    cochlea = Cochlea(frame, tuple(record["options"]["free"]), load_calibration(DEFAULT_FILE, fold))
    theta = np.array([record["parameters"][key]["value"] for key in cochlea.parameter_names])
    return cochlea, theta


def sizes(mask: Volume, region: Volume, shape: tuple[Cochlea, np.ndarray]) -> dict[str, float]:
    """Volume (mm^3), A and B (mm) of a mask within the region, about the fitted axis."""
    index = np.argwhere((mask.data > 0) & (region.data > 0))
    with double_precision():
        points = np.asarray(shape[0].to_model(shape[1], mask.to_world(index)))
    found = {"volume": len(index) * mask.voxel_size}
    for name, angles in QUARTERS.items():
        found[name] = sum(reach(points, angle) for angle in angles)
    return found


def reach(points: np.ndarray, angle: float) -> float:
    """The largest distance from the axis in the slab of an angle."""
    along = points[:, 0] * np.cos(angle) + points[:, 1] * np.sin(angle)
    across = points[:, 1] * np.cos(angle) - points[:, 0] * np.sin(angle)
    return float(along[(np.abs(across) < HALF_SLAB_MM) & (along > 0)].max())


def compare_all(folder: Path, names: list[str]) -> None:
    """Prints each specimen's sizes and the mean absolute errors in percent."""
    rows, errors = [], {kind: [] for kind in KINDS}
    for name in names:
        (path,) = sorted(folder.glob(f"{name}/*/result.json"))
        record = json.loads(path.read_text())
        shape, region = fitted(record, name), read_mask(data_folder() / name / "region.nii.gz")
        own = sizes(read_mask(path.parent / "segmentation.nii.gz"), region, shape)
        model = {key: record["measurements"][key]["value"] for key in QUARTERS}
        for kind in KINDS:
            file = data_folder() / name / f"{kind}.nii.gz"
            if not file.exists():
                continue
            truth = sizes(read_mask(file), region, shape)
            off = [100 * (own[key] / truth[key] - 1) for key in ("A", "B", "volume")]
            off += [100 * (model[key] / truth[key] - 1) for key in QUARTERS]
            errors[kind].append(off)
            cells = [f"{own[key]:.2f} / {truth[key]:.2f}" for key in ("A", "B")]
            cells += [f"{own['volume']:.1f} / {truth['volume']:.1f}", *(f"{model[key]:.2f}" for key in QUARTERS)]
            rows.append([name, KINDS[kind], *cells])
    header = ["specimen", "truth", "A ours / truth", "B", "volume", "A of the shape", "B of the shape"]
    print_table("Sizes, mm and mm3", header, rows, [])
    table = []
    for kind, off in errors.items():
        table.append([KINDS[kind], f"{len(off)}", *(f"{x:.1f} %" for x in np.abs(off).mean(axis=0))])
        table.append(["  mean, signed", "", *(f"{x:+.1f} %" for x in np.mean(off, axis=0))])
        table.append(["  largest", "", *(f"{x:.1f} %" for x in np.abs(off).max(axis=0))])
    header = ["truth", "n", "A", "B", "volume", "A of the shape", "B of the shape"]
    print_table("Mean absolute errors", header, table, [])


def time_measurements() -> None:
    """Seconds that all measurements of 100 draws take, the first time and warm."""
    cochlea = Cochlea(free=("section_scale", "theta_max", "apex_offset"))
    prior, mean = cochlea.prior(), cochlea.mean()
    steps = 0.3 * np.minimum(cochlea.sd(), 0.1) * np.random.default_rng(0).normal(size=(100, mean.size))
    draws = np.clip(mean + steps, prior.lower, prior.upper)
    seconds = []
    for _ in range(6):
        began = time.perf_counter()
        measure(cochlea, mean, draws)
        seconds.append(time.perf_counter() - began)
    print(f"All measurements of 100 draws: {seconds[0]:.1f} s the first time, {np.median(seconds[1:]):.2f} s warm")


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segmented", type=Path, default=Path("out/crossvalidate-found-none"))
    parser.add_argument("--only", nargs="*", default=sorted(sum(FOLDS.values(), ())))
    parser.add_argument("--seconds", action="store_true")
    chosen = parser.parse_args()
    if chosen.seconds:
        time_measurements()
    else:
        compare_all(chosen.segmented, chosen.only)


if __name__ == "__main__":
    main()
