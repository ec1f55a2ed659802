"""Disks that are small or may not be written to: real file systems in memory, where the tests may mount them."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(place: Path, kilobytes: int) -> Iterator[Path]:
    """A folder that holds so much and no more."""
    disk = place / "disk"
    disk.mkdir()
    with _mounted(disk, f"size={kilobytes}k"):
        yield disk


@contextlib.contextmanager
def read_only_disk(place: Path, files: dict[str, bytes]) -> Iterator[Path]:
    """A folder with these files to which nobody can write, not even the administrator."""
    disk = place / "disk"
    disk.mkdir()
    with _mounted(disk, "size=4m"):
        for name, content in files.items():
            (disk / name).parent.mkdir(parents=True, exist_ok=True)
            (disk / name).write_bytes(content)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True, capture_output=True)
        yield disk


@contextlib.contextmanager
def _mounted(disk: Path, options: str) -> Iterator[None]:
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not mount a disk in memory")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True, capture_output=True)
