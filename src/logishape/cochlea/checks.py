"""What an image must be to be looked at as a CT."""

import numpy as np
from scipy import ndimage

from logishape.cochlea.evaluation import level_at
from logishape.cochlea.frame import Frame
from logishape.cochlea.lumen import Intensities
from logishape.cochlea.reformat import SHAPE, SPACING, Crop, grid_points, sample
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.verdict import Flag
from logishape.cochlea.vestibule import is_beyond
from logishape.core.errors import InputError
from logishape.core.volume import Volume

LEAST_EXTENT, LEAST_VALUES = 5.0, 16  # mm; grey values
COARSEST_MM, COARSE_MM = 0.6, 0.4  # voxels: refused beyond the first, to be checked beyond the second
STEEPEST_DEGREES = 40.0  # gantries tilt by 30 at most
LOST_MM3 = 3.0  # of the mean cochlea outside the CT: the fitted one may differ by as much
METAL_HU, METAL_MM3, MUCH_METAL_MM3, METAL_SD = (
    3000.0,
    2.0,
    10.0,
    6.0,
)  # dense bone reaches 2800; specimens have 0.2 mm3 above 3000


def check_ct(volume: Volume) -> Volume:
    """The volume, if it is three-dimensional and its values can be those of a CT."""
    if volume.ndim != 3:
        raise InputError(f"a CT has three axes but this image has {volume.ndim}; give the whole volume.")
    if min(volume.shape) < 8:
        raise InputError(f"a CT needs at least 8 voxels along each axis but has {volume.shape}; give all its slices.")
    extent = (np.array(volume.shape) - 1) * volume.spacing
    if extent.min() < LEAST_EXTENT:
        raise InputError(
            f"a CT should show {LEAST_EXTENT:g} mm along each axis to hold a cochlea but this one has "
            f"{' x '.join(f'{x:.1f}' for x in extent)} mm; give all its slices."
        )
    first = float(volume.data.flat[0])
    if np.isfinite(first) and np.all(volume.data == volume.data.flat[0]):
        raise InputError(f"the CT has the one value {first:g} everywhere; check how it was exported.")
    if not np.all(np.isfinite(volume.data)):
        count = int(np.count_nonzero(~np.isfinite(volume.data)))
        raise InputError(f"{count} voxels of the CT are not finite; replace them, by -1024 for example.")
    step = tuple(slice(None, None, max(1, n // 64)) for n in volume.shape)
    if (count := len(np.unique(volume.data[step]))) < LEAST_VALUES:
        raise InputError(
            f"a CT has many grey values but this image has {count} different ones, as masks have; give the CT itself."
        )
    tilt = tilt_degrees(volume)
    if tilt > STEEPEST_DEGREES:
        raise InputError(
            f"the slices of a CT are tilted by 30 degrees at most but the header says {tilt:.0f}; check how it was "
            "converted."
        )
    return volume


def tilt_degrees(volume: Volume) -> float:
    """How far the voxel axes are from right angles: the tilt of a gantry, whose grids are read as they lie."""
    steps = volume.affine[:3, :3] / volume.spacing
    off = np.abs(steps.T @ steps - np.eye(3)).max()
    return float(np.degrees(np.arcsin(np.clip(off, 0, 1))))


def check_spacing(volume: Volume) -> None:
    """An error where voxels are too large to show a cochlea."""
    largest = float(volume.spacing.max())
    if largest > COARSEST_MM:
        raise InputError(
            f"voxels should be {COARSEST_MM} mm or smaller to show a cochlea but are up to {largest:.2f} mm; use "
            "the thin-slice reconstruction of the scan."
        )


def check_field(volume: Volume, frame: Frame, cochlea: Cochlea) -> None:
    """An error where the CT ends within the cochlea that lies in this frame; `cochlea` is one without a frame."""
    points = grid_points()
    outside = points[~sample(volume, frame, points)[1] & ~is_beyond(points)]
    lost = np.count_nonzero(level_at(cochlea.by_level(), cochlea.mean(), outside) > 0) * SPACING**3
    if lost > LOST_MM3:
        raise InputError(
            f"the CT should show the whole cochlea but ends before some {lost:.0f} mm3 of it; use one with a larger "
            "field of view, or check the landmarks if you gave any."
        )


def input_flags(volume: Volume, crop: Crop, seen: Intensities) -> list[Flag]:
    """What the CT itself gives reason to check: units, large voxels, metal."""
    flags = []
    if not seen.looks_like_hu:
        message = (
            f"Values are far from Hounsfield units: gain {seen.gain:.2f} and offset {seen.offset:.0f} were estimated "
            f"from lumen ({seen.lumen:.0f}) and dense bone ({seen.bone:.0f})."
        )
        flags.append(Flag("not_hu", message, False))
    largest = float(volume.spacing.max())
    if largest > COARSE_MM + 0.005:
        message = f"Voxels are up to {largest:.2f} mm; beyond {COARSE_MM} mm segmentations have not been validated."
        flags.append(Flag("coarse_voxels", message, False))
    metal = metal_mm3(crop, seen)
    if metal > METAL_MM3:
        message = (
            f"{metal:.0f} mm3 about the cochlea are brighter than any bone, as metal and its streaks are; "
            "segmentations beside an implant have not been validated."
        )
        flags.append(Flag("metal", message, metal > MUCH_METAL_MM3))
    return flags


def metal_mm3(crop: Crop, seen: Intensities) -> float:
    """How much of the crop is brighter than bone can be, by the image's own scale; smoothed, so that noise is not."""
    smooth = np.asarray(ndimage.gaussian_filter(crop.intensities.reshape(SHAPE), 1.0)).ravel()
    above = smooth[crop.is_covered & (smooth > seen.bone)] - seen.bone
    spread = 1.4826 * float(np.median(above)) if above.size else 0.0  # of bone itself: correlated noise stays
    threshold = max(seen.offset + seen.gain * METAL_HU, seen.bone + METAL_SD * spread)
    return float(np.count_nonzero(crop.is_covered & (smooth > threshold)) * SPACING**3)
