"""Whole or not at all: files and folders, after errors, interrupts and a full disk."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from logishape.io import atomic, atomic_file, atomic_folder, check_writable, remove_folder
from logishape.io.exchange import exchange
from logishape.io.leftovers import hidden_name
from tests.unit.io.samples import refused


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_file_appears_at_the_end(tmp_path):
    path = tmp_path / "deep" / "er" / "result.json"
    with atomic_file(path) as temporary:
        assert temporary.parent == path.parent
        assert temporary.suffix == ".json"
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert listing(tmp_path) == ["deep", "deep/er", "deep/er/result.json"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask  # as any other new file, not only for its owner


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, RuntimeError])
def test_nothing_stays_after_an_exception(tmp_path, error):
    def write(path):
        with atomic_file(path) as temporary:
            temporary.write_text("half")
            raise error

    def fill(path):
        with atomic_folder(path) as temporary:
            (temporary / "a.txt").write_text("half")
            raise error

    (tmp_path / "old.txt").write_text("old")
    for path in (tmp_path / "old.txt", tmp_path / "made" / "new.txt"):
        with pytest.raises(error):
            write(path)
    for path in (tmp_path / "results", tmp_path / "made" / "results"):
        with pytest.raises(error):
            fill(path)
    assert listing(tmp_path) == ["old.txt"]
    assert (tmp_path / "old.txt").read_text() == "old"


def test_parents_that_others_use_stay(tmp_path):
    def fill():
        with atomic_folder(tmp_path / "made" / "results"):
            (tmp_path / "made" / "of_another").write_text("")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fill()
    assert listing(tmp_path) == ["made", "made/of_another"]


def test_a_full_disk_is_one_sentence(tmp_path):
    with refused("result.json", os.strerror(errno.ENOSPC)), atomic_file(tmp_path / "result.json") as temporary:
        temporary.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert listing(tmp_path) == []


def test_a_link_to_a_file_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with atomic_file(tmp_path / "link.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_folder_appears_at_the_end(tmp_path):
    path = tmp_path / "out" / "left"
    with atomic_folder(path) as temporary:
        (temporary / "a.txt").write_text("new")
        assert not path.exists()
    assert listing(tmp_path) == ["out", "out/left", "out/left/a.txt"]


def test_an_older_folder_is_refused_or_replaced(tmp_path):
    path = tmp_path / "left"
    path.mkdir()
    (path / "old.txt").write_text("old")
    with refused("left", "overwriting"), atomic_folder(path):
        pytest.fail("the block should not begin")
    with atomic_folder(path, overwrite=True) as temporary:
        (temporary / "new.txt").write_text("new")
        assert listing(path) == ["old.txt"]
    assert listing(tmp_path) == ["left", "left/new.txt"]


def test_a_folder_made_meanwhile_is_not_lost(tmp_path):
    with refused("exists"), atomic_folder(tmp_path / "left"):
        (tmp_path / "left").mkdir()
        (tmp_path / "left" / "of_another").write_text("")
    assert listing(tmp_path) == ["left", "left/of_another"]


def test_when_the_swap_fails_the_older_folder_is_back(tmp_path, monkeypatch):
    path = tmp_path / "left"
    path.mkdir()
    (path / "old.txt").write_text("old")
    rename, calls = os.rename, []

    def fail_second(source, target):
        calls.append(source)
        if len(calls) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    monkeypatch.setattr(atomic.os, "rename", fail_second)
    with refused("left", os.strerror(errno.EIO)), atomic_folder(path, overwrite=True) as temporary:
        (temporary / "new.txt").write_text("new")
    assert listing(tmp_path) == ["left", "left/old.txt"]


@pytest.mark.parametrize("is_able", [True, False])
def test_a_swap_in_one_step_or_two(tmp_path, monkeypatch, is_able):
    path = tmp_path / "left"
    path.mkdir()
    (path / "old.txt").write_text("old")
    if not is_able:
        monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    with atomic_folder(path, overwrite=True) as temporary:
        (temporary / "new.txt").write_text("new")
    assert listing(tmp_path) == ["left", "left/new.txt"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two names in one step here")
def test_names_are_exchanged(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("")
    if not exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this file system cannot exchange names")
    assert listing(tmp_path) == ["one", "one/other", "other", "other/one"]
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "missing")


def dead_process():
    """The number of a process that has ended."""
    return subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True).stdout.strip()


def left_by(target, process, is_older=False):
    """What a process would have left beside a target."""
    ours = hidden_name(target, is_older)
    path = ours.with_name(ours.name.replace(f"-{os.getpid()}-", f"-{int(process)}-", 1))
    path.mkdir()
    (path / "a.txt").write_text("half")
    return path


def test_what_a_killed_run_left_is_swept(tmp_path):
    process = dead_process()
    path = tmp_path / "left"
    left_by(path, process)
    kept = [left_by(path, os.getpid()), left_by(tmp_path / "right", process), tmp_path / ".hidden-left"]
    kept[-1].mkdir()
    with atomic_folder(path) as temporary:
        (temporary / "new.txt").write_text("new")
    assert sorted(tmp_path.iterdir()) == sorted([*kept, path])
    link = left_by(tmp_path / "ct.nii", process)
    (link / "a.txt").unlink()
    link.rmdir()
    link.symlink_to(path)
    with atomic_file(tmp_path / "ct.nii") as temporary:
        temporary.write_text("new")
    assert not link.is_symlink()
    assert listing(path) == ["new.txt"]


def test_an_older_result_without_a_name_comes_back(tmp_path):
    path = tmp_path / "left"
    left_by(path, dead_process(), is_older=True)
    with refused("left", "exists"), atomic_folder(path):
        pytest.fail("the block should not begin")
    assert listing(tmp_path) == ["left", "left/a.txt"]


def test_a_folder_is_taken_away(tmp_path):
    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "a.txt").write_text("")
    remove_folder(tmp_path / "left")
    assert listing(tmp_path) == []
    with refused("left"):
        remove_folder(tmp_path / "left")


def test_places_that_cannot_become_a_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with refused("is a file"), atomic_folder(tmp_path / "file", overwrite=True):
        pytest.fail("the block should not begin")
    (tmp_path / "work" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "here")
    with refused("working or home folder"), atomic_folder(tmp_path / "work", overwrite=True):
        pytest.fail("the block should not begin")
    assert listing(tmp_path) == ["file", "work", "work/here"]


def test_check_writable(tmp_path, monkeypatch):
    check_writable(tmp_path / "not" / "yet" / "there.nii")
    check_writable(tmp_path)
    assert listing(tmp_path) == []
    (tmp_path / "file").write_text("")
    with refused("is a file"):
        check_writable(tmp_path / "file" / "ct.nii")

    def refuse(dir):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(atomic.tempfile, "TemporaryFile", refuse)
    with refused("ct.nii", os.strerror(errno.EROFS)):
        check_writable(tmp_path / "ct.nii")
    with refused("ct.nii", os.strerror(errno.EROFS)), atomic_file(tmp_path / "ct.nii"):
        pytest.fail("the block should not begin")


@pytest.mark.skipif(not os.path.isdir("/proc/1"), reason="needs a folder that nobody can write to")
def test_a_place_nobody_can_write_to():
    with refused("/proc/1/ct.nii", "could not be written"):
        check_writable("/proc/1/ct.nii")
