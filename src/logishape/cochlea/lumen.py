"""What the image says of its intensities: fluid- or air-filled, where lumen and dense bone lie, and the noise."""

import dataclasses
from typing import Literal

import numpy as np
from scipy import ndimage

from logishape.cochlea.reformat import Crop
from logishape.core.errors import InputError

Filling = Literal["fluid", "air"]
CENTRE, RADIUS = np.array([0.6, 0.2, 0.8]), 3.5  # mm: a ball that holds most of the cochlea and its walls
USUAL_LUMEN, USUAL_BONE = {"fluid": 190.0, "air": -820.0}, 2130.0  # HU of the specimens
AIR_BELOW = -400.0  # HU
LEAST_STEP = 1.0  # image values: less is rounding
LEAST_CONTRAST = 3.0  # the step from lumen to bone, in standard deviations of the values on its two sides
GAIN_RANGE, LARGEST_OFFSET = (0.8, 1.25), 300.0  # beyond these the values are not Hounsfield units
_NUM_BINS = 256


@dataclasses.dataclass(frozen=True)
class Intensities:
    """The modes of lumen and dense bone, their noise, and the gain and offset that take HU to these values."""

    filling: Filling
    lumen: float
    bone: float
    lumen_noise: float
    bone_noise: float

    @property
    def step(self) -> float:
        """From lumen to bone."""
        return self.bone - self.lumen

    @property
    def gain(self) -> float:
        """Image units per HU, from the specimens' usual lumen and bone."""
        return self.step / (USUAL_BONE - USUAL_LUMEN[self.filling])

    @property
    def offset(self) -> float:
        """The image value of 0 HU."""
        return self.bone - self.gain * USUAL_BONE

    @property
    def looks_like_hu(self) -> bool:
        """Whether gain and offset are near one and zero."""
        return GAIN_RANGE[0] <= self.gain <= GAIN_RANGE[1] and abs(self.offset) <= LARGEST_OFFSET


def find_intensities(crop: Crop) -> Intensities:
    """The intensities of a crop, from the two modes of a ball around the cochlea's middle."""
    near = crop.is_covered & (np.linalg.norm(crop.points - CENTRE, axis=1) < RADIUS)
    values = crop.intensities[near].astype(np.float64)
    if values.size < 1000:
        raise InputError(
            f"expected the cochlea's middle inside the CT but only {values.size} of 22000 voxels there are; check "
            "the landmarks."
        )
    lumen, bone = lumen_and_bone(values)
    if not bone - lumen > max(LEAST_CONTRAST * _spread(values, 0.5 * (lumen + bone)), LEAST_STEP):
        raise InputError(
            f"expected dark lumen in bright bone around its pose but the values there, "
            f"{values.min():.0f} to {values.max():.0f}, have one mode; check that this is a CT, and the landmarks if "
            "you gave any."
        )
    filling = _filling(lumen, bone, crop)
    unit = (bone - lumen) / (USUAL_BONE - USUAL_LUMEN[filling])
    below = lumen - values[(values < lumen) & (values > lumen - 0.3 * (bone - lumen))]
    lumen_noise, bone_noise = max(150 * unit, _noise(below)), max(250 * unit, _noise(values[values > bone] - bone))
    return Intensities(filling, lumen, bone, lumen_noise, bone_noise)


def lumen_and_bone(values: np.ndarray) -> tuple[float, float]:
    """The middles of the dark and the bright voxels: medians about the modes, which a clipped scale cannot move."""
    lumen, bone = two_modes(values)
    for _ in range(3):
        step = bone - lumen
        dark = values[(values > lumen - 0.17 * step) & (values < lumen + 0.2 * step)]
        bright = values[values > lumen + 0.72 * step]
        if not dark.size or not bright.size:
            break
        lumen, bone = float(np.median(dark)), float(np.median(bright))
    return lumen, bone


def two_modes(values: np.ndarray) -> tuple[float, float]:
    """The modes below and above the threshold that separates the values best into two classes (Otsu's)."""
    low, high = np.percentile(values, [0.5, 99.5])
    count, edges = np.histogram(values, _NUM_BINS, (low, max(high, low + 1e-6)))
    middle = 0.5 * (edges[1:] + edges[:-1])
    share = np.cumsum(count) / count.sum()
    mean = np.cumsum(count * middle) / count.sum()
    between = (mean[-1] * share - mean) ** 2 / np.maximum(share * (1 - share), 1e-9)
    split = int(np.argmax(between))
    smooth = np.asarray(ndimage.gaussian_filter1d(count.astype(float), _NUM_BINS / 40))
    lower = int(np.argmax(smooth[: split + 1]))
    upper = split + 1 + int(np.argmax(smooth[split + 1 :])) if split + 1 < _NUM_BINS else _NUM_BINS - 1
    return float(middle[lower]), float(middle[upper])


def _filling(lumen: float, bone: float, crop: Crop) -> Filling:
    """Air if the lumen is as dark as air: below -400 HU or, where values are not HU, about as dark as the darkest."""
    as_fluid = Intensities("fluid", lumen, bone, 1, 1)
    as_air = Intensities("air", lumen, bone, 1, 1)
    if as_fluid.looks_like_hu != as_air.looks_like_hu:
        return "fluid" if as_fluid.looks_like_hu else "air"
    darkest = float(np.percentile(crop.intensities[crop.is_covered], 0.5))
    if as_fluid.looks_like_hu:  # both do
        return "air" if lumen < AIR_BELOW else "fluid"
    return "air" if lumen - darkest < 0.25 * (bone - lumen) else "fluid"


def _spread(values: np.ndarray, threshold: float) -> float:
    """The standard deviation of values about the means of those below and above a threshold."""
    sides = [values[values < threshold], values[values >= threshold]]
    return float(np.sqrt(sum(np.square(side - side.mean()).sum() for side in sides if side.size) / values.size))


def _noise(away: np.ndarray) -> float:
    """The scale of one side of a mode: the half on which partial volume does not add."""
    return float(1.4826 * np.median(away)) if away.size > 20 else 0.0
