"""Calibrate the cochlea's sections, spiral constants and prior on masks with truth; write a small table file.

    python benchmarks/calibrate.py [--out FILE] [--without-anatomy] [--quick]

All specimens together make the table "all", and each of four fixed folds a table without its three specimens, for
scores that are cross-validated. Shared by all are the sections (Chebyshev coefficients in the angle) and the spiral's
constants; each specimen has its own pose, a, b, alpha, phi and size. They are estimated together by maximum a
posteriori of the masks' labels under the logistic shape model. The anatomical constraint holds the mean cochlea to
published lateral-wall radii and lets its centreline only approach the axis.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize
from specimens import FOLDS, Specimen, load_specimens

from logishape.cochlea.calibration import DEFAULT_FILE, FORMAT, PARAMETERS, VERSION
from logishape.cochlea.centreline import SpiralConstants
from logishape.cochlea.level import union_level
from logishape.cochlea.sections import COLUMNS, Form, SectionTable
from logishape.cochlea.surface import wall_radius
from logishape.core.arrays import double_precision
from logishape.core.errors import InputError
from logishape.core.rotations import apply_matrix, rotation_matrix

WALL_DEGREES = (90, 180, 270, 360, 540, 720, 900)
WALL_MM = (4.3, 3.3, 2.6, 2.2, 1.85, 1.75, 1.35)  # lateral wall from the axis, published means
WALL_SD_MM = 0.035
CENTRE = np.array([0.6, 0.2, 0.8])
JOINT, START, DEPTHS = 5 * np.pi / 6, -0.6, (0.5, 1.0)
RANGE = (-np.pi / 2, np.radians(1000))
DEGREE = 11
TURNS = {True: 2.61, False: 2.428}  # with the anatomical constraint, and where overlap alone is asked for
REFERENCE_LENGTH = 0.1
NUM_POINTS = 6000  # of each specimen's voxels near its surface
EVIDENCE = 0.033  # of a voxel: neighbours are not independent, and the model is not the truth
# Where each specimen's parameters are searched: a wide Gaussian about a first exploration.
MEAN = np.array([0.16, -0.11, 0.58, -0.2, 0.02, -0.08, 3.05, 0.145, 1.45, -0.22, 0, 0, 0, np.nan, 0])
SD = np.array([0.5, 0.5, 0.5, 0.2, 0.2, 0.3, 0.6, 0.03, 0.5, 0.6, 0.1, 0.05, 0.05, 0.4, 0.3])
LOWER = [-2.5, -2.5, -2.5, -0.8, -0.8, -0.8, 2, 0.05, 0, -2.5, -0.35, -0.3, -0.3, 14.6, -1]
UPPER = [2.5, 2.5, 2.5, 0.8, 0.8, 0.8, 6, 0.25, 2.5, 2.5, 0.35, 0.3, 0.3, 17.3, 1]
NUM_CORE = 11  # parameters of each specimen while the table is estimated: up to the size of its sections
ATTRIBUTION = (
    "Computed by logishape from the human bony labyrinth dataset of W. Wimmer, L. Anschuetz, S. Weder, F. Wagner, "
    "H. Delingette, M. Caversaccio, Data in Brief 27 (2019) 104782, doi 10.1016/j.dib.2019.104782, licence CC BY 4.0."
)


class Shared(eqx.Module):
    """What all specimens have in common, in units of about one."""

    sections: Any  # Chebyshev coefficients, a row for each of COLUMNS
    constants: Any  # start radius, beta, rise


def form_of(shared: Shared, theta: Any, end: float) -> Form:
    """The cochlea of one specimen; `theta` may stop at any of the fifteen parameters after phi."""
    powers = (shared.sections @ POWERS_OF_CHEBYSHEV)[:, ::-1]
    start_radius, beta, rise = shared.constants
    rest = [theta[k] if k < len(theta) else 0.0 for k in (10, 11, 12, 14)]
    end = theta[13] if len(theta) > 13 else end
    constants = SpiralConstants(start_radius, JOINT, beta, rise)
    table = SectionTable(*RANGE, powers)
    return Form(constants, table, START, end, *theta[6:10], *rest, depths=np.array(DEPTHS))


def _powers_of_chebyshev() -> np.ndarray:
    rows = [np.polynomial.chebyshev.cheb2poly(row[: k + 1]) for k, row in enumerate(np.eye(DEGREE + 1))]
    return np.stack([np.pad(row, (0, DEGREE + 1 - len(row))) for row in rows])


POWERS_OF_CHEBYSHEV = _powers_of_chebyshev()


def label_energy(shared: Shared, thetas: Any, data: tuple, length: Any, end: float) -> Any:
    """-log p(labels | shapes): cross-entropy of the masks under the logistic model, tempered."""
    points, labels = data

    def one(theta: Any, x: Any, inside: Any) -> Any:
        moved = apply_matrix(rotation_matrix(theta[3:6]), x - CENTRE) + CENTRE + theta[:3]
        logit = union_level(form_of(shared, theta, end), moved) / length
        return jnp.mean(jax.nn.softplus(logit) - inside * logit)

    return EVIDENCE * NUM_POINTS * jnp.sum(jax.vmap(one)(thetas, points, labels))


def prior_energy(shared: Shared, thetas: Any, end: float, anatomy: bool) -> Any:
    """Wide Gaussians for each specimen, smooth sections near the spiral, and the anatomical constraint."""
    mean = jnp.mean(thetas, axis=0)
    energy = 0.5 * jnp.sum(((thetas - MEAN[:NUM_CORE]) / SD[:NUM_CORE]) ** 2) + 0.5 * (mean[10] / 0.01) ** 2
    form = form_of(shared, mean, end)
    knots = np.linspace(*RANGE, 49)
    table = form.table(knots)
    bend = jnp.diff(table.slope, axis=1) / (knots[1] - knots[0])
    energy += 20 * jnp.mean((bend / np.array([0.3, 0.3, 0.3, 0.5, 0.5])[:, None]) ** 2, axis=1).sum()
    energy += 0.5 * jnp.sum(table.value[3:] ** 2)
    if anatomy:
        wall = wall_radius(form, np.radians(WALL_DEGREES))
        energy += 0.5 * jnp.sum(((wall - np.array(WALL_MM)) / WALL_SD_MM) ** 2)
        slope = form.section(np.linspace(0, end, 60)).radius.slope
        energy += jnp.sum((jax.nn.relu(slope + 0.02) / 0.05) ** 2)
    return energy


def descend(energy: Any, start: Any, lengths: tuple[float, ...], max_steps: int) -> Any:
    """The tree at which energy(tree, length) is lowest, by L-BFGS for one reference length after the other."""
    flat, unflatten = ravel_pytree(start)
    evaluate = jax.jit(jax.value_and_grad(lambda vector, length: energy(unflatten(vector), length)))
    found = np.asarray(flat)
    for length in lengths:

        def fun(vector: np.ndarray, length: float = length) -> tuple[float, np.ndarray]:
            value, slope = evaluate(vector, length)
            return float(value), np.asarray(slope)

        options = {"maxiter": max_steps, "maxfun": 2 * max_steps, "maxcor": 30}
        found = minimize(fun, found, jac=True, method="L-BFGS-B", options=options).x
    return unflatten(jnp.asarray(found))


def near_points(specimens: list[Specimen], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Voxels near the surface and their labels, as many for each specimen."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(one.near(one.reference), NUM_POINTS, replace=False) for one in specimens]
    points = np.stack([one.points[rows] for one, rows in zip(specimens, chosen, strict=True)])
    return points, np.stack([one.reference[rows] for one, rows in zip(specimens, chosen, strict=True)]).astype(float)


def calibrate(specimens: list[Specimen], anatomy: bool, max_steps: int) -> dict[str, Any]:
    """One table: what the specimens share, and the prior of their parameters."""
    end = TURNS[anatomy] * 2 * np.pi
    data = near_points(specimens)
    scale = Shared(np.full((5, DEGREE + 1), 0.1), np.array([0.3, 0.2, 0.03]))
    sections = np.zeros((5, DEGREE + 1))
    sections[0, 0] = 0.15
    first = Shared(sections, np.array([5.0, 0.8, 0.2]))
    core = SD[:NUM_CORE]

    def unscaled(tree: tuple) -> tuple[Shared, Any]:
        return jax.tree.map(jnp.multiply, tree[0], scale), tree[1] * core

    def joint(tree: tuple, length: Any) -> Any:
        shared, thetas = unscaled(tree)
        return label_energy(shared, thetas, data, length, end) + prior_energy(shared, thetas, end, anatomy)

    start = jax.tree.map(np.divide, first, scale), np.tile(MEAN[:NUM_CORE] / core, (len(specimens), 1))
    shared, thetas = unscaled(descend(joint, start, (0.4, 0.2, REFERENCE_LENGTH), max_steps))
    everything = all_parameters(shared, thetas, data, end, max_steps)
    return record(shared, everything, end)


def all_parameters(shared: Shared, thetas: Any, data: tuple, end: float, max_steps: int) -> np.ndarray:
    """All fifteen parameters of each specimen, with what they share held: for the prior of the richer models."""
    mean = np.concatenate([np.mean(thetas, axis=0), [0, 0, end, 0]])

    def energy(tree: Any, length: Any) -> Any:
        own = mean + tree * SD
        return label_energy(shared, own, data, length, end) + 0.5 * jnp.sum(tree**2)

    start = np.concatenate([(thetas - mean[:NUM_CORE]) / SD[:NUM_CORE], np.zeros((len(thetas), 4))], axis=1)
    return mean + np.asarray(descend(energy, start, (REFERENCE_LENGTH,), max_steps)) * SD


def record(shared: Shared, thetas: np.ndarray, end: float) -> dict[str, Any]:
    """The table as plain numbers; the covariance is shrunk by a third towards its diagonal: specimens are few."""
    covariance = np.cov(thetas.T)
    covariance = 2 / 3 * covariance + 1 / 3 * np.diag(np.diag(covariance)) + np.diag((0.1 * SD) ** 2)
    start_radius, beta, rise = (round(float(value), 5) for value in shared.constants)
    mean = np.mean(thetas, axis=0)
    mean[10:13], mean[13], mean[14] = 0, end, 0  # the table itself is the mean
    degrees = np.arange(-90, 991, 90)
    with double_precision():
        values = np.asarray(form_of(shared, mean, end).table(np.radians(degrees)).value)
    coefficients = np.asarray(shared.sections)
    return {
        "spiral": {"start_radius": start_radius, "joint": JOINT, "beta": beta, "rise": rise},
        "theta_start": START,
        "theta_max": end,
        "cap_depths": list(DEPTHS),
        "centre": CENTRE.tolist(),
        "sections": {
            "angle_range": list(RANGE),
            "chebyshev": {name: np.round(row, 5).tolist() for name, row in zip(COLUMNS, coefficients, strict=True)},
            "for_readers": {"degrees": degrees.tolist()}
            | {name: np.round(row, 3).tolist() for name, row in zip(COLUMNS, values, strict=True)},
        },
        "prior": {
            "names": list(PARAMETERS),
            "mean": np.round(mean, 5).tolist(),
            "covariance": [[float(f"{value:.5g}") for value in row] for row in (covariance + covariance.T) / 2],
            "lower": LOWER,
            "upper": UPPER,
        },
    }


def main() -> None:
    """Calibrate on all specimens and without each fold, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DEFAULT_FILE)
    parser.add_argument("--without-anatomy", action="store_true", help="aim for overlap alone")
    parser.add_argument("--quick", action="store_true", help="few steps, to see that it runs")
    options = parser.parse_args()
    specimens = load_specimens()
    tables = {}
    begin = time.perf_counter()
    for key, held_out in {"all": (), **FOLDS}.items():
        kept = [one for one in specimens if one.name not in held_out]
        with double_precision():
            table = calibrate(kept, not options.without_anatomy, 10 if options.quick else 300)
        tables[key] = table
        print(f"{key}: {len(kept)} specimens, {time.perf_counter() - begin:.0f} s", flush=True)
    file = {
        "format": FORMAT,
        "version": VERSION,
        "attribution": ATTRIBUTION,
        "provenance": {
            "made_by": "benchmarks/calibrate.py" + (" --without-anatomy" if options.without_anatomy else ""),
            "specimens": [one.name for one in specimens],
            "reference_length_mm": REFERENCE_LENGTH,
            "lateral_wall_mm": None
            if options.without_anatomy
            else dict(zip(map(str, WALL_DEGREES), WALL_MM, strict=True)),
        },
        "folds": {key: list(names) for key, names in FOLDS.items()},
        "tables": tables,
    }
    partial = options.out.with_suffix(".partial")
    partial.write_text(json.dumps(file, indent=1) + "\n", encoding="utf-8")
    partial.replace(options.out)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(str(error))
