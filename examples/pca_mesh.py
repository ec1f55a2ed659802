"""A statistical mesh: modes of a population of kidney-like surfaces, fitted to a noisy volume of one more.

Two dozen meshes with corresponding vertices, each in its own pose, are aligned and give a mean and modes. What they
say about the population is the prior; the posterior says what the image adds. The new kidney was not among them, so
its own modes are known only as far as the population can describe it.

    python examples/pca_mesh.py --out out
"""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from common import dice, empty_image, level_map, main, save
from scipy.spatial.transform import Rotation

import logishape as ls

SIZE, SPACING = 32, 1.25  # voxels along each side, mm
SEMI_AXES = np.array([13.0, 7.0, 6.5])  # mm
INSIDE, OUTSIDE, NOISE = 100.0, 0.0, 80.0
PLACE, TURN = (2.0, -1.5, 1.0), (0.25, -0.2, 0.3)  # where the new kidney lies: mm, rotation vector in rad


@dataclasses.dataclass(frozen=True)
class Experiment:
    """The model learnt, the image of a new member with its true surface, and what was found."""

    model: Any  # of posed modes of a mesh
    image: ls.Volume
    truth: ls.shapes.MeshShape  # its only parameters are three scales of one
    true_modes: np.ndarray  # the new member's surface in terms of the modes, in SDs
    fit: ls.Fit
    posterior: ls.ShapePosterior
    marginal: np.ndarray

    @property
    def true_mask(self) -> np.ndarray:
        """Which voxels lie in the new member."""
        return level_map(self.truth, np.ones(3), self.image) > 0

    @property
    def fitted_vertices(self) -> np.ndarray:
        """Where the fit puts the vertices, mm."""
        posed, theta = self.model.shape, self.fit.state.theta
        return np.asarray(posed.to_world(theta, posed.shape.surface.vertices(theta[6:])))

    @property
    def distances(self) -> np.ndarray:
        """From each fitted vertex to the true surface, mm."""
        return np.abs(np.asarray(self.truth.level(np.ones(3), self.fitted_vertices)))


def kidney(factors: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Vertices (mm) of a kidney with three factors (standard normal): how long, how bent, how pinched."""
    length, bend, pinch = factors
    x, y, z = (unit * SEMI_AXES * [1 + 0.08 * length, 1.0, 1.0]).T
    waist = 1 - (0.12 + 0.08 * pinch) * np.exp(-np.square(x / 5))
    return np.stack([x, waist * y + (0.025 + 0.01 * bend) * x**2 - 1.0, waist * z], axis=1)


def population(num_meshes: int, resolution: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Meshes with corresponding vertices, each turned and moved at random, and their faces."""
    rng = np.random.default_rng([seed, 0])
    unit, faces = ls.shapes.icosphere(resolution)
    meshes = [kidney(rng.normal(size=3), unit) for _ in range(num_meshes)]
    # The first keeps its axes: the frame of the aligned meshes is its own.
    turns = [Rotation.identity(), *(Rotation.random(rng=rng) for _ in meshes[1:])]
    moved = [turn.apply(mesh) + rng.normal(0, 5, 3) for turn, mesh in zip(turns, meshes, strict=True)]
    return np.stack(moved), faces


def new_member(resolution: int, seed: int) -> tuple[ls.shapes.MeshShape, ls.Volume]:
    """A kidney from the same population at its own pose, and a noisy volume of it."""
    rng = np.random.default_rng([seed, 1])
    unit, faces = ls.shapes.icosphere(resolution)
    vertices = Rotation.from_rotvec(TURN).apply(kidney(rng.normal(size=3), unit)) + PLACE
    truth = ls.shapes.MeshShape(ls.shapes.StretchedMesh(vertices, faces), checked_at=np.ones(3))
    volume = empty_image(SIZE, 3, SPACING)
    inside = level_map(truth, np.ones(3), volume) > 0
    return truth, volume.with_data(np.where(inside, INSIDE, OUTSIDE) + rng.normal(0, NOISE, inside.shape))


def project(surface: Any, vertices: np.ndarray) -> np.ndarray:
    """The modes (SDs) of the member of the family nearest to these vertices, poses taken out."""
    mean = surface.mean - surface.mean.mean(axis=0)
    centred = vertices - vertices.mean(axis=0)
    turn = Rotation.align_vectors(mean, centred)[0]
    modes = surface.modes.reshape(len(surface.modes), -1)
    return np.linalg.lstsq(modes.T, (turn.apply(centred) - mean).ravel())[0]


def run(num_meshes: int = 24, resolution: int = 2, num_draws: int = 30, seed: int = 0) -> Experiment:
    """Modes learnt, the new member found, and how sure of each voxel and each mode."""
    inner = ls.shapes.from_meshes(*population(num_meshes, resolution, seed), explained=0.98)
    truth, image = new_member(resolution, seed)
    mean = np.zeros(inner.num_parameters)
    shape = ls.shapes.Posed(
        inner, image_centre=np.zeros(3), model_centre=np.mean(inner.surface.vertices(mean), axis=0)
    )
    place, turn = (-6.0, 6.0), (-0.8, 0.8)
    bounds = {name: turn if name.startswith("r") else place for name in shape.parameter_names[:6]}
    model = ls.Model(shape, ls.Prior.of_modes(shape, bounds), reference_length=0.3)  # small: it shrinks a bend
    observation = ls.Observation.from_volume(image)
    looks = ls.Regions(ls.appearance.gaussian(INSIDE, NOISE), ls.appearance.gaussian(OUTSIDE, NOISE))
    start = ls.State(np.zeros(shape.num_parameters), looks)
    fit = ls.fit(model, observation, start, ls.FitOptions(anneal=(8.0, 3.0))).check()
    posterior = ls.laplace(model, observation, fit)
    marginal = ls.marginal_label_probability(model, observation, fit.state, posterior, jax.random.key(0), num_draws)
    true_modes = project(inner.surface, np.asarray(truth.surface.vertices(np.ones(3))))
    return Experiment(model, image, truth, true_modes, fit, posterior, marginal.reshape(image.shape))


def report(experiment: Experiment) -> str:
    """What was learnt, found, and how sure."""
    surface, mask = experiment.model.shape.shape.surface, experiment.true_mask
    fitted = level_map(experiment.model.shape, experiment.fit.state.theta, experiment.image) > 0
    lines = [
        f"{len(surface.modes)} modes explain {surface.explained.sum():.0%}; {experiment.fit.status.name.lower()}; "
        f"Dice of the surface {dice(fitted, mask):.3f}, of the labels {dice(experiment.marginal >= 0.5, mask):.3f}",
        f"fitted vertices lie {experiment.distances.mean():.2f} mm from the true surface in the mean, at most "
        f"{experiment.distances.max():.2f} (voxels of {SPACING} mm)",
    ]
    for k, (low, high) in enumerate(experiment.posterior.interval(jax.random.key(1))[6:]):
        lines.append(
            f"mode {k + 1}: 90 % in [{low:.2f}, {high:.2f}] SD, nearest to the truth {experiment.true_modes[k]:.2f}"
        )
    return "\n".join(lines)


def draw(experiment: Experiment, path: Path) -> None:
    """Modes as surfaces; two slices with truth, fit and 5/95 % shells; intervals of the modes."""
    surface = experiment.model.shape.shape.surface
    figure = plt.figure(figsize=(15, 4.6), layout="constrained")
    left, right = np.asarray(figure.subfigures(1, 2, width_ratios=[1, 1.6]))
    _draw_modes(surface, left)
    left.suptitle("Modes at -2, 0 and +2 SD")
    axes = right.subplots(1, 3, width_ratios=[1, 1, 0.7])
    fitted = level_map(experiment.model.shape, experiment.fit.state.theta, experiment.image)
    for axis, along in zip(axes, (2, 1), strict=False):
        image, truth, fit, marginal = (
            np.take(array, SIZE // 2, axis=along).T
            for array in (experiment.image.data, experiment.true_mask, fitted, experiment.marginal)
        )
        axis.imshow(image, cmap="gray", origin="lower")
        axis.contour(truth, levels=[0.5], colors="tab:green", linewidths=1.2)
        axis.contour(marginal, levels=[0.05, 0.95], colors="white", linewidths=0.8, linestyles=":")
        axis.contour(fit, levels=[0], colors="gold", linewidths=1.8)
        axis.set(xticks=[], yticks=[], title=f"Slice across {'xyz'[along]}")
    for colour, line, label in (("tab:green", "-", "truth"), ("gold", "-", "fit"), ("white", ":", "labels 5, 95 %")):
        axes[0].plot([], [], line, color=colour, label=label)
    axes[0].legend(loc="lower left", fontsize=8, labelcolor="white", facecolor="black", framealpha=0.6)
    _draw_intervals(experiment, axes[2])
    save(figure, path)


def _draw_modes(surface: ls.shapes.MeshModes, figure) -> None:
    """One row a mode, three surfaces each."""
    num = len(surface.modes)
    axes = figure.subplots(num, 3, subplot_kw={"projection": "3d"}, squeeze=False)
    for k, row in enumerate(axes):
        for amount, axis in zip((-2, 0, 2), row, strict=True):
            vertices = np.asarray(surface.vertices(amount * np.eye(num)[k]))
            axis.plot_trisurf(*vertices.T, triangles=surface.faces, color="gold", shade=True, lw=0)
            axis.set(xlim=(-17, 17), ylim=(-10, 12), zlim=(-8, 8))
            axis.set_box_aspect((34, 22, 16), zoom=1.25)
            axis.view_init(elev=65, azim=-90)
            axis.set_axis_off()


def _draw_intervals(experiment: Experiment, axis) -> None:
    """Prior and posterior 90 % intervals of each mode, and the member of the family nearest to the truth."""
    intervals = experiment.posterior.interval(jax.random.key(1))[6:]
    rows = -np.arange(len(intervals))
    axis.hlines(rows + 0.12, -1.645, 1.645, color="0.75", lw=5, label="population")
    axis.hlines(rows, *intervals.T, color="goldenrod", lw=5, label="posterior")
    axis.plot(experiment.true_modes, rows, "o", color="tab:green", label="truth")
    axis.set(
        yticks=rows, yticklabels=[f"mode {k + 1}" for k in range(len(rows))], xlabel="SD", title="90 % intervals"
    )
    axis.set(ylim=(rows[-1] - 1.4, 0.5), xlim=(-2.2, 2.2))
    axis.legend(loc="lower right", fontsize=8)


if __name__ == "__main__":
    main("pca_mesh", "Learning modes of meshes, and fitting them to a volume ...", run, report, draw)
