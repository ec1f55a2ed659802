"""The header of NIfTI files, versions 1 and 2: where its fields lie and what they say of the grid."""

import numpy as np
from scipy.spatial.transform import Rotation

from logishape.core.errors import InputError
from logishape.io.grids import make_affine

# Fields we read or write: name, type, offset in version 1, offset in version 2.
_FIELDS_1 = {
    "sizeof_hdr": ("i4", 0),
    "dim": ("(8,)i2", 40),
    "datatype": ("i2", 70),
    "bitpix": ("i2", 72),
    "pixdim": ("(8,)f4", 76),
    "vox_offset": ("f4", 108),
    "scl_slope": ("f4", 112),
    "scl_inter": ("f4", 116),
    "xyzt_units": ("u1", 123),
    "descrip": ("S80", 148),
    "qform_code": ("i2", 252),
    "sform_code": ("i2", 254),
    "quatern": ("(3,)f4", 256),
    "qoffset": ("(3,)f4", 268),
    "srow": ("(3,4)f4", 280),
    "magic": ("S4", 344),
}
_FIELDS_2 = {
    "sizeof_hdr": ("i4", 0),
    "magic": ("S8", 4),
    "datatype": ("i2", 12),
    "bitpix": ("i2", 14),
    "dim": ("(8,)i8", 16),
    "pixdim": ("(8,)f8", 104),
    "vox_offset": ("i8", 168),
    "scl_slope": ("f8", 176),
    "scl_inter": ("f8", 184),
    "descrip": ("S80", 240),
    "qform_code": ("i4", 344),
    "sform_code": ("i4", 348),
    "quatern": ("(3,)f8", 352),
    "qoffset": ("(3,)f8", 376),
    "srow": ("(3,4)f8", 400),
    "xyzt_units": ("i4", 500),
}
LONGEST = 540
DTYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4", 1024: "i8", 1280: "u8"}
_COLOURS = {128: "RGB", 2304: "RGBA", 32: "complex", 1792: "complex", 2048: "complex"}
_MILLIMETRES = {0: 1.0, 1: 1000.0, 2: 1.0, 3: 0.001}  # of the units of space


def header_type(version: int, order: str = "<") -> np.dtype:
    """The memory layout of a header, little-endian (`<`) or big-endian (`>`)."""
    fields = {1: _FIELDS_1, 2: _FIELDS_2}[version]
    layout = {
        "names": list(fields),
        "formats": [kind for kind, _ in fields.values()],
        "offsets": [offset for _, offset in fields.values()],
        "itemsize": {1: 348, 2: LONGEST}[version],
    }
    return np.dtype(layout).newbyteorder(order)  # pyright: ignore[reportArgumentType, reportCallIssue]


def parse_header(head: bytes, name: str) -> tuple[np.void, str]:
    """The header's fields and the byte order of the file."""
    for version, size in ((1, 348), (2, LONGEST)):
        for order in "<>":
            if len(head) >= size and np.frombuffer(head, f"{order}i4", 1)[0] == size:
                header = np.frombuffer(head, header_type(version, order), 1)[0]
                if header["magic"][:3] == f"n+{version}".encode():
                    return header, order
    raise InputError(
        f"{name} should begin with a NIfTI header (single file, version 1 or 2) but does not; check the file or "
        "export it again."
    )


def value_type(header: np.void, order: str, name: str) -> np.dtype:
    """The type of the stored values."""
    code = int(header["datatype"])
    if code in _COLOURS:
        raise InputError(
            f"{name} should hold one number a voxel but holds {_COLOURS[code]} values; save a grey-value image."
        )
    if code not in DTYPES:
        raise InputError(
            f"{name} stores values of NIfTI type {code}, which is not read; save it with whole or floating-point "
            "numbers of 8 to 64 bits."
        )
    return np.dtype(order + DTYPES[code])


def header_affine(header: np.void, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """The RAS affine in millimetres and notes: from the sform where set, else the qform, else voxel sizes alone."""
    pixdim = np.asarray(header["pixdim"], dtype=np.float64)
    if not np.all(np.isfinite(pixdim[1:4])) or not np.all(pixdim[1:4] > 0):
        text = " x ".join(f"{size:g}" for size in pixdim[1:4])
        raise InputError(
            f"{name} should give voxel sizes above zero but they are {text}; repair its header or export it again."
        )
    notes: list[str] = []
    if header["sform_code"] > 0:
        affine = make_affine(header["srow"][:, :3], header["srow"][:, 3])
        notes += _compare(header, affine)
    elif header["qform_code"] > 0:
        affine = _qform(header)
    else:
        affine = make_affine(np.diag(pixdim[1:4]), np.zeros(3))
        notes.append(
            "The NIfTI header gives no orientation (sform and qform unset); the first axis was taken to run to the "
            "right, the second to the front and the third up, from the origin."
        )
    scale, unit_notes = _unit(header, name)
    affine[:3] *= scale
    return affine, (*notes, *unit_notes)


def _unit(header: np.void, name: str) -> tuple[float, tuple[str, ...]]:
    code = int(header["xyzt_units"]) & 7
    if code not in _MILLIMETRES:
        raise InputError(f"{name} measures space in the unknown unit {code}; set its units to millimetres.")
    if code == 0:
        return 1.0, ("The NIfTI header names no unit of length; millimetres were assumed.",)
    if code == 2:
        return 1.0, ()
    unit = {1: "metres", 3: "micrometres"}[code]
    return _MILLIMETRES[code], (f"The NIfTI header measures in {unit}; it was converted to millimetres.",)


def _qform(header: np.void) -> np.ndarray:
    """The affine of the quaternion: rotation times voxel sizes, the third axis flipped where pixdim[0] < 0."""
    b, c, d = np.asarray(header["quatern"], dtype=np.float64)
    a = np.sqrt(max(0.0, 1.0 - (b * b + c * c + d * d)))
    rotation = Rotation.from_quat([b, c, d, a]).as_matrix()
    pixdim = np.asarray(header["pixdim"], dtype=np.float64)
    steps = pixdim[1:4] * [1, 1, -1 if pixdim[0] < 0 else 1]
    return make_affine(rotation * steps, header["qoffset"])


def _compare(header: np.void, affine: np.ndarray) -> tuple[str, ...]:
    """A note where the qform places the last voxel elsewhere than the sform does."""
    if header["qform_code"] <= 0 or not np.all(np.isfinite([*header["quatern"], *header["qoffset"]])):
        return ()
    corner = np.append(np.asarray(header["dim"][1:4], dtype=np.float64) - 1, 1.0)
    difference = _qform(header) - affine
    distance = max(np.linalg.norm((difference @ corner)[:3]), np.linalg.norm(difference[:3, 3]))
    if not distance > 1e-2:
        return ()
    return (f"The sform and qform of the NIfTI header differ by up to {distance:.2f} units; the sform was used.",)
