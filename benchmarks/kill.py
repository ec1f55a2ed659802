"""The command killed at random moments: its output folder holds a whole result, the older or the newer, or nothing.

    python benchmarks/kill.py [--kills 30] [--seed 0]

A phantom is segmented again and again by the real command, which gets SIGKILL after a random time: half of the times
anywhere in its run, half within its last two seconds, when files are written and put in place. Every other time an
earlier result stands there and --overwrite is given. At the end one run is left to finish, after which nothing hidden
may be left in the folder.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from logishape.cochlea import PhantomOptions, make_phantom
from logishape.cochlea.phantom_files import write_phantom
from logishape.core.errors import LogishapeError
from logishape.io import read_result, read_stl

SIDE = "right"
LAST_SECONDS = 2.0


def command(case: Path, out: Path, seed: int) -> list[str]:
    """The real command, on the phantom with its landmarks; the seed tells which run a result is of."""
    ways = ["--landmarks", str(case / SIDE / "landmarks.json"), "--draws", "10", "--seed", str(seed), "--overwrite"]
    return [sys.executable, "-m", "logishape", "cochlea", str(case / "ct.nii.gz"), "-o", str(out), *ways]


def finish(case: Path, out: Path, seed: int) -> float:
    """Seconds of a run that is left alone."""
    began = time.perf_counter()
    done = subprocess.run(command(case, out, seed), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr[-500:])
    return time.perf_counter() - began


def kill_after(case: Path, out: Path, seed: int, seconds: float) -> bool:
    """Whether the run was still going when it was killed."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command(case, out, seed), stdout=quiet, stderr=quiet, stdin=quiet)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def state(out: Path) -> str:
    """What a person sees in the folder: "nothing", "seed N" for a whole result, or what is wrong."""
    seen = [path.name for path in out.iterdir() if not path.name.startswith(".")] if out.exists() else []
    if not seen:
        return "nothing"
    if seen != [SIDE]:
        return f"WRONG: {seen}"
    try:
        found = read_result(out / SIDE)
        read_stl(out / SIDE / "surface.stl")
        page = (out / SIDE / "report.html").read_text(encoding="utf-8")
    except (LogishapeError, OSError) as error:
        return f"WRONG: {error}"
    return f"seed {found.record['options']['seed']}" if page.rstrip().endswith("</html>") else "WRONG: half a page"


def main() -> None:
    """Prints a line for each kill and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    random = np.random.default_rng(chosen.seed)
    wrong, counts = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        case, older, out = Path(folder) / "case", Path(folder) / "older", Path(folder) / "out"
        write_phantom(case, make_phantom(PhantomOptions(lumen="air", spacing_mm=0.3, size_mm=20, noise_hu=100.0), 1))
        finish(case, older, 0)  # compiles
        usual = finish(case, older, 0)
        print(
            f"a whole run takes {usual:.1f} s\n{'kill':>4}  {'after':>7}  {'before':10}  {'killed':6}  found",
            flush=True,
        )
        for kill in range(chosen.kills):
            begin = 0.0 if kill % 4 < 2 else max(usual - LAST_SECONDS, 0.0)
            moment = float(random.uniform(begin, usual + 0.3))
            shutil.rmtree(out, ignore_errors=True)
            if kill % 2:
                shutil.copytree(older, out)
            before = state(out)
            is_killed = kill_after(case, out, kill + 1, moment)
            found = state(out)
            is_right = found in (before, f"seed {kill + 1}")
            wrong += not is_right
            kind = found if found == "nothing" else "older" if found == "seed 0" else "newer" if is_right else "wrong"
            counts[kind] = counts.get(kind, 0) + 1
            print(f"{kill:4}  {moment:5.1f} s  {before:10}  {'yes' if is_killed else 'no':6}  {found}", flush=True)
        kill_after(case, out, 98, usual - 0.5)
        finish(case, out, 99)
        hidden = [path.name for path in out.iterdir() if path.name.startswith(".")]
    print(json.dumps({"kills": chosen.kills, "found": counts, "wrong": wrong, "left over after a whole run": hidden}))
    sys.exit(bool(wrong or hidden))


if __name__ == "__main__":
    main()
