"""The paper's synthetic experiment: an ellipse in the image, a circle as the shape.

The reference length decides how far the labels may leave the circle. The likelihood has one maximum in it;
there the circle has about the area of the ellipse. Small lengths give labels shaped like the circle, large ones
labels shaped like the intensities; the paper's paragraph on this experiment has the direction reversed.

    python examples/ellipse_circle.py --out out
"""

import dataclasses
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from common import main, save
from matplotlib.patches import Circle

import logishape as ls

SIZE, SPACING = 128, 0.5  # voxels along each side, mm
SEMI_AXES = (17.0, 11.0)  # mm
INSIDE, OUTSIDE, NOISE = 120.0, 60.0, 22.0
LENGTHS = tuple(np.geomspace(0.1, 6.0, 15))


class SquaredCircle(ls.shapes.AbstractShape):
    """The paper's circle with its sign mended, R^2 - |x - C|^2: its reference length is an area, not a length."""

    parameter_names = ("x", "y", "radius")

    def level(self, theta, points):
        """Positive inside, in squared units."""
        return theta[2] ** 2 - jnp.sum((points - theta[:2]) ** 2, axis=-1)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Everything the figure shows."""

    volume: ls.Volume
    truth: np.ndarray
    start: ls.State
    profile: ls.LengthProfile
    probability: dict[str, np.ndarray]  # posterior label maps at a small, the optimal and a large length
    lengths: dict[str, float]

    @property
    def ellipse_area(self) -> float:
        """Area of the true ellipse, mm^2."""
        return float(np.pi * SEMI_AXES[0] * SEMI_AXES[1])

    @property
    def circle_area(self) -> float:
        """Area of the circle at the optimal reference length, mm^2."""
        return float(np.pi * self.profile.best_fit.parameters["radius"] ** 2)


def make_image(seed: int) -> tuple[ls.Volume, np.ndarray]:
    """A noisy ellipse, and its mask."""
    volume = ls.Volume.from_spacing(np.zeros((SIZE, SIZE)), SPACING, origin=-SPACING * (SIZE - 1) / 2)
    points = volume.to_world(np.moveaxis(np.indices(volume.shape), 0, -1))
    truth = np.sum((points / SEMI_AXES) ** 2, axis=-1) < 1
    noise = np.random.default_rng(seed).normal(0, NOISE, truth.shape)
    return volume.with_data(np.where(truth, INSIDE, OUTSIDE) + noise), truth


def run(
    shape: ls.shapes.AbstractShape | None = None, lengths=LENGTHS, unit: float = 1.0, seed: int = 0
) -> Experiment:
    """The likelihood against the reference length, and label maps at three lengths.

    `unit` is the length (mm) that counts as one: the paper works in units of its image, not in millimetres.
    """
    shape = ls.shapes.Ball(dimension=2) if shape is None else shape
    volume, truth = make_image(seed)
    scaled = ls.Volume(volume.data, np.diag([1 / unit, 1 / unit, 1.0]) @ volume.affine)
    observation = ls.Observation.from_volume(scaled)
    bounds = {"x": (-12 / unit, 12 / unit), "y": (-12 / unit, 12 / unit), "radius": (1 / unit, 30 / unit)}
    model = ls.Model(shape, ls.Prior.named(shape, bounds), reference_length=lengths[0])
    regions = ls.Regions(ls.appearance.gaussian(140.0, 45.0), ls.appearance.gaussian(45.0, 45.0))
    start = ls.State(shape.theta({"x": 5 / unit, "y": -4 / unit, "radius": 9 / unit}), regions)
    profile = ls.profile_reference_length(model, observation, start, lengths)
    usable = [length for length, height in zip(lengths, profile.log_joints, strict=True) if np.isfinite(height)]
    chosen = {"small": usable[0], "optimal": profile.best_length, "large": usable[-1]}
    maps = {}
    for name, length in chosen.items():
        here = model.with_reference_length(length)
        state = ls.fit(here, observation, profile.best_fit.state).check().state
        maps[name] = ls.label_probability(here, observation, state).reshape(volume.shape)
    return Experiment(volume, truth, start, profile, maps, chosen)


def report(experiment: Experiment) -> str:
    """What was found, in a few lines."""
    profile = experiment.profile
    posterior_area = float(np.mean(experiment.probability["optimal"] >= 0.5)) * (SIZE * SPACING) ** 2
    return "\n".join(
        [
            f"best reference length   {profile.best_length:.2f} mm ({profile.best_fit.status.name.lower()})",
            f"area of the ellipse     {experiment.ellipse_area:.0f} mm^2",
            f"area of the circle      {experiment.circle_area:.0f} mm^2",
            f"area of the labels      {posterior_area:.0f} mm^2",
        ]
    )


def draw(experiment: Experiment, path: Path) -> None:
    """The figure: image with circles and labels, likelihood, labels at three lengths, posterior map."""
    half = SIZE * SPACING / 2
    extent = (-half, half, -half, half)
    fig, axes = plt.subplots(1, 4, figsize=(16, 4.2), layout="constrained")
    grey = {"cmap": "gray", "origin": "lower", "extent": extent}
    best = experiment.profile.best_fit.parameters
    x0, y0, r0 = experiment.start.theta
    axes[0].imshow(experiment.volume.data.T, **grey)
    axes[0].add_patch(Circle((x0, y0), r0, fill=False, color="tab:red", lw=2, label="start"))
    circle = Circle((best["x"], best["y"]), best["radius"], fill=False, color="white", lw=2, label="circle")
    axes[0].add_patch(circle)
    _contour(axes[0], experiment.probability["optimal"], extent, "gold")
    axes[0].plot([], [], color="gold", lw=2, label="labels")
    axes[0].legend(loc="lower left", labelcolor="white", facecolor="black", framealpha=0.6, fontsize=9)
    axes[0].set_title("Image, circle and labels at the best length")

    profile = experiment.profile
    axes[1].semilogx(profile.lengths, profile.log_joints - profile.best_fit.log_joint[-1], "o-", color="tab:blue")
    axes[1].axvline(profile.best_length, color="0.4", ls="--", label=f"best: {profile.best_length:.2f} mm")
    axes[1].set(xlabel="reference length (mm)", ylabel="log joint below its maximum", title="One maximum")
    axes[1].legend(loc="lower center")

    axes[2].imshow(experiment.truth.T, alpha=0.35, **grey)
    for name, colour in (("small", "tab:blue"), ("optimal", "gold"), ("large", "tab:red")):
        _contour(axes[2], experiment.probability[name], extent, colour)
        axes[2].plot([], [], color=colour, lw=2, label=f"{name}: {experiment.lengths[name]:.2g} mm")
    axes[2].legend(loc="lower left", fontsize=9)
    axes[2].set_title("Small: the circle. Large: the intensities")

    picture = axes[3].imshow(experiment.probability["optimal"].T, cmap="magma", origin="lower", extent=extent)
    fig.colorbar(picture, ax=axes[3], shrink=0.85)
    axes[3].set_title("Probability of being inside")
    for axis in (axes[0], axes[2], axes[3]):
        axis.set(xticks=[], yticks=[], xlim=(-25, 25), ylim=(-25, 25))
    save(fig, path)


def _contour(axis, probability: np.ndarray, extent: tuple, colour: str) -> None:
    axis.contour(probability.T, levels=[0.5], colors=colour, linewidths=1.8, extent=extent)


def report_both(experiment: Experiment) -> str:
    """The report, and where the paper's own level is best, in units of half the image side (its 0.021 is an area)."""
    paper = run(SquaredCircle(), lengths=tuple(np.geomspace(0.004, 0.16, 12)), unit=SIZE * SPACING / 2)
    best = f"the paper's level R^2 - |x - C|^2: best at {paper.profile.best_length:.3f} (paper: 0.021)"
    return f"{report(experiment)}\n{best}"


if __name__ == "__main__":
    main("ellipse_circle", "Fitting a circle to an ellipse at 15 reference lengths ...", run, report_both, draw)
