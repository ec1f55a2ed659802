"""A vertebra from labelled slices: level-set modes learnt from masks, found in a noisy slice at an unknown pose.

A vertebra in cross-section has arms and a hole: no radius about a centre describes it, and no vertices need to be
matched. Signed distances of two dozen masks give a mean and a few modes; their variances are the prior. The new
vertebra was not among them, it lies anywhere and is turned by up to half a turn, so the fit starts many times.

    python examples/level_set_modes.py --out out
"""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from common import dice, empty_image, level_map, main, positions, save

import logishape as ls

SIZE = 96  # pixels of 1 mm along each side
BODY, CANAL = np.array([0.0, -11.0]), np.array([0.0, 7.0])  # centres, mm
INSIDE, OUTSIDE, NOISE = 100.0, 0.0, 110.0
PIXELS = positions(empty_image(SIZE, 2))
POSE = np.array([5.0, -4.0, 2.2])  # where the new vertebra lies: mm, mm, rad


@dataclasses.dataclass(frozen=True)
class Experiment:
    """The training masks, the model made of them, and what was found in the image of a vertebra not among them."""

    masks: np.ndarray
    image: ls.Volume
    truth: np.ndarray
    model: Any  # of posed modes
    found: ls.Multistart
    posterior: ls.ShapePosterior
    labels: np.ndarray
    share_inside: np.ndarray  # of posterior draws, by pixel


def vertebra(factors: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Which points lie in a vertebra with these five factors (standard normal): blended rods around a canal."""
    body, canal, arms, droop, spine = factors
    half = np.array([4 + body, 0.0])
    tip = np.array([26 + 2.5 * arms, 11 + 3.0 * droop])
    rods = [
        (BODY - half, BODY + half, 11 + 0.8 * body),
        (CANAL, CANAL, 10.5 + 0.6 * canal),
        ([7.0, 6.0], tip, 3.4),
        ([-7.0, 6.0], tip * [-1, 1], 3.4),
        ([0.0, 14.0], [0.0, 26 + 2.5 * spine], 3.2),
    ]
    distances = np.stack([_rod(points, *map(np.asarray, rod)) for rod in rods])
    blended = np.log(np.sum(np.exp(distances / 1.5), axis=0)) * 1.5
    hole = (6 + 0.8 * canal) - np.linalg.norm((points - CANAL) * [0.9, 1.0], axis=-1)
    return (blended > 0) & (hole < 0)


def _rod(points: np.ndarray, a: np.ndarray, b: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Millimetres within a rod with round ends from a to b."""
    along = np.clip((points - a) @ (b - a) / max((b - a) @ (b - a), 1e-9), 0, 1)
    return radius - np.linalg.norm(points - a - along[:, None] * (b - a), axis=1)


def make_image(seed: int) -> tuple[ls.Volume, np.ndarray]:
    """A noisy slice through a new vertebra at its pose, and its mask."""
    rng = np.random.default_rng([seed, 1])
    c, s = np.cos(POSE[2]), np.sin(POSE[2])
    own = (PIXELS - POSE[:2]) @ np.array([[c, s], [-s, c]])
    truth = vertebra(rng.normal(size=5), own).reshape(SIZE, SIZE)
    return empty_image(SIZE, 2).with_data(np.where(truth, INSIDE, OUTSIDE) + rng.normal(0, NOISE, truth.shape)), truth


def learn(num_masks: int, seed: int) -> tuple[np.ndarray, ls.Model]:
    """The masks of a population, and the posed shape they make with the prior they imply."""
    rng = np.random.default_rng([seed, 0])
    masks = np.stack([vertebra(rng.normal(size=5), PIXELS).reshape(SIZE, SIZE) for _ in range(num_masks)])
    shape = ls.shapes.Posed(
        ls.shapes.LevelSetModes.from_masks(masks, empty_image(SIZE, 2).affine), image_centre=np.zeros(2)
    )
    prior = ls.Prior.of_modes(shape, {"tx": (-15, 15), "ty": (-15, 15), "angle": (-np.pi, np.pi)})
    return masks, ls.Model(shape, prior, reference_length=0.7)


def run(num_masks: int = 24, num_fits: int = 8, seed: int = 0) -> Experiment:
    """Modes learnt, the pose searched for from many starts, and how sure the outline is."""
    masks, model = learn(num_masks, seed)
    image, truth = make_image(seed)
    observation = ls.Observation.from_volume(image)
    looks = ls.Regions(ls.appearance.gaussian(INSIDE, NOISE), ls.appearance.gaussian(OUTSIDE, NOISE))
    start = ls.State(np.zeros(model.shape.num_parameters), looks)
    found = ls.multistart(
        model, observation, start, ls.FitOptions(anneal=(4.0,)), key=jax.random.key(seed), num_fits=num_fits
    )
    posterior = ls.laplace(model, observation, found.best)
    labels = ls.label_probability(model, observation, found.best.state).reshape(truth.shape) >= 0.5
    draws = posterior.sample(jax.random.key(1), 200)
    share = np.mean([level_map(model.shape, theta, image) > 0 for theta in draws], axis=0)
    return Experiment(masks, image, truth, model, found, posterior, labels, share)


def report(experiment: Experiment) -> str:
    """What was learnt, found, and how sure."""
    shape, found = experiment.model.shape, experiment.found
    inner, fitted = shape.shape, level_map(shape, found.best.state.theta, experiment.image) > 0
    width = np.sum((experiment.share_inside > 0.05) & (experiment.share_inside < 0.95))
    outline = np.sum(np.diff(experiment.truth, axis=0)) + np.sum(np.diff(experiment.truth, axis=1))
    return "\n".join(
        [
            f"{len(experiment.masks)} masks; {inner.num_parameters} modes explain "
            f"{inner.explained_variance.sum():.0%}",
            f"{len(found.fits)} fits ended at {found.num_solutions} places; {found.num_agreeing} at the best, by "
            f"{found.margin:.0f} nats; {found.best.status.name.lower()}",
            f"Dice of the labels {dice(experiment.labels, experiment.truth):.3f}, of the shape "
            f"{dice(fitted, experiment.truth):.3f}",
            f"angle {found.best.parameters['angle']:.3f} +- {experiment.posterior.sd[2]:.3f} rad; the outline is "
            f"known to {width / outline:.1f} mm (90 % band)",
        ]
    )


def draw(experiment: Experiment, path: Path) -> None:
    """Training masks; the modes; the image; the outline with its band."""
    figure = plt.figure(figsize=(15, 4.6), layout="constrained")
    left, middle, right = np.asarray(figure.subfigures(1, 3, width_ratios=[1, 1.25, 2.75]))
    for axis, mask in zip(left.subplots(4, 3).flat, experiment.masks, strict=False):
        axis.imshow(mask.T, cmap="gray", origin="lower")
        axis.set(xticks=[], yticks=[], xlim=(14, 81), ylim=(18, 85))
    left.suptitle(f"12 of {len(experiment.masks)} training masks")
    _draw_modes(experiment, middle.subplots(2, 2))
    middle.suptitle("Modes: -2, 0, +2 SD")
    axes = right.subplots(1, 2)
    for axis in axes:
        axis.imshow(experiment.image.data.T, cmap="gray", origin="lower")
        axis.set(xticks=[], yticks=[], xlim=(18, 84), ylim=(10, 76))
    theta = experiment.found.best.state.theta
    axes[1].contour(experiment.truth.T, levels=[0.5], colors="tab:green", linewidths=1.2)
    axes[1].contour(level_map(experiment.model.shape, theta, experiment.image).T, levels=[0], colors="gold")
    share = experiment.share_inside.T
    axes[1].contourf(share, levels=[0.05, 0.95], colors="gold", alpha=0.35)
    for colour, label in (("tab:green", "truth"), ("gold", "fit, 90 % band")):
        axes[1].plot([], [], color=colour, label=label)
    axes[1].legend(loc="upper left", fontsize=9, labelcolor="white", facecolor="black", framealpha=0.6)
    axes[0].set_title("A vertebra not among them")
    axes[1].set_title("Found, turned by 2.2 rad")
    save(figure, path)


def _draw_modes(experiment: Experiment, axes: np.ndarray) -> None:
    """The outline at -2, 0 and +2 standard deviations of each of the first modes."""
    inner = experiment.model.shape.shape
    for k, axis in enumerate(axes.flat[: inner.num_parameters]):
        for amount, colour in ((-2, "tab:blue"), (0, "black"), (2, "tab:orange")):
            theta = amount * np.eye(inner.num_parameters)[k]
            axis.contour(level_map(inner, theta, experiment.image).T, levels=[0], colors=colour, linewidths=1.2)
        axis.set_title(f"mode {k + 1} ({inner.explained_variance[k]:.0%})", fontsize=9)
        axis.set(xticks=[], yticks=[], aspect="equal", xlim=(14, 81), ylim=(18, 85))


if __name__ == "__main__":
    main("level_set_modes", "Learning a vertebra from masks, and looking for another ...", run, report, draw)
