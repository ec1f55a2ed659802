"""NRRD files (.nrrd, and .nhdr with its data file), read and written: raw or gzip, in any anatomical space."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io.grids import check_axes, describe_shear, lps_to_ras, make_affine, spatial_shape, turn
from logishape.io.json_files import plain
from logishape.io.payload import (
    FileImage,
    Layout,
    check_length,
    data_file,
    inflated_pieces,
    pieces,
    read_values,
    split,
)

_TYPES = {
    "i1": ("signed char", "int8", "int8_t"),
    "u1": ("uchar", "unsigned char", "uint8", "uint8_t"),
    "i2": ("short", "short int", "signed short", "signed short int", "int16", "int16_t"),
    "u2": ("ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"),
    "i4": ("int", "signed int", "int32", "int32_t"),
    "u4": ("uint", "unsigned int", "uint32", "uint32_t"),
    "i8": ("longlong", "long long", "long long int", "signed long long", "int64", "int64_t"),
    "u8": ("ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"),
    "f4": ("float",),
    "f8": ("double",),
}
_SPACES = {  # signs that take the axes of a space to RAS
    ("right-anterior-superior", "ras"): (1, 1, 1),
    ("left-anterior-superior", "las"): (-1, 1, 1),
    ("left-posterior-superior", "lps"): (-1, -1, 1),
}
_ENCODINGS = {"raw": False, "gzip": True, "gz": True}
_WRITTEN_TYPES = {"u1": "uint8", "i2": "int16", "f4": "float"}
_LONGEST_LINE, _LONGEST_HEADER = 1 << 16, 1 << 22
_FARTHEST = 1 << 28  # bytes that stand before the voxels in a stream


def read_nrrd(path: Path) -> FileImage:
    """The image of a .nrrd or .nhdr file."""
    name = path.name
    with path.open("rb") as stream:
        fields = _read_fields(stream, name)
        sizes = tuple(int(size) for size in _numbers(fields, "sizes", name))
        directions = _directions(fields, len(sizes), name)
        _check_one_number(fields, sizes, name)
        is_space = [direction is not None for direction in directions] if directions else [True] * len(sizes)
        kept = [i for i, size in enumerate(sizes) if is_space[i] or size > 1]
        shape, shape_notes = spatial_shape(tuple(sizes[i] for i in kept), name)
        affine, notes = _affine(fields, [directions[i] for i in kept[:3]] if directions else None, name)
        check_axes(affine, name)
        layout = Layout(name, shape, _dtype(fields, name))
        data, value_notes = _read_data(path, stream, fields, layout)
    return FileImage(data, affine, (*shape_notes, *notes, *describe_shear(affine, "the image"), *value_notes))


def encode_nrrd_header(volume: Volume, dtype: np.dtype, compress: bool) -> bytes:
    """The header of an attached NRRD file in LPS, the space most programs write."""
    lines = [
        "NRRD0005",
        f"type: {_WRITTEN_TYPES[dtype.str[1:]]}",
        "dimension: 3",
        "sizes: " + " ".join(map(str, volume.shape)),
        *space_lines(volume),
        "kinds: domain domain domain",
        "encoding: " + ("gzip" if compress else "raw"),
    ]
    return ("\n".join(lines) + "\n\n").encode("ascii")


def space_lines(volume: Volume, others: int = 0) -> list[str]:
    """Where the grid lies, in LPS, after so many `others` axes that are not of space."""
    columns = [",".join(repr(float(x)) for x in column) for column in lps_to_ras(volume.affine)[:3].T]
    return [
        "space: left-posterior-superior",
        "space directions: " + "none " * others + " ".join(f"({column})" for column in columns[:3]),
        'space units: "mm" "mm" "mm"',
        f"space origin: ({columns[3]})",
        "endian: little",
    ]


def _read_fields(stream: BinaryIO, name: str) -> dict[str, str]:
    """The fields of the header, names in lower case without spaces; the stream then stands at the data."""
    if not re.match(rb"NRRD\d{4}\s*$", stream.readline(16)):
        raise InputError(f"{name} should begin with NRRD and a version but does not; check the file.")
    fields: dict[str, str] = {}
    while (line := stream.readline(_LONGEST_LINE)) and stream.tell() < _LONGEST_HEADER:
        text = line.decode("utf-8", errors="replace").strip()
        if not text:
            return fields
        if not text.startswith("#") and ":=" not in text.split(": ")[0] and ":" in text:
            key, value = text.split(":", 1)
            fields[key.replace(" ", "").lower()] = value.strip()
    if "datafile" in fields:
        return fields  # a detached header may end without an empty line
    raise InputError(f"{name} ends within its NRRD header, so it is truncated; copy or export it again.")


def _field(fields: dict[str, str], key: str, name: str) -> str:
    if key not in fields:
        raise InputError(f"{name} should name its {key} but the NRRD header does not; export it again.")
    return fields[key]


def _numbers(fields: dict[str, str], key: str, name: str) -> list[float]:
    text = _field(fields, key, name)
    try:
        return [float(part) for part in text.replace(",", " ").strip("() ").split()]
    except ValueError as error:
        raise InputError(
            f"{name} should give numbers as {key} but gives '{plain(text, 60)}'; export it again."
        ) from error


def _dtype(fields: dict[str, str], name: str) -> np.dtype:
    text = _field(fields, "type", name).lower()
    for code, names in _TYPES.items():
        if text in names:
            order = fields.get("endian", "little").lower()
            if order not in ("little", "big"):
                raise InputError(
                    f"{name} should be little or big endian but says '{plain(order, 20)}'; export again."
                )
            return np.dtype((">" if order == "big" else "<") + code)
    raise InputError(f"{name} stores values of type '{plain(text, 40)}', which is not read; save it as short.")


def _directions(fields: dict[str, str], num_axes: int, name: str) -> list[np.ndarray | None]:
    """A step (mm) for each axis, None where the axis is not one of space; empty where there are no directions."""
    if "spacedirections" not in fields:
        return []
    parts = re.findall(r"\(([^)]*)\)|(none)", fields["spacedirections"].lower())
    try:
        found = [None if none else np.array([float(x) for x in text.split(",")]) for text, none in parts]
    except ValueError:
        found = []
    if len(found) != num_axes or any(step is not None and step.shape != (3,) for step in found):
        raise InputError(
            f"{name} should give a direction of three numbers for each of {num_axes} axes but gives "
            f"'{plain(fields['spacedirections'], 80)}'; export it as one 3D image."
        )
    return found


def _check_one_number(fields: dict[str, str], sizes: tuple[int, ...], name: str) -> None:
    kinds = fields.get("kinds", "").lower().split()
    for kind, size in zip(kinds, sizes, strict=False):
        if size > 1 and kind not in ("domain", "space", "time", "none", "stub", "scalar", "???"):
            raise InputError(
                f"{name} should hold one number a voxel but has an axis of kind '{plain(kind, 30)}' with {size} "
                "entries; save one component on its own."
            )


def _affine(fields: dict[str, str], steps: list | None, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    notes: list[str] = []
    units = set(fields.get("spaceunits", "").lower().replace('"', " ").split())
    if units - {"mm", "millimeter", "millimeters", "millimetre", "millimetres"}:
        raise InputError(
            f"{name} should measure in mm but its units are {plain(', '.join(sorted(units)), 60)}; convert."
        )
    if steps is None:
        spacings = _numbers(fields, "spacings", name)[:3] if "spacings" in fields else [1.0] * 3
        steps = list(np.diag(spacings)) if len(spacings) == 3 else [np.zeros(3)] * 3
        if "spacings" not in fields:
            notes.append("The NRRD header gives no voxel size; 1 mm was assumed.")
    origin = np.zeros(3)
    if "spaceorigin" in fields:
        origin = np.array(_numbers(fields, "spaceorigin", name))
        if origin.shape != (3,):
            raise InputError(f"{name} should give three numbers as space origin but gives {len(origin)}.")
    else:
        notes.append("The NRRD header gives no origin; the first voxel was placed at (0, 0, 0).")
    space = fields.get("space", "").lower()
    signs = next((signs for names, signs in _SPACES.items() if space in names), None)
    if signs is None:
        signs = (-1, -1, 1)
        notes.append(
            "The NRRD header names no anatomical space; its axes were taken as left, posterior, superior (LPS)."
        )
    return turn(make_affine(np.stack(steps, axis=1), origin), signs), tuple(notes)


def _read_data(
    path: Path, stream: BinaryIO, fields: dict[str, str], layout: Layout
) -> tuple[np.ndarray, tuple[str, ...]]:
    encoding = _field(fields, "encoding", layout.name).lower()
    if encoding not in _ENCODINGS:
        raise InputError(
            f"{layout.name} has the encoding '{plain(encoding, 20)}', which is not read; use raw or gzip."
        )
    if "datafile" not in fields:
        return _read_stream(stream, fields, layout, _ENCODINGS[encoding])
    with data_file(path, fields["datafile"]).open("rb") as data_stream:
        return _read_stream(data_stream, fields, layout, _ENCODINGS[encoding])


def _read_stream(
    stream: BinaryIO, fields: dict[str, str], layout: Layout, is_compressed: bool
) -> tuple[np.ndarray, tuple[str, ...]]:
    for _ in range(int(fields.get("lineskip", 0))):
        if not stream.readline(_LONGEST_LINE):
            break
    begin, skip = stream.tell(), int(fields.get("byteskip", 0))
    if skip > _FARTHEST:
        raise InputError(f"{layout.name} says its voxels begin at byte {skip:g}, which cannot be; it is corrupt.")
    end = stream.seek(0, 2)
    if skip == -1 and not is_compressed:  # the voxels are the last bytes of the file
        begin, skip = max(begin, end - layout.num_bytes), 0
    stream.seek(begin)
    check_length(layout, end - begin - (0 if is_compressed else skip), is_compressed)
    content: Iterator[bytes] = inflated_pieces(stream, layout.name) if is_compressed else pieces(stream)
    return read_values(split(content, max(skip, 0))[1], layout)
