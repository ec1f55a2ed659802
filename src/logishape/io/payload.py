"""From the bytes of a file to voxel values, piece by piece, so that no second copy of an image is ever held."""

import dataclasses
import itertools
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from logishape.core.errors import InputError
from logishape.io.json_files import plain

if TYPE_CHECKING:
    from logishape.io.dicom_headers import DicomSource

PIECE = 1 << 22  # bytes held at a time
_SIP = 1 << 15  # compressed bytes fed at a time: what a member leaves over is copied for the next one
_MOST_VOXELS = 1 << 30  # 4 GiB in single precision
_MOST_EXTRA = 1 << 26  # bytes after the last voxel that are read to reach the checksum
LARGEST_RATIO = 1100  # deflate packs at most 1032 bytes into one; a header that asks for more is wrong


@dataclasses.dataclass(frozen=True, eq=False)
class FileImage:
    """What a file says of a 3D image: single-precision values (x, y, z), the RAS affine and what was assumed.

    `listing` names the series that were there, for a person to choose from. `source` are the headers of DICOM
    slices, where they were asked for.
    """

    data: np.ndarray
    affine: np.ndarray
    notes: tuple[str, ...]
    listing: tuple[str, ...] = ()
    source: "DicomSource | None" = None


@dataclasses.dataclass(frozen=True)
class Layout:
    """How values lie in a stream of bytes: x runs fastest, and a value is `slope * stored + intercept`."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    slope: float = 1.0
    intercept: float = 0.0

    @property
    def num_bytes(self) -> int:
        """Length of the whole image as stored, before compression."""
        return math.prod(self.shape) * self.dtype.itemsize


def pieces(stream: BinaryIO) -> Iterator[bytes]:
    """The rest of a stream, in pieces."""
    return iter(lambda: stream.read(PIECE), b"")


def inflated_pieces(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """The rest of a gzip or zlib stream, decompressed in pieces, with every checksum verified."""
    engine = zlib.decompressobj(zlib.MAX_WBITS + 32)  # finds out itself whether this is gzip or zlib
    try:
        for piece in iter(lambda: stream.read(_SIP), b""):
            while piece:
                if engine.eof:  # a gzip file may hold several members, and zeros after the last
                    piece = piece.lstrip(b"\0")
                    if not piece:
                        break
                    engine = zlib.decompressobj(zlib.MAX_WBITS + 32)
                yield engine.decompress(piece, PIECE)
                piece = engine.unused_data if engine.eof else engine.unconsumed_tail
        while not engine.eof:
            tail = engine.decompress(b"", PIECE)
            if not tail:
                raise InputError(
                    f"{name} ends in the middle of its compressed data, so it is truncated; copy or export it again."
                )
            yield tail
    except zlib.error as error:
        raise InputError(
            f"{name} should hold intact compressed data but its checksum or structure is wrong, so it is corrupt; "
            "copy or export it again."
        ) from error


def split(stream: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """The first `size` bytes, or all there are, and the pieces that follow."""
    head = bytearray()
    for piece in stream:
        head += piece
        if len(head) >= size:
            break
    return bytes(head[:size]), itertools.chain([bytes(head[size:])], stream)


def check_length(layout: Layout, num_available: int, is_compressed: bool) -> None:
    """An error, before any memory is taken, where the file cannot hold the image its header describes."""
    if num_available * (LARGEST_RATIO if is_compressed else 1) < layout.num_bytes:
        raise _too_short(layout, num_available, "compressed " if is_compressed else "")
    if math.prod(layout.shape) > _MOST_VOXELS:
        raise InputError(
            f"{layout.name} should have {_MOST_VOXELS} voxels at most but has {math.prod(layout.shape)}; crop it to "
            "the temporal bones."
        )


def read_values(stream: Iterator[bytes], layout: Layout) -> tuple[np.ndarray, tuple[str, ...]]:
    """Values `(x, y, z)` in single precision and notes, from a stream that is read to its end."""
    values = np.empty(math.prod(layout.shape), dtype=np.float32)
    num_filled, num_seen, rest = 0, 0, b""
    for piece in stream:
        num_seen += len(piece)
        if num_seen > layout.num_bytes + _MOST_EXTRA:
            raise InputError(
                f"{layout.name} goes on long after the {layout.num_bytes} bytes of its image, so it is corrupt; copy "
                "or export it again."
            )
        if num_filled == values.size:
            continue  # read on: the checksum stands at the end
        piece = rest + piece
        count = min(len(piece) // layout.dtype.itemsize, values.size - num_filled)
        stored = np.frombuffer(piece, layout.dtype, count)
        _convert(stored, layout, values[num_filled : num_filled + count])
        num_filled, rest = num_filled + count, piece[count * layout.dtype.itemsize :]
    if num_filled < values.size:
        raise _too_short(layout, num_seen, "")
    num_extra = num_seen - layout.num_bytes
    notes = (f"Bytes after the last voxel, ignored: {num_extra}.",) if num_extra else ()
    return values.reshape(layout.shape, order="F"), notes


def data_file(header: Path, text: str) -> Path:
    """The plain file beside a header that the header names; a name that leads elsewhere is not followed."""
    target = header.parent / text
    is_beside = text not in ("", ".", "..") and Path(text).name == text and "\\" not in text and "\0" not in text
    if not is_beside or not target.is_file() or target.resolve().parent != header.parent.resolve():
        raise InputError(
            f"{header.name} keeps its voxels in '{plain(text, 80)}', which is not one file beside it; put the file "
            "there, or save the image as one file."
        )
    return target


def _convert(stored: np.ndarray, layout: Layout, out: np.ndarray) -> None:
    if (layout.slope, layout.intercept) == (1.0, 0.0):
        out[:] = stored
    else:
        out[:] = layout.slope * stored.astype(np.float64) + layout.intercept


def _too_short(layout: Layout, num_found: int, what: str) -> InputError:
    size = " x ".join(map(str, layout.shape))
    return InputError(
        f"{layout.name} describes {size} voxels, {layout.num_bytes} bytes, but holds {num_found} {what}bytes, so it "
        "is truncated or corrupt; copy or export it again."
    )
