"""A crop as a CT of the fitted cochlea would show it, without noise; and how blurred the crop is."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

from logishape.cochlea.reformat import SHAPE, SPACING, Crop
from logishape.core.arrays import AnyArray

EDGE_MM = 0.045  # so far outside the true border the image has its half value (benchmarks/edges.py)
BLURS_MM = np.arange(0.05, 0.66, 0.06)  # standard deviations of the point spread that are tried
_NEARBY_MM = np.array([-0.06, -0.02, 0.02, 0.06])
_NEAR_MM = 1.0  # from the surface: where the image tells how blurred it is
_LOCAL_MM = 1.0  # over how much the bone's own brightness is smoothed
_LOCAL_REACH_MM = 1.6  # from the surface: how far out it is seen
_NUM_LOCAL = 4  # rounds that find it
_BRIGHTNESS = (0.2, 1.5)  # of bone, in parts of its mean
_ROBUST = 2.0  # residuals beyond so many of their scale count less


class Rendering(NamedTuple):
    """The image of a shape, the point spread (SD, mm) that explains the crop best, and what is left of the crop.

    lumen: its value; bone: its value at each voxel, before the point spread.
    """

    image: Float[np.ndarray, " n"]
    blur_mm: float
    residual: float  # scale of the difference near the surface
    lumen: float
    bone: Float[np.ndarray, " n"]


class Scene:
    """A shape with these levels (mm) at the crop's voxels: what stays the same for all point spreads.

    Lumen of one value inside and over `EDGE_MM` more; outside bone whose brightness varies slowly from place to
    place, as the image has it; `beyond` the cut the image itself.
    """

    def __init__(self, crop: Crop, levels: Float[AnyArray, " n"], beyond: Bool[np.ndarray, " n"]):
        levels = np.asarray(levels, float)
        self.levels, self.beyond = levels, beyond
        share = np.clip((levels + EDGE_MM) / SPACING + 0.5, 0, 1)
        self.inside, self.outside = np.where(beyond, 0.0, share), np.where(beyond, 0.0, 1 - share)
        seen = crop.is_covered
        self.image = np.where(seen, crop.intensities, np.median(crop.intensities[seen])).astype(float)
        self.elsewhere = np.where(beyond, self.image, 0.0)
        self.is_near = (np.abs(levels) < _NEAR_MM) & ~beyond & seen
        self.is_local = (np.abs(levels) < _LOCAL_REACH_MM) & ~beyond & seen


def render(scene: Scene, near_mm: float | None = None) -> Rendering:
    """The crop's best rendering of a scene: seen through a Gaussian point spread, the voxel's own included.

    Of all of them, or of those near one that was found before.
    """
    blurs = BLURS_MM if near_mm is None else np.maximum(near_mm + _NEARBY_MM, BLURS_MM[0] / 2)
    tried = [_through(scene, float(blur)) for blur in blurs]
    scales = np.array([one.residual for one in tried])
    best = int(np.argmin(scales))
    if not 0 < best < len(scales) - 1:
        return tried[best]
    before, at, after = scales[best - 1 : best + 2]
    step = 0.5 * (before - after) / max(before - 2 * at + after, 1e-9)
    return _through(scene, float(blurs[best] + step * (blurs[1] - blurs[0])))


def _through(scene: Scene, blur_mm: float) -> Rendering:
    """The rendering through one point spread: values of lumen and bone by robust least squares, in turns."""
    inside, outside, elsewhere = (smooth(part, blur_mm) for part in (scene.inside, scene.outside, scene.elsewhere))
    near, goal = scene.is_near, (scene.image - elsewhere)[scene.is_near]
    brightness, weights = np.ones(len(scene.image)), np.ones(int(near.sum()))
    image, scale, lumen, value = scene.image, 1.0, 0.0, np.zeros(0)
    weight_of_place = smooth(np.where(scene.is_local, outside**2, 0.0), _LOCAL_MM)
    for k in range(1 + _NUM_LOCAL):
        bone = smooth(scene.outside * brightness, blur_mm)
        columns = np.stack([inside[near], bone[near]], axis=1)
        (lumen, level), weights, scale = _robust(columns, goal, weights)
        image, value = lumen * inside + level * bone + elsewhere, level * brightness
        if k < _NUM_LOCAL:
            left = np.where(scene.is_local, (scene.image - image) * outside, 0.0)
            brightness = brightness + smooth(left, _LOCAL_MM) / np.maximum(weight_of_place, 0.02) / level
            brightness = np.clip(brightness, *_BRIGHTNESS)
    return Rendering(image, blur_mm, scale, float(lumen), value)


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


def smooth(values: Float[np.ndarray, " n"], sd_mm: float) -> Float[np.ndarray, " n"]:
    """Values of the crop seen through a Gaussian point spread."""
    grid = ndimage.gaussian_filter(values.reshape(SHAPE), sd_mm / SPACING, mode="nearest", truncate=3)
    return np.asarray(grid).ravel()
