"""The pixels of DICOM slices in their physical unit, whichever way they were compressed."""

import contextlib
import itertools
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from logishape.core.errors import InputError
from logishape.io.dicom_headers import Slice
from logishape.io.dicom_limits import is_size_honest


def read_pixels(pieces: Sequence[Slice]) -> Iterator[np.ndarray]:
    """Values `(rows, columns)` in single precision, slice after slice, each by its own slope and intercept."""
    for path, group in itertools.groupby(pieces, key=lambda piece: piece.path):
        same_file = list(group)
        if same_file[0].is_packed:
            _check_whole(path, same_file[0], len(same_file))
        if same_file[0].frame is None:
            for piece in same_file:
                yield _read_file(piece)
        else:
            yield from _read_frames(path, same_file)


def _read_file(piece: Slice) -> np.ndarray:
    import pydicom
    from pydicom.pixels.utils import pixel_array

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd but readable headers
            is_deflated = "Deflated" in piece.syntax  # has no place in the file that could be gone to
            stored = pydicom.dcmread(piece.path).pixel_array if is_deflated else pixel_array(piece.path)
    except Exception as error:  # decoders fail in many ways
        if "JPEG" not in piece.syntax:  # others gain nothing, and SimpleITK takes the memory that a header asks for
            raise _unreadable(piece) from error
        return _checked(_read_with_simpleitk(piece), piece)
    return _rescaled(stored, piece)


def _read_frames(path: Path, pieces: list[Slice]) -> Iterator[np.ndarray]:
    """The frames of one file, which is opened once: finding the way to its pixels takes long."""
    from pydicom.pixels.utils import iter_pixels

    indices = [piece.frame for piece in pieces if piece.frame is not None]
    frames = iter_pixels(path, indices=indices)
    for piece in pieces:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                stored = next(frames)
        except Exception as error:  # decoders fail in many ways
            raise _unreadable(piece) from error
        yield _rescaled(stored, piece)


def _read_with_simpleitk(piece: Slice) -> np.ndarray:
    """The slice through SimpleITK, which knows JPEG lossless and JPEG-LS and applies the rescale itself."""
    import SimpleITK as sitk  # noqa: N813

    sitk.ProcessObject.SetGlobalWarningDisplay(False)
    try:
        with _silenced():
            image = sitk.ReadImage(str(piece.path), imageIO="GDCMImageIO")
        return sitk.GetArrayFromImage(image)[0].astype(np.float32)
    except RuntimeError as error:
        raise _unreadable(piece) from error


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Nothing written to stderr meanwhile: the decoders below talk to the terminal themselves."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _rescaled(stored: np.ndarray, piece: Slice) -> np.ndarray:
    slope, intercept = piece.rescale or (1.0, 0.0)
    return (slope * _checked(stored, piece).astype(np.float64) + intercept).astype(np.float32)


def _checked(values: np.ndarray, piece: Slice) -> np.ndarray:
    if values.shape != (piece.rows, piece.columns):
        raise InputError(
            f"{piece.path.name} should hold {piece.rows} x {piece.columns} grey values but holds an array of shape "
            f"{values.shape}; export the series again."
        )
    return values


def _check_whole(path: Path, piece: Slice, num_frames: int) -> None:
    """An error where packed pixels end before their end mark, which decoders would fill, or claim another size."""
    import pydicom
    from pydicom.encaps import generate_frames

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message="End of file reached")
            header = pydicom.dcmread(path, specific_tags=["PixelData"])
            if header.file_meta.TransferSyntaxUID.is_encapsulated:
                frames = generate_frames(header.PixelData, number_of_frames=num_frames)
                if not all(is_size_honest(frame, piece.rows, piece.columns) for frame in frames):
                    raise ValueError("size")
    except Exception as error:  # a damaged file can fail in any way
        raise _unreadable(piece) from error


def _unreadable(piece: Slice) -> InputError:
    return InputError(
        f"the pixels of {piece.path.name} (transfer syntax: {piece.syntax}) could not be decoded, so the file is "
        "damaged or compressed in a way that is not read; copy it again or export the series uncompressed (Explicit "
        "VR Little Endian)."
    )
