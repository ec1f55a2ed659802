"""How right and how fast the cochlea's level and exact distance are, and how well the shape fits real specimens.

    python benchmarks/cochlea_shape.py [--only agreement derivatives speed adequacy figures] [--shapes 200] [--quick]
                                       [--gpu] [--images docs/images]

Agreement: against libigl on a fine mesh of the union. Derivatives: against central differences. Speed: value and full
Jacobian for the band on the paper's grid of 60 x 50 x 50 voxels, the paper's way (VTK's distance on a mesh, central
differences for the four deformable parameters; `pip install vtk`) against libigl, the exact distance and the level,
in turns. Adequacy: fits to the specimens' masks, cross-validated (see `adequacy.py`). With `--gpu`, in place of all
that, Jacobians a second for 1 and 256 cases.
"""

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from engine import Timing, print_table, report, take_turns

from logishape.cochlea import Cochlea, Frame, Mesh, surface
from logishape.cochlea.duct import FREE
from logishape.core.arrays import double_precision
from logishape.core.errors import InputError
from logishape.shapes import derivatives

BAND_MM = 0.8  # eight reference lengths of 0.1 mm
FINE_MM, COARSE_MM = 0.05, 0.2  # edges of the mesh that judges, and of the mesh of the paper's way
GRID = [np.arange(60) * 0.2 - 4.8, np.arange(50) * 0.2 - 5, np.arange(50) * 0.2 - 4.5]
NUM_POINTS = 2048


def random_shape(seed: int, free: tuple[str, ...] = FREE) -> tuple[Cochlea, np.ndarray]:
    """A cochlea in a random frame and side, its parameters drawn from the prior, three times as wide, in the box."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    cochlea = Cochlea(Frame(axes, rng.uniform(-20, 20, 3)), free)
    prior = cochlea.prior()
    covariance = 9 * np.linalg.inv(np.asarray(prior.precision))
    theta = rng.multivariate_normal(cochlea.mean(), covariance)
    margin = 0.02 * (prior.upper - prior.lower)
    return cochlea, np.clip(theta, prior.lower + margin, prior.upper - margin)


def points_around(cochlea: Cochlea, theta: np.ndarray, seed: int, num: int = NUM_POINTS) -> np.ndarray:
    """World points in the box around the surface and 2 mm more, half of them close to the surface."""
    rng = np.random.default_rng(seed)
    lower, upper = cochlea.duct.extent(theta[6:])
    model = rng.uniform(lower - 2, upper + 2, (num // 2, 3))
    vertices = surface(cochlea, theta, COARSE_MM).vertices
    close = vertices[rng.integers(len(vertices), size=num - num // 2)] + rng.normal(0, 0.15, (num - num // 2, 3))
    with double_precision():
        return np.concatenate([np.asarray(cochlea.to_world(theta, model)), close])


@eqx.filter_jit
def level_at(cochlea: Cochlea, theta: Any, points: Any) -> jax.Array:
    """The level, compiled once for all shapes."""
    return cochlea.level(theta, points)


@eqx.filter_jit
def derivatives_at(cochlea: Cochlea, theta: Any, points: Any) -> Any:
    """Level, Jacobian and gradient, compiled once for all shapes."""
    return derivatives(cochlea, theta, points)


def exact(cochlea: Cochlea) -> Cochlea:
    """The same cochlea with its exact distance."""
    return Cochlea(cochlea.frame, cochlea.duct.free, cochlea.calibration, distance="exact")


def mesh_distance(mesh: Mesh, points: np.ndarray) -> np.ndarray:
    """libigl's distance to the mesh, without a sign."""
    import igl

    squared = igl.point_mesh_squared_distance(points, mesh.vertices, mesh.faces.astype(np.int64))[0]
    return np.sqrt(squared)


def magnified_distance(cochlea: Cochlea, theta: np.ndarray, point: np.ndarray, feet: list[np.ndarray]) -> float:
    """libigl's distance to patches of a mesh of 0.01 mm around these feet.

    Where two turns meet in a crease, a mesh cuts the corner by up to half an edge: there it needs a closer look.
    """
    import igl
    from skimage.measure import marching_cubes

    half, step = 0.3, 0.01
    offsets = np.stack(np.meshgrid(*[np.arange(-half, half + step / 2, step)] * 3, indexing="ij"), axis=-1)
    found = []
    for foot in feet:
        with double_precision():
            level = np.asarray(level_at(cochlea, theta, offsets.reshape(-1, 3) + foot)).reshape(offsets.shape[:3])
        if level.min() < 0 < level.max():
            vertices, faces, _, _ = marching_cubes(level, 0.0, spacing=(step,) * 3)
            patch = vertices.astype(float) + foot - half
            squared = igl.point_mesh_squared_distance(point[None], patch, faces.astype(np.int64))[0]
            found.append(float(np.sqrt(np.ravel(squared)[0])))
    return min(found, default=np.inf)


def judge(cochlea: Cochlea, theta: np.ndarray, points: np.ndarray, found: Any) -> np.ndarray:
    """The distance by libigl on a fine mesh; where ours differs by 0.02 mm, on patches that are finer still."""
    import igl

    mesh = surface(cochlea, theta, FINE_MM)
    squared, _, feet = igl.point_mesh_squared_distance(points, mesh.vertices, mesh.faces.astype(np.int64))
    true, level, feet = np.sqrt(squared), np.asarray(found.level), np.asarray(feet)
    ours = points - level[:, None] * np.asarray(found.gradient)
    for k in np.flatnonzero((np.abs(np.abs(level) - true) > 0.02) & (true < 2)):
        true[k] = min(true[k], magnified_distance(cochlea, theta, points[k], [feet[k], ours[k]]))
    return true


def measure_agreement(num_shapes: int) -> None:
    """Prints how far the exact distance and the level are from libigl's."""
    errors: dict[str, list[np.ndarray]] = {"exact": [], "exact outside": [], "exact inside": [], "level": []}
    flips = 0
    for seed in range(num_shapes):
        cochlea, theta = random_shape(seed)
        points = points_around(cochlea, theta, seed)
        with double_precision():
            by_foot = derivatives_at(exact(cochlea), theta, points)
            found, level = np.asarray(by_foot.level), np.asarray(level_at(cochlea, theta, points))
        true = judge(cochlea, theta, points, by_foot)
        flips += np.sum((found > 0) != (level > 0))
        near, close = true < 2, true < 0.2
        errors["exact"].append(np.abs(np.abs(found) - true)[near])
        errors["exact outside"].append(np.abs(np.abs(found) - true)[near & (level < 0)])
        errors["exact inside"].append(np.abs(np.abs(found) - true)[near & (level > 0)])
        errors["level"].append(np.abs(np.abs(level) - true)[close])
        if seed % 10 == 9:
            report(f"agreement: {seed + 1} of {num_shapes} shapes")
    rows = []
    for name, parts in errors.items():
        each = np.concatenate(parts)
        where = "|S| < 0.2 mm" if name == "level" else "|S| < 2 mm"
        rows.append(
            [name, where, f"{len(each)}", *(f"{np.percentile(each, p):.4f}" for p in (50, 95, 99, 99.9, 100))]
        )
    header = ["distance", "where", "points", "p50", "p95", "p99", "p99.9", "max (mm)"]
    title = f"Against libigl on meshes of {FINE_MM} mm edges (0.01 mm where in doubt)"
    print_table(f"{title}, {num_shapes} random shapes and poses", header, rows, [])
    print(f"signs of level and exact differ at {flips} points")


def measure_derivatives(num_shapes: int) -> None:
    """Prints the error of derivatives against central differences, relative to the largest of each column."""
    rows = []
    for name, wrap in {"level": lambda c: c, "exact": exact}.items():
        parts = []
        for seed in range(num_shapes):
            cochlea, theta = random_shape(seed)
            points = points_around(cochlea, theta, seed)
            with double_precision():
                parts.append(derivative_errors(wrap(cochlea), theta, points))
        each = np.concatenate(parts)
        percentiles = (f"{np.percentile(each, p):.1e}" for p in (50, 90, 95, 99))
        rows.append([name, f"{len(each)}", *percentiles, f"{100 * np.mean(each <= 1e-4):.2f}%"])
    header = ["distance", "points", "p50", "p90", "p95", "p99", "within 1e-4"]
    title = "Derivatives against central differences, points where one-sided differences agree"
    print_table(f"{title} ({num_shapes} shapes)", header, rows, [])


def derivative_errors(cochlea: Cochlea, theta: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The largest relative error over parameters and axes at each point away from creases of the distance itself."""
    found = derivatives_at(cochlea, theta, points)
    prior = cochlea.prior()
    moves = 1e-5 * (prior.upper - prior.lower)
    here = np.asarray(found.level)
    is_smooth, error = np.abs(here) < 2, np.zeros(len(points))

    def compare(column: Any, ahead: Any, behind: Any, step: float) -> None:
        nonlocal is_smooth, error
        ahead, behind = np.asarray(ahead), np.asarray(behind)
        central, scale = (ahead - behind) / (2 * step), np.max(np.abs(np.asarray(column)))
        # On the medial axis (and between pieces of the level) slopes ahead and behind differ.
        is_smooth = is_smooth & (np.abs(ahead - 2 * here + behind) / step < 1e-3 * scale)
        error = np.maximum(error, np.abs(np.asarray(column) - central) / scale)

    for k, step in enumerate(moves):
        move = step * np.eye(len(theta))[k]
        compare(
            found.jacobian[:, k],
            level_at(cochlea, theta + move, points),
            level_at(cochlea, theta - move, points),
            step,
        )
    for k in range(3):
        move = 1e-4 * np.eye(3)[k]
        ahead, behind = level_at(cochlea, theta, points + move), level_at(cochlea, theta, points - move)
        compare(found.gradient[:, k], ahead, behind, 1e-4)
    return error[is_smooth]


def vtk_distance(mesh: Mesh, points: np.ndarray) -> np.ndarray:
    """VTK's signed distance, positive outside."""
    try:
        vtk, arrays = (importlib.import_module(name) for name in ("vtk", "vtk.util.numpy_support"))
    except ImportError as error:
        raise InputError("the paper's way needs vtk, which is missing; pip install vtk.") from error
    corners, cells = vtk.vtkPoints(), vtk.vtkCellArray()
    corners.SetData(arrays.numpy_to_vtk(mesh.vertices, deep=True))
    offsets = arrays.numpy_to_vtkIdTypeArray(3 * np.arange(len(mesh.faces) + 1, dtype=np.int64), deep=True)
    cells.SetData(offsets, arrays.numpy_to_vtkIdTypeArray(mesh.faces.astype(np.int64).ravel(), deep=True))
    data, distance = vtk.vtkPolyData(), vtk.vtkImplicitPolyDataDistance()
    data.SetPoints(corners)
    data.SetPolys(cells)
    distance.SetInput(data)
    found = vtk.vtkDoubleArray()
    distance.FunctionValue(arrays.numpy_to_vtk(points, deep=True), found)
    return arrays.vtk_to_numpy(found)


def stencil_meshes(cochlea: Cochlea, theta: np.ndarray) -> list[Mesh]:
    """The mesh and those with each deformable parameter a little more and a little less."""
    steps = 0.01 * (cochlea.prior().upper - cochlea.prior().lower)[6:10]
    thetas = [theta]
    for k, step in enumerate(steps):
        thetas += [theta + sign * step * np.eye(len(theta))[6 + k] for sign in (1, -1)]
    return [surface(cochlea, one, COARSE_MM) for one in thetas]


def measure_speed(is_quick: bool) -> None:
    """Prints times and ratios of value and Jacobian, for the band and for whole maps."""
    cochlea = Cochlea()
    theta = cochlea.mean()
    voxels = np.stack(np.meshgrid(*GRID, indexing="ij"), axis=-1).reshape(-1, 3)
    level = np.asarray(level_at(cochlea, theta, voxels.astype(np.float32)))
    band = voxels[np.abs(level) < BAND_MM]
    band = band[: len(band) // 64 * 64]  # the engine fills its bands to round numbers too
    band, voxels = (band[::20], voxels[::20]) if is_quick else (band, voxels)
    meshes = stencil_meshes(cochlea, theta)
    single = jnp.asarray(band, jnp.float32), jnp.asarray(theta, jnp.float32)

    def by_mesh(distance: Callable, points: np.ndarray) -> Callable[[], Any]:
        return lambda: [distance(mesh, points) for mesh in meshes]

    runs = {
        "paper's way (VTK), whole maps": by_mesh(vtk_distance, voxels),
        "paper's way (VTK), band": by_mesh(vtk_distance, band),
        "libigl, central differences, band": by_mesh(mesh_distance, band),
        "exact, band": lambda: derivatives_at(exact(cochlea), single[1], single[0]),
        "level, band": lambda: derivatives_at(cochlea, single[1], single[0]),
    }
    timings = dict(zip(runs, take_turns(runs), strict=True))
    maps, near = list(timings.values())[:2]
    rows = [
        [name, f"{1e3 * np.median(one.warm_s):.1f}", _times(maps, one), _times(near, one)]
        for name, one in timings.items()
    ]
    title = f"Value and Jacobian: {len(band)} voxels of the band, {len(voxels)} of the map; meshes of {COARSE_MM} mm"
    header = ["", "ms", "whole maps : this", "VTK's band : this"]
    print_table(title, header, rows, list(timings.values()))
    print("The time to make the nine meshes is left out of the mesh rows. VTK does the deformable parameters alone.")


def _times(above: Timing, below: Timing) -> str:
    each = above.warm_s / below.warm_s
    return f"{np.median(each):.0f} [{each.min():.0f}, {each.max():.0f}]"


def measure_device(is_quick: bool) -> None:
    """Prints Jacobians a second for one and for many cases at once."""
    cochlea = Cochlea()
    voxels = np.stack(np.meshgrid(*GRID, indexing="ij"), axis=-1).reshape(-1, 3)
    level = np.asarray(level_at(cochlea, cochlea.mean(), voxels.astype(np.float32)))
    band = jnp.asarray(voxels[np.abs(level) < BAND_MM][:: 20 if is_quick else 1], jnp.float32)
    rows = []
    for name, shape in {"level": cochlea, "exact": exact(cochlea)}.items():
        for cases in (1, 4) if is_quick else (1, 256):
            rng = np.random.default_rng(0)
            spread = np.sqrt(np.diag(cochlea.calibration.covariance))[:10]
            thetas = jnp.asarray(cochlea.mean() + 0.3 * spread * rng.normal(size=(cases, 10)), jnp.float32)
            run = eqx.filter_jit(
                lambda t, shape=shape: jax.vmap(lambda one: derivatives(shape, one, band).jacobian)(t)
            )
            (timing,) = take_turns({f"{name}, {cases}": lambda run=run, thetas=thetas: run(thetas)}, budget_s=3)
            seconds = float(np.median(timing.warm_s))
            rows.append([name, f"{cases}", f"{1e3 * seconds:.2f}", f"{cases / seconds:.0f}"])
    title = f"Jacobians of 10 parameters for {len(band)} voxels on {jax.devices()[0].device_kind}"
    print_table(title, ["distance", "cases", "ms", "Jacobians a second"], rows, [])


def main() -> None:
    """Runs the parts asked for."""
    parts = ("agreement", "derivatives", "speed", "adequacy", "figures")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--shapes", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="few shapes and voxels, to see that it runs")
    parser.add_argument("--gpu", action="store_true", help="Jacobians a second on the device, and nothing else")
    parser.add_argument("--images", type=Path, default=Path("docs/images"))
    options = parser.parse_args()
    if options.gpu:
        return measure_device(options.quick)
    num_shapes = 2 if options.quick else options.shapes
    if "agreement" in options.only:
        measure_agreement(num_shapes)
    if "derivatives" in options.only:
        measure_derivatives(min(num_shapes, 20))
    if "speed" in options.only:
        measure_speed(options.quick)
    if "adequacy" in options.only or "figures" in options.only:
        import adequacy

        adequacy.main(set(options.only), options.quick, options.images)
    return None


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(str(error))
