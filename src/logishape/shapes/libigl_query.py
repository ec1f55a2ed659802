"""The nearest face by libigl's box tree, the quickest on a CPU for large meshes; nothing else here knows libigl."""

import importlib

import jax
import numpy as np
from jaxtyping import Float, Int

from logishape.core.arrays import AnyArray
from logishape.core.errors import InputError
from logishape.shapes.mesh_query import AbstractQuery, ask_host


class LibiglQuery(AbstractQuery):
    """libigl's answer; needs the extra `distance`."""

    def __check_init__(self) -> None:
        _import_igl()

    def __call__(
        self, vertices: Float[AnyArray, "v d"], faces: Int[AnyArray, "f d"], points: Float[AnyArray, "n d"]
    ) -> Int[jax.Array, " n"]:
        """The nearest face, found on the host in double."""
        return ask_host(nearest_by_libigl, (vertices, faces), points)


def nearest_by_libigl(
    vertices: Float[np.ndarray, "v d"], faces: Int[np.ndarray, "f d"], points: Float[np.ndarray, "n d"]
) -> Int[np.ndarray, " n"]:
    """The nearest face of each point."""
    return _import_igl().point_mesh_squared_distance(points, vertices, faces)[1]


def _import_igl():
    try:
        return importlib.import_module("igl")
    except ImportError as error:
        raise InputError(
            'LibiglQuery needs the package libigl, which is not installed; run pip install "logishape[distance]".'
        ) from error
