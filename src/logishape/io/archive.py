"""A zip of DICOM slices, or of one image file, unpacked where it can do no harm."""

import contextlib
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from logishape.core.errors import InputError
from logishape.io.payload import LARGEST_RATIO, PIECE

MOST_BYTES = 4 << 30  # unpacked, all members together
MOST_MEMBERS = 20_000
_ENCRYPTED = 0x1


@contextlib.contextmanager
def unpacked(path: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """A folder with the members of a zip, or the one image among them whose name ends in one of `suffixes`.

    Members get numbers for names, so that none can lie outside the folder, and keep only a known suffix. Links are
    left out. What a member says of its size is not believed: bytes are counted as they come. The folder is gone at
    the end.
    """
    with tempfile.TemporaryDirectory(prefix="logishape-") as place:
        try:
            with zipfile.ZipFile(path) as archive:
                images = _unpack(archive, Path(place), path.name, suffixes)
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
        yield images[0] if images else Path(place)


def _unpack(archive: zipfile.ZipFile, place: Path, name: str, suffixes: tuple[str, ...]) -> list[Path]:
    """Writes the members; those that are image files come back."""
    members = [member for member in archive.infolist() if not member.is_dir() and not _is_link(member)]
    if not members:
        raise InputError(f"{name} holds no file; give a zip of DICOM slices or of one image.")
    if len(members) > MOST_MEMBERS:
        raise InputError(
            f"{name} should hold at most {MOST_MEMBERS} files but holds {len(members)}; unpack it and give the "
            "folder of one study."
        )
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise InputError(f"{name} is locked by a password; unpack it and give the folder.")
    left, images = MOST_BYTES, []
    for number, member in enumerate(members):
        suffix = next((one for one in suffixes if member.filename.lower().endswith(one)), "")
        target = place / f"{number:05d}{suffix}"
        left -= _write(archive, member, target, min(left, LARGEST_RATIO * (member.compress_size + 1)), name)
        images += [target] if suffix else []
    return images


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, most: int, name: str) -> int:
    """The bytes of one member, at most so many; how many they were."""
    written = 0
    with archive.open(member) as source, target.open("xb") as sink:
        while piece := source.read(PIECE):
            written += len(piece)
            if written > most:
                raise InputError(
                    f"{name} should unpack to at most {MOST_BYTES >> 30} GiB, no member by more than {LARGEST_RATIO} "
                    "times, but goes beyond that; unpack it yourself if you trust it."
                )
            if len(piece) > shutil.disk_usage(target.parent).free:
                raise InputError(f"there is not enough space to unpack {name}; free some, or set TMPDIR elsewhere.")
            sink.write(piece)
    return written


def _is_link(member: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(member.external_attr >> 16)
