"""What a phantom is to be like, as one value."""

import dataclasses
import numbers
from typing import Any, Literal

import numpy as np

from logishape.cochlea.calibration import PARAMETERS
from logishape.cochlea.duct import FREE
from logishape.core.arrays import as_numbers
from logishape.core.errors import InputError

Lumen = Literal["fluid", "air"]
Ears = Literal["left", "right", "both"]
Orientation = Literal["axis", "oblique", "random"]
MAX_VOXELS = 200_000_000
_ONE_EAR, _TWO_EARS = (24.0, 24.0, 24.0), (112.0, 64.0, 56.0)
# Name, smallest and largest value, and one that works.
_RANGES = (
    ("point_spread_mm", 0.0, 1.0, "0.2"),
    ("lining_mm", 0.0, 0.5, "0.09"),
    ("noise_hu", 0.0, 2000.0, "150"),
    ("noise_correlation_mm", 0.0, 2.0, "0 for white noise"),
    ("hu_gain", 1e-3, 1e3, "1"),
    ("hu_offset", -1e5, 1e5, "0"),
    ("shape_spread", 0.0, 3.0, "1 for the spread of real ears"),
    ("misfit", 0.0, 3.0, "1 for centres that wander by 0.12 mm"),
    ("landmark_error_mm", 0.0, 5.0, "0"),
)


@dataclasses.dataclass(frozen=True)
class PhantomOptions:
    """How a phantom is made. The defaults resemble the specimens: fluid-filled, 0.2 mm voxels, a crop of 24 mm.

    lumen: what fills the labyrinth, and its HU (`lumen_hu`; drawn in 100..250 or -950..-700 if None).
    side: right, left (the mirror image of the right one with the same seed), or both ears in one head.
    spacing_mm, size_mm: voxel size and field of view, one number or three; offset_mm moves the field of view (RAS).
    point_spread_mm: standard deviation of the Gaussian point spread.
    lining_mm: thickness of the lumen's lining, half bone and half lumen. In the specimens the image has its half
    value about 0.05 mm outside the micro-CT's border; this lining puts it there.
    noise_hu, noise_correlation_mm: standard deviation, and that of the Gaussian that smooths white noise (0: white).
    hu_gain, hu_offset: what a badly calibrated scanner makes of HU: gain * HU + offset.
    orientation: voxel axes along the world's, tilted as by a gantry, or turned at random; flips reverses some.
    free, theta: parameters beyond the ten, and their values; drawn from the calibrated prior if theta is None, with
    `shape_spread` times its standard deviations.
    misfit: how far the sections wander from the model along the duct; at 1 their centres by 0.12 mm (SD, in radius
        and in height) and their sizes by 6 %.
    landmark_error_mm: standard deviation of each coordinate of the landmarks handed out; the frame stays exact.
    """

    lumen: Lumen = "fluid"
    side: Ears = "right"
    spacing_mm: Any = 0.2
    size_mm: Any = None
    offset_mm: Any = 0.0
    lumen_hu: float | None = None
    point_spread_mm: float = 0.12
    lining_mm: float = 0.09
    noise_hu: float = 150.0
    noise_correlation_mm: float = 0.12
    hu_gain: float = 1.0
    hu_offset: float = 0.0
    orientation: Orientation = "axis"
    flips: tuple[bool, ...] = (False, False, False)
    free: tuple[str, ...] = ("section_scale",)
    theta: Any = None
    shape_spread: float = 1.0
    misfit: float = 0.0
    landmark_error_mm: float = 0.0

    def __post_init__(self) -> None:
        _check_words(self)
        size = self.size_mm
        if size is None:
            size = _TWO_EARS if self.side == "both" else _ONE_EAR
        vectors = {"spacing_mm": self.spacing_mm, "size_mm": size, "offset_mm": self.offset_mm}
        limits = {"spacing_mm": (0.05, 2.0), "size_mm": (2.0, 400.0), "offset_mm": (-200.0, 200.0)}
        for name, value in vectors.items():
            object.__setattr__(self, name, _triple(value, name, *limits[name]))
        for name, lower, upper, hint in _RANGES:
            _check_range(getattr(self, name), name, lower, upper, hint)
        if self.lumen_hu is not None:
            _check_range(self.lumen_hu, "lumen_hu", -1100, 4000, "150 for fluid, -850 for air")
        object.__setattr__(self, "free", tuple(name for name in FREE if name in self.free))
        object.__setattr__(self, "theta", _parameters(self.theta, len(self.free)))
        if np.prod(self.shape, dtype=float) > MAX_VOXELS:
            raise InputError(
                f"at most {MAX_VOXELS} voxels were expected but this size and spacing make {self.shape}; try larger "
                "voxels or a smaller field of view."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels along each axis."""
        counts = (max(round(a / b), 1) for a, b in zip(self.size_mm, self.spacing_mm, strict=True))
        return tuple(int(count) for count in counts)

    @property
    def num_ears(self) -> int:
        """One or two."""
        return 2 if self.side == "both" else 1


def _check_words(options: PhantomOptions) -> None:
    choices = {
        "lumen": ("fluid", "air"),
        "side": ("left", "right", "both"),
        "orientation": ("axis", "oblique", "random"),
    }
    for name, allowed in choices.items():
        value = getattr(options, name)
        if value not in allowed:
            raise InputError(
                f"{name} must be {', '.join(allowed[:-1])} or {allowed[-1]} but is {value!r}; choose one."
            )
    flips = options.flips
    if not isinstance(flips, tuple | list) or len(flips) != 3 or not all(isinstance(one, bool) for one in flips):
        raise InputError(f"flips must be three of True and False but is {flips!r}; try (True, True, False).")
    object.__setattr__(options, "flips", tuple(flips))
    if not isinstance(options.free, tuple | list) or any(name not in FREE for name in options.free):
        raise InputError(f"free must be names among {', '.join(FREE)} but is {options.free!r}; leave it out.")


def _check_range(value: object, name: str, lower: float, upper: float, hint: str) -> None:
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not lower <= float(value) <= upper:
        raise InputError(f"{name} must be a number in [{lower:g}, {upper:g}] but is {value!r}; try {hint}.")


def _triple(value: object, name: str, lower: float, upper: float) -> tuple[float, ...]:
    found = as_numbers(value, name)
    if found.shape not in ((), (3,)):
        raise InputError(f"{name} must be one number or three (mm) but has shape {found.shape}; give x, y, z.")
    if not np.all((found >= lower) & (found <= upper)):
        raise InputError(f"{name} must lie in [{lower:g}, {upper:g}] mm but is {found.tolist()}; check its unit.")
    return tuple(float(one) for one in np.broadcast_to(found, 3))


def _parameters(theta: object, num_free: int) -> tuple[float, ...] | None:
    if theta is None:
        return None
    found, num = as_numbers(theta, "theta"), len(PARAMETERS) - len(FREE) + num_free
    if found.shape != (num,):
        raise InputError(
            f"theta must be {num} numbers, ten and one for each free parameter, but has shape {found.shape}; leave "
            "it out to draw them."
        )
    return tuple(float(one) for one in found)
