"""NIfTI files, read and written to the byte: the affine exactly as the header gives it, shear included."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io.grids import check_axes, describe_shear, is_orthogonal, spatial_shape
from logishape.io.nifti_header import DTYPES, LONGEST, header_affine, header_type, parse_header, value_type
from logishape.io.payload import FileImage, Layout, check_length, inflated_pieces, pieces, read_values, split

_OFFSET = 352  # a header of version 1 and four bytes that say no extension follows
_FARTHEST = 1 << 28  # extensions longer than this do not exist
_MILLIMETRES_AND_SECONDS = 2 + 8
_SCANNER = 1  # the code of "scanner coordinates"


def read_nifti(path: Path) -> FileImage:
    """The image of a .nii or .nii.gz file; compression is told from the content, whatever the name."""
    with path.open("rb") as stream:
        is_compressed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        num_available = os.fstat(stream.fileno()).st_size
        content: Iterator[bytes] = inflated_pieces(stream, path.name) if is_compressed else pieces(stream)
        head, rest = split(content, LONGEST)
        header, order = parse_header(head, path.name)
        shape, shape_notes = _shape(header, path.name)
        affine, affine_notes = header_affine(header, path.name)
        check_axes(affine, path.name)
        slope, intercept, scale_notes = _scale(header)
        layout = Layout(path.name, shape, value_type(header, order, path.name), slope, intercept)
        offset = _offset(header, path.name)
        check_length(layout, num_available - (0 if is_compressed else offset), is_compressed)
        _, rest = split(itertools.chain([head], rest), offset)
        data, value_notes = read_values(rest, layout)
    notes = (*shape_notes, *affine_notes, *describe_shear(affine, "the image"), *scale_notes, *value_notes)
    return FileImage(data, affine, notes)


def encode_nifti(volume: Volume, values: np.ndarray) -> Iterator[bytes]:
    """The bytes of a NIfTI file, version 1: sform always, qform too where the axes stand at right angles."""
    if max(volume.shape) > np.iinfo(np.int16).max:
        raise InputError(f"NIfTI holds up to 32767 voxels along an axis but the shape is {volume.shape}; use .nrrd.")
    header = np.zeros(1, header_type(1))[0]
    header["sizeof_hdr"] = 348
    header["dim"] = [3, *volume.shape, 1, 1, 1, 1]
    header["datatype"] = {np.dtype(name): code for code, name in DTYPES.items()}[values.dtype]
    header["bitpix"] = 8 * values.dtype.itemsize
    header["pixdim"] = [1, *volume.spacing, 0, 0, 0, 0]
    header["vox_offset"] = _OFFSET
    header["scl_slope"] = 1
    header["xyzt_units"] = _MILLIMETRES_AND_SECONDS
    header["sform_code"] = _SCANNER
    header["srow"] = volume.affine[:3]
    header["magic"] = b"n+1"
    if is_orthogonal(volume.affine):
        _set_qform(header, volume)
    yield header.tobytes() + bytes(_OFFSET - 348)
    for k in range(values.shape[2]):
        yield values[:, :, k].tobytes(order="F")


def _set_qform(header: np.void, volume: Volume) -> None:
    axes = volume.affine[:3, :3] / volume.spacing
    if np.linalg.det(axes) < 0:  # a quaternion only rotates; the flip of the third axis goes to pixdim[0]
        header["pixdim"][0] = -1
        axes = axes * [1, 1, -1]
    quaternion = Rotation.from_matrix(axes).as_quat(canonical=True)  # b, c, d, a with a >= 0, which is not stored
    header["quatern"] = quaternion[:3]
    header["qoffset"] = volume.affine[:3, 3]
    header["qform_code"] = _SCANNER


def _shape(header: np.void, name: str) -> tuple[tuple[int, int, int], tuple[str, ...]]:
    num_axes = int(header["dim"][0])
    if not 1 <= num_axes <= 7:
        raise InputError(f"{name} should have 1 to 7 axes but its header says {num_axes}; the file is corrupt.")
    sizes = tuple(int(size) for size in header["dim"][1 : num_axes + 1])
    if len(sizes) >= 5 and sizes[4] > 1:
        raise InputError(
            f"{name} should hold one number a voxel but holds vectors of {sizes[4]}; save one component on its own."
        )
    return spatial_shape(sizes, name)


def _scale(header: np.void) -> tuple[float, float, tuple[str, ...]]:
    slope, intercept = float(header["scl_slope"]), float(header["scl_inter"])
    if not np.isfinite([slope, intercept]).all():
        return 1.0, 0.0, ("The NIfTI header's scaling is not a number; the stored values were taken as they are.",)
    return (slope, intercept, ()) if slope != 0 else (1.0, 0.0, ())  # zero means: not scaled


def _offset(header: np.void, name: str) -> int:
    smallest = int(header["sizeof_hdr"]) + 4
    offset = float(header["vox_offset"])
    if offset == 0:
        return smallest
    if not smallest - 4 <= offset < _FARTHEST:
        raise InputError(f"{name} says its voxels begin at byte {offset:g}, which cannot be; the file is corrupt.")
    return int(offset)
