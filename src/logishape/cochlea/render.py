"""A crop as a CT of the fitted cochlea would show it, without noise; and how blurred the crop is."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

from logishape.cochlea.reformat import SHAPE, SPACING, Crop

BLURS_MM = np.arange(0.05, 0.66, 0.06)  # standard deviations of the point spread that are tried
_NEAR_MM = 1.0  # from the surface: where the image tells how blurred it is
_LOCAL_MM, _LOCAL_REACH_MM = (
    1.0,
    1.6,
)  # over how much the bone's own brightness is smoothed, and how far out it is seen
_NUM_LOCAL = 4  # rounds that find it
_BRIGHTNESS = (0.2, 1.5)  # of bone, in parts of its mean
_ROBUST = 2.0  # residuals beyond so many of their scale count less


class Rendering(NamedTuple):
    """The image of a shape, the point spread (SD, mm) that explains the crop best, and what is left of the crop."""

    image: Float[np.ndarray, " n"]
    blur_mm: float
    residual: float  # scale of the difference near the surface


def render(crop: Crop, levels: Float[np.ndarray, " n"], beyond: Bool[np.ndarray, " n"]) -> Rendering:
    """The crop's best rendering of a shape with these levels (mm) at its voxels.

    Lumen of one value inside; outside bone whose brightness varies slowly from place to place, as the image has it;
    `beyond` the cut the image itself. All of it seen through a Gaussian point spread, the voxel's own included.
    """
    scene = _Scene(crop, np.asarray(levels, float), beyond)
    tried = [_through(scene, float(blur)) for blur in BLURS_MM]
    scales = np.array([one.residual for one in tried])
    best = int(np.argmin(scales))
    if not 0 < best < len(scales) - 1:
        return tried[best]
    before, at, after = scales[best - 1 : best + 2]
    step = 0.5 * (before - after) / max(before - 2 * at + after, 1e-9)
    return _through(scene, float(BLURS_MM[best] + step * (BLURS_MM[1] - BLURS_MM[0])))


class _Scene:
    """What stays the same for all point spreads."""

    def __init__(self, crop: Crop, levels: np.ndarray, beyond: np.ndarray):
        share = np.clip(levels / SPACING + 0.5, 0, 1)
        self.inside, self.outside = np.where(beyond, 0.0, share), np.where(beyond, 0.0, 1 - share)
        seen = crop.is_covered
        self.image = np.where(seen, crop.intensities, np.median(crop.intensities[seen])).astype(float)
        self.elsewhere = np.where(beyond, self.image, 0.0)
        self.is_near = (np.abs(levels) < _NEAR_MM) & ~beyond & seen
        self.is_local = (np.abs(levels) < _LOCAL_REACH_MM) & ~beyond & seen


def _through(scene: _Scene, blur_mm: float) -> Rendering:
    """The rendering through one point spread: values of lumen and bone by robust least squares, in turns."""
    inside, outside, elsewhere = (_smooth(part, blur_mm) for part in (scene.inside, scene.outside, scene.elsewhere))
    near, goal = scene.is_near, (scene.image - elsewhere)[scene.is_near]
    brightness, weights = np.ones(len(scene.image)), np.ones(int(near.sum()))
    image, scale = scene.image, 1.0
    weight_of_place = _smooth(np.where(scene.is_local, outside**2, 0.0), _LOCAL_MM)
    for k in range(1 + _NUM_LOCAL):
        bone = _smooth(scene.outside * brightness, blur_mm)
        columns = np.stack([inside[near], bone[near]], axis=1)
        (lumen, level), weights, scale = _robust(columns, goal, weights)
        image = lumen * inside + level * bone + elsewhere
        if k < _NUM_LOCAL:
            left = np.where(scene.is_local, (scene.image - image) * outside, 0.0)
            brightness += _smooth(left, _LOCAL_MM) / np.maximum(weight_of_place, 0.02) / level
            brightness = np.clip(brightness, *_BRIGHTNESS)
    return Rendering(image, blur_mm, scale)


def _robust(columns: np.ndarray, goal: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients by least squares in which large residuals count less, the weights, and the residuals' scale."""
    values, scale = np.zeros(columns.shape[1]), 1.0
    for _ in range(3):
        root = np.sqrt(weights)
        values = np.linalg.lstsq(columns * root[:, None], goal * root, rcond=None)[0]
        left = goal - columns @ values
        scale = max(1.4826 * float(np.median(np.abs(left))), 1e-9)
        weights = 1 / (1 + np.square(left / (_ROBUST * scale)))
    return values, weights, scale


def _smooth(values: np.ndarray, sd_mm: float) -> np.ndarray:
    grid = ndimage.gaussian_filter(values.reshape(SHAPE), sd_mm / SPACING, mode="nearest", truncate=3)
    return np.asarray(grid).ravel()
