"""Files in and out: images (NIfTI, NRRD, MetaImage, DICOM), named points, surfaces; RAS millimetres throughout."""

from logishape.io.atomic import atomic_file, atomic_folder, check_writable
from logishape.io.landmarks import NamedPoints, read_landmarks
from logishape.io.meshes import read_stl, write_stl
from logishape.io.volumes import Scan, read_mask, read_scan, read_volume
from logishape.io.write import write_volume

__all__ = [
    "NamedPoints",
    "Scan",
    "atomic_file",
    "atomic_folder",
    "check_writable",
    "read_landmarks",
    "read_mask",
    "read_scan",
    "read_stl",
    "read_volume",
    "write_stl",
    "write_volume",
]
