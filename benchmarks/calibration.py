"""Do the intervals hold? Phantom CTs with known truth, fitted as any CT, and how often each interval holds the truth.

    python benchmarks/calibration.py --out FOLDER [--cases 300] [--first 0] [--jobs N] [--seconds S]
                                     [--pose landmarks]
    python benchmarks/calibration_report.py FOLDER

Every second phantom is of the model's own family, every other one is not: its sections wander along the duct
(misfit 1). Voxels of 0.15 to 0.4 mm, point spread 0.2 to 0.5 mm (SD), noise of 60 to 250 HU, white or correlated over
0.5 to 1.5 voxels, air or fluid, any orientation; all by the case's number alone. Each case is a file in the folder:
what is there is not done again. Runs where only jax, numpy, scipy and equinox are installed.
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
NUM_DRAWS = 200
QUANTILES = (0.025, 0.05, 0.1, 0.25, 0.75, 0.9, 0.95, 0.975)


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


def study(case: int, where: str) -> dict[str, Any]:
    """One phantom made and segmented: truth, estimates without and with correction, and how often they hold."""
    from logishape.cochlea import PhantomOptions, SegmentOptions, make_phantom, segment
    from logishape.cochlea.draws import draw_cochleae
    from logishape.cochlea.estimate import plain_posterior
    from logishape.cochlea.measurements import QUANTITIES, measured_rows
    from logishape.core.errors import InputError

    given = settings(case)
    phantom = make_phantom(PhantomOptions(**given), 1000 + case)
    ear, began = phantom.ear, time.perf_counter()
    try:
        found = segment(
            phantom.volume,
            rough_frame(ear, case) if where == "landmarks" else None,
            options=SegmentOptions(),
        )
    except InputError as error:
        return {"case": case, "settings": given, "refused": str(error)}
    seconds = time.perf_counter() - began
    truth = np.r_[pose_in(found.cochlea.frame, ear), ear.theta[6:]]
    estimates = {}
    posteriors = {"plain": plain_posterior(found.found, found.options), "corrected": found.posterior}
    misfits = {"plain": None, "corrected": None if found.matched is None else found.matched.misfit}
    for name, posterior in posteriors.items():
        if posterior is None:
            continue
        draws = draw_cochleae(found.cochlea, posterior, misfits[name], case, NUM_DRAWS)
        (best,) = measured_rows(found.cochlea, posterior.mean[None])
        rows = measured_rows(found.cochlea, draws)
        estimates[name] = {
            "theta": posterior.mean.tolist(),
            "sd": posterior.sd.tolist(),
            "parameters": np.quantile(draws.theta, QUANTILES, axis=0).T.tolist(),
            "measured": best.tolist(),
            "measurements": np.quantile(rows, QUANTILES, axis=0).T.tolist(),
        }
    return {
        "case": case,
        "settings": given,
        "seconds": seconds,
        "verdict": found.verdict,
        "status": found.fit.status.name,
        "names": list(found.cochlea.parameter_names),
        "measurements": list(QUANTITIES),
        "truth": truth.tolist(),
        "true_measurements": measured_rows(ear.cochlea, ear.theta[None])[0].tolist(),
        "blur_mm": None if found.matched is None else found.matched.blur_mm,
        "sections_sd_mm": None if found.matched is None else found.matched.misfit.sd_mm,
        "estimates": estimates,
        "kinds": kinds(found),
        "labels": reliability(phantom, found),
        "dice": scores(phantom, found),
    }


def rough_frame(ear: Any, case: int) -> Any:
    """The cochlear frame as careful landmarks leave it: about 0.3 mm and 4 degrees off."""
    from scipy.spatial.transform import Rotation

    from logishape.cochlea import Frame

    rng = np.random.default_rng([case, 78])
    turn = Rotation.from_rotvec(rng.normal(0, 0.04, 3)).as_matrix()
    return Frame(turn @ np.asarray(ear.frame.axes), np.asarray(ear.frame.origin) + rng.normal(0, 0.17, 3))


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


def kinds(found: Any) -> dict[str, list[float]]:
    """Standard deviations of the parameters by each kind of covariance, at the fit as it is."""
    from logishape.cochlea.matched import near_voxels
    from logishape.core.errors import FitError
    from logishape.core.observation import Observation
    from logishape.inference.model import Model
    from logishape.posterior import laplace, noise_correlation
    from logishape.shapes import FirstOrder

    fit = found.found
    model = Model(FirstOrder(fit.model.shape), fit.model.prior, fit.model.reference_length)
    near = near_voxels(fit)
    every = Observation.from_arrays(fit.crop.points[near], fit.crop.intensities[near])
    fraction = noise_correlation(model, every, fit.fit.state).effective_fraction
    asked: dict[str, dict[str, Any]] = {
        "complete": {"kind": "complete"},
        "observed": {"kind": "observed", "appearance_is_known": True},
        "observed, appearance": {"kind": "observed"},
        "observed, effective fraction": {"kind": "observed", "effective_fraction": fraction},
        "sandwich": {"kind": "sandwich"},
    }
    found_sd = {}
    for name, options in asked.items():
        try:
            found_sd[name] = laplace(model, every, fit.fit, **options).sd.tolist()
        except FitError:
            continue
    return found_sd


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


def do(case: int, folder: str, where: str) -> tuple[int, str]:
    """One case in a file of its own; a word on how it went."""
    path = Path(folder) / f"case-{case:04d}.json"
    if path.exists():
        return case, "there"
    try:
        row = study(case, where)
    except Exception as error:  # a case that breaks the program is a result too
        row = {"case": case, "settings": settings(case), "broken": f"{type(error).__name__}: {error}"}
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(row))
    temporary.replace(path)
    return case, row.get("broken") or row.get("refused") or row["verdict"]


def prepare(folder: Path) -> None:
    """One core each, and programs that are compiled once for all."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder / ".jax-cache"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def run(cases: list[int], folder: Path, jobs: int, seconds: float, where: str) -> None:
    """All cases that are not there yet, some at a time, until the time is over."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    left = [case for case in cases if not (folder / f"case-{case:04d}.json").exists()]
    with concurrent.futures.ProcessPoolExecutor(jobs, context) as pool:
        if left:
            first = pool.submit(do, left[0], str(folder), where).result()  # compiles what the others load
            print(*first, f"{time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        waiting = {pool.submit(do, case, str(folder), where) for case in left[1:]}
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
    """Runs what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--pose", choices=("search", "landmarks"), default="search")
    parser.add_argument("--seconds", type=float, default=1e6)
    chosen = parser.parse_args()
    prepare(chosen.out)
    run(list(range(chosen.first, chosen.first + chosen.cases)), chosen.out, chosen.jobs, chosen.seconds, chosen.pose)


if __name__ == "__main__":
    main()
