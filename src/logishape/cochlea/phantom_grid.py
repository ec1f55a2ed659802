"""Grids of a phantom: where voxels lie, which of them a body holds, finer grids, blur and noise."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import ndimage

from logishape.cochlea.phantom_options import PhantomOptions
from logishape.core.volume import Volume

Block = tuple[slice, ...]
_SLAB = 65_536  # voxels whose positions are held at a time: few enough to stay in a cache
_FINE_MM, _MAX_PARTS = 0.14, 4  # voxels of the finer grid are at most this large, or a fourth of the grid's own
_GANTRY_RAD = (0.35, 0.0, 0.17)  # tilts about x and z


def make_grid(options: PhantomOptions, centre: np.ndarray, rng: np.random.Generator) -> Volume:
    """An empty grid around the centre (RAS mm) with the orientation asked for; it takes no memory."""
    steps = _axes(options, rng) * np.array(options.spacing_mm) * np.where(options.flips, -1.0, 1.0)
    affine = np.eye(4)
    affine[:3, :3] = steps
    affine[:3, 3] = centre + np.array(options.offset_mm) - steps @ (np.array(options.shape) - 1) / 2
    return empty(options.shape, affine)


def empty(shape: tuple[int, ...], affine: np.ndarray) -> Volume:
    """A grid alone: its values are one zero that stands for all."""
    return Volume(np.broadcast_to(np.float32(0), shape), affine)


def _axes(options: PhantomOptions, rng: np.random.Generator) -> np.ndarray:
    """Directions of the voxel axes, as columns."""
    if options.orientation == "axis":
        return np.eye(3)
    if options.orientation == "oblique":
        a, _, c = _GANTRY_RAD
        about_x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
        about_z = np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])
        return about_z @ about_x
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))  # uniform over all turns and mirrors; then turns alone
    return q * [1, 1, np.linalg.det(q)]


def ball_block(grid: Volume, centre: np.ndarray, reach: float) -> Block:
    """The part of a grid that holds a ball (world mm); empty if the ball is outside."""
    return grid.index_bounds(centre - reach, centre + reach)


def slabs(grid: Volume, block: Block) -> Iterator[tuple[Block, np.ndarray]]:
    """A block in slabs of bounded size, with the world positions `(n, 3)` of their voxels."""
    sizes = [part.stop - part.start for part in block]
    if min(sizes) == 0:
        return
    thick = max(_SLAB // (sizes[1] * sizes[2]), 1)
    # Sums of steps along the axes: a product with a matrix of three is slow where other programs keep cores busy.
    i, j, k = (
        np.arange(one.start, one.stop)[:, None] * step for one, step in zip(block, grid.affine[:3, :3].T, strict=True)
    )
    layer = j[:, None] + k + grid.affine[:3, 3]
    for first in range(0, sizes[0], thick):
        last = min(first + thick, sizes[0])
        rows = slice(block[0].start + first, block[0].start + last)
        yield (rows, block[1], block[2]), (i[first:last, None, None] + layer).reshape(-1, 3)


def mark(mask: np.ndarray, grid: Volume, block: Block, is_in: Callable[[np.ndarray], np.ndarray]) -> None:
    """Sets the mask where a body holds the centres of voxels, looking in a block alone."""
    for part, points in slabs(grid, block):
        mask[part] |= is_in(points).reshape(mask[part].shape)


def mask_block(mask: np.ndarray, margin: np.ndarray) -> Block | None:
    """The box of a mask and so many voxels more along each axis; None if the mask is empty."""
    ranges = []
    for axis in range(3):
        used = np.flatnonzero(mask.any(axis=tuple(k for k in range(3) if k != axis)))
        if not used.size:
            return None
        low, high = used[0] - margin[axis], used[-1] + 1 + margin[axis]
        ranges.append(slice(max(int(low), 0), min(int(high), mask.shape[axis])))
    return tuple(ranges)


def refine(grid: Volume, block: Block) -> tuple[Volume, tuple[int, ...]]:
    """A finer grid over a block, and into how many voxels it parts each one along each axis."""
    parts = np.clip(np.ceil(grid.spacing / _FINE_MM - 1e-6), 1, _MAX_PARTS).astype(int)
    first = np.array([one.start for one in block])
    affine = grid.affine.copy()
    affine[:3, :3] = grid.affine[:3, :3] / parts
    affine[:3, 3] = grid.to_world(first + (1 / parts - 1) / 2)
    sizes = tuple(int((one.stop - one.start) * n) for one, n in zip(block, parts, strict=True))
    return empty(sizes, affine), tuple(int(n) for n in parts)


def spread(values: np.ndarray, parts: tuple[int, ...]) -> np.ndarray:
    """Values of a finer grid: each voxel's own, repeated."""
    for axis, n in enumerate(parts):
        values = np.repeat(values, n, axis=axis)
    return values


def gather(values: np.ndarray, parts: tuple[int, ...]) -> np.ndarray:
    """Means over the parts of each voxel."""
    for axis, n in enumerate(parts):
        shape = (*values.shape[:axis], values.shape[axis] // n, n, *values.shape[axis + 1 :])
        values = values.reshape(shape).mean(axis=axis + 1)
    return values


def blur(values: np.ndarray, spacing: np.ndarray, sd_mm: float) -> np.ndarray:
    """Values seen through a Gaussian point spread."""
    return ndimage.gaussian_filter(values, sd_mm / spacing, mode="nearest")


def without_margin(grid: Volume, block: Block, margin_mm: float) -> tuple[Block, Block]:
    """What is left of a block when a margin is taken off where the grid goes on: within the grid, and the block."""
    margins = np.ceil(margin_mm / grid.spacing).astype(int)
    outer, inner = [], []
    for part, size, margin in zip(block, grid.shape, margins, strict=True):
        low = part.start + (int(margin) if part.start > 0 else 0)
        high = max(part.stop - (int(margin) if part.stop < size else 0), low)
        outer.append(slice(low, high))
        inner.append(slice(low - part.start, high - part.start))
    return tuple(outer), tuple(inner)


def draw_noise(grid: Volume, sd: float, correlation_mm: float, rng: np.random.Generator) -> np.ndarray:
    """Gaussian noise of this standard deviation; white, or white noise smoothed by a Gaussian of so many mm.

    Smoothed noise has the correlation exp(-d^2 / (4 s^2)) at the distance d, exactly: the root of its spectrum
    filters each axis in turn. Opposite faces of the grid count as neighbours.
    """
    noise = rng.standard_normal(grid.shape, dtype=np.float32)
    if correlation_mm > 0:
        for axis, (size, step) in enumerate(zip(grid.shape, grid.spacing, strict=True)):
            lag = step * np.minimum(np.arange(size), size - np.arange(size))
            spectrum = np.fft.rfft(np.exp(-((lag / correlation_mm) ** 2) / 4)).real
            gain = np.sqrt(np.maximum(spectrum, 0)).astype(np.float32)
            shape = [-1 if k == axis else 1 for k in range(3)]
            noise = np.fft.irfft(np.fft.rfft(noise, axis=axis) * gain.reshape(shape), n=size, axis=axis)
    return np.float32(sd) * noise
