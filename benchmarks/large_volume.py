"""A whole head of 512 x 512 x 600 voxels of 0.3 mm with two ears through the real command: memory, seconds, Dice.

    python benchmarks/large_volume.py [--shape 512 512 600] [--seed 3] [--keep FOLDER]

The phantom is made in a process of its own, since its memory would count with the command's. Nothing is given to the
command but the file. Printed: the peak of its memory, the seconds of each stage as it tells them, and Dice of both
ears against the phantom's truth. With --keep the files stay, and a phantom that is there is not made again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_GB = 6.0
SPACING_MM = 0.3
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
_MAKE = """
import sys
from pathlib import Path
from logishape.cochlea import PhantomOptions, make_phantom
from logishape.cochlea.phantom_files import write_phantom
size = tuple(float(word) for word in sys.argv[3:])
options = PhantomOptions(side="both", spacing_mm=float(sys.argv[2]), size_mm=size[:3])
write_phantom(Path(sys.argv[1]), make_phantom(options, int(size[3])))
"""


def make(folder: Path, shape: list[int], seed: int) -> None:
    """Writes the phantom."""
    size = [str(SPACING_MM * count) for count in shape]
    subprocess.run([sys.executable, "-c", _MAKE, str(folder), str(SPACING_MM), *size, str(seed)], check=True)


def segment(folder: Path, out: Path) -> tuple[int, float, float, str]:
    """Exit code, seconds and peak memory (GB) of the command, and what it told."""
    began = time.perf_counter()
    words = [sys.executable, "-m", "logishape", "cochlea", str(folder / "ct.nii.gz"), "-o", str(out), "--overwrite"]
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=told, env=os.environ | QUIET
        )
        _, status, used = os.wait4(process.pid, 0)  # of this child alone
        told.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return code, time.perf_counter() - began, used.ru_maxrss * 1024 / 1e9, told.read()


def dice(prediction: Path, truth: Path) -> float:
    """By the command that compares masks."""
    command = [sys.executable, "-m", "logishape", "evaluate", str(prediction), str(truth), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["dice"]


def run(place: Path, shape: list[int], seed: int) -> bool:
    """Prints what was measured; whether both ears were found within the memory that is allowed."""
    folder, out = place / "phantom", place / "out"
    if not (folder / "ct.nii.gz").exists():
        make(folder, shape, seed)
    code, seconds, peak, told = segment(folder, out)
    size = " x ".join(map(str, shape))
    print(f"{size} voxels of {SPACING_MM} mm: exit code {code}, {seconds:.1f} s, peak {peak:.2f} GB")
    print(told, end="")
    sides = [side for side in ("left", "right") if (out / side).is_dir()]
    for side in sides:
        for name in ("segmentation", "shape"):
            print(
                f"{side:6} {name:13} Dice {dice(out / side / f'{name}.nii.gz', folder / side / 'truth.nii.gz'):.3f}"
            )
    return code == 0 and len(sides) == 2 and peak < MOST_GB


def main() -> None:
    """Makes, segments, scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=[512, 512, 600])
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(not run(chosen.keep or Path(folder), chosen.shape, chosen.seed))


if __name__ == "__main__":
    main()
