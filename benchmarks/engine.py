"""What the engine's choices buy: ratios measured side by side in one run.

    python benchmarks/engine.py [--quick] [--only memory|methods|band|cost|growth]

Times on one machine are noise on another, so each table leads with ratios of runs that took turns; warm
milliseconds come last. A ratio is the median over the turns, with its range in brackets.
"""

import argparse
import concurrent.futures
import dataclasses
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import OptimizeResult, minimize

import logishape as ls
from logishape.core.arrays import double_precision
from logishape.inference import log_joint, prior_logit, prior_logit_and_jacobian

EXTENT_MM = 32.0  # side of every simulated image: more voxels sample it more finely
MEMORY_LIMIT_GB = 4.0
GAUSS_NEWTON, BFGS, FULL_GRID = ls.FitOptions(), ls.FitOptions(method="bfgs"), ls.FitOptions(use_band=False)
ELLIPSE = ls.shapes.Posed(ls.shapes.Ellipsoid(2), np.zeros(2))
ELLIPSOID = ls.shapes.Posed(ls.shapes.Ellipsoid(3), np.zeros(3))
SUPERELLIPSOID = ls.shapes.Posed(ls.shapes.Superellipsoid(3), np.zeros(3))


class Star(ls.shapes.AbstractShape):
    """A star-shaped region of the plane: a centre, a mean radius and Fourier coefficients of the radius, mm."""

    num_waves: int = eqx.field(static=True)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Centre, radius, then cosine and sine in turn from the second harmonic on (the first moves the centre)."""
        return ("x", "y", "radius", *(f"{('cos', 'sin')[k % 2]}_{2 + k // 2}" for k in range(self.num_waves)))

    def level(self, theta: jax.Array, points: jax.Array) -> jax.Array:
        """Radius in the point's direction minus the distance to the centre."""
        offset = points - theta[:2]
        is_centre = jnp.sum(offset**2, axis=-1) == 0  # where the angle has no derivative
        angle = jnp.arctan2(offset[:, 1], jnp.where(is_centre, 1.0, offset[:, 0]))
        k = np.arange(self.num_waves)
        harmonic, phase = np.array([2 + k // 2, np.pi / 2 * (k % 2)], points.dtype)  # cos(a - pi/2) = sin(a)
        return theta[2] + jnp.cos(angle[:, None] * harmonic - phase) @ theta[3:] - ls.shapes.safe_norm(offset)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A shape with its true parameters, where the fit starts and the box it stays in."""

    shape: ls.shapes.AbstractShape
    truth: np.ndarray
    start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def model(self, reference_length: float) -> ls.Model:
        """The shape with a uniform prior in the box."""
        return ls.Model(self.shape, ls.Prior(self.lower, self.upper), reference_length)


@dataclasses.dataclass(frozen=True)
class Case:
    """Everything a fit needs."""

    model: ls.Model
    observation: ls.Observation
    start: ls.State

    def fit(self, options: ls.FitOptions = GAUSS_NEWTON) -> ls.Fit:
        """The fit with these options."""
        return ls.fit(self.model, self.observation, self.start, options)

    def log_joint(self, state: ls.State) -> float:
        """The log joint in double precision: single leaves rounding of 0.1 nats in a sum over a million voxels."""
        arrays = (self.observation.points, self.observation.intensities, self.observation.weights)
        observation = ls.Observation.from_arrays(*arrays, dtype=np.float64)
        with double_precision():
            return float(eqx.filter_jit(log_joint)(self.model, observation, state))

    def with_fixed(self, regions: ls.Regions) -> "Case":
        """The same case with appearances that do not learn."""
        inside, outside = (ls.appearance.Fixed(one) for one in (regions.inside, regions.outside))
        return dataclasses.replace(self, start=ls.State(self.start.theta, ls.Regions(inside, outside)))


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds of the first call beyond a warm one, of each warm call, and what the last call returned."""

    compile_s: float
    warm_s: np.ndarray
    result: Any


def ball_recipe() -> Recipe:
    """A ball of four parameters."""
    truth = np.array([0.5, -0.8, 0.3, 9.0])
    return Recipe(ls.shapes.Ball(3), truth, np.array([1.5, 0.2, -0.7, 8.0]), truth - 5, truth + 5)


def ellipse_recipe() -> Recipe:
    """A tilted ellipse of five parameters."""
    truth = np.array([1.0, -2.0, 0.3, 11.0, 7.0])
    start = np.array([2.5, -1.0, 0.5, 9.0, 8.0])
    return Recipe(ELLIPSE, truth, start, np.array([-6, -6, -1.2, 4, 3.0]), np.array([6, 6, 1.2, 15, 14.0]))


def solid_recipe(shape: ls.shapes.Posed = SUPERELLIPSOID, is_hard: bool = False) -> Recipe:
    """A posed superellipsoid (11 parameters) or ellipsoid (9); a hard start is a small ball at some distance."""
    truth = np.array([0.5, -0.4, 0.3, 0.2, -0.1, 0.15, 10.0, 7.0, 8.0, 3.5, 2.5])
    start = truth + np.array([1.0, 1.0, -1.0, -0.1, 0.15, 0.1, -1.5, 1.0, -1.0, -0.7, 0.5])
    if is_hard:
        start = np.array([5.0, -5.0, 5.0, 0.0, 0.0, 0.0, 4.0, 4.0, 4.0, 2.0, 2.0])
    lower = np.repeat([-7.0, -0.8, 3.0, 1.5], [3, 3, 3, 2])
    upper = np.repeat([7.0, 0.8, 14.0, 6.0], [3, 3, 3, 2])
    p = shape.num_parameters
    return Recipe(shape, truth[:p], start[:p], lower[:p], upper[:p])


def star_recipe(num_parameters: int) -> Recipe:
    """A star whose waves get smaller as they get shorter."""
    k = np.arange(num_parameters - 3)
    truth = np.array([0.7, -0.4, 9.0, *(1.5 * np.cos(2.0 * k) / (2 + k // 2))])
    start, width = np.zeros(num_parameters), np.full(num_parameters, 2.0)
    start[2], width[:3] = 10.0, 5.0
    return Recipe(Star(k.size), truth, start, start - width, start + width)


def two_gaussians() -> ls.Regions:
    """Where appearances start: a little off the 100 and 0 that images are drawn with."""
    return ls.Regions(ls.appearance.gaussian(110.0, 60.0), ls.appearance.gaussian(-10.0, 60.0))


def grid(size: int, dimension: int) -> np.ndarray:
    """Single-precision centres of a cube of voxels about the origin, mm."""
    axis = ((np.arange(size) - (size - 1) / 2) * EXTENT_MM / size).astype(np.float32)
    return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)


def simulate(recipe: Recipe, size: int, dimension: int, reference_length: float) -> Case:
    """A noisy image drawn from the model itself: labels by the logistic prior, 100 inside and 0 outside."""
    rng = np.random.default_rng(0)
    model, points = recipe.model(reference_length), grid(size, dimension)
    logits = np.asarray(eqx.filter_jit(prior_logit)(model, recipe.truth, points))
    labels = rng.logistic(size=logits.size) < logits
    observation = ls.Observation.from_arrays(points, 100.0 * labels + rng.normal(0, 50.0, logits.size))
    return Case(model, observation, ls.State(recipe.start, two_gaussians()))


def report(line: str) -> None:
    """Prints progress, apart from the tables."""
    print(f"  ... {line}", file=sys.stderr, flush=True)


def seconds_of(run: Callable[[], Any]) -> tuple[float, Any]:
    """Wall seconds of one call and its result, once the device is done."""
    begin = time.perf_counter()
    result = jax.block_until_ready(run())
    return time.perf_counter() - begin, result


def take_turns(runs: Mapping[str, Callable[[], Any]], budget_s: float = 6.0) -> list[Timing]:
    """The timing of each run. Each is called once to compile; then they take turns, so that drift hits all."""
    first = []
    for name, run in runs.items():
        report(f"{name}: compiling")
        first.append(seconds_of(run)[0])
    turns = [[seconds_of(run) for run in runs.values()]]
    one_turn = sum(seconds for seconds, _ in turns[0])
    report(f"compiled; one turn takes {one_turn:.1f} s")
    while len(turns) < np.clip(budget_s / one_turn, 3, 9):
        turns.append([seconds_of(run) for run in runs.values()])
    warm = np.array([[seconds for seconds, _ in turn] for turn in turns]).T
    return [Timing(a - float(np.median(w)), w, r) for a, w, (_, r) in zip(first, warm, turns[-1], strict=True)]


def ratio(above: Timing, below: Timing) -> str:
    """Time of `above` over time of `below`: the median over turns and, in brackets, its range."""
    each = above.warm_s / below.warm_s
    return f"{np.median(each):.2f} [{each.min():.2f}, {each.max():.2f}]"


def milliseconds(*timings: Timing) -> str:
    """Median warm milliseconds of each."""
    return " / ".join(f"{1e3 * np.median(t.warm_s):.0f}" for t in timings)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], timings: Sequence[Timing]) -> None:
    """Prints the rows in aligned columns, and what compiling cost."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    print(f"\n{title}" + (f" (compiled in {sum(t.compile_s for t in timings):.0f} s)" if timings else ""))
    for row in [header, ["-" * width for width in widths], *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)


def compare_options(title: str, options: Mapping[str, ls.FitOptions], cases: Mapping[str, Case]) -> None:
    """Prints fits with the first options (A) against the second (B): same image, start, box and tolerances."""
    rows, timings = [], []
    for label, case in cases.items():
        todo = {f"{label}, {name}": lambda o=o, c=case: c.fit(o) for name, o in options.items()}
        both = take_turns(todo)
        timings += both
        a, b = (timing.result for timing in both)
        counts = [f"{a.num_steps} / {b.num_steps}", f"{a.num_rounds} / {b.num_rounds}"]
        ends = [f"{case.log_joint(a.state) - case.log_joint(b.state):+.4f}", f"{a.status.name} / {b.status.name}"]
        rows.append([label, ratio(both[1], both[0]), *counts, *ends, milliseconds(*both)])
    names = " / ".join(options)
    header = [
        "problem",
        f"time {' : '.join(reversed(list(options)))}",
        f"steps {names}",
        "rounds",
        "log joint A - B",
        "statuses",
        "warm ms",
    ]
    print_table(title, header, rows, timings)


def measure_methods(is_quick: bool) -> None:
    """Prints Gauss-Newton against BFGS, both with exact derivatives, and where SciPy ends."""
    space, shape = (16, ELLIPSOID) if is_quick else (64, SUPERELLIPSOID)
    solid = f"{space}^3 {type(shape.shape).__name__.lower()}, p={shape.num_parameters}"
    cases = {solid: simulate(solid_recipe(shape), space, 3, 0.5)}
    if not is_quick:
        cases["256^2 ellipse, p=5"] = simulate(ellipse_recipe(), 256, 2, 0.3)
        cases[f"{solid}, hard start"] = simulate(solid_recipe(shape, is_hard=True), space, 3, 0.5)
    compare_options("Gauss-Newton (A) against BFGS (B)", {"GN": GAUSS_NEWTON, "BFGS": BFGS}, cases)
    compare_with_scipy(solid, cases[solid])


@eqx.filter_jit
def energy_and_slope(phi: np.ndarray, model: ls.Model, observation: ls.Observation, regions: ls.Regions) -> tuple:
    """Minus the log joint at whitened parameters, and its gradient."""

    def energy(phi: jax.Array) -> jax.Array:
        return -log_joint(model, observation, ls.State(model.prior.lower + model.prior.widths * phi, regions))

    return jax.value_and_grad(energy)(phi)


def compare_with_scipy(label: str, case: Case) -> None:
    """Prints where SciPy's L-BFGS-B ends on the same log joint, appearances fixed, and what it takes."""
    case = case.with_fixed(case.fit().state.regions)
    prior = case.model.prior
    first = (case.start.theta - prior.lower) / prior.widths

    def energy(phi: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = energy_and_slope(phi, case.model, case.observation, case.start.regions)
        return float(value), np.asarray(slope)

    def search() -> OptimizeResult:
        with double_precision():
            rise = GAUSS_NEWTON.rise_tolerance / abs(energy(first)[0])  # the same, in SciPy's relative terms
            bounds, options = [(0, 1)] * first.size, {"ftol": rise, "gtol": 0.0}
            return minimize(energy, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    both = take_turns({f"{label}, GN": case.fit, f"{label}, L-BFGS-B": search})
    fit, scipy = (timing.result for timing in both)
    end = ls.State(prior.lower + prior.widths * scipy.x, fit.state.regions)
    difference = case.log_joint(fit.state) - case.log_joint(end)
    row = [label, f"{difference:+.4f}", f"{fit.num_steps} / {scipy.nfev}", ratio(both[1], both[0])]
    row += [f"{fit.status.name} / {scipy.message.split(':')[0]}", milliseconds(*both)]
    header = ["problem", "log joint GN - SciPy", "GN steps / SciPy calls", "time SciPy : GN", "statuses", "warm ms"]
    print_table("SciPy's L-BFGS-B to the same tolerance, appearances fixed", header, [row], both)


def measure_band(is_quick: bool) -> None:
    """Prints what leaving out voxels that cannot move the shape saves, and what it costs in log joint."""
    sizes, length = (16,) if is_quick else (64, 96), 0.25  # of a voxel
    cases = {f"{s}^3": simulate(solid_recipe(ELLIPSOID), s, 3, length * EXTENT_MM / s) for s in sizes}
    title = f"Band (A) against full grid (B), reference length {length:g} voxels"
    compare_options(title, {"band": GAUSS_NEWTON, "full": FULL_GRID}, cases)


def measure_cost(is_quick: bool) -> None:
    """Prints what the level and its Jacobian cost at one voxel, compiled, in single precision."""
    points = jnp.asarray(grid(32 if is_quick else 100, 3))
    recipes = {
        "ball": ball_recipe(),
        "posed ellipsoid": solid_recipe(ELLIPSOID),
        "posed superellipsoid": solid_recipe(SUPERELLIPSOID),
    }
    functions = {"level": eqx.filter_jit(prior_logit), "Jacobian": eqx.filter_jit(prior_logit_and_jacobian)}
    rows, timings = [], []
    for label, recipe in recipes.items():
        arguments = (recipe.model(0.5), recipe.truth, points)
        both = take_turns({f"{label}, {n}": lambda f=f, a=arguments: f(*a) for n, f in functions.items()})
        timings += both
        nanoseconds = [f"{1e9 * np.median(t.warm_s) / len(points):.1f}" for t in both]
        rows.append([label, str(recipe.truth.size), ratio(both[1], both[0]), *nanoseconds])
    header = ["shape", "p", "time level-and-Jacobian : level", "level ns/voxel", "level-and-Jacobian ns/voxel"]
    print_table(f"Cost per voxel, single precision, {len(points)} voxels", header, rows, timings)


def measure_growth(is_quick: bool) -> None:
    """Prints how the time of a fit grows with voxels, and the time of its steps with parameters."""
    sizes = (16, 24) if is_quick else (39, 84, 182)
    cases = {s**3: simulate(ball_recipe(), s, 3, 0.5) for s in sizes}
    print_growth("voxels (ball)", cases, GAUSS_NEWTON)
    size, counts = (64, (3, 10)) if is_quick else (384, (3, 6, 12, 20, 30))
    cases = {p: simulate(star_recipe(p), size, 2, 0.3).with_fixed(two_gaussians()) for p in counts}
    print_growth(f"parameters (star, full grid of {size}^2, appearances fixed)", cases, FULL_GRID)


def print_growth(subject: str, cases: dict[int, Case], options: ls.FitOptions) -> None:
    """Prints times relative to the smallest case: of a fit, of one step, and both over the growth in size."""
    timings = take_turns({f"{n} {subject}": lambda c=c: c.fit(options) for n, c in cases.items()}, 15.0)
    rows = []
    for n, timing in zip(cases, timings, strict=True):
        fit, growth = timing.result, n / min(cases)
        steps = fit.num_steps / timings[0].result.num_steps
        over = np.median(timing.warm_s / timings[0].warm_s) / np.array([growth, steps, steps * growth])
        cells = [ratio(timing, timings[0]), *(f"{value:.2f}" for value in over)]
        ends = [f"{fit.num_steps} / {fit.num_rounds}", fit.status.name, milliseconds(timing)]
        rows.append([str(n), f"{growth:.1f}", *cells, *ends])
    header = ["number", "growth", "fit", "fit:growth", "step", "step:growth", "steps/rounds", "status", "warm ms"]
    print_table(f"Time relative to the fewest {subject}", header, rows, timings)


def peak_gigabytes() -> float:
    """Peak resident memory of this process so far (`ru_maxrss` counts kilobytes on Linux, bytes on macOS)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)


def fit_in_large_volume(size: Sequence[int], spacing: float, shape: ls.shapes.Posed) -> tuple:
    """Peak gigabytes before and after a fit in a box of a large scan; voxels in the box, status and seconds."""
    data = np.random.default_rng(0).standard_normal(size, dtype=np.float32)
    data *= 50
    centre = np.array(size) * spacing / 2
    volume = ls.Volume.from_spacing(data, spacing)
    box = ((centre - EXTENT_MM / 2).tolist(), (centre + EXTENT_MM / 2).tolist())
    recipe = dataclasses.replace(solid_recipe(shape), shape=ls.shapes.Posed(shape.shape, centre))
    model = recipe.model(0.5)
    block, keep = ls.select_voxels(volume, box)
    points = ls.Observation.from_volume(volume, box).points
    data[block][keep] += 100 * (np.asarray(eqx.filter_jit(prior_logit)(model, recipe.truth, points)) > 0)
    before = peak_gigabytes()
    observation = ls.Observation.from_volume(volume, box)
    seconds, fit = seconds_of(Case(model, observation, ls.State(recipe.start, two_gaussians())).fit)
    return before, peak_gigabytes(), observation.num_voxels, fit.status.name, seconds


def measure_memory(is_quick: bool) -> None:
    """Prints the peak memory of a process that fits a shape in a box of a large scan."""
    arguments = ((48, 48, 40), 1.0, ELLIPSOID) if is_quick else ((512, 512, 200), 0.3, SUPERELLIPSOID)
    label = "x".join(map(str, arguments[0]))
    report(f"{label} volume: fitting in a box, in a process of its own")
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        before, peak, num_voxels, status, seconds = pool.submit(fit_in_large_volume, *arguments).result()
    share = f"of {MEMORY_LIMIT_GB:g} GB"
    header = ["float32 volume", "voxels in box", "peak GB", share, "before the fit", "status", "cold s"]
    row = [label, str(num_voxels), f"{peak:.2f}", f"{peak / MEMORY_LIMIT_GB:.0%}", f"{before:.2f}", status]
    print_table("Peak resident memory, Python and compiling included", header, [[*row, f"{seconds:.1f}"]], [])


# Memory comes first: on Linux a child's ru_maxrss starts at its parent's peak, which is small only then.
SECTIONS: dict[str, Callable[[bool], None]] = {
    "memory": measure_memory,
    "methods": measure_methods,
    "band": measure_band,
    "cost": measure_cost,
    "growth": measure_growth,
}


def main() -> None:
    """Runs the sections asked for."""
    parser = argparse.ArgumentParser(description="Ratios that say what the engine's choices buy.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--only", choices=list(SECTIONS), help="one section")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)  # else compile seconds depend on earlier runs
    begin = time.perf_counter()
    for name, section in SECTIONS.items():
        if arguments.only in (None, name):
            section(arguments.quick)
    print(f"\nall in {time.perf_counter() - begin:.0f} s, jax {jax.__version__} on {jax.devices()[0].platform}")


if __name__ == "__main__":
    main()
