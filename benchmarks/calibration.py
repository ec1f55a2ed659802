"""Do the intervals hold? Phantom CTs with known truth, fitted as any CT, and how often each interval holds the truth.

    python benchmarks/calibration.py --out FOLDER [--cases 300] [--first 0] [--jobs N] [--seconds S]
    python benchmarks/calibration.py --out FOLDER --report [--images docs/images]

Every second phantom is of the model's own family, every other one is not: its sections wander along the duct by as
much as those of real ears. Voxels of 0.15 to 0.4 mm, point spread 0.2 to 0.5 mm (SD), noise of 60 to 250 HU, white or
correlated over 0.5 to 1.5 voxels, air or fluid, any orientation; all by the case's number alone. Each case is a file
in the folder: what is there is not done again. Runs where only jax, numpy, scipy and equinox are installed.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

FREE = ("section_scale", "theta_max", "apex_offset")
BAND_MM, NUM_BINS = 0.5, 20  # of the reliability of labels
KINDS = ("complete", "observed", "tempered", "sandwich")


def settings(case: int) -> dict[str, Any]:
    """What the phantom of this number is like."""
    rng = np.random.default_rng([case, 77])
    spacing = rng.uniform(0.15, 0.4)
    correlation = spacing * rng.uniform(0.5, 1.5) if rng.random() < 0.5 else 0.0
    return {
        "spacing_mm": spacing,
        "point_spread_mm": rng.uniform(0.2, 0.5),
        "noise_hu": rng.uniform(60, 250),
        "noise_correlation_mm": correlation,
        "lumen": "air" if rng.random() < 0.5 else "fluid",
        "side": "left" if rng.random() < 0.5 else "right",
        "orientation": "random",
        "misfit": float(case % 2),
        "size_mm": 20.0,
        "free": FREE,
    }


def study(case: int) -> dict[str, Any]:
    """One phantom made and segmented: truth, estimates, every kind of covariance, measurements, labels."""
    from logishape.cochlea import PhantomOptions, make_phantom, segment
    from logishape.cochlea.measurements import measure
    from logishape.core.errors import InputError

    given = settings(case)
    phantom = make_phantom(PhantomOptions(**given), 1000 + case)
    ear, began = phantom.ear, time.perf_counter()
    try:
        found = segment(phantom.volume)
    except InputError as error:
        return {"case": case, "settings": given, "refused": str(error)}
    seconds, truth = time.perf_counter() - began, measure(ear.cochlea, ear.theta, None)
    return {
        "case": case,
        "settings": given,
        "seconds": seconds,
        "side_is_right": found.side == ear.side,
        "verdict": found.verdict,
        "status": found.fit.status.name,
        "names": list(found.cochlea.parameter_names),
        "truth": np.r_[pose_in(found.cochlea.frame, ear), ear.theta[6:]].tolist(),
        "found": found.theta.tolist(),
        "true_measurements": {name: one.value for name, one in truth.items()},
        "measurements": {name: [m.value, m.lower, m.upper] for name, m in found.measurements.items()},
        "matrices": matrices(found),
        "labels": reliability(phantom, found),
        "dice": scores(phantom, found),
    }


def pose_in(frame: Any, ear: Any) -> np.ndarray:
    """The pose parameters that the true cochlea has in another frame of the same side."""
    from scipy.spatial.transform import Rotation

    centre = np.asarray(ear.cochlea.calibration.centre)
    axes, own = np.asarray(frame.axes), np.asarray(ear.cochlea.frame.axes)
    turn = Rotation.from_rotvec(ear.theta[3:6]).as_matrix()
    # y = turn (own (w - o) - c) + c + t = turn' (axes (w - o') - c) + c + t' for all w
    there = turn @ own @ axes.T
    origin = own @ (np.asarray(frame.origin) - np.asarray(ear.cochlea.frame.origin))
    shift = turn @ (origin - centre) + ear.theta[:3] + there @ centre
    if np.linalg.det(there) < 0:
        return np.full(6, np.nan)
    return np.r_[shift, Rotation.from_matrix(there).as_rotvec()]


def matrices(found: Any) -> dict[str, Any]:
    """All that covariances are made of, of every voxel near the surface at full weight, and the prior."""
    from logishape.core.lattice import lattice_index
    from logishape.core.observation import Observation
    from logishape.inference.model import Model
    from logishape.posterior.correlation import correlation_on_lattice, host_scores
    from logishape.posterior.data_information import _profiled, shape_information
    from logishape.posterior.sandwich import score_covariance
    from logishape.shapes import FirstOrder

    fit = found.found
    model = Model(FirstOrder(fit.model.shape), fit.model.prior, fit.model.reference_length)
    near = near_voxels(fit)
    pieces = Observation.from_arrays(fit.crop.points[near], fit.crop.intensities[near])
    state = fit.fit.state
    info = shape_information(model, pieces, state)
    known, _ = _profiled(model, pieces, state, info, 1.0, True)
    profiled, appearance = _profiled(model, pieces, state, info, 1.0, False)
    scores = host_scores(model, pieces, state)
    rows = np.asarray(scores.shape, np.float64)
    index = lattice_index(np.asarray(pieces.points))
    noise = correlation_on_lattice(index, np.asarray(scores.residual, np.float64))
    if appearance is not None:
        rows = rows - np.asarray(scores.appearance, np.float64) @ appearance.inverse @ appearance.cross.T
    widths = model.prior.widths
    B = score_covariance(rows * widths, index, noise.length)
    return {
        "complete": np.asarray(info.complete).tolist(),
        "observed": np.asarray(known).tolist(),
        "profiled": np.asarray(profiled).tolist(),
        "outer": np.asarray(info.outer).tolist(),
        "B": (B.matrix / np.outer(widths, widths)).tolist(),
        "score": np.asarray(info.score).tolist(),
        "fraction": noise.effective_fraction,
        "length": noise.length,
        "voxels": int(near.sum()),
        "used": None if found.posterior is None else np.asarray(found.posterior.covariance).tolist(),
    }


def near_voxels(fit: Any) -> np.ndarray:
    """Which voxels of the crop the last fit could have seen."""
    from logishape.cochlea.evaluation import level_at
    from logishape.cochlea.search import NEAR
    from logishape.cochlea.vestibule import is_beyond

    levels = level_at(fit.model.shape.by_level(), fit.theta, fit.crop.points)
    return fit.crop.is_covered & ~is_beyond(fit.crop.points) & (np.abs(levels) < NEAR)


def reliability(phantom: Any, found: Any) -> dict[str, Any]:
    """Voxels of the boundary band by probability: how many, their mean probability, how many are inside in truth."""
    from logishape.cochlea.evaluation import level_at

    truth, labels = phantom.ear.truth.data > 0, found.labels
    index = np.stack(np.nonzero(np.ones(truth[labels.block].shape)), axis=1)
    world = phantom.volume.to_world(index + np.array([s.start for s in labels.block]))
    band = np.abs(level_at(phantom.ear.cochlea, phantom.ear.theta, world)) < BAND_MM
    if found.cut is not None:
        from logishape.cochlea.vestibule import is_beyond

        band &= ~is_beyond((world - np.asarray(found.cut.origin)) @ np.asarray(found.cut.axes).T)
    inside = truth[labels.block].ravel()[band]
    return {name: bins_of(getattr(labels, name).ravel()[band], inside) for name in ("probability", "marginal")}


def bins_of(probability: np.ndarray, inside: np.ndarray) -> list[list[float]]:
    """A row a bin: voxels, sum of probabilities, voxels inside."""
    which = np.minimum((probability * NUM_BINS).astype(int), NUM_BINS - 1)
    columns = (np.ones(len(inside)), probability, inside)
    return np.stack([np.bincount(which, w, NUM_BINS) for w in columns], axis=1).tolist()


def scores(phantom: Any, found: Any) -> dict[str, float]:
    """Dice of labels and shape."""
    from logishape.metrics import compare

    truth = phantom.ear.truth
    by_shape = compare(found.labels.on_grid("shape"), truth)
    return {
        "segmentation": float(compare(found.labels.on_grid("segmentation"), truth).dice),
        "shape": float(by_shape.dice),
        "shape_distance": float(by_shape.mean_surface_distance or np.nan),
    }


def do(case: int, folder: str) -> tuple[int, str]:
    """One case in a file of its own; a word on how it went."""
    path = Path(folder) / f"case-{case:04d}.json"
    if path.exists():
        return case, "there"
    try:
        row = study(case)
    except Exception as error:  # a case that breaks the program is a result too
        row = {"case": case, "settings": settings(case), "broken": f"{type(error).__name__}: {error}"}
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(row))
    temporary.replace(path)
    return case, row.get("broken") or row.get("refused") or row["verdict"]


def prepare() -> None:
    """One core each, and programs that are compiled once for all."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", "/tmp/logishape-study-cache")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def run(cases: list[int], folder: Path, jobs: int, seconds: float) -> None:
    """All cases that are not there yet, some at a time, until the time is over."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    left = [case for case in cases if not (folder / f"case-{case:04d}.json").exists()]
    with concurrent.futures.ProcessPoolExecutor(jobs, context) as pool:
        if left:
            first = pool.submit(do, left[0], str(folder)).result()  # compiles what the others load
            print(*first, f"{time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        waiting = {pool.submit(do, case, str(folder)) for case in left[1:]}
        try:
            for k, done in enumerate(concurrent.futures.as_completed(waiting, timeout=max(seconds, 1))):
                case, word = done.result()
                if k % 16 == 0:
                    print(
                        f"{time.perf_counter() - began:6.0f} s, {k + 2} of {len(left)}: case {case}: {word}",
                        file=sys.stderr,
                        flush=True,
                    )
        except concurrent.futures.TimeoutError:
            print(f"stopped after {seconds:.0f} s; the same call goes on", file=sys.stderr, flush=True)
            for process in list(pool._processes.values()):
                process.terminate()


def main() -> None:
    """Runs or reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=1e6)
    chosen = parser.parse_args()
    prepare()
    run(list(range(chosen.first, chosen.first + chosen.cases)), chosen.out, chosen.jobs, chosen.seconds)


if __name__ == "__main__":
    main()
