"""Which face is nearest: the one question a mesh asks, answered on the device or on the host."""

import abc
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.custom_batching
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from logishape.core.arrays import AnyArray
from logishape.shapes.closest import closest_on_face, face_table

_FACES_PER_PASS = 4  # unrolled: points are read once for all of them; more only compile longer
_FIRST_NEIGHBOURS, _GROWTH = 8, 4
_LARGEST_PIECE = 2**15  # pairs of point and face: the temporaries stay in the cache
_MOST_FACES_DENSE = 16384
_SAFE_BYTES = 2**16


class AbstractQuery(eqx.Module):
    """Answers which face of a mesh is nearest to each point, exactly; how near, and on which side, is not asked."""

    @abc.abstractmethod
    def __call__(
        self, vertices: Float[AnyArray, "v d"], faces: Int[AnyArray, "f d"], points: Float[AnyArray, "n d"]
    ) -> Int[jax.Array, " n"]:
        """The index of the nearest face, one of them where several are equally near."""


class DenseQuery(AbstractQuery):
    """Every face against every point, on the device: no host, no tree, and no memory beyond one row a point."""

    def __call__(
        self, vertices: Float[AnyArray, "v d"], faces: Int[AnyArray, "f d"], points: Float[AnyArray, "n d"]
    ) -> Int[jax.Array, " n"]:
        """The nearest face by a running minimum over the faces."""
        return _nearest_of_all(jnp.asarray(vertices), jnp.asarray(faces), jnp.asarray(points))


class TreeQuery(AbstractQuery):
    """A KD-tree of the faces' centroids, on the host: fewer faces are looked at, as exactly."""

    def __call__(
        self, vertices: Float[AnyArray, "v d"], faces: Int[AnyArray, "f d"], points: Float[AnyArray, "n d"]
    ) -> Int[jax.Array, " n"]:
        """The nearest face by branch and bound; the work is done in double whatever the precision."""
        return ask_host(nearest_by_tree, (vertices, faces), points)


@jax.jit  # a fit asks in many places: traced once for all of them
def _nearest_of_all(
    vertices: Float[jax.Array, "v d"], faces: Int[jax.Array, "f d"], points: Float[jax.Array, "n d"]
) -> Int[jax.Array, " n"]:
    corners = vertices[faces]
    columns = points.T.astype(jnp.result_type(corners, points))
    # Made for all faces before the loop; inside it the compiler would make them again for every point.
    table = jax.tree.map(lambda entry: jnp.moveaxis(entry, -1, 0), face_table(jnp.moveaxis(corners, 0, -1)))

    def look(best: tuple[jax.Array, jax.Array], face: tuple) -> tuple:
        number, entry = face
        squared, _ = closest_on_face(entry, columns)
        is_nearer = squared < best[0]
        return (jnp.where(is_nearer, squared, best[0]), jnp.where(is_nearer, number, best[1])), None

    nothing = (jnp.full_like(columns[0], jnp.inf), jnp.zeros(columns.shape[1], jnp.int32))
    numbers = jnp.arange(corners.shape[0], dtype=jnp.int32)
    return jax.lax.scan(look, nothing, (numbers, table), unroll=_FACES_PER_PASS)[0][1]


def default_query(num_faces: int) -> AbstractQuery:
    """The quickest query for this many faces on the device that JAX computes on."""
    # On two cores, 16384 points within 0.8 mm of a ball of 5 mm, the tree took 5, 2.6, 0.8 and 0.5 times as long as
    # the dense query for 320, 1280, 5120 and 20480 faces (libigl 1.2, 0.4, 0.2 and 0.1 times); over a whole image 13,
    # 6, 4 and 2 times. Steps look at points near the surface, so the tree pays for large meshes alone; from a GPU
    # each of its questions would have to travel to the host and back.
    is_large = num_faces > _MOST_FACES_DENSE
    return TreeQuery() if is_large and jax.default_backend() == "cpu" else DenseQuery()


def ask_host(
    function: Callable[..., np.ndarray],
    surface: tuple[AnyArray, ...],
    points: Float[AnyArray, "n d"],
    columns: tuple[int, ...] = (),
) -> Int[jax.Array, "n ..."]:
    """The answer of a NumPy function of (*surface, points) from within compiled code, also under `vmap`.

    It is `columns` whole numbers for each point. Points in a batch that share one surface are asked about together; a
    batch of surfaces is asked about one by one.
    """
    arrays = [jnp.asarray(array) for array in (*surface, points)]
    dtypes = [np.dtype(array.dtype) for array in arrays]

    @jax.custom_batching.custom_vmap
    def ask(*arrays: jax.Array) -> jax.Array:
        pieces = [_small_pieces(_as_bits(array)) for array in arrays]
        rows = arrays[-1].shape[0]
        return jax.pure_callback(answer, jax.ShapeDtypeStruct((rows, *columns), jnp.int32), *pieces)

    @ask.def_vmap
    def _(size: int, is_batched: list[bool], *arrays: jax.Array) -> tuple[jax.Array, bool]:
        *surface, points = arrays
        if not any(is_batched[:-1]):
            found = ask(*surface, points.reshape(-1, points.shape[-1]))
            return found.reshape(*points.shape[:-1], *columns), True
        each = [
            array if has_axis else jnp.broadcast_to(array, (size, *array.shape))
            for array, has_axis in zip(arrays, is_batched, strict=True)
        ]
        return jax.lax.map(lambda one: ask(*one), tuple(each)), True

    def answer(*arrays: Sequence[AnyArray]) -> np.ndarray:
        # NumPy alone from here on: JAX may wait for the thread that this runs on.
        bits = [np.concatenate([np.asarray(piece) for piece in pieces]) for pieces in arrays]
        *surface, points = (_widened(array.view(dtype)) for array, dtype in zip(bits, dtypes, strict=True))
        return _where_finite(function, surface, points, columns)

    return ask(*arrays)


def _widened(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64 if np.issubdtype(array.dtype, np.floating) else np.int64)


def _as_bits(array: jax.Array) -> jax.Array:
    """The same bytes as whole numbers: the thread of a callback may not know doubles and would round them."""
    return jax.lax.bitcast_convert_type(array, jnp.uint32).reshape(array.shape[0], -1)


def _small_pieces(array: jax.Array) -> list[jax.Array]:
    """The rows of an array in pieces of bounded bytes.

    A callback's arguments are copied by the threads that compute once they exceed 100 kB: on one core the callback
    would wait for the thread it runs on, for ever. Smaller ones are copied on the spot.
    """
    rows = max(_SAFE_BYTES // (array.shape[1] * array.dtype.itemsize), 1)
    return [array[start : start + rows] for start in range(0, max(array.shape[0], 1), rows)]


def _where_finite(
    function: Callable[..., np.ndarray], surface: Sequence[np.ndarray], points: np.ndarray, columns: tuple[int, ...]
) -> np.ndarray:
    """The function's answer; zero for points that are not finite, whose level will be no number anyhow."""
    answer = np.zeros((len(points), *columns), np.int32)
    rows = np.flatnonzero(np.all(np.isfinite(points), axis=1))
    if rows.size and all(np.all(np.isfinite(array)) for array in surface):
        answer[rows] = function(*surface, points[rows])
    return answer


def nearest_by_tree(
    vertices: Float[np.ndarray, "v d"], faces: Int[np.ndarray, "f d"], points: Float[np.ndarray, "n d"]
) -> Int[np.ndarray, " n"]:
    """The nearest face of each point.

    No face lies farther from its centroid than the largest radius, so a point is settled once the farthest
    centroid looked at is farther than the best face found by more than that; others look at more centroids.
    """
    corners = vertices[faces]
    centroids = corners.mean(axis=1)
    radius = np.sqrt(np.max(np.sum(np.square(corners - centroids[:, None]), axis=-1)))
    tree, corners = KDTree(centroids), np.ascontiguousarray(np.moveaxis(corners, 0, -1))
    nearest = np.zeros(len(points), np.int32)
    rows, k = np.arange(len(points)), _FIRST_NEIGHBOURS
    while rows.size:
        k, unsettled = min(k, len(faces)), []
        for piece in np.array_split(rows, -(-rows.size * k // _LARGEST_PIECE)):
            distances, numbers = (np.reshape(found, (-1, k)) for found in tree.query(points[piece], k))
            squared = _squared_distances(corners, radius, points[piece], distances, numbers)
            best = np.argmin(squared, axis=1)[:, None]
            nearest[piece] = np.take_along_axis(numbers, best, axis=1)[:, 0]
            reached = np.sqrt(np.take_along_axis(squared, best, axis=1)[:, 0])
            unsettled.append(piece[distances[:, -1] < reached + radius])
        rows = np.concatenate(unsettled) if k < len(faces) else rows[:0]
        k *= _GROWTH
    return nearest


def _squared_distances(
    corners: np.ndarray, radius: float, points: np.ndarray, distances: np.ndarray, numbers: np.ndarray
) -> np.ndarray:
    """Squared distances to the faces whose centroids are listed; infinite for those that cannot be the nearest."""
    # The nearest centroid lies on the surface: farther than that plus a radius no face need be looked at.
    row, column = np.nonzero(distances <= distances[:, :1] + radius)
    found, _ = closest_on_face(face_table(corners[:, :, numbers[row, column]]), points[row].T)
    squared = np.full(distances.shape, np.inf)
    squared[row, column] = found
    return squared
