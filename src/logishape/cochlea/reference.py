"""The reference of a registration: a scan with its landmarks that the user names, or a phantom."""

import functools
import os
from pathlib import Path

from logishape.cochlea.landmarks import frame_from_points
from logishape.cochlea.phantom import make_phantom
from logishape.cochlea.phantom_options import PhantomOptions
from logishape.cochlea.register import Reference
from logishape.cochlea.vestibule import frame_of_model
from logishape.core.errors import InputError
from logishape.io import read_landmarks, read_scan

_SCANS = ("ct.nii.gz", "ct.nii", "ct.nrrd", "ct.mha", "ct")
_MARKS = ("landmarks.json", "landmarks.mrk.json", "landmarks.fcsv")


@functools.cache
def phantom_reference() -> Reference:
    """A phantom of the calibrated mean shape, without noise."""
    made = make_phantom(PhantomOptions(noise_hu=0.0, shape_spread=0.0), 0)
    return Reference(made.volume, frame_of_model(made.ear.cochlea, made.ear.theta))


def read_reference(path: str | os.PathLike[str]) -> Reference:
    """The scan and landmarks of a folder (ct.nii.gz; landmarks.json, also in right or left), or of a scan file.

    Beside a file the landmarks lie in its folder.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no reference {path}; check the path.")
    folder = path if path.is_dir() else path.parent
    scans = [folder / name for name in _SCANS if (folder / name).exists()] if path.is_dir() else [path]
    marks = [one / name for one in (folder, folder / "right", folder / "left") for name in _MARKS]
    marks = [one for one in marks if one.is_file()]
    if not scans:
        raise InputError(
            f"the reference {path} should hold a scan called ct.nii.gz but does not; name the scan itself."
        )
    if not marks:
        raise InputError(
            f"the reference {path} should have its landmarks beside it, in landmarks.json, but has none; place C, A "
            "and RW and save them there."
        )
    scan, points = read_scan(scans[0]), read_landmarks(marks[0])
    return Reference(scan.volume, frame_from_points(points.points, points.side, scan.volume))
