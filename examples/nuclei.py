"""Many nuclei at once: a synthetic fluorescence image, one batch of ellipses, every one with its uncertainty.

Bright spots of the smoothed image propose nuclei. Each becomes a case of `ls.fit_batch`: the pixels nearer to it than
to any other spot, so that neighbours do not disturb. The truth is known, so the picture can be scored, and so can the
claim of how sure each fit is.

    python examples/nuclei.py --out out
"""

import dataclasses
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from common import dice, label_each, main, save
from scipy import ndimage

import logishape as ls

SIZE, HALF = 400, 18  # pixels: side of the image, half the side of a window
NOISE, SMOOTHING = 35.0, 0.7


@dataclasses.dataclass(frozen=True)
class Experiment:
    """The image, the true nuclei (row, column, semi-axes, angle), and a fit with its SDs for each proposal."""

    image: np.ndarray
    truth: np.ndarray
    labels: np.ndarray
    centres: np.ndarray
    model: Any  # of a posed ellipse
    fits: list[ls.Fit]
    sds: list[np.ndarray | None]
    found: np.ndarray


def make_image(num_nuclei: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ellipses of uneven brightness that do not touch, blurred, in smooth noise; their parameters; their labels."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices((SIZE, SIZE))
    image, labels, truth = np.zeros((SIZE, SIZE)), np.zeros((SIZE, SIZE), int), []
    for _ in range(100 * num_nuclei):
        centre, axes = rng.uniform(12, SIZE - 12, 2), np.sort(rng.uniform(5, 10, 2))[::-1]
        angle = rng.uniform(-np.pi / 2, np.pi / 2)
        c, s, y, x = np.cos(angle), np.sin(angle), rows - centre[0], columns - centre[1]
        radius = np.sqrt(((c * y + s * x) / axes[0]) ** 2 + ((-s * y + c * x) / axes[1]) ** 2)
        if not np.any(labels[radius < 1 + 3 / axes[1]]):
            truth.append([*centre, *axes, angle])
            labels[radius < 1] = len(truth)
            image[radius < 1] = rng.uniform(80, 160)
        if len(truth) == num_nuclei:
            break
    noise = ndimage.gaussian_filter(rng.normal(size=image.shape), SMOOTHING)
    return ndimage.gaussian_filter(image, 0.6) + NOISE * noise / noise.std(), np.array(truth), labels


def propose(image: np.ndarray) -> np.ndarray:
    """Bright spots of the smoothed image (row, column)."""
    smooth = ndimage.gaussian_filter(image, 4)
    peaks = (smooth == ndimage.maximum_filter(smooth, 11)) & (smooth > 0.35 * np.percentile(smooth, 99))
    return np.argwhere(peaks)


def run(num_nuclei: int = 150, seed: int = 0) -> Experiment:
    """All nuclei fitted in one batch, with intervals for each."""
    image, truth, labels = make_image(num_nuclei, seed)
    centres = propose(image)
    shape = ls.shapes.Posed(ls.shapes.Ellipsoid(2), image_centre=np.zeros(2))
    place, axis = (-7.0, 7.0), (2.5, 14.0)
    bounds = {"tx": place, "ty": place, "angle": (-np.pi / 2, np.pi / 2), "semi_axis_x": axis, "semi_axis_y": axis}
    model = ls.Model(shape, ls.Prior.named(shape, bounds), reference_length=0.5)
    cases = [window(image, centres, k) for k in range(len(centres))]
    observations, starts = zip(*cases, strict=True)
    fits = ls.fit_batch(model, observations, starts, ls.FitOptions(anneal=(3.0,)))
    found, sds = label_each(model, fits, observations, centres, image.shape)
    return Experiment(image, truth, labels, centres, model, fits, sds, found)


def window(image: np.ndarray, centres: np.ndarray, k: int) -> tuple[ls.Observation, ls.State]:
    """The pixels nearer to this spot than to any other, and a start along their own longest axis."""
    rows, columns = (slice(max(c - HALF, 0), min(c + HALF + 1, SIZE)) for c in centres[k])
    index = np.moveaxis(np.mgrid[rows, columns], 0, -1).reshape(-1, 2)
    nearest = np.argmin(np.sum((index[:, None] - centres[None]) ** 2, axis=-1), axis=1)
    index = index[nearest == k]
    points, values = index - centres[k], image[tuple(index.T)]
    bright = np.clip(values, 0, None) * (np.sum(points**2, axis=1) < 100)
    covariance = (points.T * bright) @ points / bright.sum()
    direction = np.linalg.eigh(covariance)[1][:, 1]
    angle = np.arctan(-direction[1] / direction[0]) if direction[0] else np.pi / 2
    looks = ls.Regions(
        ls.appearance.gaussian(np.median(values[np.sum(points**2, axis=1) < 20]), NOISE),
        ls.appearance.gaussian(0.0, NOISE),
    )
    return ls.Observation.from_arrays(points, values), ls.State([0.0, 0.0, angle, 8.0, 6.5], looks)


def semi_axes(experiment: Experiment) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True and fitted semi-axes (long, short) and their SDs, for each usable fit that met a nucleus."""
    true, fitted, sds = [], [], []
    for fit, sd, centre in zip(experiment.fits, experiment.sds, experiment.centres, strict=True):
        k = experiment.labels[tuple(centre)]
        if sd is None or k == 0:
            continue
        order = np.argsort(-fit.state.theta[3:])
        true.append(experiment.truth[k - 1, 2:4])
        fitted.append(fit.state.theta[3:][order])
        sds.append(sd[3:][order])
    return np.array(true), np.array(fitted), np.array(sds)


def report(experiment: Experiment) -> str:
    """How many, how well, how sure."""
    true, fitted, sds = semi_axes(experiment)
    covered = np.mean(np.abs(fitted - true) < 1.645 * sds)
    return (
        f"{len(experiment.truth)} nuclei, {len(experiment.centres)} proposals, {len(true)} fitted; Dice of all "
        f"labels {dice(experiment.found > 0, experiment.labels > 0):.3f}; semi-axes off by "
        f"{np.abs(fitted - true).mean():.2f} pixels in the mean, and 90 % intervals hold {covered:.0%} of them"
    )


def draw(experiment: Experiment, path: Path) -> None:
    """The image with all ellipses, and fitted against true semi-axes with their intervals."""
    figure, axes = plt.subplots(1, 2, figsize=(12, 6), constrained_layout=True, width_ratios=[1.25, 1])
    axes[0].imshow(experiment.image, cmap="gray")
    angles = np.linspace(0, 2 * np.pi, 60)
    for fit, centre in zip(experiment.fits, experiment.centres, strict=True):
        theta = fit.state.theta
        ring = np.stack([theta[3] * np.cos(angles), theta[4] * np.sin(angles)], axis=1)
        outline = np.asarray(experiment.model.shape.to_world(theta, ring)) + centre
        axes[0].plot(outline[:, 1], outline[:, 0], color="gold" if fit.status.is_usable else "tab:red", lw=1.2)
    axes[0].set(xticks=[], yticks=[], title="Fitted in one batch (red: not to be used)")
    true, fitted, sds = semi_axes(experiment)
    for k, (name, colour) in enumerate((("long", "tab:blue"), ("short", "tab:orange"))):
        axes[1].errorbar(
            true[:, k], fitted[:, k], 1.645 * sds[:, k], fmt=".", color=colour, alpha=0.6, lw=0.8, label=name
        )
    axes[1].plot([5, 10], [5, 10], color="0.3", lw=1)
    axes[1].set(
        xlabel="true semi-axis (pixels)", ylabel="fitted semi-axis, 90 % interval", title="How sure, and right"
    )
    axes[1].legend()
    save(figure, path)


if __name__ == "__main__":
    main("nuclei", "Fitting many nuclei in one batch ...", run, report, draw)
