"""A network from a few parameters and a position to a signed distance: small, smooth, and quick for one shape."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray, as_double, like
from logishape.shapes.base import Derivatives, safe_norm

Layer = tuple[AnyArray, AnyArray]  # a matrix and an offset
WIDTH, DEPTH, TUNING_WIDTH = 192, 4, 128  # units of a layer, hidden layers, and units of the parameters' own layers
NUM_WAVES = 4  # of each coordinate: periods of one box, a half, a quarter, an eighth
NUM_FEATURES = 3 + 6 * NUM_WAVES + 5
_REACH_MM = 10.0  # what the last layer's numbers are multiplied by
_ON_AXIS = 1e-4  # mm^2: nearer to the axis the azimuth fades


class Weights(NamedTuple):
    """What is learnt: from parameters to tunings, and from a position, so tuned, to a distance."""

    tuning: tuple[Layer, ...]
    layers: tuple[Layer, ...]


class Network(eqx.Module):
    """Signed distances (mm, positive inside) for parameters and positions within boxes.

    The parameters pass a network of their own, once for each shape, which says how every unit of the network of
    positions is scaled and shifted; so a point costs as little as if the network knew one shape only.

    names: of the parameters, in order; lower, upper: their box. low, high: corners (mm) of the box of positions;
    beyond it the level is that at its border less the way to there. mark: tells what the shapes were made with.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    mark: str = eqx.field(static=True)
    lower: Float[AnyArray, " p"] = eqx.field(converter=as_double)
    upper: Float[AnyArray, " p"] = eqx.field(converter=as_double)
    low: Float[AnyArray, " 3"] = eqx.field(converter=as_double)
    high: Float[AnyArray, " 3"] = eqx.field(converter=as_double)
    weights: Weights

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Float[jax.Array, " n"]:
        """The distance at each point."""
        points = jnp.asarray(points)
        network, theta = like((self, jnp.asarray(theta)), points)
        return network.distance(network.tune(theta), points)

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Derivatives:
        """The distance and its derivatives; those of the tunings in the parameters are the same for all points."""
        points = jnp.asarray(points)
        network, theta = like((self, jnp.asarray(theta)), points)
        tunings, slopes = network.tune(theta), jax.jacfwd(network.tune)(theta)

        def at_point(tunings: jax.Array, point: jax.Array) -> jax.Array:
            return network.distance(tunings, point[None])[0]

        at_points = jax.vmap(jax.value_and_grad(at_point, argnums=(0, 1)), in_axes=(None, 0))
        level, (by_tuning, gradient) = at_points(tunings, points)
        flat = by_tuning.reshape(level.shape[0], -1)
        return Derivatives(level, flat @ slopes.reshape(flat.shape[1], -1), gradient)

    def tune(self, theta: Float[AnyArray, " p"]) -> Float[jax.Array, "k 2 w"]:
        """What scales and shifts every unit of every hidden layer."""
        hidden = 2 * (theta - self.lower) / (self.upper - self.lower) - 1
        *first, last = self.weights.tuning
        for matrix, offset in first:
            hidden = jax.nn.silu(hidden @ matrix + offset)
        matrix, offset = last
        return (hidden @ matrix + offset).reshape(len(self.weights.layers) - 1, 2, -1)

    def distance(self, tunings: Float[AnyArray, "k 2 w"], points: Float[AnyArray, "n 3"]) -> Float[jax.Array, " n"]:
        """The distance at each point of a shape whose tunings are known."""
        near = jnp.clip(points, self.low, self.high)
        hidden = features(2 * (near - self.low) / (self.high - self.low) - 1, near)
        *first, last = self.weights.layers
        for (matrix, offset), (scale, shift) in zip(first, tunings, strict=True):
            hidden = jnp.sin((hidden @ matrix + offset) * (1 + scale) + shift)
        matrix, offset = last
        return _REACH_MM * (hidden @ matrix + offset)[:, 0] - safe_norm(points - near)


def features(scaled: Float[AnyArray, "n 3"], points: Float[AnyArray, "n 3"]) -> Float[jax.Array, "n f"]:
    """What the network sees of a position: scaled coordinates, waves of them, and where it is about the axis."""
    x, y, _ = points.T
    away = jnp.sqrt(x * x + y * y + _ON_AXIS)
    cosine, sine = x / away, y / away
    about = jnp.stack([away / _REACH_MM, cosine, sine, cosine**2 - sine**2, 2 * sine * cosine], axis=1)
    waves = [wave(np.pi * 2.0**k * scaled) for k in range(NUM_WAVES) for wave in (jnp.sin, jnp.cos)]
    return jnp.concatenate([scaled, *waves, about], axis=1)


def draw_weights(key: jax.Array, num_parameters: int) -> Weights:
    """Random weights to begin with, of sizes that keep signals about one."""
    keys = iter(jax.random.split(key, DEPTH + 4))

    def layer(rows: int, columns: int, gain: float) -> Layer:
        matrix = gain * jax.random.normal(next(keys), (rows, columns), jnp.float32) / np.sqrt(rows)
        return matrix, jnp.zeros(columns, jnp.float32)

    tuning = (
        layer(num_parameters, TUNING_WIDTH, 1.4),
        layer(TUNING_WIDTH, TUNING_WIDTH, 1.4),
        layer(TUNING_WIDTH, 2 * DEPTH * WIDTH, 0.3),
    )
    hidden = [layer(NUM_FEATURES if k == 0 else WIDTH, WIDTH, 1.4) for k in range(DEPTH)]
    return Weights(tuning, (*hidden, layer(WIDTH, 1, 0.1)))
