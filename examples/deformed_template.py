"""One labelled organ as a template: is the organ in another image stretched, or bent? The Bayes factor says.

The outline of one labelled image is seen through a deformation: an affine map of six numbers, or a rigid motion and
smooth cosine waves of nineteen. Both are fitted to two images; in the first the organ was stretched and sheared, in
the second it was bent, by a formula that is neither. The evidence charges the waves for their freedom, so the affine
map is kept where it is enough.

    python examples/deformed_template.py --out out
"""

import dataclasses
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from common import dice, empty_image, level_map, main, positions, save

import logishape as ls

SIZE = 80  # pixels of 1 mm along each side
INSIDE, OUTSIDE, NOISE = 100.0, 0.0, 60.0
LOBES = ((-13.0, 1.0, 10.0), (0.0, 6.0, 9.0), (12.0, 2.0, 7.5), (18.0, -5.0, 4.0), (-10.0, -9.0, 5.0))  # x, y, radius
LENGTH = 0.7  # reference length, mm


@dataclasses.dataclass(frozen=True)
class Experiment:
    """The labelled example, and for each kind of deformation an image, its truth and both models compared."""

    mask: ls.Volume
    models: dict[str, Any]
    images: dict[str, ls.Volume]
    truths: dict[str, np.ndarray]
    comparisons: dict[str, ls.Comparison]

    def fitted(self, image: str, model: str) -> np.ndarray:
        """The level (mm) of a fit at all pixels of its image."""
        found = self.comparisons[image]
        theta = found.fits[found.names.index(model)].state.theta
        return level_map(self.models[model].shape, theta, self.images[image])


def organ(points: np.ndarray) -> np.ndarray:
    """Which points lie in the organ of the labelled example: five blended lobes."""
    depth = np.stack([radius - np.linalg.norm(points - (x, y), axis=-1) for x, y, radius in LOBES])
    return np.sum(np.exp(depth / 2.0), axis=0) > 1


def deform(points: np.ndarray, kind: str) -> np.ndarray:
    """Where points of an image lie in the labelled example."""
    if kind == "stretched":
        return points @ np.array([[0.86, 0.15], [-0.22, 1.12]]).T + (2.0, -3.0)
    x, y = points.T
    return np.stack([x + 2.0 - 0.18 * y, y - 3.0 + 0.013 * x**2], axis=1)  # bent along a parabola


def make_image(kind: str, seed: int) -> tuple[ls.Volume, np.ndarray]:
    """A noisy image of the deformed organ, and its mask."""
    volume = empty_image(SIZE, 2)
    truth = organ(deform(positions(volume), kind)).reshape(volume.shape)
    noise = np.random.default_rng(seed).normal(0, NOISE, truth.shape)
    return volume.with_data(np.where(truth, INSIDE, OUTSIDE) + noise), truth


def models(mask: ls.Volume, num_waves: int) -> dict[str, ls.Model]:
    """The template under an affine map, and under a rigid motion with smooth waves."""
    place, half = (-12.0, 12.0), SIZE / 2
    affine = ls.shapes.Template.from_mask(mask, ls.shapes.Affine(np.zeros(2)))
    entries = [name for name in affine.parameter_names if name.startswith("b_")]
    stretch = dict.fromkeys(entries, (-0.8, 0.8))
    first = ls.Prior.named(affine, {"tx": place, "ty": place} | stretch, sd=dict.fromkeys(entries, 0.2))
    waves = ls.shapes.Cosines([-half, -half], [half, half], num_waves, sd_mm=8.0)
    bent = ls.shapes.Posed(ls.shapes.Template.from_mask(mask, waves), image_centre=np.zeros(2))
    second = ls.Prior.of_modes(bent, {"tx": place, "ty": place, "angle": (-0.8, 0.8)})
    return {"affine": ls.Model(affine, first, LENGTH), "waves": ls.Model(bent, second, LENGTH)}


def run(kinds: tuple[str, ...] = ("stretched", "bent"), num_waves: int = 2, seed: int = 0) -> Experiment:
    """Both models compared on an image of each kind, started at the undeformed template."""
    grid = empty_image(SIZE, 2)
    mask = grid.with_data(organ(positions(grid)).reshape(grid.shape))
    both = models(mask, num_waves)
    looks = ls.Regions(ls.appearance.gaussian(INSIDE, NOISE), ls.appearance.gaussian(OUTSIDE, NOISE))
    starts = {name: ls.State(np.zeros(model.shape.num_parameters), looks) for name, model in both.items()}
    made = {kind: make_image(kind, seed) for kind in kinds}
    images = {kind: image for kind, (image, _) in made.items()}
    truths = {kind: truth for kind, (_, truth) in made.items()}
    comparisons = {
        kind: ls.compare(both, ls.Observation.from_volume(image), starts, ls.FitOptions(anneal=(4.0,)))
        for kind, image in images.items()
    }
    return Experiment(mask, both, images, truths, comparisons)


def report(experiment: Experiment) -> str:
    """One line an image."""
    lines = []
    for kind, found in experiment.comparisons.items():
        scores = {name: dice(experiment.fitted(kind, name) > 0, experiment.truths[kind]) for name in found.names}
        lines.append(
            f"{kind}: {found.best} wins by {-found.log_bayes_factors[1]:.1f} nats; Dice undeformed "
            f"{dice(experiment.mask.data, experiment.truths[kind]):.3f}, affine {scores['affine']:.3f}, waves "
            f"{scores['waves']:.3f}"
        )
    return "\n".join(lines)


def draw(experiment: Experiment, path: Path) -> None:
    """The labelled example; for each image both fits and the deformation of the better one."""
    num = len(experiment.images)
    figure, axes = plt.subplots(1, 1 + 2 * num, figsize=(3.6 * (1 + 2 * num), 3.9))
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
    axes[0].imshow(experiment.mask.data.T, cmap="gray", origin="lower", alpha=0.5)
    axes[0].set_title("The labelled example")
    for k, (kind, found) in enumerate(experiment.comparisons.items()):
        image, grid = axes[1 + 2 * k], axes[2 + 2 * k]
        image.imshow(experiment.images[kind].data.T, cmap="gray", origin="lower")
        image.contour(experiment.truths[kind].T, levels=[0.5], colors="tab:green", linewidths=1.5)
        for name, colour, line in ((found.names[1], "tab:red", "--"), (found.best, "gold", "-")):
            level = experiment.fitted(kind, name).T
            image.contour(level, levels=[0], colors=colour, linestyles=line, linewidths=1.5)
            image.plot([], [], line, color=colour, label=name)
        image.plot([], [], color="tab:green", label="truth")
        image.legend(loc="lower left", fontsize=8, labelcolor="white", facecolor="black", framealpha=0.6)
        image.set_title(f"{kind.capitalize()}: {found.best} wins by {-found.log_bayes_factors[1]:.0f} nats")
        _draw_grid(experiment, kind, grid)
    for axis in axes:
        axis.set(xticks=[], yticks=[], xlim=(8, 71), ylim=(8, 71), aspect="equal")
    save(figure, path)


def _draw_grid(experiment: Experiment, kind: str, axis) -> None:
    """The lines of the template's grid as the better model sees them in the image, and its outline."""
    found, plane = experiment.comparisons[kind], empty_image(2 * SIZE, 2)
    shape, theta, points = experiment.models[found.best].shape, found.fits[0].state.theta, positions(plane)
    world, template = points, shape
    if isinstance(shape, ls.shapes.Posed):
        world, theta, template = np.asarray(shape.to_world(theta, points)), theta[3:], shape.shape
    assert isinstance(template, ls.shapes.Template)
    x, y = (world.T + (SIZE - 1) / 2).reshape(2, *plane.shape)
    for moved in np.asarray(template.deformation(theta, points)).T.reshape(2, *plane.shape):
        axis.contour(x, y, moved, levels=np.arange(-80, 81, 5), colors="0.7", linewidths=0.8, linestyles="-")
    axis.contour(experiment.fitted(kind, found.best).T, levels=[0], colors="gold", linewidths=2)
    axis.set_title(f"The template's grid, {found.best}")


if __name__ == "__main__":
    main("deformed_template", "Fitting a template by affine maps and by smooth waves ...", run, report, draw)
