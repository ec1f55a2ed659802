"""The benchmarks run: their tables are printed, and a batch does what a loop does."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import logishape as ls
from tests.problems import assert_one_sentence

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


@pytest.mark.slow  # a process of its own that compiles each piece
def test_the_pieces_of_a_step():
    table = run_quickly("pieces.py")
    assert re.search(r"^matrix D' W D +\d", table, flags=re.MULTILINE), table


@pytest.mark.slow  # the exact distance compiles long; test_cochlea_distance.py holds the same
def test_the_cochlea_against_meshes_and_differences():
    table = run_quickly("cochlea_shape.py", "--only", "agreement", "derivatives")
    row = re.search(r"^exact +\|S\| < 2 mm +\d+ +\S+ +\S+ +(\S+) +\S+ +(\S+)$", table, flags=re.MULTILINE)
    assert row is not None, table
    assert float(row[1]) < 0.01
    assert float(row[2]) < 0.03
    within = re.search(r"^level .* (\S+)%$", table, flags=re.MULTILINE)
    assert within is not None, table
    assert float(within[1]) > 99.5


@pytest.mark.slow  # compiles the sampler of a cochlea
def test_the_sampler_against_the_gaussian_about_the_fit():
    pytest.importorskip("blackjax")
    table = run_quickly("mcmc.py")
    row = re.search(r"^observed: .* over all directions (\S+) to (\S+)$", table, flags=re.MULTILINE)
    assert row is not None, table
    # Of 200 independent draws the extremes over 13 directions are 0.75 and 1.25.
    assert float(row[1]) > 0.6
    assert float(row[2]) < 1.4


def test_the_way_of_the_paper_asks_for_its_package(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setitem(sys.modules, "vtk", None)
    benchmark = importlib.import_module("cochlea_shape")
    mesh = ls.cochlea.Mesh(np.eye(3), np.array([[0, 1, 2]]))
    assert_one_sentence(lambda: benchmark.vtk_distance(mesh, np.zeros((1, 3))), "vtk")


def test_label_maps_of_a_study_are_pooled(tmp_path):
    """Two cases of one class, none of the other: voxels count alike, and the class without cases is left out."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from reliability import study_curves

    for number, inside in enumerate((30.0, 90.0)):
        bins = [[100.0, 25.0, inside], [0.0, 0.0, 0.0]]
        case = {"verdict": "good", "settings": {"misfit": 0.0}, "labels": {"probability": bins, "marginal": bins}}
        (tmp_path / f"case-{number:04d}.json").write_text(json.dumps(case))
    found = study_curves(tmp_path, 0.0)
    assert found["marginal"].fraction[0] == pytest.approx(0.6)
    assert found["marginal"].expected_error == pytest.approx(0.35)
    assert study_curves(tmp_path, 1.0) == {}
