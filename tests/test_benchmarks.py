"""The benchmarks run: their tables are printed, and a batch does what a loop does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run_quickly(name: str, *arguments: str) -> str:
    command = [sys.executable, f"benchmarks/{name}", "--quick", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow  # tests/law/test_batch.py holds the same for results; here it is the script that is run
def test_a_batch_against_a_loop():
    table = run_quickly("batch.py")
    row = re.search(r"^6 x 16\^2 +\S+ \[.*?\] +(\S+) +(\d+) ", table, flags=re.MULTILINE)
    assert row is not None, table
    # Single precision: the decrement at which a fit stops, 0.05, leaves a fifth of a standard deviation of freedom.
    assert float(row[1]) < 0.02
    assert row[2] == "0"  # other statuses


@pytest.mark.slow  # compiles three programs for a table that only a device makes interesting
def test_batches_against_the_limits_of_the_device():
    table = run_quickly("batch.py", "--gpu")
    row = re.search(r"^2 .*? (\d+) +\d+ +\S+ +(\S+)%", table, flags=re.MULTILINE)
    assert row is not None, table
    assert row[1] == "0"  # fits that are not usable


def test_the_pieces_of_a_step():
    table = run_quickly("pieces.py")
    assert re.search(r"^matrix D' W D +\d", table, flags=re.MULTILINE), table
