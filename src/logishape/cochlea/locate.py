"""Cochleae in a CT about which nothing is known: where they lie, which way, which side, and how sure that is.

A template of bone is compared with the CT everywhere, in all orientations and in both mirror images; what resembles
it most is refined. What resembles it too little is no cochlea.
"""

import dataclasses
from typing import Literal

import numpy as np

from logishape.cochlea.checks import check_ct
from logishape.cochlea.frame import Frame, Side
from logishape.cochlea.pose import REACH, Point, Pose, Scale
from logishape.cochlea.sweep import BEHIND, Tell, best_poses
from logishape.cochlea.template import CENTRE, THRESHOLD_HU, Template, load_template
from logishape.core.arrays import as_numbers
from logishape.core.errors import InputError
from logishape.core.volume import Volume

PLACE_MM = 6.0  # poses of one cochlea have their middles nearer than this
CLOSE, _MOST_RIVALS = 0.12, 3  # how far behind a rival may be to be taken seriously
# With this score it is one; with less it must be ahead of every other place, unless it was pointed at.
SURE_SCORE, LEAST_SCORE, LEAD, LEAST_SCORE_AT = 0.78, 0.70, 0.08, 0.65
_USUAL_HU, _ALIKE = (-1000.0, 2300.0), (0.35, 350.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Located:
    """A cochlea that was found.

    `score` is the correlation of the CT with the template (1 is the same), `margin` how far it is ahead of the best
    other pose in the same place (0.25 stands for that and more); `rivals` are the frames of those that come close.
    `by` says how it was found; after a registration the score is the correlation with the reference.
    """

    frame: Frame
    score: float
    margin: float = BEHIND
    rivals: tuple[Frame, ...] = ()
    by: Literal["search", "registration"] = "search"

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
    for scale in guess_scales(volume):
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


def guess_scales(volume: Volume) -> list[Scale]:
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
