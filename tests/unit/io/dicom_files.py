"""DICOM series made for tests: any grid, any order, with whatever is wrong with it."""

import warnings
from pathlib import Path

import numpy as np
import pydicom
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

from tests.unit.io.samples import OBLIQUE, make_affine, numbered

CT = "1.2.840.10008.5.1.4.1.1.2"
ENHANCED_CT = "1.2.840.10008.5.1.4.1.1.2.1"
AFFINE = make_affine(OBLIQUE, spacing=(0.4, 0.5, 0.75))
NAME = "Nightingale^Florence"
UID = "1.2.826.0.1.3680043.8.498.4711"


def decimal(x):
    """A number as DICOM writes it: up to 16 characters."""
    return pydicom.valuerep.format_number_as_ds(float(x))


def make_slice(pixels, position, orientation, spacing, **changes):
    """A CT slice; a change of None leaves the tag out."""
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = changes.get("SOPClassUID", CT)
    meta.MediaStorageSOPInstanceUID = generate_uid()
    found = FileDataset("", {}, file_meta=meta, preamble=bytes(128))
    tags = {
        "SOPClassUID": CT,
        "SOPInstanceUID": meta.MediaStorageSOPInstanceUID,
        "PatientName": NAME,
        "PatientID": "SCUTARI-1854",
        "PatientBirthDate": "18200512",
        "Modality": "CT",
        "SeriesInstanceUID": UID,
        "SeriesDescription": "temporal bone",
        "ImageType": ["ORIGINAL", "PRIMARY", "AXIAL"],
        "ImagePositionPatient": [decimal(x) for x in position],
        "ImageOrientationPatient": [decimal(x) for x in orientation],
        "PixelSpacing": [decimal(x) for x in spacing],
        "SliceThickness": "3.0",  # wrong on purpose: overlapping slices are common
        "RescaleSlope": "1",
        "RescaleIntercept": "-1024",
        "Rows": pixels.shape[0],
        "Columns": pixels.shape[1],
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "BitsAllocated": 16,
        "BitsStored": 16,
        "HighBit": 15,
        "PixelRepresentation": int(pixels.dtype.kind == "i"),
        "PixelData": pixels.tobytes(),
    } | changes
    for keyword, value in tags.items():
        if value is not None:
            setattr(found, keyword, value)
    return found


def make_series(volume, **changes):
    """The slices of a volume (RAS) in order of its third axis; one change may be a function of the slice's number."""
    lps = np.diag([-1, -1, 1, 1]) @ volume.affine
    row, column = lps[:3, 0] / volume.spacing[0], lps[:3, 1] / volume.spacing[1]
    slices = []
    for k in range(volume.shape[2]):
        own = {key: value(k) if callable(value) else value for key, value in changes.items()}
        position = lps[:3, 3] + k * lps[:3, 2]
        pixels = np.ascontiguousarray(volume.data[:, :, k].T)
        slices.append(make_slice(pixels, position, [*row, *column], volume.spacing[[1, 0]], **own))
    return slices


def make_enhanced(volume, **changes):
    """One file with a frame for each slice, positions and scales in functional groups."""
    slices = make_series(volume)
    pixels = np.stack([piece.pixel_array for piece in slices])
    nothing = dict.fromkeys(
        ["ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "RescaleSlope", "RescaleIntercept"]
    )
    changes = {"NumberOfFrames": len(slices), "SOPClassUID": ENHANCED_CT} | changes
    found = make_slice(pixels[0], [0] * 3, [0] * 6, [1, 1], **nothing, PixelData=pixels.tobytes())
    for keyword, value in changes.items():
        setattr(found, keyword, value)

    def group(keyword, **values):
        holder, item = pydicom.Dataset(), pydicom.Dataset()
        for name, value in values.items():
            setattr(item, name, value)
        setattr(holder, keyword, Sequence([item]))
        return holder

    shared = group("PlaneOrientationSequence", ImageOrientationPatient=slices[0].ImageOrientationPatient)
    shared.update(group("PixelMeasuresSequence", PixelSpacing=slices[0].PixelSpacing))
    found.SharedFunctionalGroupsSequence = Sequence([shared])
    frames = []
    for k, piece in enumerate(slices):
        frame = group("PlanePositionSequence", ImagePositionPatient=piece.ImagePositionPatient)
        frame.update(group("PixelValueTransformationSequence", RescaleSlope="1", RescaleIntercept=str(-1000 - k)))
        frames.append(frame)
    found.PerFrameFunctionalGroupsSequence = Sequence(frames)
    return found


def save(folder: Path, slices, prefix="slice"):
    """The slices as files without an ending, named in an order that means nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for k, piece in enumerate(slices):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            piece.save_as(folder / f"{prefix}{(7 * k + 3) % 11}_{k}", enforce_file_format=True)
    return folder


def ct(affine=AFFINE, shape=(9, 8, 10), dtype=np.int16):
    """A volume as stored in files: its values are 1024 above those read."""
    return numbered(affine, shape, dtype)
