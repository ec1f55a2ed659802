"""Pictures of the fitted surface that need no script: from the apex, from the side, or from between."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from logishape.report.stored import Stored

ANGLES = ListedColormap(colormaps["viridis"](np.linspace(0.2, 1, 256)))  # its dark end is lost on a dark page
LINE, AXIS = "#e02020", "#2ca02c"
_WORDS = "#7a7a7a"  # can be read on white and on the page's dark
_LIGHT = np.array([0.36, 0.51, 0.78])
_AXIS_MM = (-2.0, 6.0)
_OUTLINE = [withStroke(linewidth=1.8, foreground="black")]
_EDGED = [withStroke(linewidth=2.4, foreground="white")]


class Sight(NamedTuple):
    """Where the spiral's axes go: to the right, up, and towards the eye."""

    title: str
    turn: Float[np.ndarray, "3 3"]


def still(stored: Stored) -> Figure:
    """The surface coloured by angle, from the apex and from the side, with its centreline and the modiolar axis.

    It lies on nothing, so that it suits any page.
    """
    x, y, z = np.eye(3)
    note = ", mirrored" if stored.spiral.side == "left" else ""
    sights = (Sight(f"from the apex{note}", np.stack([x, y, z])), Sight("from the side", np.stack([x, z, -y])))
    figure = Figure(figsize=(10, 4.4), facecolor="none")
    for k, sight in enumerate(sights):
        panel: Any = figure.add_axes((0.01 + 0.45 * k, 0.02, 0.44, 0.9))
        draw_surface(panel, stored, sight)
        panel.set_title(sight.title, fontsize=10, color=_WORDS)
    bar: Any = figure.add_axes((0.925, 0.1, 0.015, 0.75))
    figure.colorbar(_colours(stored), cax=bar).set_label("angle from the round window, degrees", color=_WORDS)
    bar.tick_params(colors=_WORDS)
    return figure


def draw_surface(panel: Any, stored: Stored, sight: Sight, apart_mm: float = 1.0) -> None:
    """The surface coloured by angle, its centreline with a mark every 90 degrees, and the modiolar axis.

    Marks are named that are seen so far apart.
    """
    surface, spiral = stored.surface, stored.spiral
    shades = np.asarray(_colours(stored).to_rgba(surface.angle_degrees[surface.faces].mean(axis=1)))
    is_turned = (spiral.side == "left") != (np.linalg.det(sight.turn) < 0)  # a left ear's frame mirrors
    faces = surface.faces[:, ::-1] if is_turned else surface.faces
    _draw_faces(panel, _seen(stored, surface.vertices, sight), faces, shades)
    _draw_axis(panel, stored, sight)
    _draw_line(panel, stored, sight, apart_mm)
    panel.set_aspect("equal")
    panel.set_axis_off()


def _colours(stored: Stored) -> ScalarMappable:
    angle = stored.surface.angle_degrees
    return ScalarMappable(Normalize(angle.min(), angle.max()), ANGLES)


def _seen(stored: Stored, points: Any, sight: Sight) -> Float[np.ndarray, "n 3"]:
    """World points as an eye has them: to the right, up, towards it."""
    local = (np.asarray(points) - np.asarray(stored.spiral.origin)) @ np.asarray(stored.spiral.axes).T
    return local @ sight.turn.T


def _draw_faces(panel: Any, points: np.ndarray, faces: Int[np.ndarray, "f 3"], shades: np.ndarray) -> None:
    """The triangles that face the eye, from the farthest to the nearest, lit from above."""
    corners = points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    shown = np.flatnonzero(normals[:, 2] > 0)
    order = shown[np.argsort(corners[shown, :, 2].mean(axis=1), kind="stable")]
    lit = shades[order].copy()
    lit[:, :3] *= (0.5 + 0.5 * np.clip(normals[order] @ _LIGHT, 0, 1))[:, None]
    panel.add_collection(
        PolyCollection(list(corners[order, :, :2]), facecolors=lit, edgecolors="face", linewidths=0.3)
    )
    panel.autoscale_view()


def _draw_axis(panel: Any, stored: Stored, sight: Sight) -> None:
    ends = np.asarray(stored.spiral.origin) + np.outer(_AXIS_MM, np.asarray(stored.spiral.axes)[2])
    along = _seen(stored, ends, sight)
    panel.plot(along[:, 0], along[:, 1], color=AXIS, lw=1.6, ls="--", marker=".")


def _draw_line(panel: Any, stored: Stored, sight: Sight, apart_mm: float) -> None:
    """The centreline with a mark every 90 degrees, and its angle where there is room for it."""
    line, named = stored.record["centreline"], []
    angles, centres = np.array(line["angle_degrees"]), _seen(stored, line["points_ras_mm"], sight)
    panel.plot(centres[:, 0], centres[:, 1], color=LINE, lw=1.3, path_effects=_EDGED)
    for degrees in np.arange(0, angles[-1], 90):
        place = np.array([np.interp(degrees, angles, one) for one in centres.T[:2]])
        panel.plot(place[0], place[1], ".", color=LINE, ms=6)
        if all(np.hypot(*(place - other)) > apart_mm for other in named):
            named.append(place)
            panel.annotate(
                f"{degrees:.0f}°",
                place,
                xytext=(3, 3),
                textcoords="offset points",
                fontsize=7.5,
                color="white",
                path_effects=_OUTLINE,
            )
