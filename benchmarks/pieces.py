"""The pieces of a batched shape step, each timed alone: which of them stay far from the memory's limit.

    python benchmarks/pieces.py [--quick] [--cases 256] [--rows 32768] [--bandwidth-tb 4.8]

Bytes are those a piece must move, each input read and each output written once.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from engine import ELLIPSOID, print_table, solid_recipe

from logishape.core.arrays import double_precision, total
from logishape.inference import log_marginal, prior_logit, prior_logit_and_jacobian
from logishape.inference.box import minimise_in_box
from logishape.inference.problem import weighted_gram, weighted_rows

SINGLE = 4  # bytes
Piece = tuple[str, float, Callable[..., Any], tuple[Any, ...]]


def make_pieces(num_cases: int, num_rows: int) -> list[Piece]:
    """Name, floats moved per row of the band, function of one case, arguments of all cases."""
    recipe = solid_recipe(ELLIPSOID)
    model, p, d = recipe.model(0.5), recipe.truth.size, 3
    keys = jax.random.split(jax.random.key(0), 4)
    points = jax.random.uniform(keys[0], (num_cases, num_rows, d), jnp.float32, -20, 20)
    weights = jax.random.uniform(keys[1], (num_cases, num_rows), jnp.float32)
    D = jax.random.normal(keys[2], (num_cases, num_rows, p), jnp.float32)
    theta = jnp.tile(recipe.truth, (num_cases, 1))
    is_kept = jax.random.uniform(keys[3], (num_cases, 3 * num_rows)) < 0.3
    hessian, slope = jnp.tile(jnp.eye(p), (num_cases, 1, 1)), jnp.full((num_cases, p), 0.1)

    def rows_of(active: jax.Array) -> jax.Array:
        return jnp.nonzero(active, size=num_rows, fill_value=0)[0]

    def log_terms(V: jax.Array, rho: jax.Array) -> jax.Array:
        return total(log_marginal(V, jnp.minimum(rho, 0), jnp.minimum(-rho, 0)))

    def box_step(hessian: jax.Array, slope: jax.Array) -> jax.Array:
        return minimise_in_box(hessian, slope, -jnp.ones(p), jnp.ones(p))

    return [
        ("level", d + 1, lambda t, x: prior_logit(model, t, x), (theta, points)),
        ("level and Jacobian", d + 1 + p, lambda t, x: prior_logit_and_jacobian(model, t, x), (theta, points)),
        ("matrix D' W D", p + 1, weighted_gram, (D, weights)),
        ("gradient D' w", p + 1, weighted_rows, (D, weights)),
        ("log joint terms", 2, log_terms, (weights, weights)),
        ("rows of the band among three times as many", 3 / 4 + 2, rows_of, (is_kept,)),
        ("step in the box, no bound touched", 0, box_step, (hessian, slope)),
    ]


def measure(piece: Piece, num_cases: int, num_rows: int, bandwidth_tb: float) -> list[str]:
    """Milliseconds of one piece for all cases, and the share of the bandwidth that it uses."""
    name, floats, function, arguments = piece
    compiled = jax.jit(jax.vmap(function))
    jax.block_until_ready(compiled(*arguments))
    begin = time.perf_counter()
    jax.block_until_ready([compiled(*arguments) for _ in range(10)])
    seconds = (time.perf_counter() - begin) / 10
    rate = SINGLE * floats * num_cases * num_rows / seconds
    return [name, f"{1e3 * seconds:.2f}", f"{rate / 1e9:.0f}", f"{rate / bandwidth_tb / 1e12:.1%}"]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="The pieces of a batched shape step, each timed alone.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--cases", type=int, default=256)
    parser.add_argument("--rows", type=int, default=32768, help="voxels in the band of each case")
    parser.add_argument("--bandwidth-tb", type=float, default=4.8, help="memory limit, terabytes a second")
    arguments = parser.parse_args()
    sizes = (2, 512) if arguments.quick else (arguments.cases, arguments.rows)
    with double_precision():
        rows = [measure(piece, *sizes, arguments.bandwidth_tb) for piece in make_pieces(*sizes)]
    title = f"{sizes[0]} cases of {sizes[1]} rows, 9 parameters, single precision, {jax.devices()[0].device_kind}"
    print_table(title, ["piece", "ms", "GB/s", "of limit"], rows, [])


if __name__ == "__main__":
    main()
