"""The cochlear frame of a CT by rigid registration to a reference whose frame is known: the paper's way.

The reference is laid on the CT as it lies in its own world, at the places where it looks most alike; block matching
then moves it, from coarse to fine. A head that lies otherwise is missed: `locate` has no such limit.
"""

import dataclasses

import numpy as np
from scipy.signal import fftconvolve

from logishape.cochlea.blocks import choose_blocks, match_blocks, trimmed_motion
from logishape.cochlea.checks import check_ct
from logishape.cochlea.frame import Frame, Side
from logishape.cochlea.lattice import PITCH, make_lattice
from logishape.cochlea.locate import PLACE_MM, Located, guess_scales
from logishape.cochlea.phantom_ear import mirror_frame
from logishape.cochlea.pose import Point, Scale, correlate
from logishape.cochlea.template import CENTRE, code_at
from logishape.core.errors import InputError
from logishape.core.volume import Volume

LEAST_SCORE = 0.65  # on specimens wrong registrations reached less, right ones more: benchmarks/register.py
_RADIUS, _SCORED_RADIUS = 7.0, 5.0  # mm: what of the reference is matched, and what of it is compared at the end
_LEVELS = ((0.8, 3, 12), (0.4, 3, 12))  # mm a voxel, reach of the search in voxels, rounds
_SETTLED = 0.02  # voxels
_NUM_PLACES, _APART_MM = 4, 3.0


@dataclasses.dataclass(frozen=True, eq=False)
class Reference:
    """A CT and the frame of the cochlea in it."""

    volume: Volume
    frame: Frame


def register(
    volume: Volume,
    reference: Reference,
    *,
    point: Point | None = None,
    side: Side | None = None,
    least_score: float = LEAST_SCORE,
) -> tuple[Located, ...]:
    """The cochleae of a CT onto which the reference can be laid, the surest first; an `InputError` where none is.

    For the other side the reference is mirrored. A point, within a few mm of the cochlea's middle, replaces the
    search for places.
    """
    check_ct(volume)
    scale = guess_scales(volume)[0]
    mirrored = mirror_frame(reference.frame)
    frames = {one.side: one for one in (reference.frame, mirrored)}
    found = [_best(volume, reference, frames[one], point, scale) for one in ((side,) if side else ("right", "left"))]
    found = sorted((one for one in found if one is not None), key=lambda one: -one.score)
    sure = [one for one in found if one.score >= least_score]
    if not sure:
        best = f"the best agrees by {max(found[0].score, 0):.2f}" if found else "no block of it could be matched"
        what = "cochlea" if side is None else f"{side} cochlea"
        raise InputError(
            f"the registration to the reference failed: it should agree with a {what} by {least_score:.2f} but "
            f"{best}; name another reference, or leave --locate register out to have the cochlea found."
        )
    if point is not None or len(sure) == 1:
        return tuple(sure[:1])
    is_same = np.linalg.norm(sure[0].middle - sure[1].middle) < PLACE_MM
    return tuple(sure[:1] if is_same else sure)


def _best(volume: Volume, reference: Reference, start: Frame, point: Point | None, scale: Scale) -> Located | None:
    """The reference, turned as `start` says, moved from the likeliest places; the one that agrees best."""
    known = _cubes(reference)
    if point is not None:
        middles = np.asarray(point.position, float)[None]
    else:
        middles = _places(volume, reference, start, scale)
    found = []
    for middle in middles:
        frame = Frame(start.axes, middle - CENTRE @ np.asarray(start.axes))
        moved = _follow(volume, known, frame, scale)
        found.append(Located(moved, _agreement(volume, reference, moved, scale), by="registration"))
    return max(found, key=lambda one: one.score) if found else None


def _grid(pitch: float, radius: float) -> np.ndarray:
    """Points of a cube about the middle, in the cochlear frame."""
    axis = pitch * np.arange(-np.ceil(radius / pitch), np.ceil(radius / pitch) + 1)
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1) + CENTRE


def _codes(volume: Volume, frame: Frame, points: np.ndarray, scale: Scale) -> np.ndarray:
    return code_at(volume, frame, points.reshape(-1, 3), scale).reshape(points.shape[:-1])


def _cubes(reference: Reference) -> list[np.ndarray]:
    """The reference in its own frame, from coarse to fine."""
    scale = guess_scales(reference.volume)[0]
    return [_codes(reference.volume, reference.frame, _grid(pitch, _RADIUS), scale) for pitch, _, _ in _LEVELS]


def _follow(volume: Volume, known: list[np.ndarray], frame: Frame, scale: Scale) -> Frame:
    """The frame moved until blocks seen through it lie where those of the reference do."""
    for (pitch, reach, rounds), fixed in zip(_LEVELS, known, strict=True):
        points = _grid(pitch, _RADIUS)
        blocks = choose_blocks(fixed, reach)
        first = points[0, 0, 0]
        for _ in range(rounds):
            seen = _codes(volume, frame, points, scale)
            motion = trimmed_motion(match_blocks(fixed, seen, blocks, reach)) if len(blocks) else None
            if motion is None:
                break
            # In voxels x -> turn x + shift; in the frame's mm the same about the first point.
            shift = pitch * motion.shift + first - motion.turn @ first
            axes = np.asarray(frame.axes)
            frame = Frame(_orthogonal(motion.turn.T @ axes), shift @ axes + np.asarray(frame.origin))
            middle = (np.array(fixed.shape) - 1) / 2
            if np.linalg.norm(motion.turn @ middle + motion.shift - middle) < _SETTLED:
                break
    return frame


def _orthogonal(axes: np.ndarray) -> np.ndarray:
    """The nearest orthogonal rows: rounding must not add up."""
    u, _, vt = np.linalg.svd(axes)
    return u @ vt


def _agreement(volume: Volume, reference: Reference, frame: Frame, scale: Scale) -> float:
    """Correlation of bone in the CT and in the reference, over a ball about the cochlea's middle."""
    points = _grid(0.4, _SCORED_RADIUS).reshape(-1, 3)
    points = points[np.linalg.norm(points - CENTRE, axis=1) <= _SCORED_RADIUS]
    known = code_at(reference.volume, reference.frame, points, guess_scales(reference.volume)[0])
    seen, is_known = code_at(volume, frame, points, scale), np.isfinite(known)
    return float(correlate(seen[is_known][None], known[is_known][None])[0, 0])


def _places(volume: Volume, reference: Reference, start: Frame, scale: Scale) -> np.ndarray:
    """Middles (RAS mm) at which the reference, turned as `start` says, looks most alike."""
    lattice = make_lattice(volume, scale)
    axes = np.asarray(lattice.place.axes)
    offsets = _grid(PITCH, _SCORED_RADIUS) - CENTRE
    # Offsets run along the lattice; the reference has them in its own frame.
    known = _codes(
        reference.volume,
        reference.frame,
        offsets @ axes @ np.asarray(start.axes).T + CENTRE,
        guess_scales(reference.volume)[0],
    )
    is_in = (np.linalg.norm(offsets, axis=-1) <= _SCORED_RADIUS) & np.isfinite(known)
    kernel = np.where(is_in, known - known[is_in].mean(), 0.0)
    image = np.where(np.isfinite(lattice.codes), lattice.codes, 0.5)
    flipped, ones = kernel[::-1, ::-1, ::-1], is_in[::-1, ::-1, ::-1].astype(float)
    total, square = (fftconvolve(one, ones, mode="same") for one in (image, image**2))
    spread = np.sqrt(np.maximum(square - total**2 / is_in.sum(), 1e-3))
    score = fftconvolve(image, flipped, mode="same") / (spread * np.linalg.norm(kernel))
    index = np.stack(np.unravel_index(np.argsort(-score, axis=None)[:2000], score.shape), axis=1) * PITCH
    chosen: list[np.ndarray] = []
    for one in index:
        if len(chosen) < _NUM_PLACES and all(np.linalg.norm(one - other) > _APART_MM for other in chosen):
            chosen.append(one)
    return np.array(chosen) @ axes + np.asarray(lattice.place.origin)
