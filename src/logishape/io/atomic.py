"""Writing so that a file or a folder is there whole or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from logishape.core.errors import InputError
from logishape.io.exchange import exchange
from logishape.io.leftovers import hidden_name, remove, sweep


def check_writable(path: str | os.PathLike[str]) -> None:
    """An error where this file or folder could not be written; ask before the work is done."""
    _probe(_real(path))


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside `path`, with its suffix; what is written there takes the place of `path` at the end.

    After an exception nothing stays, and an older file at `path` is untouched.
    """
    target = _real(path)
    _probe(target.parent, target)
    if target.is_dir():
        raise InputError(f"{target} should become a file but is a folder; choose another name.")
    sweep(target)
    temporary = hidden_name(target)
    with _parents(target):
        try:
            yield temporary
            _flush(temporary)
            os.replace(temporary, target)
            _flush_folder(target.parent)
        except OSError as error:
            raise _unwritable(target, error) from error
        finally:
            remove(temporary)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str], overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder beside `path`, renamed to `path` at the end; after an exception nothing stays.

    With `overwrite` an older folder is replaced as a whole, in one step where the system can, and removed only when
    the new one is in place. What a killed run left beside it is swept away.
    """
    target = _real(path)
    _probe(target.parent, target)
    sweep(target)
    _check_free(target, overwrite)
    temporary = hidden_name(target)
    with _parents(target):
        try:
            _make(temporary, target)
            yield temporary
            _swap(temporary, target, overwrite)
        finally:
            remove(temporary)


def remove_folder(path: str | os.PathLike[str]) -> None:
    """Takes a folder away as a whole: its name is gone first."""
    target = _real(path)
    hidden = hidden_name(target)
    try:
        os.rename(target, hidden)
    except OSError as error:
        raise _unwritable(target, error) from error
    remove(hidden)


def _probe(folder: Path, path: Path | None = None) -> None:
    """An error where no new file can be made in the folder, or in the nearest one above that exists."""
    path = path or folder
    try:
        path.exists()  # fails where the name itself is too long
        while not os.path.lexists(folder) or (folder == path and not folder.is_dir()):
            folder = folder.parent
        if folder.is_dir():
            with tempfile.TemporaryFile(dir=folder):
                return
    except OSError as error:
        raise _unwritable(path, error) from error
    raise InputError(f"{path} cannot be written because {folder} is a file; choose another place.")


def _swap(temporary: Path, target: Path, overwrite: bool) -> None:
    _check_free(target, overwrite)  # somebody else may have written meanwhile
    try:
        if not target.exists():
            os.rename(temporary, target)
        elif not exchange(temporary, target):
            _rename_twice(temporary, target)
        _flush_folder(target.parent)
    except OSError as error:
        raise _unwritable(target, error) from error


def _rename_twice(temporary: Path, target: Path) -> None:
    """What `exchange` does, in steps; between them nothing stands at the target, and `sweep` would bring it back."""
    older = hidden_name(target, is_older=True)
    os.rename(target, older)
    try:
        os.rename(temporary, target)
    except OSError:
        os.rename(older, target)
        raise
    os.rename(older, temporary)


def _check_free(target: Path, overwrite: bool) -> None:
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} should become a folder but is a file; choose another name.")
    if target.exists() and not overwrite:
        raise InputError(f"the folder {target} should be new but exists; choose another, or allow overwriting.")
    if target.exists() and (
        Path.cwd().is_relative_to(target) or Path(os.path.expanduser("~")).is_relative_to(target)
    ):
        raise InputError(
            f"the folder {target} should be one of results but holds the working or home folder; choose another."
        )


def _real(path: str | os.PathLike[str]) -> Path:
    """The place itself where the path is a link, so that a link stays one."""
    return Path(os.path.realpath(path))


def _make(folder: Path, target: Path) -> None:
    try:
        folder.mkdir()
    except OSError as error:
        raise _unwritable(target, error) from error


@contextlib.contextmanager
def _parents(target: Path) -> Iterator[None]:
    """The folders above a target, made where missing, and taken away again after an exception."""
    missing = [parent for parent in target.parents if not parent.exists()]
    try:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(target, error) from error
        yield
    except BaseException:
        for parent in missing:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _flush(path: Path) -> None:
    """The content on the disk, not only in memory."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def _flush_folder(folder: Path) -> None:
    """The new name on the disk, where the system can do that for folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _unwritable(path: Path, error: OSError) -> InputError:
    reason = error.strerror or "input or output error"
    return InputError(f"{path} could not be written ({reason}); check the place, its permissions and the space left.")
