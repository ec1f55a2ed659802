"""The command killed at random moments: its output folder holds a whole result, the older or the newer, or nothing.

    python benchmarks/kill.py [--kills 30] [--seed 0]

A phantom in a zip is segmented again and again by the real command, which gets a signal after a random time: two in
three times while results are written and put in place, else anywhere in its run. The signals are SIGKILL, SIGTERM and
SIGINT in turn. Every other time an earlier result stands there and --overwrite is given. After SIGTERM and SIGINT
neither a hidden name in the folder nor an unpacked scan may be left, and no traceback is told once the command has
begun; what SIGKILL leaves must be gone after one run that is left to finish.
"""

import argparse
import collections
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

from logishape.cochlea import PhantomOptions, make_phantom
from logishape.cochlea.phantom_files import write_phantom
from logishape.core.errors import LogishapeError
from logishape.io import read_result, read_stl

SIDE = "right"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOST_SECONDS = 300


@dataclasses.dataclass(frozen=True)
class Place:
    """Where the scan is, where results go, an earlier one to put there, and the folder of temporary files."""

    case: Path
    out: Path
    older: Path
    temporary: Path

    @property
    def told(self) -> Path:
        """What the last run wrote to stderr."""
        return self.case / "stderr.txt"

    def start(self, out: Path, seed: int) -> subprocess.Popen:
        """The real command on the phantom with its landmarks; the seed tells which run a result is of."""
        ways = ["--landmarks", str(self.case / SIDE / "landmarks.json"), "--draws", "10", "--seed", str(seed)]
        words = ["cochlea", str(self.case / "ct.zip"), "-o", str(out), *ways, "--overwrite"]
        nothing = subprocess.DEVNULL
        quiet = {"TMPDIR": str(self.temporary), "TF_CPP_MIN_LOG_LEVEL": "3"}  # which jax has set here, for itself
        with self.told.open("w") as told:
            return subprocess.Popen(
                [sys.executable, "-m", "logishape", *words],
                stdin=nothing,
                stdout=nothing,
                stderr=told,
                env=os.environ | quiet,
            )

    def finish(self, out: Path, seed: int) -> float:
        """Seconds of a run that is left alone."""
        began = time.perf_counter()
        process = self.start(out, seed)
        if process.wait(MOST_SECONDS) not in (0, 3):
            raise RuntimeError(self.told.read_text()[-500:])
        return time.perf_counter() - began

    def hidden(self) -> list[str]:
        """What is left of unfinished work: hidden names in the output folder, and unpacked scans."""
        near = self.out.iterdir() if self.out.exists() else ()
        return [path.name for path in (*near, *self.temporary.iterdir()) if path.name.startswith(".logishape")]


def stop(process: subprocess.Popen, number: signal.Signals, seconds: float, out: Path, is_late: bool) -> bool:
    """Whether the run was still going when the signal ended it.

    A late signal comes so many seconds after the first file of a result was begun.
    """
    if is_late:
        while process.poll() is None and not (out.exists() and any(out.glob(".logishape-*"))):
            time.sleep(0.002)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
        process.wait(MOST_SECONDS)
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


def attempt(place: Place, kill: int, random: np.random.Generator, usual: float, writing: float) -> tuple[str, str]:
    """The kind of what is found after one kill, and a line that tells of it."""
    number, is_late = SIGNALS[kill % len(SIGNALS)], kill % 9 > 2
    seconds = float(random.uniform(0, 1.1 * (writing if is_late else usual)))
    shutil.rmtree(place.out, ignore_errors=True)
    if kill % 2:
        shutil.copytree(place.older, place.out)
    before = state(place.out)
    is_stopped = stop(place.start(place.out, kill + 1), number, seconds, place.out, is_late)
    found, told = state(place.out), place.told.read_text()
    kind = {"nothing": "nothing", "seed 0": "older", f"seed {kill + 1}": "newer"}.get(found, "wrong")
    if found not in (before, f"seed {kill + 1}") or (
        "Traceback" in told and "in main" in told
    ):  # before main, Python speaks
        kind = "wrong"
    left = place.hidden()
    if left and number != signal.SIGKILL:
        kind = "wrong"
    moment = f"{seconds:.2f} s {'into writing' if is_late else 'into the run'}" if is_stopped else "done before"
    last = told.strip().splitlines()[-1] if kind == "wrong" and told.strip() else ""
    return kind, f"{kill:4}  {number.name:8}{moment:22}{before:10}{found:10}{len(left)} left  {last}"


def prepare(folder: Path) -> Place:
    """The phantom, in a zip, and a whole earlier result."""
    place = Place(*(folder / name for name in ("case", "out", "older", "temporary")))
    place.temporary.mkdir()
    options = PhantomOptions(lumen="air", spacing_mm=0.3, size_mm=20, noise_hu=100.0)
    write_phantom(place.case, make_phantom(options, 1))
    with zipfile.ZipFile(place.case / "ct.zip", "w") as archive:
        archive.write(place.case / "ct.nii.gz", "ct.nii.gz")
    place.finish(place.older, 0)
    return place


def usual_times(place: Place) -> tuple[float, float]:
    """Seconds of a whole run, and of its writing."""
    began = time.perf_counter()
    process = place.start(place.out, 0)
    while process.poll() is None and not (place.out.exists() and any(place.out.glob(".logishape-*"))):
        time.sleep(0.002)
    writes = time.perf_counter()
    process.wait(MOST_SECONDS)
    ended = time.perf_counter()
    return ended - began, ended - writes


def main() -> None:
    """Prints a line for each kill and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    random = np.random.default_rng(chosen.seed)
    # A shell's jobs in the background ignore SIGINT, and so would what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        place = prepare(Path(folder))
        usual, writing = usual_times(place)
        print(f"a whole run takes {usual:.1f} s, of which writing {writing:.1f} s", flush=True)
        print(f"{'kill':>4}  {'signal':8}{'after':22}{'before':10}{'found':10}hidden", flush=True)
        counts = collections.Counter()
        for kill in range(chosen.kills):
            kind, line = attempt(place, kill, random, usual, writing)
            counts[kind] += 1
            if "done before" in line:  # the machine has less to do than when times were taken
                usual, writing = 0.8 * usual, 0.8 * writing
            print(line, flush=True)
        stop(place.start(place.out, 98), signal.SIGKILL, writing / 2, place.out, True)
        place.finish(place.out, 99)
        hidden = place.hidden()
    print(json.dumps({"kills": chosen.kills, "found": counts, "left after a whole run": hidden}))
    sys.exit(bool(counts["wrong"] or hidden))


if __name__ == "__main__":
    main()
