"""Seconds of `logishape cochlea` by stage: the first run on a machine, the second, and a second case in one process.

    python benchmarks/pipeline.py [--repeats N]

A phantom CT is segmented from its file and nothing else. The first run has an empty compilation cache, the second
finds it filled, the third is another case in a process that is warm; what a first run takes beyond a second one is
compilation.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from engine import print_table, report

STAGES = ("start", "read", "locate", "fit", "posterior", "labels", "measurements", "write", "report")
_CASE = """
import json, sys, time
began = time.perf_counter()
from logishape.cli.terminal import Stages, prepare_jax
prepare_jax()
from pathlib import Path
from logishape.cochlea.pipeline import Request, run
from logishape.report import write_page
seconds = []
for number in range(int(sys.argv[3])):
    told = Stages(is_quiet=True)
    folder = Path(sys.argv[1] + ("" if number == 0 else "-other"))
    request = Request(folder / "ct.nii.gz", sys.argv[2], overwrite=True)
    ready = time.perf_counter()
    def finish(place, outcome):
        told("report")
        write_page(place, outcome)
    run(request, told, finish)
    told.end()
    seconds.append(told.seconds | {"start": ready - began if number == 0 else 0.0})
print(json.dumps(seconds))
"""


def run_case(phantom: Path, out: Path, cache: Path, times: int) -> list[dict[str, float]]:
    """The seconds of each stage of so many runs in one new process."""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache), "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment |= {
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [sys.executable, "-c", _CASE, str(phantom), str(out), str(times)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> None:
    """Measures and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    from logishape.cochlea.phantom import make_phantom
    from logishape.cochlea.phantom_files import write_phantom

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_phantom(place / "phantom", make_phantom(seed=3))
        write_phantom(place / "phantom-other", make_phantom(seed=4))
        runs: dict[str, list[dict[str, float]]] = {"first run": [], "second run": [], "another case": []}
        for number in range(repeats):
            cache = place / f"cache-{number}"
            runs["first run"] += run_case(place / "phantom", place / "out", cache, 1)
            second, other = run_case(place / "phantom", place / "out", cache, 2)
            runs["second run"].append(second)
            runs["another case"].append(other)
            report(f"repeat {number + 1}: " + ", ".join(f"{k} {sum(v[-1].values()):.1f} s" for k, v in runs.items()))
    rows = [
        [stage, *(f"{np.median([one[stage] for one in some]):.2f}" for some in runs.values())]
        for stage in STAGES
        if stage in runs["first run"][0]
    ]
    rows.append(["all", *(f"{np.median([sum(one.values()) for one in some]):.2f}" for some in runs.values())])
    print_table("Seconds by stage (median); first minus second run is compilation", ["stage", *runs], rows, [])


if __name__ == "__main__":
    main()
