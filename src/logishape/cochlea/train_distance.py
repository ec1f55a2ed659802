"""Training of a network on exact distances of cochleae drawn from the box of their parameters."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.cochlea.calibration import Calibration
from logishape.cochlea.distance_pool import Pool, make_pool
from logishape.cochlea.learned import NAMES, empty_network, read_arrays, write_network
from logishape.cochlea.network import Network, Weights, draw_weights
from logishape.core.errors import InputError
from logishape.io.atomic import atomic_file, check_writable

SOFT_MM = 0.05  # errors larger than this count more than in proportion
NEAR_MM = 0.2  # a point this far from the surface counts half
_NUM_TOLD = 10  # losses of a round that are told
Tell = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """How long a network is trained, and on how much: each round on a pool of shapes of its own.

    steps: in a round, each on `batch` of the pool's `shapes` with `points` about each.
    """

    rounds: int = 8
    steps: int = 16_000
    shapes: int = 32_768
    points: int = 1024
    batch: int = 64
    learning_rate: float = 4e-3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rounds", "steps", "shapes", "points", "batch"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"{name} must be 1 or more but is {getattr(self, name)}; leave it out for the default."
                )


class Training(NamedTuple):
    """What the next round begins with: the weights, the optimiser's memory, and how many rounds are done."""

    weights: Weights
    memory: Any
    done: int


def train(calibration: Calibration, options: TrainOptions, out: Path, tell: Tell | None = None) -> Network:
    """A network for the cochleae of a calibration, written to `out`.

    What each round leaves is kept beside `out` until the last: the same call goes on from there, to the same numbers
    as if it had never been stopped.
    """
    told, kept = tell or (lambda _: None), out.with_name(out.name + ".part")
    check_writable(out)
    begun = draw_weights(jax.random.key(options.seed), len(NAMES))
    network = empty_network(calibration, begun)
    training = Training(begun, _optimiser(options).init(begun), 0)
    if kept.is_file():
        training = _resume(kept, training, network, options)
        told(f"going on after round {training.done}")
    while training.done < options.rounds:
        told(f"round {training.done + 1} of {options.rounds}: shapes and their distances")
        key = jax.random.fold_in(jax.random.key(options.seed + 1), training.done)
        pool_key, step_key = jax.random.split(key)
        pool = make_pool(calibration, network, (options.shapes, options.points), pool_key)
        told(f"round {training.done + 1} of {options.rounds}: learning")
        training, losses = _round(network, pool, training, step_key, options)
        told(f"round {training.done} of {options.rounds}: loss {losses[0]:.4f} to {losses[-1]:.4f} mm")
        _keep(kept, training, network, options)
    found = eqx.tree_at(lambda one: one.weights, network, jax.tree.map(np.asarray, training.weights))
    write_network(out, found)
    kept.unlink(missing_ok=True)
    return found


def loss(weights: Weights, network: Network, pool: Pool) -> jax.Array:
    """The weighted mean of |e| + e^2 / 0.05 mm: large errors count more, points far from the surface less."""
    tuned = eqx.tree_at(lambda one: one.weights, network, weights)
    error = jnp.abs(jax.vmap(tuned.level)(pool.theta, pool.points) - pool.distances)
    worth = NEAR_MM / (NEAR_MM + jnp.abs(pool.distances))
    return jnp.sum(worth * (error + error**2 / SOFT_MM)) / jnp.sum(worth)


def _optimiser(options: TrainOptions) -> Any:
    try:
        import optax
    except ImportError as error:
        raise InputError("training needs optax, which is not installed; pip install 'logishape[train]'.") from error
    total = options.rounds * options.steps
    rate = optax.warmup_cosine_decay_schedule(0.0, options.learning_rate, min(500, total // 10), total, 1e-6)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))


def _round(
    network: Network, pool: Pool, begin: Training, key: jax.Array, options: TrainOptions
) -> tuple[Training, Float[np.ndarray, " k"]]:
    weights, memory, losses = _steps(network, pool, (begin.weights, begin.memory), key, options)
    parts = np.array_split(np.asarray(losses), min(_NUM_TOLD, len(losses)))
    return Training(weights, memory, begin.done + 1), np.array([part.mean() for part in parts])


@eqx.filter_jit
def _steps(network: Network, pool: Pool, begin: tuple, key: jax.Array, options: TrainOptions) -> tuple:
    """All steps of a round as one program."""
    solver = _optimiser(options)

    def step(state: tuple, key: jax.Array) -> tuple:
        weights, memory = state
        rows = jax.random.randint(key, (options.batch,), 0, pool.theta.shape[0])
        value, slope = jax.value_and_grad(loss)(weights, network, jax.tree.map(lambda whole: whole[rows], pool))
        change, memory = solver.update(slope, memory)
        return (jax.tree.map(jnp.add, weights, change), memory), value

    (weights, memory), losses = jax.lax.scan(step, begin, jax.random.split(key, options.steps))
    return weights, memory, losses


def _settings(network: Network, options: TrainOptions) -> str:
    return f"{network.mark} {dataclasses.asdict(options)}"


def _keep(path: Path, training: Training, network: Network, options: TrainOptions) -> None:
    leaves = jax.tree.leaves((training.weights, training.memory))
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        fields: dict[str, Any] = {f"leaf_{k}": np.asarray(leaf) for k, leaf in enumerate(leaves)}
        np.savez(file, settings=_settings(network, options), done=training.done, **fields)


def _resume(path: Path, begin: Training, network: Network, options: TrainOptions) -> Training:
    """What was kept, if it was made with the same settings."""
    arrays = read_arrays(path, "an unfinished training")
    leaves, shape = jax.tree.flatten((begin.weights, begin.memory))
    found = [arrays.get(f"leaf_{k}") for k in range(len(leaves))]
    fits = all(a is not None and a.shape == np.shape(b) for a, b in zip(found, leaves, strict=True))
    if str(arrays.get("settings")) != _settings(network, options) or not fits:
        raise InputError(
            f"{path} is a training that was begun with other settings; give those again, or remove the file."
        )
    weights, memory = jax.tree.unflatten(shape, [jnp.asarray(leaf) for leaf in found])
    return Training(weights, memory, int(arrays["done"]))
