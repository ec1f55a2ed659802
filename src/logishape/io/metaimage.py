"""MetaImage files (.mha, and .mhd with its data file), read and written: raw or zlib."""

from pathlib import Path
from typing import BinaryIO

import numpy as np

from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io.grids import check_axes, describe_shear, is_orthogonal, lps_to_ras, make_affine, spatial_shape
from logishape.io.json_files import plain
from logishape.io.payload import FileImage, Layout, check_length, data_file, inflated_pieces, pieces, read_values

_TYPES = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_LONG_LONG": "i8",
    "MET_ULONG_LONG": "u8",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}
_TRUE = ("true", "t", "1")
_LONGEST_LINE, _LONGEST_HEADER = 1 << 16, 1 << 22


def read_metaimage(path: Path) -> FileImage:
    """The image of a .mha or .mhd file."""
    name = path.name
    with path.open("rb") as stream:
        fields = _read_fields(stream, name)
        sizes = tuple(int(size) for size in _numbers(fields, ("DimSize",), name, []))
        if not sizes:
            raise InputError(f"{name} should give its size (DimSize) but does not; export it again.")
        if _is_true(fields, "BinaryData", default=True) is False:
            raise InputError(f"{name} stores its voxels as text, which is not read; save it as binary.")
        channels = int(_numbers(fields, ("ElementNumberOfChannels",), name, [1])[0])
        if channels != 1:
            raise InputError(
                f"{name} should hold one number a voxel but holds {channels}; save one component on its own."
            )
        shape, shape_notes = spatial_shape(sizes, name)
        affine, notes = _affine(fields, len(sizes), name)
        check_axes(affine, name)
        layout = Layout(name, shape, _dtype(fields, name))
        data, value_notes = _read_data(path, stream, fields, layout)
    return FileImage(data, affine, (*shape_notes, *notes, *describe_shear(affine, "the image"), *value_notes))


def encode_metaimage_header(volume: Volume, dtype: np.dtype, compressed_size: int | None) -> bytes:
    """The header of a .mha file, whose direction matrix must be a rotation, perhaps with a flip."""
    if not is_orthogonal(volume.affine):
        raise InputError(
            "a .mha file needs axes at right angles but this grid is sheared; write .nii.gz or .nrrd instead."
        )
    affine = lps_to_ras(volume.affine)
    kinds = {code: kind for kind, code in _TYPES.items()}
    lines = ["ObjectType = Image", "NDims = 3", "BinaryData = True", "BinaryDataByteOrderMSB = False"]
    lines += [f"CompressedData = {compressed_size is not None}"]
    if compressed_size is not None:
        lines += [f"CompressedDataSize = {compressed_size}"]
    lines += [
        "TransformMatrix = " + _text((affine[:3, :3] / volume.spacing).T.ravel()),
        "Offset = " + _text(affine[:3, 3]),
        "CenterOfRotation = 0 0 0",
        "ElementSpacing = " + _text(volume.spacing),
        "DimSize = " + " ".join(map(str, volume.shape)),
        "ElementType = " + kinds[dtype.str[1:]],
        "ElementDataFile = LOCAL",
    ]
    return ("\n".join(lines) + "\n").encode("ascii")


def _text(numbers: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _read_fields(stream: BinaryIO, name: str) -> dict[str, str]:
    """The fields of the header up to the place of the data; the stream then stands behind it."""
    fields: dict[str, str] = {}
    while (line := stream.readline(_LONGEST_LINE)) and stream.tell() < _LONGEST_HEADER:
        key, found, value = line.decode("utf-8", errors="replace").partition("=")
        if not found:
            break
        fields[key.strip()] = value.strip()
        if key.strip() == "ElementDataFile":
            return fields
    raise InputError(
        f"{name} should have a MetaImage header that ends with ElementDataFile but has not; copy or export it again."
    )


def _numbers(fields: dict[str, str], keys: tuple[str, ...], name: str, default: list[float]) -> list[float]:
    """The numbers under the first of these keys that there is."""
    for key in keys:
        if key in fields:
            try:
                return [float(part) for part in fields[key].split()]
            except ValueError as error:
                raise InputError(
                    f"{name} should give numbers as {key} but gives '{plain(fields[key], 60)}'; export it again."
                ) from error
    return default


def _is_true(fields: dict[str, str], key: str, default: bool = False) -> bool:
    return fields[key].lower() in _TRUE if key in fields else default


def _dtype(fields: dict[str, str], name: str) -> np.dtype:
    kind = fields.get("ElementType", "none")
    if kind not in _TYPES:
        raise InputError(f"{name} stores values of type {plain(kind, 40)}, which is not read; use MET_SHORT.")
    is_big = _is_true(fields, "BinaryDataByteOrderMSB", _is_true(fields, "ElementByteOrderMSB"))
    return np.dtype((">" if is_big else "<") + _TYPES[kind])


def _affine(fields: dict[str, str], num_axes: int, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    notes: list[str] = []
    units = fields.get("DistanceUnits", "mm").lower()
    if units not in ("mm", "?"):
        raise InputError(f"{name} should measure in mm but its unit is '{plain(units, 20)}'; convert it.")
    spacing = _numbers(fields, ("ElementSpacing", "ElementSize"), name, [])
    matrix = _numbers(fields, ("TransformMatrix", "Rotation", "Orientation"), name, [])
    origin = _numbers(fields, ("Offset", "Position", "Origin"), name, [])
    if not spacing:
        notes.append("The MetaImage header gives no voxel size; 1 mm was assumed.")
    if not matrix:
        notes.append("The MetaImage header gives no orientation; axes were taken as left, posterior, superior (LPS).")
    if not origin:
        notes.append("The MetaImage header gives no origin; the first voxel was placed at (0, 0, 0).")
    try:
        axes = np.array(matrix or np.eye(num_axes).ravel()).reshape(num_axes, num_axes)[:3, :3].T
        steps = axes * np.array(spacing or [1.0] * num_axes).reshape(num_axes)[:3]
        start = np.array(origin or [0.0] * num_axes).reshape(num_axes)[:3]
    except ValueError as error:
        raise InputError(
            f"{name} has {num_axes} axes, but its spacing, matrix or offset has another number; export it again."
        ) from error
    if spacing and min(spacing) <= 0:
        raise InputError(f"{name} should have voxel sizes above zero but has {spacing}; repair its header.")
    return lps_to_ras(make_affine(steps, start)), tuple(notes)


def _read_data(
    path: Path, stream: BinaryIO, fields: dict[str, str], layout: Layout
) -> tuple[np.ndarray, tuple[str, ...]]:
    target = fields["ElementDataFile"]
    if target.upper() == "LOCAL":
        return _read_stream(stream, fields, layout)
    with data_file(path, target).open("rb") as data_stream:
        return _read_stream(data_stream, fields, layout)


def _read_stream(stream: BinaryIO, fields: dict[str, str], layout: Layout) -> tuple[np.ndarray, tuple[str, ...]]:
    is_compressed = _is_true(fields, "CompressedData")
    skip = int(_numbers(fields, ("HeaderSize",), layout.name, [0])[0])
    begin = stream.tell() + max(skip, 0)
    end = stream.seek(0, 2)
    if skip == -1 and not is_compressed:  # the voxels are the last bytes of the file
        begin = max(begin, end - layout.num_bytes)
    stream.seek(begin)
    check_length(layout, end - begin, is_compressed)
    return read_values(inflated_pieces(stream, layout.name) if is_compressed else pieces(stream), layout)
