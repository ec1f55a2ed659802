"""A zip of DICOM slices, or of one image file, unpacked where it can do no harm."""

import contextlib
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from logishape.core.errors import InputError
from logishape.io.leftovers import hidden_name, remove, sweep
from logishape.io.payload import PIECE

MOST_BYTES = 4 << 30  # unpacked, all members together
MOST_MEMBERS = 20_000
_ALWAYS_ALLOWED, _LARGEST_RATIO = 1 << 28, 100  # a study as a whole never packs a hundredfold; one black slice may
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the memory that others take is for the file to say
_ENCRYPTED = 0x1


@contextlib.contextmanager
def unpacked(path: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """A folder with the members of a zip, or the one image among them whose name ends in one of `suffixes`.

    Members get numbers for names, so that none can lie outside the folder, and keep only a known suffix. Links and
    what a desktop adds are left out. What a member says of its size is not believed: bytes are counted as they come.
    The folder is gone at the end; one that a killed run left goes with the next zip.
    """
    with _folder(path.name) as place:
        try:
            with zipfile.ZipFile(path) as archive:
                most = min(MOST_BYTES, _ALWAYS_ALLOWED + _LARGEST_RATIO * path.stat().st_size)
                images = _unpack(archive, place, most, suffixes)
        except InputError:
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise InputError(
                f"{path.name} should be an intact zip archive but is damaged or packed in an unknown way; copy it "
                "again, or unpack it and give the folder."
            ) from error
        if len(images) > 1:
            raise InputError(
                f"{path.name} should hold one image or one DICOM study but holds {len(images)} images; unpack it and "
                "give the one that is meant."
            )
        yield images[0] if images else place


@contextlib.contextmanager
def _folder(name: str) -> Iterator[Path]:
    """A folder for the members among the temporary files, for nobody else to read."""
    with _told(name):
        beside = Path(tempfile.gettempdir()) / "unpacked"
        sweep(beside)
        place = hidden_name(beside)
        place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        remove(place)


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """A disk that is full or may not be written to, in one sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{name} could not be unpacked among the temporary files ({error.strerror or 'input or output error'}); "
            "free some space, or set TMPDIR to another folder."
        ) from error


def _unpack(archive: zipfile.ZipFile, place: Path, most: int, suffixes: tuple[str, ...]) -> list[Path]:
    """Writes the members, so many bytes at most; those that are image files come back."""
    name = Path(str(archive.filename)).name
    members = [member for member in archive.infolist() if _is_wanted(member)]
    if not members:
        raise InputError(f"{name} holds no file; give a zip of DICOM slices or of one image.")
    if len(members) > MOST_MEMBERS:
        raise InputError(
            f"{name} should hold at most {MOST_MEMBERS} files but holds {len(members)}; unpack it and give the "
            "folder of one study."
        )
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise InputError(f"{name} is locked by a password; unpack it and give the folder.")
    if any(member.compress_type not in _METHODS for member in members):
        raise NotImplementedError
    left, images = most, []
    for number, member in enumerate(members):
        suffix = next((one for one in suffixes if member.filename.lower().endswith(one)), "")
        target = place / f"{number:05d}{suffix}"
        left -= _write(archive, member, target, left)
        images += [target] if suffix else []
    return images


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, most: int) -> int:
    """The bytes of one member, at most so many; how many they were."""
    written, name = 0, Path(str(archive.filename)).name
    with archive.open(member) as source, _told(name), target.open("xb") as sink:
        while piece := source.read(PIECE):
            written += len(piece)
            if written > most:
                raise InputError(
                    f"{name} should unpack to at most {MOST_BYTES >> 30} GiB and about {_LARGEST_RATIO} times its "
                    "own size but goes beyond that; unpack it yourself if you trust it."
                )
            sink.write(piece)
    return written


def _is_wanted(member: zipfile.ZipInfo) -> bool:
    """Whether a member is a plain file of the study: no folder, no link, no index, nothing a desktop added."""
    last = member.filename.rsplit("/", 1)[-1]
    is_link = stat.S_ISLNK(member.external_attr >> 16)
    return not (member.is_dir() or is_link or last.startswith("._") or last.upper() in ("DICOMDIR", ".DS_STORE"))
