"""The template compared with a CT everywhere, in all orientations and both mirror images; the best poses refined."""

import functools
from collections.abc import Callable

import numpy as np
from scipy import ndimage, signal
from scipy.spatial.transform import Rotation

from logishape.cochlea.frame import Frame
from logishape.cochlea.lattice import PITCH, Lattice, make_lattice
from logishape.cochlea.pose import (
    LEAST_COVERED,
    REACH,
    Point,
    Pose,
    Scale,
    correlate,
    local_scale,
    refine,
    refine_in_ct,
)
from logishape.cochlea.template import CENTRE, RADIUS, SPACING, Template
from logishape.core.volume import Volume

NUM_TURNS = 600  # of each mirror image: about 25 degrees from one to the next
APART_MM, APART_DEGREES = 1.2, 25.0  # poses nearer than this are one
BEHIND = 0.25  # poses that resemble the template so much less, on the lattice, are not looked at again
_SEARCH_SHARE = 0.8  # of the time; the rest goes into refining
_MANY = 20000  # positions that are worth preparing for
_BALL_MEANS, _BALL_SPREAD = (0.15, 0.85), 0.2  # of the codes around a cochlea's middle
_ROWS, _PER_ROW, _POOL, _NUM_NUMBERS = 2048, 4, 8000, 128
_BALL_STEPS = int(RADIUS / PITCH)
Tell = Callable[[float], None]


def best_poses(
    volume: Volume, template: Template, scale: Scale, near: Point | None = None, tell: Tell | None = None
) -> tuple[list[Pose], Frame]:
    """The poses at which a CT resembles the template most, best first, mutually apart; and the frame they are in."""
    lattice = make_lattice(volume, scale)
    positions = _positions(lattice, near)
    if not len(positions):
        return [], lattice.place
    turns = _turns(lattice.place, near)
    coarse = _coarse(template)
    told = tell or (lambda _: None)
    poses = _search(lattice, positions, _bank(coarse, turns), turns, told)
    count = int(np.clip(len(positions) / 500, 24, 120))
    poses = [_refine_in_lattice(lattice, coarse, pose) for pose in _distinct(poses, count)]
    poses = _distinct(poses, count // 4)
    fine = []
    for pose in poses:
        if pose.score < poses[0].score - BEHIND:
            continue
        own = local_scale(volume, pose.frame(lattice.place), scale)
        fine.append(refine_in_ct(volume, lattice.place, template, pose, own))
    told(1.0)
    return _distinct(fine, len(fine)), lattice.place


def _positions(lattice: Lattice, near: Point | None) -> np.ndarray:
    """The lattice points around which a cochlea may lie: enough in the CT, with bone and cavities about them."""
    is_seen = (~np.isnan(lattice.codes)).astype(np.float32)
    values = np.nan_to_num(lattice.codes)
    ball = np.zeros((2 * _BALL_STEPS + 1,) * 3, np.float32)
    ball[tuple((_offsets() + _BALL_STEPS).T)] = 1
    count, total, squares = (
        signal.oaconvolve(image, ball, mode="same") for image in (is_seen, values, np.square(values))
    )
    mean = total / np.maximum(count, 1)
    spread = np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0))
    low, high = _BALL_MEANS
    is_possible = (count > LEAST_COVERED * ball.sum()) & (mean > low) & (mean < high) & (spread > _BALL_SPREAD)
    found = np.argwhere(is_possible)
    if near is None or near.position is None:
        return found
    middle = (np.asarray(near.position) - np.asarray(lattice.place.origin)) @ np.asarray(lattice.place.axes).T
    return found[np.linalg.norm(found * PITCH - middle, axis=1) <= REACH + PITCH / 2]


def _offsets() -> np.ndarray:
    """The lattice points of the template's ball, in steps from its middle."""
    cube = np.stack(np.meshgrid(*[np.arange(-_BALL_STEPS, _BALL_STEPS + 1)] * 3, indexing="ij"), axis=-1).reshape(
        -1, 3
    )
    return cube[np.linalg.norm(cube, axis=1) * PITCH <= RADIUS]


def _turns(place: Frame, near: Point | None) -> np.ndarray:
    """Orientations in the lattice's frame, of the side asked for or of both."""
    turns = quasi_uniform_turns(NUM_TURNS)
    both = {"right": turns, "left": np.diag([1.0, -1.0, 1.0]) @ turns}
    if place.side == "left":
        both = {"left": both["right"], "right": both["left"]}
    if near is not None and near.side is not None:
        return both[near.side]
    return np.concatenate(list(both.values()))


def quasi_uniform_turns(count: int) -> np.ndarray:
    """Rotation matrices spread evenly over all orientations: a super-Fibonacci spiral on unit quaternions."""
    step = np.arange(count) + 0.5
    inner, outer = np.sqrt(step / count), np.sqrt(1 - step / count)
    one, other = 2 * np.pi * step / np.sqrt(2), 2 * np.pi * step / 1.533751168755204288  # a root of x^4 = x + 4
    parts = [inner * np.sin(one), inner * np.cos(one), outer * np.sin(other), outer * np.cos(other)]
    return Rotation.from_quat(np.stack(parts, axis=1)).as_matrix()


def _coarse(template: Template) -> Template:
    """The template as the lattice would show it: each value the mean over about a cell."""
    index = np.round((template.points - template.points.min(axis=0)) / SPACING).astype(int)
    both = np.zeros((2, *(index.max(axis=0) + 1)))
    both[0][tuple(index.T)], both[1][tuple(index.T)] = template.values, 1
    cube, ball = (np.asarray(ndimage.gaussian_filter(image, 0.6))[tuple(index.T)] for image in both)
    return Template(template.points, cube / ball)


def _bank(coarse: Template, turns: np.ndarray) -> np.ndarray:
    """The template turned every way, at the lattice points of its ball."""
    index = np.round((coarse.points - coarse.points.min(axis=0)) / SPACING).astype(int)
    cube = np.full(index.max(axis=0) + 1, coarse.values.mean())
    cube[tuple(index.T)] = coarse.values
    away = (_offsets() * PITCH) @ turns.transpose(0, 2, 1)
    index = (away + CENTRE - coarse.points.min(axis=0)) / SPACING
    values = ndimage.map_coordinates(cube, index.reshape(-1, 3).T, order=1, mode="nearest")
    return np.asarray(values, np.float32).reshape(index.shape[:2])


def _search(lattice: Lattice, positions: np.ndarray, bank: np.ndarray, turns: np.ndarray, tell: Tell) -> list[Pose]:
    """The highest correlations over all positions and turns, best first."""
    padded = np.pad(lattice.codes, _BALL_STEPS, constant_values=np.nan)
    strides = np.array([padded.shape[1] * padded.shape[2], padded.shape[2], 1])
    steps, starts, flat = _offsets() @ strides, (positions + _BALL_STEPS) @ strides, padded.ravel()
    quickly = _in_few_numbers(bank) if len(positions) > _MANY else functools.partial(correlate, templates=bank)
    pool: list[np.ndarray] = []  # rows: score, position, turn
    floor = 0.0
    for first in range(0, len(positions), _ROWS):
        codes = flat[starts[first : first + _ROWS, None] + steps]
        is_whole = ~np.isnan(codes.sum(axis=1))
        scores = np.empty((len(codes), len(bank)), np.float32)
        scores[is_whole], scores[~is_whole] = quickly(codes[is_whole]), correlate(codes[~is_whole], bank)
        best = np.argpartition(-scores, _PER_ROW, axis=1)[:, :_PER_ROW]
        top = np.take_along_axis(scores, best, axis=1)
        row, column = np.nonzero(top > floor)
        pool.append(np.stack([top[row, column], first + row, best[row, column]], axis=1))
        if sum(map(len, pool)) > 2 * _POOL:
            pool = [_highest(np.concatenate(pool))]
            floor = float(pool[0][-1, 0])
        tell(_SEARCH_SHARE * min(1.0, (first + _ROWS) / len(positions)))
    return [
        Pose(float(score), turns[int(turn)], positions[int(place)] * PITCH)
        for score, place, turn in _highest(np.concatenate(pool))
    ]


def _in_few_numbers(bank: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The correlation of whole rows of codes with all templates, by way of what templates have in common.

    A template turned every way has 97 % of its variance in 128 numbers; correlations differ by 0.01, at a quarter of
    the work.
    """
    templates = bank - bank.mean(axis=1, keepdims=True)
    templates /= np.linalg.norm(templates, axis=1, keepdims=True)
    _, _, common = np.linalg.svd(templates, full_matrices=False)
    common = common[:_NUM_NUMBERS].T
    projected = (templates @ common).T

    def correlation(codes: np.ndarray) -> np.ndarray:
        away = codes - codes.mean(axis=1, keepdims=True)
        length = np.sqrt(np.einsum("ij,ij->i", away, away))
        return (away @ common @ projected) / np.maximum(length, 1e-6)[:, None]

    return correlation


def _highest(rows: np.ndarray) -> np.ndarray:
    return rows[np.argsort(-rows[:, 0], kind="stable")[:_POOL]]


def _distinct(poses: list[Pose], count: int) -> list[Pose]:
    """The best poses that are mutually apart, best first."""
    chosen: list[Pose] = []
    for pose in sorted(poses, key=lambda pose: -pose.score):
        if all(pose.is_apart(other, APART_MM, APART_DEGREES) for other in chosen):
            chosen.append(pose)
        if len(chosen) == count:
            break
    return chosen


def _refine_in_lattice(lattice: Lattice, coarse: Template, pose: Pose) -> Pose:
    """The pose refined on the block of the lattice around it."""
    cell = np.round(pose.shift / PITCH).astype(int)
    first = np.maximum(cell - _BALL_STEPS - 2, 0)
    block = lattice.codes[tuple(slice(a, b) for a, b in zip(first, cell + _BALL_STEPS + 3, strict=True))]
    found = refine(block, PITCH, coarse.thinned(2), Pose(pose.score, pose.turn, pose.shift - first * PITCH))
    return Pose(found.score, found.turn, found.shift + first * PITCH)
