"""The command in odd places: names of any kind, links, full and read-only disks, and a stop that is asked for."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

import jaxtyping
import numpy as np
import pytest

import logishape as ls
from logishape import cli
from logishape.io import read_scan, write_volume
from tests.mounts import read_only_disk, small_disk
from tests.unit.io.samples import refused

NAMES = ["a b", "Z\u00fcrich \u202egnp", "-o", "line\nbreak\x1b[31m", os.fsdecode(b"bad\xff"), "%s{0}$HOME"]
LONG = "n" * 300
PHANTOM = ("--spacing", "0.8", "--size", "16")


@pytest.fixture(autouse=True)
def as_a_user_runs_it(monkeypatch, tmp_path):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    monkeypatch.setenv(
        "JAX_COMPILATION_CACHE_DIR", os.environ.get("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "jax"))
    )
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def run(monkeypatch, capfd):
    """A command as if typed: exit code, stdout and stderr."""

    def call(*arguments) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["logishape", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return int(caught.value.code or 0), *capfd.readouterr()

    return call


def coarse() -> ls.Volume:
    """A CT that is read and then refused, because its voxels are too large."""
    return ls.Volume.from_spacing(np.random.default_rng(0).normal(500, 300, (20, 20, 20)).astype(np.float32), 0.8)


def check_refused(told: tuple[int, str, str], *words: str) -> None:
    """Exit code 2 and one sentence that can be printed, with all these words."""
    code, out, err = told
    assert (code, out) == (2, "")
    (sentence,) = (line for line in err.splitlines() if not line.startswith("  "))
    assert sentence.startswith("logishape: ")
    assert sentence.isprintable()
    for word in words:
        assert word in sentence, sentence


def listing(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", NAMES)
def test_names_of_any_kind(run, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    write_volume(tmp_path / f"{name}.nii.gz", coarse())
    check_refused(run("cochlea", "-o", "out", "--", f"{name}.nii.gz"), "0.6 mm or smaller")
    check_refused(run("cochlea", "-o", name, "--", f"{name}.jpg"), "there is no file")
    code, _, err = run("cochlea", "-o", "out", "--", f"{name}.nii.gz", f"{name}.jpg")
    assert code == 2
    assert len([line for line in err.splitlines() if line.startswith("logishape: ")]) == 2
    assert "\x1b" not in err
    assert listing(tmp_path) == [f"{name}.nii.gz"]
    assert run("phantom", f"--out={name}", *PHANTOM)[0] == 0
    assert (tmp_path / name / "phantom-000" / "ct.nii.gz").is_file()


def test_names_that_are_too_long(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_volume(tmp_path / "ct.nii.gz", coarse())
    asked = ("cochlea", "ct.nii.gz", "-o", "out")
    for words in (
        ("cochlea", f"{LONG}.nii.gz", "-o", "out"),
        ("cochlea", "ct.nii.gz", "-o", LONG),
        (*asked, "--landmarks", f"{LONG}.json"),
        (*asked, "--calibration", f"{LONG}.json"),
        ("evaluate", LONG, "ct.nii.gz"),
        ("phantom", "-o", LONG, *PHANTOM),
    ):
        check_refused(run(*words), "nnn")
    assert listing(tmp_path) == ["ct.nii.gz"]


def test_links(run, tmp_path):
    write_volume(tmp_path / "ct.nii.gz", coarse())
    (tmp_path / "link.nii.gz").symlink_to("ct.nii.gz")
    (tmp_path / "loop.nii.gz").symlink_to("loop.nii.gz")
    (tmp_path / "gone.nii.gz").symlink_to("nowhere.nii.gz")
    assert read_scan(tmp_path / "link.nii.gz").digest == read_scan(tmp_path / "ct.nii.gz").digest
    for name in ("loop.nii.gz", "gone.nii.gz"):
        check_refused(run("cochlea", tmp_path / name, "-o", tmp_path / "out"), "there is no file", name)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to("elsewhere")
    assert run("phantom", "-o", tmp_path / "out", *PHANTOM)[0] == 0
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "elsewhere" / "phantom-000" / "ct.nii.gz").is_file()
    check_refused(run("phantom", "-o", tmp_path / "loop.nii.gz", *PHANTOM), "cannot be written")


@pytest.mark.parametrize("kilobytes", [4, 24])  # nothing fits; the CT fits and the rest does not
def test_a_full_disk(run, tmp_path, kilobytes):
    with small_disk(tmp_path, kilobytes) as disk:
        check_refused(run("phantom", "-o", disk / "out", *PHANTOM), "No space left on device")
        assert listing(disk) == []


def test_a_full_disk_for_what_is_unpacked(tmp_path, monkeypatch):
    write_volume(tmp_path / "ct.nii", coarse())
    with zipfile.ZipFile(tmp_path / "ct.zip", "w") as archive:
        archive.write(tmp_path / "ct.nii", "ct.nii")
    with small_disk(tmp_path, 8) as disk:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        with refused("ct.zip", "No space left on device", "TMPDIR"):
            read_scan(tmp_path / "ct.zip")
        assert listing(disk) == []
    assert read_scan(tmp_path / "ct.nii").volume.shape == (20, 20, 20)


def test_a_read_only_disk(run, tmp_path, monkeypatch):
    write_volume(tmp_path / "ct.nii.gz", coarse())
    content = (tmp_path / "ct.nii.gz").read_bytes()
    with read_only_disk(tmp_path, {"ct.nii.gz": content, "out/right/result.json": b"{}"}) as disk:
        before = listing(disk)
        for place in (disk, disk / "new" / "out", disk / "out"):
            told = run("cochlea", disk / "ct.nii.gz", "-o", place, "--overwrite")
            check_refused(told, "could not be written", "Read-only file system")
        check_refused(run("phantom", "-o", disk / "out", *PHANTOM), "Read-only file system")
        # It can be read from there.
        check_refused(run("cochlea", disk / "ct.nii.gz", "-o", tmp_path / "results"), "0.6 mm or smaller")
        assert listing(disk) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_folder_without_permission(run, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    check_refused(run("phantom", "-o", tmp_path / "locked" / "out", *PHANTOM), "Permission denied")
    assert listing(tmp_path) == ["locked"]


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_stop_that_is_asked_for(tmp_path, number):
    """Hidden folders go away, whole phantoms stay, and one line says so."""
    out = tmp_path / "out"
    words = ["phantom", "-o", str(out), "-n", "1000", *PHANTOM]
    process = subprocess.Popen(
        [sys.executable, "-m", "logishape", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    ended = time.monotonic() + 120
    while not (out.exists() and any(out.glob("phantom-*"))) and time.monotonic() < ended:
        time.sleep(0.01)
    process.send_signal(number)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + number
    assert told.splitlines()[-1] == "logishape: stopped; no result was left half-written."
    assert "Traceback" not in told
    assert not any(path.name.startswith(".") for path in out.iterdir())
    for folder in out.iterdir():
        assert {path.name for path in folder.iterdir()} == {"ct.nii.gz", "phantom.json", "right"}


_LOST = """
import os, signal, sys, time
from logishape import cli

class Careless:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        time.sleep(0.01)  # the signal is heard here, where Python drops exceptions

def work(*_):
    Careless()
    time.sleep(60)

cli.cochlea.run_all = work
sys.argv = ["logishape", "cochlea", "ct.nii", "-o", "out"]
cli.main()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_stop_that_python_drops_is_asked_for_again(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _LOST.format(name=name)], capture_output=True, text=True, timeout=50, cwd=tmp_path
    )
    assert done.returncode == 128 + getattr(signal, name)
    assert done.stderr == "logishape: stopped; no result was left half-written.\n"
