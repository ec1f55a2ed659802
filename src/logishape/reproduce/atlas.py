"""The paper's baseline done with care: one case as atlas, warped to another by diffeomorphic demons."""

import dataclasses

import numpy as np
import SimpleITK as sitk  # noqa: N813 - its own documentation calls it so
from scipy import ndimage

from logishape.cochlea import Frame
from logishape.cochlea.lumen import find_intensities
from logishape.cochlea.reformat import LOWER, SHAPE, SPACING, UPPER, Crop
from logishape.core.volume import Volume
from logishape.reproduce.segmented import Scene, score

NUM_BINS, NUM_MATCHES = 256, 15  # of histogram matching
HU_RANGE = (-1000.0, 2500.0)


@dataclasses.dataclass(frozen=True)
class Demons:
    """How one image is registered to another.

    look: "normalised" takes lumen to 0 and dense bone to 1 and clips, so that air and fluid look alike; "hu" clips
        Hounsfield units alone.
    match: histogram matching of the atlas to the target: voxels above the mean ("bright"), all of them, or none.
    smoothing: SD of the Gaussian on the displacement field after each iteration, voxels of the level.
    iterations: at each of the shrink factors, coarse to fine.
    """

    look: str = "normalised"
    match: str = "bright"
    smoothing: float = 0.7
    shrink: tuple[int, ...] = (4, 2, 1)
    iterations: tuple[int, ...] = (10, 10, 5)


def look_at(crop: Crop, options: Demons) -> sitk.Image:
    """The crop as an image in the cochlear frame (mm), with the intensities that are compared."""
    values = crop.intensities
    if options.look == "normalised":
        seen = find_intensities(crop)
        values = 1000 * np.clip((values - seen.lumen) / seen.step, 0, 1)
    image = sitk.GetImageFromArray(np.clip(values, *HU_RANGE).astype(np.float32).reshape(SHAPE).transpose(2, 1, 0))
    image.SetSpacing([SPACING] * 3)
    image.SetOrigin((LOWER + SPACING / 2).tolist())
    return image


def shrunk(image: sitk.Image, factor: int) -> sitk.Image:
    """The image on voxels so many times as large, smoothed by half of one."""
    if factor == 1:
        return image
    size = [-(-n // factor) for n in image.GetSize()]
    smooth = sitk.SmoothingRecursiveGaussian(image, [0.5 * factor * SPACING] * 3)
    origin, spacing = (LOWER + factor * SPACING / 2).tolist(), [factor * SPACING] * 3
    return sitk.Resample(smooth, size, sitk.Transform(), sitk.sitkLinear, origin, spacing, image.GetDirection())


def on_grid_of(image: sitk.Image, field: sitk.Image) -> sitk.Image:
    """The displacements on the image's grid; beyond the last voxel centre they stay as they are there."""
    resample = sitk.ResampleImageFilter()
    resample.SetReferenceImage(image)
    resample.SetUseNearestNeighborExtrapolator(True)
    return resample.Execute(field)


def register(fixed: sitk.Image, moving: sitk.Image, options: Demons) -> sitk.Image:
    """Displacements (mm) that take points of the fixed image to those of the moving one."""
    if options.match != "none":
        moving = sitk.HistogramMatching(moving, fixed, NUM_BINS, NUM_MATCHES, options.match == "bright")
    field = None
    for factor, iterations in zip(options.shrink, options.iterations, strict=True):
        demons = sitk.DiffeomorphicDemonsRegistrationFilter()
        demons.SetNumberOfIterations(iterations)
        demons.SetStandardDeviations(options.smoothing)
        demons.SetMaximumRMSError(0.0)
        here, there = shrunk(fixed, factor), shrunk(moving, factor)
        field = demons.Execute(here, there, on_grid_of(here, field)) if field else demons.Execute(here, there)
    assert field is not None
    return on_grid_of(fixed, field)


def by_atlas(atlas: Scene, target: Scene, options: Demons | None = None) -> dict[str, dict[str, float | None]]:
    """Scores of the atlas's mask, warped to the target, against each of the target's truths."""
    options = options or Demons()
    field = register(look_at(target.crop, options), look_at(atlas.crop, options), options)
    grid = target.case.volume
    warped = grid.with_data(warp(field, atlas.case.truth, atlas.frame, target.frame, grid).astype(np.uint8))
    return {words: score(target.case, warped, truth) for words, truth in target.case.truths.items()}


def warp(field: sitk.Image, mask: Volume, atlas: Frame, target: Frame, grid: Volume) -> np.ndarray:
    """The atlas's mask on the target's own voxels: read where the displacements lead, cut at one half."""
    index = np.indices(grid.shape).reshape(3, -1)
    points = (grid.to_world(index.T) - np.asarray(target.origin)) @ np.asarray(target.axes).T
    (inside,) = np.nonzero(np.all((points > LOWER) & (points < UPPER), axis=1))
    points = points[inside]
    displacements = sitk.GetArrayFromImage(field).transpose(3, 2, 1, 0)
    place = ((points - LOWER) / SPACING - 0.5).T
    moved = points + np.stack([ndimage.map_coordinates(u, place, order=1, mode="nearest") for u in displacements], 1)
    there = mask.to_index(moved @ np.asarray(atlas.axes) + np.asarray(atlas.origin))
    values = ndimage.map_coordinates((mask.data > 0).astype(np.float32), there.T, order=1)
    warped = np.zeros(grid.shape, bool)
    warped.flat[inside] = np.asarray(values) >= 0.5
    return warped
