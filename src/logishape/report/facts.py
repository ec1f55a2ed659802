"""What pictures take from the record of a result, as values."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from logishape.appearance import Regions, StudentMixture
from logishape.cochlea import Calibration, Cochlea, load_calibration, paper_calibration
from logishape.cochlea.frame import Frame
from logishape.cochlea.pipeline import digest
from logishape.core.errors import InputError
from logishape.io.results import RECORD
from logishape.report.stored import frame_of

Record = dict[str, Any]
_MARGIN = 0.25  # of the step from lumen to bone, darker and brighter


def window_of(record: Record) -> tuple[float, float]:
    """The values of black and white: a little beyond lumen and bone."""
    with _told("appearance"):
        return window_between(*(float(record["appearance"][name]) for name in ("lumen_value", "bone_value")))


def window_between(lumen: float, bone: float) -> tuple[float, float]:
    """The values of black and white for these values of lumen and bone."""
    margin = _MARGIN * (bone - lumen)
    return lumen - margin, bone + margin


def pose_of(record: Record) -> Frame:
    """The frame that the parameters belong to."""
    with _told("pose"):
        return frame_of(record["pose"]["frame"])


def spiral_of(record: Record) -> Frame:
    """The frame of the fitted spiral."""
    with _told("pose"):
        return frame_of(record["pose"]["spiral"])


def centreline_of(record: Record) -> tuple[Float[np.ndarray, " s"], Float[np.ndarray, "s 3"]]:
    """Angles (degrees) and points (world mm) along the middle of the duct."""
    with _told("centreline"):
        line = record["centreline"]
        return np.array(line["angle_degrees"], float), np.array(line["points_ras_mm"], float).reshape(-1, 3)


def cut_of(record: Record) -> Frame | None:
    """The frame of the cut to the vestibule; None where there is no cut."""
    with _told("pose"):
        return None if record["pose"]["cut"] is None else frame_of(record["pose"]["cut"])


def regions_of(record: Record) -> Regions:
    """The fitted mixtures inside and outside."""
    if not has_mixtures(record):
        raise InputError(
            "there should be mixtures of intensities to draw but a probability map was read instead of them; draw "
            "another kind of figure."
        )
    columns = ("weight", "mean", "scale", "degrees_of_freedom")
    with _told("appearance"):
        found = []
        for name in ("inside", "outside"):
            parts = record["appearance"][name]
            weights, means, scales, dofs = ([float(part[column]) for part in parts] for column in columns)
            found.append(StudentMixture(weights, means, scales, dofs, estimate_dofs=False))
    return Regions(*found)


def has_mixtures(record: Record) -> bool:
    """Whether intensities were modelled; not where a probability map was read instead of them."""
    with _told("appearance"):
        return bool(record["appearance"]["model"] == "mixtures")


def length_of(record: Record) -> float:
    """The reference length (mm) of the fit."""
    with _told("reference_lengths_mm"):
        return float(record["reference_lengths_mm"]["fit"])


def path_of(record: Record) -> Float[np.ndarray, "r p"]:
    """The parameters at the best start and after each round of the fit."""
    with _told("fit"):
        path = np.array(record["fit"]["path"], float)
    if path.ndim != 2 or len(path) < 2 or path.shape[1] != len(record["parameters"]):
        raise _damaged("fit")
    return path


def parameters_of(record: Record) -> Float[np.ndarray, " p"]:
    """The best parameters."""
    with _told("parameters"):
        return np.array([one["value"] for one in record["parameters"].values()], float)


def cochlea_of(record: Record, calibration: Calibration | None = None) -> Cochlea:
    """The shape that was fitted, in its frame; checked to be of the calibration that the result was made with."""
    with _told("options"):
        is_paper, free = record["options"]["preset"] == "paper", tuple(record["options"]["free"])
        used = record["provenance"]["calibration_sha256"]
    if calibration is None:
        calibration = paper_calibration() if is_paper else load_calibration()
    if digest(calibration) != used:
        raise InputError(
            "the shape should come from the calibration that made the result but this one is another; give that file "
            "(and network) as for the segmentation, or segment the scan again."
        )
    return Cochlea(pose_of(record), free, calibration)


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """What is missing in a record, or is no number where there should be one, in a sentence."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _damaged(name) from error


def _damaged(name: str) -> InputError:
    return InputError(
        f"{RECORD} should give '{name}' as logishape writes it but does not, so it is damaged; segment the scan "
        "again."
    )
