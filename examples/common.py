"""What the examples share: images, labels, a figure saved whole or not at all, and the command line."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import logishape as ls


def empty_image(size: int, dimension: int, spacing: float = 1.0) -> ls.Volume:
    """An image of cubic voxels (mm) with world zero in its middle."""
    return ls.Volume.from_spacing(np.zeros((size,) * dimension), spacing, origin=-spacing * (size - 1) / 2)


def positions(volume: ls.Volume) -> np.ndarray:
    """World positions (mm) of all voxels, one row each."""
    return volume.to_world(np.indices(volume.shape).reshape(volume.ndim, -1).T)


def level_map(shape: ls.shapes.AbstractShape, theta: np.ndarray, volume: ls.Volume) -> np.ndarray:
    """The shape's level (mm) at every voxel."""
    return np.asarray(_level(shape, theta, positions(volume).astype(np.float32))).reshape(volume.shape)


_level = jax.jit(lambda shape, theta, points: shape.level(theta, points))


def save(figure, path: Path) -> None:
    """Writes the figure under a temporary name first, so that a broken one never stands there."""
    temporary = path.with_suffix(".part.png")
    figure.savefig(temporary, dpi=110)
    temporary.replace(path)
    plt.close(figure)


def dice(a: np.ndarray, b: np.ndarray) -> float:
    """Overlap of two masks."""
    return float(2 * np.sum(a & b) / (np.sum(a) + np.sum(b)))


def label_each(
    model: ls.Model, fits: list[ls.Fit], observations: Sequence[ls.Observation], centres: np.ndarray, shape: tuple
) -> tuple[np.ndarray, list[np.ndarray | None]]:
    """An image of labels, numbered from one, of the usable fits in windows about the centres, and the SDs of each."""
    labels, sds = np.zeros(shape, dtype=int), []
    for k, (fit, observation) in enumerate(zip(fits, observations, strict=True)):
        sds.append(ls.laplace(model, observation, fit).sd if fit.status.is_usable else None)
        if fit.status.is_usable:
            inside = ls.label_probability(model, observation, fit.state) >= 0.5
            rows, columns = (np.asarray(observation.points)[inside] + centres[k]).astype(int).T
            labels[rows, columns] = k + 1
    return labels, sds


def main(
    name: str,
    description: str,
    run: Callable[[], Any],
    report: Callable[[Any], str],
    draw: Callable[[Any, Path], None],
) -> None:
    """Runs an experiment, prints its report and writes its figure to `--out`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the figure")
    out = parser.parse_args().out
    matplotlib.use("Agg")
    print(description, flush=True)
    experiment = run()
    print(report(experiment))
    out.mkdir(parents=True, exist_ok=True)
    draw(experiment, out / f"{name}.png")
    print(f"figure: {out / f'{name}.png'} (jax on {jax.default_backend()})")
