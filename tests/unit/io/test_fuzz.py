"""Damaged files are read or refused by one sentence: three hundred tries of benchmarks/fuzz.py."""

import importlib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("fuzz")


def test_damaged_files(fuzz, tmp_path):
    cases = fuzz.subjects()
    for case in cases.values():
        place = tmp_path / "intact"
        place.mkdir()
        for name, content in case.files.items():
            (place / name).write_bytes(content)
        assert fuzz._outcome(case, place) == "read"
        for name in case.files:
            (place / name).unlink()
        place.rmdir()
    found = [fuzz.attempt(number, 1, cases, tmp_path / "case") for number in range(300)]
    wrong = [row for row in found if row[1] not in ("read", "refused") or row[2] > fuzz.MOST_SECONDS]
    assert wrong == []
    assert Counter(row[1] for row in found)["refused"] > 150  # the damage is damage
