"""What fitting many images at once buys: against a loop on a processor, against the limits of an accelerator.

    python benchmarks/batch.py [--quick] [--gpu] [--cases 1 64 1024] [--group-size N]
                               [--bandwidth-tb 4.8] [--single-tflops 67]

Fits of small plane images by `fit_batch` and by a loop of `fit`, which take turns. With `--gpu`, in their place,
batches of solids and how far they stay from what memory and arithmetic of the device allow (the defaults are an
H200's). Compilation is left out of all times and reported in the titles.
"""

import argparse
import collections
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from engine import (
    ELLIPSOID,
    Recipe,
    Timing,
    ellipse_recipe,
    grid,
    milliseconds,
    print_table,
    ratio,
    report,
    seconds_of,
    solid_recipe,
    take_turns,
    two_gaussians,
)

import logishape as ls
from logishape.inference import is_active, prior_logit, prior_logit_and_jacobian
from logishape.inference.batch import stack_padded

JITTER = 0.05  # of the box: how much the objects differ, and how far off them the fits start
SINGLE = 4  # bytes


@dataclasses.dataclass(frozen=True)
class Batch:
    """Images of one kind of object, each with its start."""

    model: ls.Model
    observations: list[ls.Observation]
    starts: list[ls.State]

    def fit(self, group_size: int | None = None) -> list[ls.Fit]:
        """All at once."""
        return ls.fit_batch(self.model, self.observations, self.starts, group_size=group_size)

    def loop(self) -> list[ls.Fit]:
        """One after the other."""
        return [ls.fit(self.model, *case) for case in zip(self.observations, self.starts, strict=True)]


def simulate(recipe: Recipe, size: int, dimension: int, reference_length: float, num_cases: int) -> Batch:
    """Noisy images drawn on the device from the model itself: labels by the logistic prior, 100 inside, 0 outside."""
    model, points = recipe.model(reference_length), grid(size, dimension)
    rng = np.random.default_rng(0)
    jitter = JITTER * model.prior.widths * rng.standard_normal((2, num_cases, recipe.truth.size))
    truths = np.clip(recipe.truth + jitter[0], model.prior.lower, model.prior.upper)
    firsts = np.clip(truths + jitter[1], model.prior.lower, model.prior.upper)

    @eqx.filter_jit
    def draw(model: ls.Model, points: Any, thetas: Any, keys: jax.Array) -> jax.Array:
        def one(case: tuple[jax.Array, jax.Array]) -> jax.Array:
            label, noise = jax.random.split(case[1])
            logits = prior_logit(model, case[0], points)
            labels = jax.random.logistic(label, logits.shape, logits.dtype) < logits
            return 100 * labels + 50 * jax.random.normal(noise, logits.shape, logits.dtype)

        return jax.lax.map(one, (thetas, keys), batch_size=16)

    images = np.asarray(
        draw(model, points, truths.astype(np.float32), jax.random.split(jax.random.key(0), num_cases))
    )
    weights = np.ones(len(points), np.float32)
    observations = [ls.Observation(points, image, weights) for image in images]
    return Batch(model, observations, [ls.State(theta, two_gaussians()) for theta in firsts])


def measure_loop(is_quick: bool) -> None:
    """Prints a batch of plane images against a loop over them, and how far their results differ."""
    num_cases, size = (6, 16) if is_quick else (256, 40)
    batch = simulate(ellipse_recipe(), size, 2, 0.8, num_cases)
    together, alone = take_turns({"fit_batch": batch.fit, "loop of fit": batch.loop})
    pairs = list(zip(together.result, alone.result, strict=True))
    apart = max(np.max(np.abs(a.state.theta - b.state.theta) / batch.model.prior.widths) for a, b in pairs)
    num_other = sum(a.status is not b.status for a, b in pairs)
    rounds = [one.num_rounds for one in together.result]
    row = [f"{num_cases} x {size}^2", ratio(alone, together), f"{apart:.1e}", str(num_other)]
    row += [f"{np.mean(rounds):.1f} / {max(rounds)}", milliseconds(alone, together)]
    header = ["images", "time loop : batch", "largest difference / box", "other statuses", "rounds mean / most"]
    title = "A loop of fits against one batch, single precision"
    print_table(title, [*header, "warm ms loop / batch"], [row], [together, alone])


def count_turns(batch: Batch, num_cases: int) -> dict[str, float]:
    """Turns of each loop of the engine in one fit, on average, by the name of the function that holds the loop.

    The fits are run apart from the timed ones, with loops that report every turn.
    """
    turns: collections.Counter[str] = collections.Counter()
    plain = jax.lax.while_loop

    def counting(goes_on: Callable, body: Callable, start: Any) -> Any:
        name = goes_on.__qualname__.split(".")[0]

        def counted(carry: Any) -> Any:
            jax.debug.callback(lambda: turns.update([name]))
            return body(carry)

        return plain(goes_on, counted, start)

    jax.lax.while_loop = counting
    try:
        dataclasses.replace(
            batch, observations=batch.observations[:num_cases], starts=batch.starts[:num_cases]
        ).loop()
        jax.effects_barrier()
    finally:
        jax.lax.while_loop = plain
        jax.clear_caches()  # no timed program may have a counting loop in it
    return {name: count / num_cases for name, count in turns.items()}


def flops_of(function: Callable, batch: Batch) -> float:
    """Floating point operations per voxel of one evaluation, as the compiler counts them."""
    # Few enough points for one piece: the compiler counts the body of a loop over pieces once.
    points = jnp.asarray(batch.observations[0].points[:4096])
    compiled = (
        jax.jit(lambda theta, x: function(batch.model, theta, x)).lower(batch.starts[0].theta, points).compile()
    )
    cost: Any = compiled.cost_analysis()  # a list of one on some platforms
    return (cost[0] if isinstance(cost, list) else cost)["flops"] / len(points)


def count_active(batch: Batch, fits: Sequence[ls.Fit]) -> float:
    """Voxels in the band at the end of a fit, on average over the first few."""
    counts = []
    for observation, fit in list(zip(batch.observations, fits, strict=True))[:4]:
        logits = prior_logit(batch.model, fit.state.theta, observation.points)
        rho = fit.state.regions.log_odds(jnp.asarray(observation.intensities))
        counts.append(int(jnp.sum(is_active(logits, rho, observation.weights))))
    return float(np.mean(counts))


def count_work(batch: Batch, fits: Sequence[ls.Fit]) -> tuple[float, float]:
    """Bytes and floating point operations that one fit needs, however it is run.

    Floats per voxel, with d coordinates and p parameters, every evaluation reading its inputs and writing its outputs
    once:
    - Jacobian, one a step: points in, V and D out, d + 1 + p; its gradient, matrix and energy, with V, u and weight
      each: 2 p + 6.
    - Newton turn: D three times (logits, gradient, matrix), V, u, weight twice: 3 p + 6; a halving moves p + 3.
    - step length tried: points d and V out, then value and drift, with rho, weight and reference: d + 6.
    - round, on all voxels: choosing the band 4; level and log joint d + 4, and as much for each shortening.
    - appearance sweep, on all voxels: V, intensity, weight and two densities, read and written: 9.
    Operations: the compiler's count for level and Jacobian, 2 p^2 for a matrix, 2 p for a product with D, 20 for the
    logistic terms of a voxel. Waiting, padding and rows that the band does not use are not work.
    """
    turns = collections.defaultdict(float, count_turns(batch, num_cases=min(4, len(fits))))
    d, p = batch.observations[0].ndim, batch.model.shape.num_parameters
    band, everything = count_active(batch, fits), batch.observations[0].num_voxels
    level, jacobian = flops_of(prior_logit, batch), flops_of(prior_logit_and_jacobian, batch)
    steps, newton, halvings = turns["ms_step"], turns["gauss_newton"], turns["_backtrack"]
    tries, rounds = turns["search_length"], turns["run_rounds"]
    looks, sweeps = turns["_accept_on_all_voxels"], turns["mi_step"]
    on_band = steps * (d + 3 * p + 7) + newton * (3 * p + 6) + halvings * (p + 3) + tries * (d + 6)
    on_all = rounds * 4 + looks * (d + 4) + sweeps * 9
    product, matrix, logistic = 2 * p, 2 * p * p, 20
    flops_on_band = steps * (jacobian + matrix + product + 2 * logistic) + newton * (matrix + 2 * product + logistic)
    flops_on_band += halvings * (product + logistic) + tries * (level + logistic)
    flops_on_all = looks * (level + logistic) + sweeps * 2 * logistic
    report(f"turns a fit: {dict(turns)}")
    report(f"{band:.0f} of {everything} voxels in the band; level {level:.0f} flops, with Jacobian {jacobian:.0f}")
    return SINGLE * (on_band * band + on_all * everything), flops_on_band * band + flops_on_all * everything


def measure_device(arguments: argparse.Namespace) -> None:
    """Prints fits a second for batches of solids, and the share of the device's limits that they reach."""
    size = 12 if arguments.quick else 46
    counts = [2] if arguments.quick else sorted(arguments.cases)
    batches = {k: simulate(solid_recipe(ELLIPSOID), size, 3, 0.5, k) for k in counts}
    packing, timings = [], []
    for k, batch in batches.items():
        cases = list(zip(batch.observations, batch.starts, strict=True))
        packing.append(
            min(seconds_of(lambda c=cases: jax.tree.map(jnp.asarray, stack_padded(c, size**3)))[0] for _ in "12")
        )
        timings += take_turns({f"{k} cases": lambda b=batch: b.fit(arguments.group_size)}, 10.0)
    work = count_work(batches[counts[-1]], timings[-1].result)
    rows = [describe(k, t, s, work, arguments) for k, t, s in zip(counts, timings, packing, strict=True)]
    header = ["cases", "fits/s", "warm ms", "of it packing", "steps/rounds mean", "most", "not usable"]
    header += ["MB a fit", "GB/s", "of limit", "MFLOP a fit", "GFLOP/s", "of limit"]
    title = (
        f"Batches of {size}^3 ellipsoids with pose, 9 parameters, single precision, {jax.devices()[0].device_kind}"
    )
    print_table(title, header, rows, timings)
    stats = jax.devices()[0].memory_stats() or {}
    print(f"peak device memory {stats.get('peak_bytes_in_use', 0) / 1e9:.1f} GB (0: the platform does not say)")


def describe(
    num_cases: int, timing: Timing, pack_s: float, work: tuple[float, float], arguments: argparse.Namespace
) -> list[str]:
    """One row of the device's table."""
    seconds, fits = float(np.median(timing.warm_s)), timing.result
    rates = [num_cases * amount / seconds for amount in work]
    limits = (arguments.bandwidth_tb * 1e12, arguments.single_tflops * 1e12)
    steps, rounds = ([getattr(fit, name) for fit in fits] for name in ("num_steps", "num_rounds"))
    row = [str(num_cases), f"{num_cases / seconds:.1f}", f"{1e3 * seconds:.0f}", f"{1e3 * pack_s:.0f}"]
    row += [f"{np.mean(steps):.1f} / {np.mean(rounds):.1f}", f"{max(steps)} / {max(rounds)}"]
    row.append(str(sum(not fit.status.is_usable for fit in fits)))
    for amount, rate, limit in zip(work, rates, limits, strict=True):
        row += [f"{amount / 1e6:.0f}", f"{rate / 1e9:.1f}", f"{rate / limit:.2%}"]
    return row


def main() -> None:
    """Runs the sections asked for."""
    parser = argparse.ArgumentParser(description="What fitting many images at once buys.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--gpu", action="store_true", help="batches of solids against the device's limits")
    parser.add_argument("--cases", type=int, nargs="+", default=[1, 64, 1024], help="batch sizes of that section")
    parser.add_argument("--group-size", type=int, help="cases that run together; chosen if not given")
    parser.add_argument("--bandwidth-tb", type=float, default=4.8, help="memory limit, terabytes a second")
    parser.add_argument("--single-tflops", type=float, default=67.0, help="arithmetic limit, single precision")
    arguments = parser.parse_args()
    if not arguments.quick:  # else compile seconds depend on earlier runs
        jax.config.update("jax_enable_compilation_cache", False)
    begin = time.perf_counter()
    if arguments.gpu:
        measure_device(arguments)
    else:
        measure_loop(arguments.quick)
    print(f"\nall in {time.perf_counter() - begin:.0f} s, jax {jax.__version__} on {jax.devices()[0].platform}")


if __name__ == "__main__":
    main()
