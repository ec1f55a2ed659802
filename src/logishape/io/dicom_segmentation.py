"""Masks and probabilities as DICOM segmentation objects that refer to the slices they were made from.

Such an object must name its patient and study. They are taken over from the source: nowhere else does a file that we
write hold them.
"""

import copy
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io.atomic import atomic_file
from logishape.io.dicom_headers import DicomSource
from logishape.io.segments import ANATOMY, SIDES, Code, Segment, check_segments
from logishape.version import installed_version

if TYPE_CHECKING:
    from pydicom import Dataset

_MUST_HAVE = ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "SOPClassUID", "FrameOfReferenceUID")
_MAY_BE_EMPTY = (
    *("PatientID", "PatientName", "PatientBirthDate", "PatientSex", "AccessionNumber", "StudyID", "StudyDate"),
    *("StudyTime", "ReferringPhysicianName"),
)


def check_source(source: DicomSource | None, volume: Volume) -> None:
    """An error where no DICOM segmentation could refer to this source: ask before the work is done."""
    if source is None:
        raise InputError(
            "a DICOM segmentation refers to DICOM slices but the input is no DICOM; give the DICOM folder, or leave "
            "dicom-seg out of the formats."
        )
    for header in source.headers:
        if missing := [name for name in _MUST_HAVE if not header.get(name)]:
            raise InputError(
                f"a DICOM segmentation needs the {missing[0]} of its source but the slices have none; export the "
                "series again, or leave dicom-seg out of the formats."
            )
    mask = np.zeros(volume.shape, bool)
    mask[tuple(n // 2 for n in volume.shape)] = True
    _make([Segment("cochlea", volume.with_data(mask), (1, 0, 0), "left")], source, False, 1)


def write_dicom_segmentation(
    path: str | os.PathLike[str],
    segments: Sequence[Segment],
    source: DicomSource,
    is_fractional: bool = False,
    series_number: int = 1,
) -> None:
    """A DICOM segmentation (.dcm) of masks, or of probabilities from 0 to 1, there whole or not at all.

    Frames lie where the source's slices lie and name them; slices without a voxel of any segment have none.
    Probabilities are stored in steps of 1/255.
    """
    path = Path(path)
    if path.suffix.lower() != ".dcm":
        raise InputError(f"{path.name} should end in .dcm; choose such a name.")
    found = _make(segments, source, is_fractional, series_number)
    with atomic_file(path) as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.save_as(temporary)


def _make(segments: Sequence[Segment], source: DicomSource, is_fractional: bool, series_number: int) -> Any:
    import highdicom as hd
    from pydicom.uid import generate_uid

    grid = check_segments(segments)
    used = _used_slices(segments)
    planes = [np.moveaxis(segment.volume.data[:, :, used], 2, 0).swapaxes(1, 2) for segment in segments]
    pixels = np.stack(planes, axis=-1)
    pixels = np.clip(pixels, 0, 1).astype(np.float32) if is_fractional else (pixels != 0).astype(np.uint8)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd but harmless values in the source's headers
            headers, place = _sources(source, used, grid)
            found = hd.seg.Segmentation(
                source_images=headers,
                pixel_array=pixels,
                segmentation_type="FRACTIONAL" if is_fractional else "BINARY",
                segment_descriptions=[_describe(segment, number) for number, segment in enumerate(segments, start=1)],
                series_instance_uid=generate_uid(),
                series_number=series_number,
                sop_instance_uid=generate_uid(),
                instance_number=1,
                manufacturer="logishape",
                manufacturer_model_name="logishape",
                software_versions=installed_version(),
                device_serial_number="none",
                content_label="COCHLEA",
                content_description="Research use only; not a medical device.",
                **place,
            )
    except Exception as error:  # what the headers of others hold can fail in any way
        raise InputError(
            "a DICOM segmentation cannot be made for this series because its headers are incomplete or contradict "
            "one another; export the series again, or leave dicom-seg out of the formats."
        ) from error
    found.SeriesDescription = "Cochlea, probability" if is_fractional else "Cochlea, segmentation and shape"
    return found


def _used_slices(segments: Sequence[Segment]) -> np.ndarray:
    """The numbers of the slices with a voxel of any segment, or the first where there is none."""
    (used,) = np.nonzero(np.any([segment.volume.data.any(axis=(0, 1)) for segment in segments], axis=0))
    return used if used.size else np.zeros(1, int)


def _sources(source: DicomSource, used: np.ndarray, grid: Volume) -> tuple[list["Dataset"], dict[str, Any]]:
    """The headers of the slices in use, what they lack filled in; and where the frames of one file lie."""
    import highdicom as hd

    chosen = [source.headers[k] for k in used] if source.frames is None else list(source.headers)
    headers = [copy.copy(header) for header in chosen]
    for header in headers:
        for name in _MAY_BE_EMPTY:
            if name not in header:
                setattr(header, name, "")
    if source.frames is not None:
        places = hd.utils.get_plane_positions_of_image(headers[0])
        return headers, {"plane_positions": [places[source.frames[k]] for k in used]}
    steps = grid.affine[:3, :3]
    normal = np.cross(steps[:, 0], steps[:, 1])
    spacing = f"{abs(steps[:, 2] @ normal) / np.linalg.norm(normal):.10g}"
    for header in headers:
        # The reader has made sure that directions agree but for rounding, and measured the distance between slices.
        header.ImageOrientationPatient = headers[0].ImageOrientationPatient
        header.SpacingBetweenSlices = spacing
        header.SliceThickness = header.get("SliceThickness") or spacing
    return headers, {}


def _describe(segment: Segment, number: int) -> Any:
    import highdicom as hd
    from pydicom.sr.codedict import codes

    algorithm = hd.AlgorithmIdentificationSequence(
        name="logishape", version=installed_version(), family=codes.cid7162.DeformableModels
    )
    found = hd.seg.SegmentDescription(
        segment_number=number,
        segment_label=segment.name[:64],
        segmented_property_category=_concept(ANATOMY),
        segmented_property_type=_concept(segment.kind),
        algorithm_type="AUTOMATIC",
        algorithm_identification=algorithm,
        display_color=hd.color.CIELabColor.from_rgb(*(round(255 * x) for x in segment.colour)),
    )
    side = _concept(SIDES[segment.side])
    found.SegmentedPropertyTypeCodeSequence[0].SegmentedPropertyTypeModifierCodeSequence = [side]
    return found


def _concept(code: Code) -> Any:
    import highdicom as hd

    return hd.sr.CodedConcept(code.value, code.scheme, code.meaning)
