"""The paper's first experiment: an ellipse seen with the shape of a circle, which it is not."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

import logishape as ls
from logishape.core.arrays import AnyArray
from logishape.shapes.base import AbstractShape

SIZE, SEMI_AXES, NOISE = 96, (0.33, 0.25), 0.35  # voxels across the unit square; of its width; of the contrast
LENGTHS = np.geomspace(0.004, 0.2, 12)


class SquaredDisc(AbstractShape):
    """R^2 - |x - C|^2, the paper's level with its sign put right; its unit is a square, not a length."""

    dimension: int = eqx.field(default=2, static=True)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Centre and radius."""
        return ("x", "y", "radius")

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """R^2 - |x - C|^2."""
        return theta[-1] ** 2 - jnp.sum((points - theta[:-1]) ** 2, axis=1)


SHAPES = {"squared": SquaredDisc(), "distance": ls.shapes.Ball(2)}


def make_image(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Voxel centres in the unit square, and intensities: an ellipse of mean one on zero, with Gaussian noise."""
    axis = (np.arange(SIZE) + 0.5) / SIZE
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    inside = np.sum(((points - 0.5) / SEMI_AXES) ** 2, axis=1) < 1
    return points, inside + NOISE * np.random.default_rng(seed).standard_normal(len(points))


def study(seed: int) -> dict[str, Any]:
    """For each level: the optimal reference length, the profile, the fitted circle and how labels agree."""
    points, intensities = make_image(seed)
    observation = ls.Observation.from_arrays(points, intensities)
    truth = np.sum(((points - 0.5) / SEMI_AXES) ** 2, axis=1) < 1
    found: dict[str, Any] = {}
    for name, shape in SHAPES.items():
        model = ls.Model(shape, ls.Prior(np.array([0.2, 0.2, 0.05]), np.array([0.8, 0.8, 0.6])), float(LENGTHS[-1]))
        start = ls.State(np.array([0.42, 0.55, 0.2]), _regions())
        profile = ls.profile_reference_length(model, observation, start, LENGTHS)
        labels: dict[str, Any] = {}
        for words, length in (("short", LENGTHS[0]), ("optimal", profile.best_length), ("long", LENGTHS[-1])):
            at = model.with_reference_length(float(length))
            ended = ls.fit(at, observation, profile.best_fit.state)
            probability = np.asarray(ls.label_probability(at, observation, ended.state))
            shown = probability >= 0.5
            labels[words] = {
                "length": float(length),
                "dice": ls.metrics.dice(shown, truth),
                "probability": np.round(probability, 3).tolist(),
            }
        found[name] = {
            "best_length": profile.best_length,
            "is_inside": bool(profile.is_inside),
            "lengths": profile.lengths.tolist(),
            "heights": [float(h) if np.isfinite(h) else None for h in profile.log_joints],
            "circle": np.asarray(profile.best_fit.state.theta).tolist(),
            "labels": labels,
        }
    return found


def _regions() -> Any:
    return ls.Regions(*(ls.appearance.GaussianMixture([1.0], [mean], [0.4]) for mean in (1.0, 0.0)))


def draw(found: dict[str, Any], seed: int) -> Figure:
    """The image with the circle and the labels' border, the profile over lengths, and the labels at three lengths."""
    _, intensities = make_image(seed)
    image = intensities.reshape(SIZE, SIZE).T
    figure = Figure(figsize=(12, 3.2), layout="constrained")
    panels = figure.subplots(1, 5)
    one = found["distance"]
    panels[0].imshow(image, cmap="gray", extent=(0, 1, 0, 1), origin="lower")
    angle = np.linspace(0, 2 * np.pi, 200)
    x, y, radius = one["circle"]
    panels[0].plot(x + radius * np.cos(angle), y + radius * np.sin(angle), color="white", label="circle")
    border = np.reshape(one["labels"]["optimal"]["probability"], (SIZE, SIZE)).T
    axis = (np.arange(SIZE) + 0.5) / SIZE
    panels[0].contour(axis, axis, border, levels=[0.5], colors="gold")
    panels[0].set_title("circle (white), labels (yellow)", fontsize=9)
    heights = np.array([np.nan if h is None else h for h in one["heights"]])
    panels[1].semilogx(one["lengths"], heights, "o-")
    panels[1].axvline(one["best_length"], color="tab:red", lw=1)
    panels[1].set_title("log joint by reference length", fontsize=9)
    for panel, (words, labels) in zip(panels[2:], one["labels"].items(), strict=True):
        panel.imshow(np.reshape(labels["probability"], (SIZE, SIZE)).T, vmin=0, vmax=1, origin="lower")
        panel.set_title(f"labels, {words}: {labels['length']:.3f}", fontsize=9)
    for panel in (panels[0], *panels[2:]):
        panel.set_axis_off()
    return figure
