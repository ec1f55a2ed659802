"""A frame from a point and a side: which way the cochlea lies there, found by trying all orientations."""

from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage, optimize
from scipy.spatial.transform import Rotation

from logishape.cochlea.frame import Frame, Side
from logishape.cochlea.lumen import Intensities, find_intensities
from logishape.cochlea.reformat import reformat
from logishape.cochlea.template import CENTRE, RADIUS, SPACING, Template, code_at
from logishape.core.arrays import as_numbers
from logishape.core.errors import InputError
from logishape.core.volume import Volume

LEAST_SCORE = 0.65  # of the correlation: right poses of specimens have 0.70 to 0.95, phantoms 0.65 and more
REACH = 2.5  # mm: how far the cochlea's middle may lie from the point
_NUM_TURNS, _SHIFT_MM, _COARSE = 1500, 1.1, 2
_NUM_REFINED, _APART_MM, _APART_DEGREES = 12, 1.2, 25.0


class Point(NamedTuple):
    """A rough pose: a position (RAS mm) within 2.5 mm of the cochlea's middle, and which ear it is."""

    position: Any
    side: Side


class Field(NamedTuple):
    """Bone codes on a cubic grid around the point, in a frame that mirrors left ears; NaN outside the CT."""

    codes: np.ndarray
    half: float

    def at(self, points: np.ndarray) -> np.ndarray:
        """Codes at points (..., 3) given from the grid's middle, mm: the nearest sample's."""
        index = np.round((points + self.half) / SPACING).astype(np.int32)
        last = self.codes.shape[0] - 1
        index = np.clip(index, 0, last)
        return self.codes[index[..., 0], index[..., 1], index[..., 2]]

    def smooth_at(self, points: np.ndarray) -> np.ndarray:
        """The same by linear interpolation, with 0.5 outside the CT."""
        values = np.nan_to_num(self.codes, nan=0.5)
        return np.asarray(
            ndimage.map_coordinates(values, ((points + self.half) / SPACING).T, order=1, mode="nearest")
        )


class Pose(NamedTuple):
    """A template pose: turn (matrix) and shift (mm) of its middle, and its correlation with the image."""

    score: float
    turn: np.ndarray
    shift: np.ndarray


def frame_at(volume: Volume, point: Point, template: Template) -> Frame:
    """The frame of the cochlea at a point.

    All orientations of the template are compared with the image, the best are refined, and the most similar wins.
    """
    position, side = as_numbers(point.position, "the point of the cochlea"), point.side
    if position.shape != (3,) or not np.all(np.isfinite(position)):
        raise InputError(
            f"expected x, y, z in RAS mm for the cochlea's point but found {point.position!r}; give three numbers."
        )
    if side not in ("left", "right"):
        raise InputError(f"a point alone does not say which ear it is and its side is {side!r}; give left or right.")
    axes = np.asarray(Frame.identity(side).axes)
    field = _field(volume, Frame(axes, position))
    best = max(_refined(field, template, _candidates(field, template.thinned(_COARSE))), key=lambda pose: pose.score)
    if best.score < LEAST_SCORE:
        raise InputError(
            f"no {side} cochlea was found within {REACH} mm of {np.round(position, 1).tolist()}: the best likeness "
            f"is {best.score:.2f}, {LEAST_SCORE} is needed; check the point and the side, or give landmarks."
        )
    # The template's point p lies at turn' (p - CENTRE) + shift in the field, which is `axes` seen from `position`.
    return Frame(best.turn @ axes, (best.shift - CENTRE @ best.turn) @ axes + position)


def likeness(volume: Volume, frame: Frame, template: Template, seen: Intensities) -> float:
    """Normalised correlation of the template with the CT in a frame; zero where the CT covers little of it."""
    codes = code_at(volume, frame, template.points, (seen.gain, seen.offset))
    return float(_correlate(codes[None], template.values)[0])


def _field(volume: Volume, around: Frame) -> Field:
    """Bone codes around the point, in HU whatever the image's own scale."""
    middle = Frame(around.axes, np.asarray(around.origin) - np.array([0.6, 0.2, 0.8]) @ np.asarray(around.axes))
    seen = find_intensities(reformat(volume, middle))
    half = SPACING * np.ceil((RADIUS + REACH + 0.5) / SPACING)
    axis = np.arange(-half, half + SPACING / 2, SPACING)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    codes = code_at(volume, around, points, (seen.gain, seen.offset))
    return Field(codes.reshape((len(axis),) * 3), float(half))


def _candidates(field: Field, template: Template) -> list[Pose]:
    """The best of all turns and shifts, mutually different."""
    turns = Rotation.random(_NUM_TURNS, rng=np.random.default_rng(0)).as_matrix()
    steps = _SHIFT_MM * np.arange(-2, 3)
    shifts = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    shifts = shifts[np.linalg.norm(shifts, axis=1) <= REACH]
    away = template.points - CENTRE
    scores = np.stack(
        [_correlate(field.at((away @ turn)[None] + shifts[:, None]), template.values) for turn in turns]
    )
    chosen: list[Pose] = []
    for flat in np.argsort(-scores, axis=None, kind="stable"):
        row, column = np.unravel_index(flat, scores.shape)
        pose = Pose(float(scores[row, column]), turns[row], shifts[column])
        if all(_are_apart(pose, other) for other in chosen):
            chosen.append(pose)
        if len(chosen) == _NUM_REFINED:
            break
    return chosen


def _are_apart(one: Pose, other: Pose) -> bool:
    angle = np.degrees(Rotation.from_matrix(one.turn @ other.turn.T).magnitude())
    return bool(np.linalg.norm(one.shift - other.shift) > _APART_MM or angle > _APART_DEGREES)


def _refined(field: Field, template: Template, poses: list[Pose]) -> list[Pose]:
    """Each pose moved to where the template resembles the image most, by Levenberg-Marquardt on the codes."""
    away, wanted = template.points - CENTRE, _standardised(template.values)

    def moved(x: np.ndarray, pose: Pose) -> tuple[np.ndarray, np.ndarray]:
        return Rotation.from_rotvec(x[:3]).as_matrix() @ pose.turn, pose.shift + x[3:]

    def seen(x: np.ndarray, pose: Pose) -> np.ndarray:
        turn, shift = moved(x, pose)
        return field.smooth_at(away @ turn + shift)

    refined = []
    for pose in poses:
        solved = optimize.least_squares(
            lambda x, pose=pose: _standardised(seen(x, pose)) - wanted, np.zeros(6), method="lm", max_nfev=120
        )
        turn, shift = moved(solved.x, pose)
        # What the CT does not cover helped to keep the template inside; it has no say in how alike they are.
        is_covered = ~np.isnan(field.at(away @ turn + shift))
        codes = np.where(is_covered, seen(solved.x, pose), np.nan)
        refined.append(Pose(float(_correlate(codes[None], template.values)[0]), turn, shift))
    return refined


def _standardised(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / max(float(values.std()), 1e-6)


def _correlate(codes: np.ndarray, template: np.ndarray) -> np.ndarray:
    """Normalised correlation of each row with the template over the points the CT covers; zero if it covers few."""
    is_seen = ~np.isnan(codes)
    count = np.maximum(is_seen.sum(axis=1), 1)
    image = np.where(is_seen, codes, 0.0)
    mask = is_seen.astype(np.float64)
    mean_image, mean_template = image.sum(axis=1) / count, mask @ template / count
    covariance = image @ template / count - mean_image * mean_template
    variances = (np.square(image).sum(axis=1) / count - mean_image**2, mask @ template**2 / count - mean_template**2)
    score = covariance / np.sqrt(np.maximum(variances[0] * variances[1], 1e-9))
    return np.where(count > 0.6 * codes.shape[1], score, 0.0)
