"""The one gateway for images: a path goes in, a 3D image in RAS millimetres and what was assumed come out."""

import dataclasses
import hashlib
import os
from pathlib import Path

import numpy as np

from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io.archive import unpacked
from logishape.io.dicom import is_dicom_file, read_dicom_file, read_dicom_folder
from logishape.io.dicom_headers import DicomSource
from logishape.io.dicom_series import FEWEST_SLICES
from logishape.io.metaimage import read_metaimage
from logishape.io.nifti import read_nifti
from logishape.io.nrrd import read_nrrd
from logishape.io.payload import FileImage

_READERS = {
    ".nii": ("nifti", read_nifti),
    ".nii.gz": ("nifti", read_nifti),
    ".nrrd": ("nrrd", read_nrrd),
    ".nhdr": ("nrrd", read_nrrd),
    ".mha": ("metaimage", read_metaimage),
    ".mhd": ("metaimage", read_metaimage),
}
READABLE = ".nii, .nii.gz, .nrrd, .nhdr, .mha, .mhd, a DICOM folder or a .zip of one of these"


@dataclasses.dataclass(frozen=True, eq=False)
class Scan:
    """An image as it was read: the volume, what was assumed, chosen or repaired, and a fingerprint.

    `kind` is "nifti", "nrrd", "metaimage" or "dicom". `digest` is the SHA-256 of values and affine, so it knows
    nothing of names or dates in the file. `listing` tells a person which DICOM series were there; it holds their
    descriptions, which may name somebody, so it is not for records. `source` are the headers of DICOM slices, where
    they were asked for; they name the patient.
    """

    volume: Volume
    notes: tuple[str, ...]
    kind: str
    digest: str
    listing: tuple[str, ...] = ()
    source: DicomSource | None = None


def read_scan(path: str | os.PathLike[str], series: str | None = None, with_source: bool = False) -> Scan:
    """The 3D image in a file or a DICOM folder, checked: finite, not constant, 8 voxels or more along each axis.

    Values are single precision, in Hounsfield units where the file scales them so. Of a folder with several DICOM
    series the largest is read, or the one `series` names by UID, by the beginning or end of it, or by number.
    `with_source` keeps the headers of DICOM slices, for `write_dicom_segmentation`.
    """
    kind, image = _read(Path(path), series, with_source)
    name = Path(path).name
    shape = image.data.shape
    if min(shape) < FEWEST_SLICES:
        raise InputError(
            f"{name} should have {FEWEST_SLICES} voxels or more along each axis but has "
            f"{' x '.join(map(str, shape))}; give the whole volume."
        )
    low, high = image.data.min(), image.data.max()
    _check_finite(image.data, low, high, name)
    if low == high:
        raise InputError(f"{name} should show something but every voxel is {low:g}; export it again.")
    volume = Volume(image.data, image.affine + 0.0)  # no minus zeros
    return Scan(volume, image.notes, kind, _digest(volume), image.listing, image.source)


def read_volume(path: str | os.PathLike[str], series: str | None = None) -> Volume:
    """The 3D image in a file or a DICOM folder, without the notes of `read_scan`."""
    return read_scan(path, series).volume


def read_mask(path: str | os.PathLike[str]) -> Volume:
    """The voxels of an image with one label (.nii, .nrrd, .mha) that are not zero, as true and false."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"a mask should be one file but {path} is a folder; save it as .nii.gz, .nrrd or .mha.")
    _, image = _read(path, None)
    _check_finite(image.data, image.data.min(), image.data.max(), path.name)
    mask = np.empty(image.data.shape, dtype=bool, order="F")
    found: set[float] = set()
    for k in range(image.data.shape[2]):  # a plane at a time, to hold no second image
        labels = image.data[:, :, k]
        if not np.array_equal(labels, np.round(labels)):
            raise InputError(
                f"{path.name} should hold whole numbers, zero outside, but holds others between {labels.min():g} and "
                f"{labels.max():g}; threshold it first."
            )
        mask[:, :, k] = labels != 0
        chosen = labels[mask[:, :, k]]
        found |= {float(chosen.min()), float(chosen.max())} if chosen.size else set()
    if len(found) > 1:
        raise InputError(
            f"{path.name} should hold one label but holds several, from {min(found):g} to {max(found):g}; save the "
            "one that is meant."
        )
    return Volume(mask, image.affine + 0.0)


def _read(path: Path, series: str | None, with_source: bool = False) -> tuple[str, FileImage]:
    """The kind of file and its image; whatever goes wrong inside becomes one sentence."""
    try:
        with np.errstate(all="ignore"):  # what overflows is not finite, and is found by the checks
            if path.is_dir():
                return "dicom", read_dicom_folder(path, series, with_source)
            return _read_file(path, series, with_source)
    except InputError:
        raise
    except OSError as error:
        raise InputError(
            f"{path} could not be read ({error.strerror or 'input error'}); check that it is there and may be opened."
        ) from error
    except MemoryError as error:
        raise InputError(
            f"there should be room for {path.name} in memory but there is not; crop it to the temporal bones."
        ) from error
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{path.name} should have a header that makes sense but its numbers cannot be used; export it again."
        ) from error


def _read_file(path: Path, series: str | None, with_source: bool) -> tuple[str, FileImage]:
    if not path.exists():
        raise InputError(f"there is no file or folder {path}; check the path.")
    if not path.is_file():
        raise InputError(f"{path} should be a file or a folder but is neither; give {READABLE}.")
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty (0 bytes); copy or export it again.")
    suffix = next((suffix for suffix in _READERS if path.name.lower().endswith(suffix)), None)
    if path.name.lower().endswith(".zip"):
        return _read_zip(path, series, with_source)
    if suffix is None and is_dicom_file(path):
        return "dicom", read_dicom_file(path, series, with_source)
    if suffix is None:
        raise InputError(f"{path.name} is of a kind that is not read; give {READABLE}.")
    if series is not None:
        raise InputError(f"{path.name} holds one image, so no series can be chosen; leave the series out.")
    kind, reader = _READERS[suffix]
    return kind, reader(path)


def _read_zip(path: Path, series: str | None, with_source: bool) -> tuple[str, FileImage]:
    """What a zip holds: one image file, or DICOM slices. Errors name the zip, not where it was unpacked."""
    with unpacked(path, tuple(_READERS)) as inside:
        try:
            if inside.is_dir():
                return "dicom", read_dicom_folder(inside, series, with_source)
            return _read_file(inside, series, with_source)
        except InputError as error:
            raise InputError(str(error).replace(str(inside), path.name).replace(inside.name, path.name)) from error


def _check_finite(data: np.ndarray, low: np.floating, high: np.floating, name: str) -> None:
    if not np.isfinite([low, high]).all():
        num_bad = sum(int(np.count_nonzero(~np.isfinite(plane))) for plane in np.moveaxis(data, 2, 0))
        raise InputError(
            f"{name} should hold finite numbers but {num_bad} of {data.size} voxels are not a number, infinite or "
            "beyond single precision; replace them first."
        )


def _digest(volume: Volume) -> str:
    """SHA-256 of size, affine and values, x fastest, whatever the machine's byte order."""
    found = hashlib.sha256(np.array(volume.shape, dtype="<i8").tobytes())
    found.update(volume.affine.astype("<f8").tobytes())
    for k in range(volume.shape[2]):
        found.update(np.ascontiguousarray(volume.data[:, :, k].T, dtype="<f4").data)
    return found.hexdigest()
