"""Files in and out: images (NIfTI, NRRD, MetaImage, DICOM), named points, surfaces; RAS millimetres throughout."""

from logishape.io.atomic import atomic_file, atomic_folder, check_writable, remove_folder
from logishape.io.landmarks import NamedPoints, read_landmarks
from logishape.io.meshes import read_stl, write_stl
from logishape.io.ply import read_ply, write_ply
from logishape.io.results import StoredResult, is_result, read_result
from logishape.io.volumes import Scan, read_mask, read_scan, read_volume
from logishape.io.write import write_volume

__all__ = [
    "NamedPoints",
    "Scan",
    "StoredResult",
    "atomic_file",
    "atomic_folder",
    "check_writable",
    "is_result",
    "read_landmarks",
    "read_mask",
    "read_ply",
    "read_result",
    "read_scan",
    "read_stl",
    "read_volume",
    "remove_folder",
    "write_ply",
    "write_stl",
    "write_volume",
]
