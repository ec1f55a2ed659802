"""Circle or ellipse? The Bayes factor decides, and is fooled if correlated noise is taken for white.

The true shape goes from a circle to an ellipse; both models are fitted to the same image and compared by their
evidence, which charges the ellipse for its two further parameters. The noise is smooth, as in a scan: counting every
voxel as independent makes small chance bulges look like proof of an ellipse.

    python examples/circle_or_ellipse.py --out out
"""

import dataclasses
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from common import main, save
from scipy.ndimage import gaussian_filter

import logishape as ls

SIZE, RADIUS, NOISE, SMOOTHING = 64, 16.0, 60.0, 1.0
RATIOS = (1.0, 1.1, 1.2, 1.3, 1.5)  # of the semi-axes
NUM_IMAGES = 8  # for each ratio


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Log Bayes factors of the ellipse over the circle by ratio and image, counted in two ways."""

    ratios: tuple[float, ...]
    images: list[np.ndarray]  # one for each ratio
    fits: list[dict[str, ls.Fit]]
    fractions: np.ndarray  # ratio, image
    log_factors: np.ndarray  # with the effective fraction of the noise
    naive_log_factors: np.ndarray  # every voxel counted as independent


def make_image(ratio: float, seed: int) -> ls.Volume:
    """An ellipse of constant area with this ratio of semi-axes, turned by half a radian, in smooth noise."""
    volume = ls.Volume.from_spacing(np.zeros((SIZE, SIZE)), 1.0, origin=-(SIZE - 1) / 2)
    x, y = np.moveaxis(volume.to_world(np.moveaxis(np.indices(volume.shape), 0, -1)), -1, 0)
    c, s = np.cos(0.5), np.sin(0.5)
    a, b = RADIUS * np.sqrt(ratio), RADIUS / np.sqrt(ratio)
    inside = ((c * x - s * y) / a) ** 2 + ((s * x + c * y) / b) ** 2 < 1
    noise = gaussian_filter(np.random.default_rng(seed).normal(size=inside.shape), SMOOTHING)
    return volume.with_data(np.where(inside, 100.0, 0.0) + NOISE * noise / noise.std())


def models() -> dict[str, Any]:
    """A circle of three parameters and an ellipse of five, with the same prior knowledge of size and place."""
    circle = ls.shapes.Ball(2)
    ellipse = ls.shapes.Posed(ls.shapes.Ellipsoid(2), image_centre=np.zeros(2))
    size, place, half_turn = (8.0, 28.0), (-6.0, 6.0), (-np.pi / 2, np.pi / 2)
    first = ls.Prior.named(circle, {"x": place, "y": place, "radius": size})
    second = ls.Prior.named(
        ellipse, {"tx": place, "ty": place, "angle": half_turn, "semi_axis_x": size, "semi_axis_y": size}
    )
    return {"circle": ls.Model(circle, first, 0.7), "ellipse": ls.Model(ellipse, second, 0.7)}


def run(ratios: tuple[float, ...] = RATIOS, num_images: int = NUM_IMAGES) -> Experiment:
    """Both models fitted and compared on each image; the k-th image of every ratio has the same noise."""
    looks = ls.Regions(ls.appearance.gaussian(100.0, NOISE), ls.appearance.gaussian(0.0, NOISE))
    starts = {"circle": ls.State([1.0, -1.0, 14.0], looks), "ellipse": ls.State([1.0, 1.0, 0.4, 15.0, 14.0], looks)}
    both = models()
    images, fits = [], []
    rows = np.zeros((3, len(ratios), num_images))
    for i, ratio in enumerate(ratios):
        for k in range(num_images):
            volume = make_image(ratio, seed=k)
            observation = ls.Observation.from_volume(volume)
            found = ls.compare(both, observation, starts)
            fitted = dict(zip(found.names, found.fits, strict=True))
            counted = dict(zip(found.names, found.log_evidences, strict=True))
            naive = {name: ls.evidence(both[name], observation, fit, 1.0) for name, fit in fitted.items()}
            rows[:, i, k] = (found.effective_fraction, _log_factor(counted), _log_factor(naive))
            if k == num_images - 1:
                images.append(volume.data)
                fits.append(fitted)
    return Experiment(ratios, images, fits, *rows)


def _log_factor(log_evidences: dict[str, float]) -> float:
    """Log Bayes factor of the ellipse over the circle."""
    return float(log_evidences["ellipse"] - log_evidences["circle"])


def report(experiment: Experiment) -> str:
    """One line a ratio."""
    lines = []
    for i, ratio in enumerate(experiment.ratios):
        counted, naive = experiment.log_factors[i], experiment.naive_log_factors[i]
        lines.append(
            f"axis ratio {ratio:.2f}: median log Bayes factor of the ellipse {np.median(counted):6.1f}, it wins "
            f"{np.sum(counted > 0)} of {len(counted)} images (voxels as if independent: {np.median(naive):6.1f}, "
            f"{np.sum(naive > 0)}); effective fraction {np.median(experiment.fractions[i]):.2f}"
        )
    return "\n".join(lines)


def draw(experiment: Experiment, path: Path) -> None:
    """First, middle and last image with both fits, and the Bayes factor against the axis ratio."""
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.9), width_ratios=[1, 1, 1, 1.3])
    figure.set_layout_engine("constrained", h_pad=0.15)
    half = SIZE / 2
    angles = np.linspace(0, 2 * np.pi, 200)
    for axis, k in zip(axes, (0, len(experiment.ratios) // 2, len(experiment.ratios) - 1), strict=False):
        axis.imshow(experiment.images[k].T, cmap="gray", origin="lower", extent=(-half, half, -half, half))
        x, y, radius = experiment.fits[k]["circle"].state.theta
        axis.plot(x + radius * np.cos(angles), y + radius * np.sin(angles), color="tab:blue", label="circle")
        theta = experiment.fits[k]["ellipse"].state.theta
        shape = models()["ellipse"].shape
        outline = shape.to_world(theta, np.stack([theta[3] * np.cos(angles), theta[4] * np.sin(angles)], axis=1))
        axis.plot(*np.asarray(outline).T, color="gold", label="ellipse")
        axis.set(xticks=[], yticks=[], title=f"axis ratio {experiment.ratios[k]:g}")
    axes[0].legend(loc="lower left", fontsize=8)
    axes[3].axhline(0, color="0.6", lw=0.8)
    ways = (
        (experiment.naive_log_factors, "tab:red", "s--", "voxels as if independent"),
        (experiment.log_factors, "tab:blue", "o-", "correlation of the noise counted"),
    )
    for values, colour, line, label in ways:
        axes[3].plot(experiment.ratios, np.median(values, axis=1), line, color=colour, label=label)
        axes[3].plot(experiment.ratios, values, ".", color=colour, alpha=0.35)
    axes[3].set(xlabel="axis ratio of the truth", ylabel="log Bayes factor, ellipse over circle", yscale="symlog")
    axes[3].legend(fontsize=8, loc="upper left")
    save(figure, path)


if __name__ == "__main__":
    main("circle_or_ellipse", "Comparing circle and ellipse by their evidence ...", run, report, draw)
