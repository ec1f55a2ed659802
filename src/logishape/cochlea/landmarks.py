"""Landmarks that a person placed, and those of a fitted cochlea: their names, and which distances are possible."""

from collections.abc import Mapping

import numpy as np

from logishape.cochlea.frame import Frame, Side
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.surface import path
from logishape.cochlea.vestibule import frame_of_model
from logishape.core.errors import InputError
from logishape.core.volume import Volume

_NAMES = {
    "base centre": (
        "c",
        "centre",
        "center",
        "base centre",
        "base center",
        "basecentre",
        "basecenter",
        "cochlea centre",
    ),
    "apex": ("a", "apex", "helicotrema", "cochlea apex"),
    "round window": ("rw", "round window", "roundwindow"),
}
_APEX_MM, _WINDOW_MM = (1.5, 6.0), (3.0, 9.0)  # from the base centre; specimens have 2.6-3.3 and 5.4-6.7
_WINDOW_TO_APEX = 1.1  # ratio of these distances; specimens have 1.7 and more
_ANGLE_DEGREES = (45.0, 135.0)  # between apex and round window; specimens have 83-95


def frame_from_points(points: Mapping[str, np.ndarray], side: Side | None, volume: Volume | None = None) -> Frame:
    """The cochlear frame of named points (RAS mm): C or base centre, A or apex, RW or round window.

    With a volume they must lie within it. Other points are ignored.
    """
    found = {name: _pick(points, name, words) for name, words in _NAMES.items()}
    if side is None:
        raise InputError("the landmarks do not say which ear they are of; give --side left or --side right.")
    centre, apex, window = found.values()
    _check_distances(centre, apex, window)
    if volume is not None:
        for name, position in found.items():
            check_inside(volume, position, f"the landmark {name}")
    return Frame.from_landmarks(centre, apex, window, side)


def landmarks_of(cochlea: Cochlea, theta: np.ndarray) -> dict[str, tuple[np.ndarray, str]]:
    """Points of a fitted cochlea by name (RAS mm), and what each is in words.

    The first three are those that `frame_from_points` asks for: given back as landmarks they say where this cochlea
    lies. The axis is that of the fitted spiral.
    """
    centres = path(cochlea, theta)
    frame = frame_of_model(cochlea, theta)
    top = np.asarray(frame.to_cochlea(centres.points[-1:]))[0, 2]
    base, apex = np.asarray(frame.to_world(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, top]])))
    ends = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, centres.height[-1]]])
    low, high = np.asarray(cochlea.to_world(theta, ends))
    return {
        "base centre": (base, "the middle of the basal turn, where the frame of landmarks begins"),
        "apex": (apex, "above it, as high as the duct's end"),
        "round window": (centres.points[0], "the beginning of the duct's centreline, at 0 degrees"),
        "duct end": (centres.points[-1], "the end of the duct's centreline, at the helicotrema"),
        "axis base": (low, "on the modiolar axis, at the base"),
        "axis apex": (high, "on the modiolar axis, as high as the duct's end"),
    }


def check_inside(volume: Volume, position: np.ndarray, name: str) -> None:
    """Raises unless a position (RAS mm) lies within the CT."""
    index, last = volume.to_index(position), np.array(volume.shape) - 1
    if np.all((index >= -0.5) & (index <= last + 0.5)):
        return
    corners = volume.to_world(np.stack(np.meshgrid(*((0, n) for n in last), indexing="ij"), axis=-1).reshape(-1, 3))
    low, high = corners.min(axis=0).round(1).tolist(), corners.max(axis=0).round(1).tolist()
    raise InputError(
        f"{name} lies at {np.round(position, 1).tolist()} RAS mm, outside the CT, which goes from {low} to {high}; "
        "check that both are of the same scan and the coordinates RAS, not LPS."
    )


def _pick(points: Mapping[str, np.ndarray], name: str, words: tuple[str, ...]) -> np.ndarray:
    chosen = [key for key in points if _plain(key) in words]
    if len(chosen) == 1:
        return np.asarray(points[chosen[0]], dtype=np.float64)
    what = "there is none" if not chosen else f"there are {len(chosen)}: {', '.join(chosen)}"
    raise InputError(
        f"expected one landmark for the {name} (called {' or '.join(words[:2])}, for example) but {what}; the points "
        f"are {', '.join(sorted(points)) or 'none'}."
    )


def _plain(key: str) -> str:
    return key.strip().lower().replace("_", " ").replace("-", " ")


def _check_distances(centre: np.ndarray, apex: np.ndarray, window: np.ndarray) -> None:
    up, out = apex - centre, window - centre
    for name, value, (low, high) in (
        ("apex", np.linalg.norm(up), _APEX_MM),
        ("round window", np.linalg.norm(out), _WINDOW_MM),
    ):
        if not low <= value <= high:
            raise InputError(
                f"the {name} should lie {low:g} to {high:g} mm from the base centre but lies {value:.1f} mm from it; "
                "check the landmarks' names and that they are in millimetres."
            )
    if np.linalg.norm(out) < _WINDOW_TO_APEX * np.linalg.norm(up):
        raise InputError(
            "the round window should lie farther from the base centre than the apex but they lie at "
            f"{np.linalg.norm(out):.1f} and {np.linalg.norm(up):.1f} mm; check that their names are not exchanged."
        )
    angle = np.degrees(np.arccos(np.clip(up @ out / (np.linalg.norm(up) * np.linalg.norm(out)), -1, 1)))
    if not _ANGLE_DEGREES[0] <= angle <= _ANGLE_DEGREES[1]:
        raise InputError(
            f"apex and round window should be about 90 degrees apart, seen from the base, but are {angle:.0f}; "
            "check that the landmarks' names are not exchanged."
        )
