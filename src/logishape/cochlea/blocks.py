"""Block matching (Ourselin): small blocks of one image looked for in another, and the rigid motion most agree on.

Nothing here knows what the images show. Images are cubes on the same grid; not a number where nothing is known.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.lib.stride_tricks import sliding_window_view

from logishape.shapes.procrustes import best_rotation

BLOCK = 4  # voxels along each axis
MOST_BLOCKS = 400
KEPT_VARIANCE, KEPT_MATCHES = 0.5, 0.6  # shares: of blocks by their variance, of matches by their residual
_TRIM_ROUNDS, _LEAST_BLOCKS = 20, 12


class Motion(NamedTuple):
    """x -> turn x + shift."""

    turn: Float[np.ndarray, "3 3"]
    shift: Float[np.ndarray, " 3"]


class Matches(NamedTuple):
    """Centres of blocks (voxels), where each was found, and how alike (correlation)."""

    centres: Float[np.ndarray, "b 3"]
    found: Float[np.ndarray, "b 3"]
    score: Float[np.ndarray, " b"]


def choose_blocks(image: Float[np.ndarray, "i j k"], reach: int) -> np.ndarray:
    """First voxels of the blocks of highest variance, wholly known, `reach` voxels or more from the border."""
    windows = sliding_window_view(image, (BLOCK,) * 3)
    inner = tuple(slice(reach, n - reach, BLOCK // 2) for n in windows.shape[:3])
    variance = windows[inner].var(axis=(3, 4, 5))
    first = np.stack(
        np.meshgrid(*(np.arange(n)[s] for n, s in zip(windows.shape, inner, strict=False)), indexing="ij")
    )
    rows, variance = first.reshape(3, -1).T, variance.ravel()
    is_known = np.isfinite(variance) & (np.nan_to_num(variance) > 1e-6)
    rows, variance = rows[is_known], variance[is_known]
    count = min(int(np.ceil(KEPT_VARIANCE * len(rows))), MOST_BLOCKS)
    return rows[np.argsort(-variance, kind="stable")[:count]]


def match_blocks(
    fixed: Float[np.ndarray, "i j k"], seen: Float[np.ndarray, "i j k"], blocks: np.ndarray, reach: int
) -> Matches:
    """Where each block of `fixed` is most alike in `seen`, no farther than `reach` voxels away along each axis."""
    size, width = BLOCK**3, 2 * reach + 1
    wanted = sliding_window_view(fixed, (BLOCK,) * 3)[tuple(blocks.T)].reshape(-1, size)
    wanted = _standardised(wanted)
    windows = sliding_window_view(seen, (BLOCK,) * 3)
    around = sliding_window_view(windows, (width,) * 3, axis=(0, 1, 2))  # (.., block, .., search)
    score = np.empty((len(blocks), width**3))
    for k, block in enumerate(blocks):
        here = around[tuple(block - reach)].reshape(size, -1).T
        score[k] = _standardised(here) @ wanted[k] / size
    score = np.where(np.isfinite(score), score, -1.0)
    best = score.argmax(axis=1)
    offset = np.stack(np.unravel_index(best, (width,) * 3), axis=1) - reach
    centres = blocks + (BLOCK - 1) / 2
    return Matches(centres, centres + offset, np.take_along_axis(score, best[:, None], axis=1)[:, 0])


def trimmed_motion(matches: Matches) -> Motion | None:
    """The rigid motion by least squares over the matches that agree with it best; None where there are too few."""
    kept = np.flatnonzero(matches.score > 0)
    count = int(KEPT_MATCHES * len(kept))
    if count < _LEAST_BLOCKS:
        return None
    a, b, chosen = matches.centres, matches.found, kept
    motion = Motion(np.eye(3), np.zeros(3))
    for _ in range(_TRIM_ROUNDS):
        motion = _motion(a[chosen], b[chosen])
        away = np.linalg.norm(a[kept] @ motion.turn.T + motion.shift - b[kept], axis=1)
        nearest = np.sort(kept[np.argsort(away, kind="stable")[:count]])
        if np.array_equal(nearest, chosen):
            break
        chosen = nearest
    return motion


def _motion(a: np.ndarray, b: np.ndarray) -> Motion:
    middle, goal = a.mean(axis=0), b.mean(axis=0)
    turn = best_rotation(a - middle, b - goal).T
    return Motion(turn, goal - turn @ middle)


def _standardised(rows: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred / np.maximum(np.sqrt(np.mean(centred**2, axis=1, keepdims=True)), 1e-3)
