"""Array types, and where single and double precision meet.

Work per voxel runs in the precision of the observation (single by default); the log joint, small
solves and everything a user reads are double. `double_precision` scopes that to one call: the user's
own `jax_enable_x64` is never flipped.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from logishape.core.errors import InputError

# NumPy and JAX arrays are equally welcome. The static checker sees Any; jaxtyping checks both at run time.
if TYPE_CHECKING:
    AnyArray = Any
else:
    AnyArray = jax.Array | np.ndarray

CHUNK = 65536  # points per pass: bounds the memory of Jacobians, large enough to keep all cores busy


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """A scope in which 64-bit floats exist; outside it nothing changes for the caller.

    Matrix products of single floats keep their precision too: a GPU would round them to ten bits by default,
    in a user's level as in ours.
    """
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def as_double(value: Any) -> Any:
    """The value as a NumPy array of doubles; a traced value stays as it is, for code under `jit` or `vmap`."""
    return value if isinstance(value, jax.core.Tracer) else np.array(value, dtype=np.float64)


def as_numbers(value: Any, name: str) -> Any:
    """The value as a NumPy array of doubles; else an `InputError` that calls it `name`."""
    try:
        return as_double(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"expected numbers for {name} but found {value!r:.60}; check it.") from error


def as_vector(value: Any, size: int, name: str) -> np.ndarray:
    """`size` doubles, one number standing for all; else an `InputError` that calls them `name`."""
    vector = as_double(value)
    if vector.shape not in ((), (1,), (size,)):
        raise InputError(f"expected one number or {size} for {name} but found shape {vector.shape}; give {size}.")
    return np.broadcast_to(vector, (size,)).copy()


def like(tree: Any, reference: AnyArray) -> Any:
    """The same tree with its floating arrays in the precision of `reference`, as far as that precision exists.

    Whole numbers have none: next to them the arrays are single.
    """
    dtype = jax.dtypes.canonicalize_dtype(jnp.promote_types(reference.dtype, jnp.float32))

    def one(leaf: Any) -> Any:
        is_float = isinstance(leaf, jax.Array | np.ndarray) and jnp.issubdtype(leaf.dtype, jnp.floating)
        return jnp.asarray(leaf, dtype) if is_float else leaf

    return jax.tree.map(one, tree)


def to_host(tree: Any) -> Any:
    """The same tree with NumPy arrays, free to be changed, in place of device arrays."""
    return jax.tree.map(lambda leaf: np.array(leaf) if isinstance(leaf, jax.Array) else leaf, tree)


def total(values: AnyArray) -> jax.Array:
    """The sum of all values, accumulated in double where doubles exist."""
    return jnp.sum(values, dtype=jnp.result_type(float))


def side_by_side(columns: Sequence[AnyArray]) -> jax.Array:
    """A matrix of these columns, each a vector or a matrix of as many rows, written one after the other.

    A concatenation fuses with what computes its columns into a branch for every number, which is not vector code.
    """
    blocks = [column[:, None] if column.ndim == 1 else column for column in columns]
    matrix = jnp.zeros((sum(block.shape[1] for block in blocks), blocks[0].shape[0]), blocks[0].dtype)
    first = 0
    for block in blocks:
        matrix = jax.lax.dynamic_update_slice(matrix, block.T, (first, 0))
        first += block.shape[1]
    return matrix.T


def over_chunks(function: Callable[..., Any], arrays: tuple[Any, ...], reduce: bool) -> Any:
    """`function(*arrays)` computed piece by piece along the first axis, so that memory stays bounded.

    With `reduce` the results of the pieces are added, and `function` must give zero for rows that
    are all zero in its last array (the weights); otherwise they are concatenated.
    """
    arrays = tuple(jnp.asarray(array) for array in arrays)
    size = arrays[0].shape[0]
    num_chunks = -(-size // CHUNK)
    if num_chunks <= 1:
        return function(*arrays)
    chunk = -(-size // num_chunks)
    missing = num_chunks * chunk - size

    def split(array: Any) -> jax.Array:
        # Edge rows repeat the last point, which is finite; the weights of those rows are zero.
        padding = [(0, missing)] + [(0, 0)] * (array.ndim - 1)
        return jnp.pad(array, padding, mode="edge").reshape(num_chunks, chunk, *array.shape[1:])

    pieces = [split(array) for array in arrays]
    if reduce:
        pieces[-1] = jnp.pad(arrays[-1], (0, missing)).reshape(num_chunks, chunk)
        shapes = jax.eval_shape(function, *(piece[0] for piece in pieces))
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

        def add(sum_so_far: Any, piece: Any) -> Any:
            return jax.tree.map(jnp.add, sum_so_far, function(*piece)), None

        return jax.lax.scan(add, zeros, tuple(pieces))[0]
    results = jax.lax.map(lambda piece: function(*piece), tuple(pieces))
    return jax.tree.map(lambda leaf: leaf.reshape(num_chunks * chunk, *leaf.shape[2:])[:size], results)
