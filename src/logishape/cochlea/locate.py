"""Cochleae in a CT about which nothing is known: where they lie, which way, which side, and how sure that is.

A template of bone is compared with the CT everywhere, in all orientations and in both mirror images; what resembles
it most is refined. What resembles it too little is no cochlea.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from scipy import ndimage, signal
from scipy.spatial.transform import Rotation

from logishape.cochlea.checks import check_ct
from logishape.cochlea.frame import Frame, Side
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
from logishape.cochlea.template import CENTRE, RADIUS, SPACING, THRESHOLD_HU, Template, load_template
from logishape.core.arrays import as_numbers
from logishape.core.errors import InputError
from logishape.core.volume import Volume

NUM_TURNS = 600  # of each mirror image: about 25 degrees from one to the next
APART_MM, APART_DEGREES = 1.2, 25.0  # poses nearer than this are one
BEHIND = 0.25  # poses that resemble the template so much less, on the lattice, are not looked at again
PLACE_MM = 6.0  # poses of one cochlea have their middles nearer than this
CLOSE, _MOST_RIVALS = 0.12, 3  # how far behind a rival may be to be taken seriously
# With this score it is one; with less it must be ahead of every other place, unless it was pointed at.
SURE_SCORE, LEAST_SCORE, LEAD, LEAST_SCORE_AT = 0.78, 0.70, 0.08, 0.65
_SEARCH_SHARE = 0.8  # of the time; the rest goes into refining
_MANY = 20000  # positions that are worth preparing for
_USUAL_HU, _ALIKE = (-1000.0, 2300.0), (0.35, 350.0)
_BALL_MEANS, _BALL_SPREAD = (0.15, 0.85), 0.2  # of the codes around a cochlea's middle
_ROWS, _PER_ROW, _POOL, _NUM_NUMBERS = 2048, 4, 8000, 128
_BALL_STEPS = int(RADIUS / PITCH)
Tell = Callable[[float], None]


@dataclasses.dataclass(frozen=True, eq=False)
class Located:
    """A cochlea that was found.

    `score` is the correlation of the CT with the template (1 is the same), `margin` how far it is ahead of the best
    other pose in the same place (0.25 stands for that and more); `rivals` are the frames of those that come close.
    """

    frame: Frame
    score: float
    margin: float = BEHIND
    rivals: tuple[Frame, ...] = ()

    @property
    def side(self) -> Side:
        """Which ear it is."""
        return self.frame.side

    @property
    def middle(self) -> np.ndarray:
        """Where its middle lies, RAS mm."""
        return CENTRE @ np.asarray(self.frame.axes) + np.asarray(self.frame.origin)


def locate(
    volume: Volume,
    *,
    point: Point | None = None,
    side: Side | None = None,
    template: Template | None = None,
    tell: Tell | None = None,
) -> tuple[Located, ...]:
    """The cochleae of a CT (RAS mm): one or two, of different sides, the surest first; an `InputError` where none is.

    A point or a side narrows the search. `tell` is called with the share that is done. A CT that is turned or
    mirrored in the world gives frames that are turned or mirrored with it.
    """
    template, near = template or load_template(), _check_point(point, side)
    check_ct(volume)
    best: tuple[Located, ...] = ()
    ambiguous: InputError | None = None
    for scale in _scales(volume):
        poses, place = best_poses(volume, template, scale, near, tell)
        found = _places(poses, place)
        try:
            ears = _ears(found, point is not None) if found else ()
        except InputError as error:  # perhaps at this scale only
            ambiguous, ears = error, ()
        if ears:
            return ears
        best = max(best, found[:2], key=lambda some: some[0].score if some else 0.0)
    raise ambiguous or _not_found(best, point, None if near is None else near.side)


def _check_point(point: Point | None, side: Side | None) -> Point | None:
    """The point and the side as one value; a side alone is a point nowhere in particular."""
    side = side or (None if point is None else point.side)
    if side not in (None, "left", "right"):
        raise InputError(f"the side must be left or right but is {side!r}; leave it out to have it found.")
    if point is None:
        return None if side is None else Point(None, side)
    position = as_numbers(point.position, "the point of the cochlea")
    if position.shape != (3,) or not np.all(np.isfinite(position)):
        raise InputError(
            f"expected x, y, z in RAS mm for the cochlea's point but found {point.position!r}; give three numbers."
        )
    return Point(position, side)


def _scales(volume: Volume) -> list[Scale]:
    """Gains and offsets to try: values may be HU, or else air and dense bone may be their lowest and highest."""
    step = tuple(slice(None, None, max(1, n // 100)) for n in volume.shape)
    low, high, highest = (float(value) for value in np.percentile(volume.data[step], [0.5, 99.5, 100]))
    gain = (high - low) / (_USUAL_HU[1] - _USUAL_HU[0])
    offset = low - gain * _USUAL_HU[0]
    as_hu = [(1.0, 0.0)] if highest > THRESHOLD_HU else []
    are_alike = gain > 0 and abs(np.log(gain)) < _ALIKE[0] and abs(offset) < _ALIKE[1]
    return as_hu if as_hu and (are_alike or gain <= 0) else [*as_hu, (max(gain, 1e-6), offset)]


def _places(poses: list[Pose], place: Frame) -> tuple[Located, ...]:
    """The best pose of each place with its rivals there, best first."""
    found: list[Located] = []
    left = list(poses)
    while left:
        best = left[0]
        here = [pose for pose in left if np.linalg.norm(pose.shift - best.shift) < PLACE_MM]
        rivals = tuple(pose.frame(place) for pose in here[1:] if pose.score > best.score - CLOSE)[:_MOST_RIVALS]
        margin = min(BEHIND, best.score - here[1].score) if len(here) > 1 else BEHIND
        found.append(Located(best.frame(place), best.score, margin, rivals))
        left = [pose for pose in left if np.linalg.norm(pose.shift - best.shift) >= PLACE_MM]
    return tuple(found)


def _ears(found: tuple[Located, ...], is_pointed_at: bool) -> tuple[Located, ...]:
    """At most one cochlea a side; an error where two of one side cannot be told apart.

    What is neither sure nor ahead of everything else is none: in a large volume something always looks alike.
    """
    if is_pointed_at:
        return tuple(one for one in found[:1] if one.score >= LEAST_SCORE_AT)
    sure = [one for one in found if one.score >= SURE_SCORE]
    if not sure:
        count = 2 if len(found) > 1 and found[0].side != found[1].side else 1  # ahead alone, or as a pair of ears
        for leaders, rest in ((found[:k], found[k : k + 1]) for k in range(1, count + 1)):
            behind = rest[0].score if rest else 0.0
            if all(one.score >= max(LEAST_SCORE, behind + LEAD) for one in leaders):
                return leaders
        return ()
    ears: dict[Side, Located] = {}
    for one in sure:
        other = ears.setdefault(one.side, one)
        if other is not one and one.score > other.score - CLOSE:
            raise InputError(
                f"two places look like a {one.side} cochlea and cannot be told apart, {_where(other)} by "
                f"{other.score:.2f} and {_where(one)} by {one.score:.2f}; say which with --at X,Y,Z."
            )
    return tuple(ears.values())


def _where(one: Located) -> str:
    return "(" + ", ".join(f"{x:.1f}" for x in one.middle) + ")"


def _not_found(best: tuple[Located, ...], point: Point | None, side: Side | None) -> InputError:
    what = "cochlea" if side is None else f"{side} cochlea"
    if point is not None:
        around = f" within {REACH} mm of {np.round(np.asarray(point.position, float), 1).tolist()}"
        least, advice = LEAST_SCORE_AT, "check the point and the side, or give landmarks"
    else:
        around, least = "", LEAST_SCORE
        advice = "check that the CT shows a whole inner ear, or point at it with --at X,Y,Z"
    if not best:
        return InputError(f"no {what} was found{around}: nothing there looks like bone with cavities; {advice}.")
    seen = (
        f"what looks most like one, at {_where(best[0])}, resembles it by {np.floor(100 * best[0].score) / 100:.2f}"
    )
    if best[0].score < least:
        return InputError(f"no {what} was found{around}: {seen} and {least:.2f} is needed; {advice}.")
    return InputError(f"no {what} was found{around}: {seen} but other places do by {best[1].score:.2f}; {advice}.")


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
