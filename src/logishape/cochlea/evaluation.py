"""The level at any number of points, in pieces of one size: a single compilation serves all images."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from logishape.cochlea.shape import Cochlea
from logishape.core.arrays import AnyArray, double_precision

PIECE = 16384  # points: as many as voxels in a fit, so that the level is traced once for both


def level_at(
    cochlea: Cochlea, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]
) -> Float[np.ndarray, " n"]:
    """Millimetres to the surface at world points, positive inside; there may be none."""
    if not len(points):
        return np.zeros(0, np.float32)
    padded = np.pad(np.asarray(points, np.float32), ((0, -len(points) % PIECE), (0, 0)), mode="edge")
    with double_precision():
        theta = np.asarray(theta, np.float32)
        pieces = [np.asarray(_level(cochlea, theta, padded[k : k + PIECE])) for k in range(0, len(padded), PIECE)]
    return np.concatenate(pieces)[: len(points)]


@eqx.filter_jit
def _level(cochlea: Cochlea, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> jax.Array:
    return cochlea.level(theta, points)
