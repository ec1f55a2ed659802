"""The distances a cochlea can be fitted by: how far the learned one and the mesh's are from the exact, and how fast.

    python benchmarks/distances.py [--shapes 256] [--points 1024] [--weights FILE] [--only learned mesh speed]

Learned: shapes drawn uniformly from the box of the parameters, and shapes like the specimens; points mostly near the
surface. Mesh: shapes like the specimens. Speed: level and all derivatives at 4096 voxels near the surface, in turns.
"""

import argparse
import dataclasses
from typing import Any

import jax
import numpy as np
from cochlea_shape import derivatives_at
from engine import print_table, report, take_turns

from logishape.cochlea import Cochlea, load_calibration
from logishape.cochlea.distance_errors import DistanceErrors, distance_errors, likely_errors
from logishape.cochlea.evaluation import level_at
from logishape.cochlea.learned import NAMES, load_network
from logishape.core.arrays import double_precision

FREE = tuple(name for name in NAMES if name not in ("a", "b", "alpha", "phi"))
HEADER = ("", "mean", "99 %", "zero level 95 %", "99.9 %", "most", "within .05 mm")


def row(name: str, found: DistanceErrors) -> tuple[str, ...]:
    """One line of the table, mm."""
    *millimetres, share = dataclasses.astuple(found)
    return name, *(f"{value:.4f}" for value in millimetres), f"{100 * share:.2f} %"


def measure_learned(size: tuple[int, int], weights: str | None) -> None:
    """Prints the errors of the learned distance."""
    calibration, network = load_calibration(), load_network(weights)
    count = sum(leaf.size for leaf in jax.tree.leaves(network.weights))
    rows = []
    for name, measure in (("the whole box", distance_errors), ("like the specimens", likely_errors)):
        report(f"learned: {size[0]} shapes, {name}")
        rows.append(row(name, measure(calibration, network, size, 12345)))
    print_table(f"Learned distance ({count} weights): errors in mm within 1 mm of the surface", HEADER, rows, [])


def measure_mesh(num_shapes: int) -> None:
    """Prints the errors of the mesh's distance."""
    shapes = {name: Cochlea(free=FREE, distance=name) for name in ("mesh", "exact")}
    rng, errors = np.random.default_rng(1), []
    prior = shapes["mesh"].prior()
    for theta in rng.multivariate_normal(
        shapes["mesh"].mean(), np.linalg.inv(np.asarray(prior.precision)), num_shapes
    ):
        points = near_points(theta)
        found = {name: derivatives_at(shape, theta, points) for name, shape in shapes.items()}
        errors.append(np.abs(np.asarray(found["mesh"].level) - np.asarray(found["exact"].level)))
    rows = [("like the specimens", f"{np.mean(errors):.4f}", f"{np.quantile(errors, 0.99):.4f}")]
    print_table("Distance to the mesh: errors in mm within 1 mm of the surface", HEADER[:3], rows, [])


def near_points(theta: np.ndarray, num: int = 4096) -> np.ndarray:
    """Points within 1 mm of the surface, single precision."""
    points = np.random.default_rng(2).uniform([-6, -6, -3], [8, 6, 6], (16 * num, 3)).astype(np.float32)
    return points[np.abs(level_at(Cochlea(free=FREE), theta, points)) < 1][:num]


def measure_speed() -> None:
    """Prints what level and derivatives cost by each distance."""
    names: tuple[Any, ...] = ("level", "exact", "learned", "mesh")
    shapes = {name: Cochlea(free=FREE, distance=name) for name in names}
    theta = shapes["level"].mean()
    points = near_points(theta)

    def run(shape: Cochlea) -> Any:
        with double_precision():
            return lambda: jax.block_until_ready(derivatives_at(shape, theta.astype(np.float32), points))

    timings = take_turns({name: run(shape) for name, shape in shapes.items()}, 5)
    medians = dict(zip(names, (float(np.median(one.warm_s)) for one in timings), strict=True))
    rows = [(name, f"{1e3 * one:.1f} ms", f"{one / medians['level']:.1f}") for name, one in medians.items()]
    print_table(f"Level and derivatives at {len(points)} voxels", ("", "time", "times the level"), rows, timings)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=int, default=256)
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--weights")
    parser.add_argument("--only", nargs="*", default=["learned", "mesh", "speed"])
    chosen = parser.parse_args()
    if "learned" in chosen.only:
        measure_learned((chosen.shapes, chosen.points), chosen.weights)
    if "mesh" in chosen.only:
        measure_mesh(max(chosen.shapes // 32, 1))
    if "speed" in chosen.only:
        measure_speed()


if __name__ == "__main__":
    main()
