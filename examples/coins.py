"""A photograph: twenty-four coins segmented with ellipses, all at once.

The image comes with scikit-image. A threshold and a distance map propose where coins may be; each proposal becomes
one case of a batch, with its own background, since the light of the photograph fades from one side to the other.

    python examples/coins.py --out out
"""

import dataclasses
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from common import label_each, main, save
from scipy import ndimage
from skimage import data, filters

import logishape as ls

HALF = 36  # pixels: half the side of the window around each proposal
LENGTH = 0.7  # reference length, pixels


@dataclasses.dataclass(frozen=True)
class Experiment:
    """The photograph, the fits in image coordinates and the labels they give."""

    image: np.ndarray
    centres: np.ndarray
    model: Any  # of a posed ellipse
    fits: list[ls.Fit]
    sds: list[np.ndarray | None]
    labels: np.ndarray
    threshold: np.ndarray


def propose(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rough centres (row, column) of bright blobs, and the threshold mask they come from."""
    smooth = filters.gaussian(image, 1.5, preserve_range=True)
    background = ndimage.median_filter(ndimage.zoom(smooth, 0.25, order=1), 31, mode="nearest")
    background = ndimage.zoom(background, np.divide(image.shape, background.shape), order=1)
    bright = np.asarray(smooth) - np.asarray(background)
    opened = ndimage.binary_opening(bright > filters.threshold_otsu(bright), iterations=2)
    mask = np.asarray(ndimage.binary_fill_holes(opened))
    depth = ndimage.distance_transform_edt(mask)
    depth = filters.gaussian(depth, 3)
    peaks = (depth == ndimage.maximum_filter(depth, 25)) & (depth > 5)
    return np.argwhere(peaks), mask


def run() -> Experiment:
    """All proposals fitted in one batch; only usable fits become labels."""
    image = data.coins().astype(float)
    centres, mask = propose(image)
    shape = ls.shapes.Posed(ls.shapes.Ellipsoid(2), image_centre=np.zeros(2))
    axis, place = (8.0, 34.0), (-12.0, 12.0)
    bounds = {"tx": place, "ty": place, "angle": (-0.8, 0.8), "semi_axis_x": axis, "semi_axis_y": axis}
    model = ls.Model(shape, ls.Prior.named(shape, bounds), LENGTH)
    windows = [window(image, centres, k) for k in range(len(centres))]
    observations, starts = zip(*windows, strict=True)
    fits = ls.fit_batch(model, observations, starts, ls.FitOptions(anneal=(4.0, 2.0)))
    labels, sds = label_each(model, fits, observations, centres, image.shape)
    return Experiment(image, centres, model, fits, sds, labels, mask)


def window(image: np.ndarray, centres: np.ndarray, k: int) -> tuple[ls.Observation, ls.State]:
    """The pixels that are nearer to this centre than to any other, and a start from their brightness."""
    rows, columns = (slice(max(c - HALF, 0), c + HALF) for c in centres[k])
    index = np.moveaxis(np.mgrid[rows, columns], 0, -1)
    index = index[(index[..., 0] < image.shape[0]) & (index[..., 1] < image.shape[1])]
    nearest = np.argmin(np.linalg.norm(index[:, None] - centres[None], axis=-1), axis=1)
    index = index[nearest == k]
    points, values = index - centres[k], image[tuple(index.T)]
    near, far = (values[np.linalg.norm(points, axis=1) < r] for r in (8, 60))
    inside, outside = np.median(near), np.percentile(far, 25)
    scale = max((inside - outside) / 3, 5.0)
    looks = ls.Regions(ls.appearance.gaussian(inside, scale), ls.appearance.gaussian(outside, scale))
    return ls.Observation.from_arrays(points, values), ls.State([0.0, 0.0, 0.0, 16.0, 16.0], looks)


def report(experiment: Experiment) -> str:
    """How many, how large, how sure."""
    usable = [k for k, fit in enumerate(experiment.fits) if fit.status.is_usable]
    axes = np.array([experiment.fits[k].state.theta[3:] for k in usable])
    sds = np.array([experiment.sds[k] for k in usable])[:, 3:]
    roundness = axes.min(axis=1) / axes.max(axis=1)
    return (
        f"{len(usable)} of {len(experiment.fits)} proposals became coins; radii {axes.min():.1f} to {axes.max():.1f} "
        f"pixels, each known to {np.median(sds):.2f} (median SD); ratio of semi-axes "
        f"{np.median(roundness):.3f} (median)"
    )


def draw(experiment: Experiment, path: Path) -> None:
    """The photograph with the ellipses, and the labels."""
    figure, axes = plt.subplots(1, 2, figsize=(13, 5.2), constrained_layout=True)
    angles = np.linspace(0, 2 * np.pi, 120)
    for axis in axes:
        axis.imshow(experiment.image, cmap="gray")
        axis.set(xticks=[], yticks=[])
    for fit, centre in zip(experiment.fits, experiment.centres, strict=True):
        theta = fit.state.theta
        ring = np.stack([theta[3] * np.cos(angles), theta[4] * np.sin(angles)], axis=1)
        outline = np.asarray(experiment.model.shape.to_world(theta, ring)) + centre
        colour = "gold" if fit.status.is_usable else "tab:red"
        axes[0].plot(outline[:, 1], outline[:, 0], color=colour, lw=1.5)
    shown = np.ma.masked_equal((experiment.labels * 7) % 20 + (experiment.labels > 0), 0)
    axes[1].imshow(shown, cmap="tab20", alpha=0.6, interpolation="nearest")
    axes[0].set_title("Fitted ellipses (red: not to be used)")
    axes[1].set_title("Posterior labels")
    save(figure, path)


if __name__ == "__main__":
    main("coins", "Fitting ellipses to a photograph of coins ...", run, report, draw)
