"""What an image must be to be looked at as a CT."""

import numpy as np

from logishape.core.errors import InputError
from logishape.core.volume import Volume

LEAST_EXTENT, LEAST_VALUES = 5.0, 16  # mm; grey values
COARSEST_MM = 0.6


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
    return volume


def check_spacing(volume: Volume) -> None:
    """An error where voxels are too large to show a cochlea."""
    largest = float(volume.spacing.max())
    if largest > COARSEST_MM:
        raise InputError(
            f"voxels should be {COARSEST_MM} mm or smaller to show a cochlea but are up to {largest:.2f} mm; use "
            "the thin-slice reconstruction of the scan."
        )
