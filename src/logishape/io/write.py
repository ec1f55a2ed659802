"""Volumes to files: NIfTI, NRRD and MetaImage, the same bytes for the same volume."""

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io.atomic import atomic_file
from logishape.io.metaimage import encode_metaimage_header
from logishape.io.nifti import encode_nifti
from logishape.io.nrrd import encode_nrrd_header

_LEVEL = 6  # of compression: a label image shrinks a thousandfold at any level


def write_volume(path: str | os.PathLike[str], volume: Volume, compress: bool = True) -> None:
    """A file with the volume, there whole or not at all: .nii, .nii.gz, .nrrd or .mha by the ending of its name.

    True and false and bytes become uint8, int16 stays, floating-point numbers become float32. `compress` is for
    .nrrd and .mha; the name of a NIfTI file says whether it is compressed.
    """
    path = Path(path)
    if volume.ndim != 3:
        raise InputError(f"a file holds a 3D image but this one has {volume.ndim} axes; write it as a picture.")
    values = _stored(volume.data)
    name = path.name.lower()
    if not name.endswith((".nii", ".nii.gz", ".nrrd", ".mha")):
        raise InputError(f"{path.name} should end in .nii, .nii.gz, .nrrd or .mha; choose one of them.")
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        if name.endswith(".nrrd"):
            stream.write(encode_nrrd_header(volume, values.dtype, compress))
            _write(stream, _planes(values), compress)
        elif name.endswith(".mha"):
            _write_metaimage(stream, volume, values, compress)
        else:
            _write(stream, encode_nifti(volume, values), name.endswith(".gz"))


def _stored(data: np.ndarray) -> np.ndarray:
    """The values in the type they are stored in, little-endian."""
    if data.dtype == bool or data.dtype == np.uint8:
        return data.astype(np.uint8, copy=False)
    if data.dtype == np.int16:
        return data.astype("<i2", copy=False)
    if data.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return data.astype("<f4", copy=False)
    raise InputError(
        f"a volume is written from true and false, uint8, int16 or floating-point values but these are {data.dtype}; "
        "convert them first."
    )


def _planes(values: np.ndarray) -> Iterator[bytes]:
    return (values[:, :, k].tobytes(order="F") for k in range(values.shape[2]))


def _write(stream: BinaryIO, content: Iterator[bytes], compress: bool) -> None:
    if not compress:
        stream.writelines(content)
        return
    # Neither name nor time goes into the file, so that equal volumes give equal bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0, compresslevel=_LEVEL) as packed:
        for piece in content:
            packed.write(piece)


def _write_metaimage(stream: BinaryIO, volume: Volume, values: np.ndarray, compress: bool) -> None:
    """A .mha file, whose header must know the length of what follows."""
    if not compress:
        stream.write(encode_metaimage_header(volume, values.dtype, None))
        stream.writelines(_planes(values))
        return
    engine = zlib.compressobj(_LEVEL)
    packed = [engine.compress(piece) for piece in _planes(values)]
    packed.append(engine.flush())
    stream.write(encode_metaimage_header(volume, values.dtype, sum(map(len, packed))))
    stream.writelines(packed)
