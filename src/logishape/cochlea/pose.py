"""A pose of the template: how much the CT resembles it there, and where near by it resembles it most."""

from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage, optimize
from scipy.spatial.transform import Rotation

from logishape.cochlea.frame import Frame, Side
from logishape.cochlea.lumen import Intensities, find_intensities
from logishape.cochlea.reformat import Crop, grid_points, sample
from logishape.cochlea.template import CENTRE, RADIUS, SPACING, Template, code_at
from logishape.core.errors import InputError
from logishape.core.volume import Volume

REACH = 2.5  # mm: how far the cochlea's middle may lie from a point that is said to be in it
LEAST_COVERED = 0.6  # of the template's points: with less in the CT there is no saying
_ROOM = 1.0  # mm that a pose may move while it is refined
_THINNED = 7  # one of so many points of the crop, enough for its histogram
Scale = tuple[float, float]  # gain and offset that take HU to the CT's values


class Point(NamedTuple):
    """A rough pose: a position (RAS mm) within 2.5 mm of the cochlea's middle; the side, where it is known."""

    position: Any
    side: Side | None = None


class Pose(NamedTuple):
    """A template pose in some frame: turn (a matrix, mirroring or not), shift of its middle (mm), correlation."""

    score: float
    turn: np.ndarray
    shift: np.ndarray

    def frame(self, place: Frame) -> Frame:
        """The cochlear frame of this pose, which was given in `place`."""
        # The template's point p lies at turn' (p - CENTRE) + shift.
        axes = np.asarray(place.axes)
        return Frame(self.turn @ axes, (self.shift - CENTRE @ self.turn) @ axes + np.asarray(place.origin))

    def is_apart(self, other: "Pose", least_mm: float, least_degrees: float) -> bool:
        """Whether two poses are different ones; mirror images always are."""
        if np.linalg.norm(self.shift - other.shift) > least_mm:
            return True
        between = self.turn @ other.turn.T
        return np.linalg.det(between) < 0 or degrees(between) > least_degrees


def degrees(turn: np.ndarray) -> float:
    """The angle of a rotation matrix."""
    return float(np.degrees(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1))))


def likeness(volume: Volume, frame: Frame, template: Template, seen: Intensities) -> float:
    """Normalised correlation of the template with the CT in a frame; zero where the CT covers little of it."""
    codes = code_at(volume, frame, template.points, (seen.gain, seen.offset))
    return float(correlate(codes[None], template.values[None])[0, 0])


def local_scale(volume: Volume, frame: Frame, otherwise: Scale) -> Scale:
    """Gain and offset from the lumen and the bone seen at a frame, or the given ones where there are none to see."""
    points = grid_points()[::_THINNED]
    crop = Crop(points, *sample(volume, frame, points))
    try:
        seen = find_intensities(crop)
    except InputError:
        return otherwise
    return seen.gain, seen.offset


def refine_in_ct(volume: Volume, place: Frame, template: Template, pose: Pose, scale: Scale) -> Pose:
    """The pose at which the CT resembles the template most, from the CT's own voxels around it."""
    middle = Frame(place.axes, pose.shift @ np.asarray(place.axes) + np.asarray(place.origin))
    half = SPACING * np.ceil((RADIUS + _ROOM) / SPACING)
    axis = np.arange(-half, half + SPACING / 2, SPACING)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    codes = code_at(volume, middle, points, scale).reshape((len(axis),) * 3)
    found = refine(codes, SPACING, template, Pose(pose.score, pose.turn, np.full(3, half)))
    return Pose(found.score, found.turn, found.shift - half + pose.shift)


def refine(codes: np.ndarray, pitch: float, template: Template, pose: Pose) -> Pose:
    """The pose moved to where the template resembles codes on a grid most, by Levenberg-Marquardt.

    The grid's first point is the origin. Where codes are not numbers 0.5 keeps the template from leaving the CT; in
    the score those points have no say.
    """
    away, wanted = template.points - CENTRE, _standardised(template.values)
    is_covered = ~np.isnan(codes)
    filled = np.where(is_covered, codes, 0.5).astype(np.float64)  # differences of 1e-8 must show

    def moved(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return Rotation.from_rotvec(x[:3]).as_matrix() @ pose.turn, pose.shift + x[3:]

    def seen(x: np.ndarray) -> np.ndarray:
        turn, shift = moved(x)
        return _interpolate(filled, (away @ turn + shift) / pitch)

    solved = optimize.least_squares(
        lambda x: _standardised(seen(x)) - wanted, np.zeros(6), method="lm", ftol=1e-4, xtol=1e-4
    )
    turn, shift = moved(solved.x)
    cover = _interpolate(is_covered.astype(np.float32), (away @ turn + shift) / pitch)
    found = np.where(cover > 0.99, seen(solved.x), np.nan)
    return Pose(float(correlate(found[None], template.values[None])[0, 0]), turn, shift)


def _interpolate(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.asarray(ndimage.map_coordinates(values, index.T, order=1, mode="constant", cval=0.5))


def _standardised(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / max(float(values.std()), 1e-6)


def correlate(codes: np.ndarray, templates: np.ndarray) -> np.ndarray:
    """Normalised correlation of codes (n, m) with templates (k, m), over the points that are numbers.

    Zero where too few are.
    """
    is_seen = ~np.isnan(codes)
    count = np.maximum(is_seen.sum(axis=1, dtype=codes.dtype), 1)[:, None]
    image = np.where(is_seen, codes, 0)
    image -= np.where(is_seen, image.sum(axis=1, keepdims=True) / count, 0)
    spread = np.sqrt(np.square(image).sum(axis=1, keepdims=True) / count)
    if is_seen.all():
        mean, square = templates.mean(axis=1), np.square(templates).mean(axis=1)
    else:
        mask = is_seen.astype(codes.dtype)
        mean, square = mask @ templates.T / count, mask @ np.square(templates).T / count
    own = np.sqrt(np.maximum(square - mean**2, 1e-9))
    score = image @ templates.T / count / np.maximum(spread * own, 1e-6)
    return np.where(count > LEAST_COVERED * codes.shape[1], score, 0)
