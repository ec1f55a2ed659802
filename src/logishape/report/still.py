"""Pictures of the fitted surface that need no script: from the apex and from the side."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from logishape.report.stored import Stored

LINE, AXIS = "#d62728", "#2ca02c"
_LIGHT = np.array([0.36, 0.51, 0.78])
_AXIS_MM = (-2.0, 6.0)
_OUTLINE = [withStroke(linewidth=1.8, foreground="black")]


class _View(NamedTuple):
    """Where the spiral's axes go: to the right, up, and towards the eye."""

    title: str
    turn: Float[np.ndarray, "3 3"]


def still(stored: Stored) -> Figure:
    """The surface coloured by angle, from the apex and from the side, with its centreline and the modiolar axis."""
    surface, spiral = stored.surface, stored.spiral
    colours = ScalarMappable(Normalize(surface.angle_degrees.min(), surface.angle_degrees.max()), "viridis")
    shades = np.asarray(colours.to_rgba(surface.angle_degrees[surface.faces].mean(axis=1)))
    faces = surface.faces if spiral.side == "right" else surface.faces[:, ::-1]  # a left ear's frame mirrors
    x, y, z = np.eye(3)
    note = ", mirrored" if spiral.side == "left" else ""
    views = (_View(f"from the apex{note}", np.stack([x, y, z])), _View("from the side", np.stack([x, z, -y])))
    figure = Figure(figsize=(10, 4.4), facecolor="white")
    for k, view in enumerate(views):
        panel: Any = figure.add_axes((0.01 + 0.45 * k, 0.02, 0.44, 0.9))
        _draw_faces(panel, _seen(stored, surface.vertices, view), faces, shades)
        _draw_line(panel, stored, view)
        panel.set_aspect("equal")
        panel.set_axis_off()
        panel.set_title(view.title, fontsize=10)
    bar: Any = figure.add_axes((0.925, 0.1, 0.015, 0.75))
    figure.colorbar(colours, cax=bar, label="angle from the round window, degrees")
    return figure


def _seen(stored: Stored, points: Any, view: _View) -> Float[np.ndarray, "n 3"]:
    """World points as a view has them: to the right, up, towards the eye."""
    local = (np.asarray(points) - np.asarray(stored.spiral.origin)) @ np.asarray(stored.spiral.axes).T
    return local @ view.turn.T


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


def _draw_line(panel: Any, stored: Stored, view: _View) -> None:
    """The centreline with a mark every 90 degrees, and the modiolar axis."""
    line, spiral = stored.record["centreline"], stored.spiral
    angles, points = np.array(line["angle_degrees"]), np.array(line["points_ras_mm"])
    centres = _seen(stored, points, view)
    panel.plot(centres[:, 0], centres[:, 1], color=LINE, lw=1.3)
    ends = np.asarray(spiral.origin) + np.outer(_AXIS_MM, np.asarray(spiral.axes)[2])
    along = _seen(stored, ends, view)
    panel.plot(along[:, 0], along[:, 1], color=AXIS, lw=1.6, ls="--", marker=".")
    for degrees in np.arange(0, angles[-1], 90):
        place = np.array([np.interp(degrees, angles, one) for one in centres.T])
        panel.plot(place[0], place[1], ".", color=LINE, ms=6)
        if degrees % 180 == 0:
            panel.annotate(
                f"{degrees:.0f}°",
                place[:2],
                xytext=(3, 3),
                textcoords="offset points",
                fontsize=7.5,
                color="white",
                path_effects=_OUTLINE,
            )
