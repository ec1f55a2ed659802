"""How far a learned distance is from the exact one, on shapes that it has not seen."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.cochlea.calibration import PARAMETERS, Calibration
from logishape.cochlea.distance_pool import Pool, exact_distances, make_pool, pool_about
from logishape.cochlea.network import Network
from logishape.core.arrays import AnyArray

NEAR_MM, CLOSE_MM, ALLOWED_MM = 1.0, 0.15, 0.05
_NUM_STEPS = 6  # of Newton's method to the zero level
_ARRIVED_MM = 1e-3


@dataclasses.dataclass(frozen=True)
class DistanceErrors:
    """Millimetres, over points within 1 mm of the surface; and of points of the network's zero level from it."""

    mean: float
    p99: float
    zero_p95: float
    zero_p999: float
    zero_max: float
    zero_within: float  # share of the zero level within 0.05 mm of the surface


def distance_errors(calibration: Calibration, network: Network, size: tuple[int, int], seed: int) -> DistanceErrors:
    """On so many shapes uniform in the box, with so many points about each."""
    return _errors(calibration, network, make_pool(calibration, network, size, jax.random.key(seed)))


def likely_errors(calibration: Calibration, network: Network, size: tuple[int, int], seed: int) -> DistanceErrors:
    """On so many shapes like the specimens: drawn from the calibration's Gaussian, in the box."""
    chosen = [PARAMETERS.index(name) for name in network.names]
    draws = np.random.default_rng(seed).multivariate_normal(
        calibration.mean[chosen], calibration.covariance[np.ix_(chosen, chosen)], size[0]
    )
    theta = np.clip(draws, network.lower, network.upper)
    return _errors(calibration, network, pool_about(calibration, network, theta, size[1], jax.random.key(seed)))


def _errors(calibration: Calibration, network: Network, pool: Pool) -> DistanceErrors:
    with jax.default_matmul_precision("highest"):
        levels, feet = (np.concatenate(parts) for parts in zip(*_visit(network, pool), strict=True))
    true, is_there = np.asarray(pool.distances), np.abs(levels[..., 1]) < _ARRIVED_MM
    errors = np.abs(levels[..., 0] - true)[np.abs(true) < NEAR_MM]
    close = (np.abs(true) < CLOSE_MM) & is_there
    away = np.abs(np.asarray(exact_distances(calibration, network, pool.theta, jnp.asarray(feet))))[close]
    return DistanceErrors(
        mean=float(errors.mean()),
        p99=float(np.quantile(errors, 0.99)),
        zero_p95=float(np.quantile(away, 0.95)),
        zero_p999=float(np.quantile(away, 0.999)),
        zero_max=float(away.max()),
        zero_within=float(np.mean(away < ALLOWED_MM)),
    )


def _visit(network: Network, pool: Pool) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each point its level, the level where Newton's method led from it, and where that is."""
    return [
        jax.tree.map(np.asarray, _at_one(network, theta, points))
        for theta, points in zip(pool.theta, pool.points, strict=True)
    ]


@eqx.filter_jit
def _at_one(
    network: Network, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]
) -> tuple[Float[jax.Array, "1 n 2"], Float[jax.Array, "1 n 3"]]:
    tunings = network.tune(theta)

    def step(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        level, pull = jax.vjp(lambda x: network.distance(tunings, x), x)
        (gradient,) = pull(jnp.ones_like(level))
        return x - (level / jnp.sum(gradient**2, axis=1))[:, None] * gradient, None

    feet = jax.lax.scan(step, points, length=_NUM_STEPS)[0]
    levels = jnp.stack([network.distance(tunings, points), network.distance(tunings, feet)], axis=1)
    return levels[None], feet[None]
