"""What a DICOM file may claim: no more pixels than its bytes can hold, in the header and in the packed stream."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

_DEFLATED = b"1.2.840.10008.1.2.1.99"
_MOST_INFLATED = 1 << 29
_MOST_VOXELS = 1 << 30  # of a volume: 4 GiB in single precision
_LARGEST_RATIO = 1100  # voxels from one packed byte; only black images come near it
_LONG = (b"OB", b"OW", b"OF", b"SQ", b"UN", b"UT", b"OD", b"OL", b"UC", b"UR", b"OV", b"SV", b"UV")


def check_inflation(path: Path) -> None:
    """A `ValueError` where a deflated file would unpack beyond all bounds; others are not looked into."""
    with path.open("rb") as stream:
        if _DEFLATED not in stream.read(1 << 12):
            return
        stream.seek(132)
        while (head := stream.read(8))[:2] == b"\x02\x00" and len(head) == 8:  # the group that is never deflated
            length = struct.unpack("<H", head[6:])[0]
            if head[4:6] in _LONG:
                length = struct.unpack("<I", stream.read(4).ljust(4, b"\0"))[0]
            stream.seek(length, 1)
        stream.seek(-len(head), 1)
        engine, size = zlib.decompressobj(-zlib.MAX_WBITS), 0
        while not engine.eof and (piece := engine.unconsumed_tail or stream.read(1 << 15)):
            size += len(engine.decompress(piece, 1 << 22))
            if size > _MOST_INFLATED:
                raise ValueError(size)


def can_hold(num_voxels: int, num_bytes: int, is_packed: bool) -> bool:
    """Whether files of so many bytes can hold so many voxels, and memory the volume."""
    return num_voxels <= min(_MOST_VOXELS, num_bytes * (_LARGEST_RATIO if is_packed else 1))


def is_size_honest(packed: bytes, rows: int, columns: int) -> bool:
    """Whether a packed frame (JPEG, JPEG-LS or JPEG 2000) claims the size that the DICOM header gives.

    Decoders take memory for what the frame claims. One whose size is not found is left to them.
    """
    sizes = list(_sizes(packed))
    return all(size == (rows, columns) for size in sizes)


def _sizes(packed: bytes) -> Iterator[tuple[int, int]]:
    """Rows and columns in the frame headers of a stream of JPEG's family."""
    at = packed.find(b"\xff\x51") if b"\xff\x4f\xff\x51" in packed[:256] else -1
    if at >= 0 and len(packed) >= at + 22:
        width, height, left, top = struct.unpack(">4I", packed[at + 6 : at + 22])
        yield height - top, width - left
        return
    at = 2 if packed[:2] == b"\xff\xd8" else len(packed)
    while at + 9 <= len(packed) and packed[at] == 0xFF:
        kind, length = packed[at + 1], struct.unpack(">H", packed[at + 2 : at + 4])[0]
        if kind == 0xF7 or (0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC)):
            yield struct.unpack(">2H", packed[at + 5 : at + 9])
        if kind == 0xDA:
            return
        at += 1 if kind == 0xFF else 2 + length
