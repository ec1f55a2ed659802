"""Where the slices of a stack lie: their order, their even steps, and the affine, gantry tilt included."""

from collections.abc import Sequence

import numpy as np

from logishape.core.errors import InputError
from logishape.io.dicom_headers import Slice
from logishape.io.grids import lps_to_ras, make_affine

SAME_PLACE_MM = 1e-3
_LARGEST_DEVIATION = 0.01  # of a step, between neighbours
_LARGEST_DRIFT = 0.1  # of a step, of any slice from its place on the even line
_NOTED_DEVIATION = 1e-3
_NOTED_TILT_DEGREES = 0.1
_MOST_LISTED = 5


def slice_axes(piece: Slice) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors (LPS) along a row and along a column of a slice."""
    orientation = np.array(piece.orientation, dtype=np.float64).reshape(2, 3)
    lengths = np.linalg.norm(orientation, axis=1)
    if np.any(np.abs(lengths - 1) > 1e-2) or abs(orientation[0] @ orientation[1]) > 1e-2:
        raise InputError(
            "the image orientation should be two unit vectors at right angles but is "
            f"{[round(float(x), 4) for x in orientation.ravel()]}; export the series again."
        )
    row, column = orientation / lengths[:, None]
    return row, column


def sort_slices(slices: Sequence[Slice]) -> list[list[Slice]]:
    """The slices in order along their normal, those at the same level together."""
    normal = np.cross(*slice_axes(slices[0]))
    heights = np.array([piece.position for piece in slices]) @ normal
    levels: list[list[Slice]] = []
    last = -np.inf
    for i in np.argsort(heights, kind="stable"):
        if heights[i] - last > SAME_PLACE_MM:
            levels.append([])
        levels[-1].append(slices[i])
        last = heights[i]
    return levels


def stack_affine(slices: Sequence[Slice]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The RAS affine of slices in order, one at each level, and notes on tilt and jitter.

    The third axis is the even step between image positions, so a tilted gantry gives a sheared grid. The slice
    thickness is not used.
    """
    row, column = slice_axes(slices[0])
    row_distance, column_distance = slices[0].spacing
    if min(row_distance, column_distance) <= 0:
        raise InputError(f"the pixel spacing should be above zero but is {slices[0].spacing} mm; export again.")
    normal = np.cross(row, column)
    positions = np.array([piece.position for piece in slices])
    _check_steps(positions @ normal)
    first, step, deviation = _fit_line(positions)
    affine = make_affine(np.stack([row * column_distance, column * row_distance, step], axis=1), first)
    size = np.linalg.norm(step)
    if deviation > _LARGEST_DRIFT * size:
        raise InputError(
            f"the slices should lie evenly on a line but stray from it by up to {deviation:.3f} mm at steps of "
            f"{size:.3f} mm; resample the series to even steps."
        )
    notes = []
    if deviation > _NOTED_DEVIATION * size:
        notes.append(f"Slices stray by up to {deviation:.4f} mm from even steps of {size:.4f} mm; this was ignored.")
    tilt = np.degrees(np.arccos(np.clip(step @ normal / size, -1, 1)))
    if tilt > _NOTED_TILT_DEGREES:
        notes.append(f"The gantry was tilted by {tilt:.1f} degrees; the grid was kept sheared, not resampled.")
    return lps_to_ras(affine), tuple(notes)


def _fit_line(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """First position, step and largest distance from the best even line through the positions."""
    index = np.arange(len(positions)) - (len(positions) - 1) / 2
    middle = positions.mean(axis=0)
    step = index @ (positions - middle) / (index @ index)
    deviation = np.linalg.norm(middle + index[:, None] * step - positions, axis=1).max()
    return middle + index[0] * step, step, float(deviation)


def _check_steps(heights: np.ndarray) -> None:
    """An error where a slice is missing or steps are uneven."""
    steps = np.diff(heights)
    step = float(np.median(steps))
    ratios = steps / step
    odd = np.flatnonzero(np.abs(ratios - 1) > _LARGEST_DEVIATION)
    if not odd.size:
        return
    multiples = np.round(ratios[odd])
    if np.all((multiples >= 2) & (np.abs(ratios[odd] - multiples) < 0.05)):
        missing = [heights[i] + step * m for i, n in zip(odd, multiples, strict=True) for m in range(1, int(n))]
        places = ", ".join(f"{height:.2f}" for height in missing[:_MOST_LISTED])
        more = f" and {len(missing) - _MOST_LISTED} more" if len(missing) > _MOST_LISTED else ""
        raise InputError(
            f"the series should have a slice every {step:.3f} mm but lacks {len(missing)}, at {places}{more} "
            "mm along the slice normal; copy or export the whole series."
        )
    worst = odd[np.argmax(np.abs(ratios[odd] - 1))]
    raise InputError(
        f"slices should be evenly spaced but steps range from {steps.min():.3f} to {steps.max():.3f} mm (mostly "
        f"{step:.3f} mm; the oddest follows the slice at {heights[worst]:.2f} mm); resample the series to even steps."
    )
