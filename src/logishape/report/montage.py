"""The picture of a result: six planes of the CT with the contours of segmentation, shape and uncertainty."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from logishape.report.facts import window_of
from logishape.report.planes import sample_plane
from logishape.report.stored import Stored
from logishape.report.views import View, views_of

SEGMENTATION, SHAPE, BAND = "#ff4d4d", "#ffd23f", "#4dc3ff"
_OUTSIDE_MM = -10.0  # the level beyond what is stored
_EDGES = ((0.02, 0.5, "left", "center"), (0.98, 0.5, "right", "center"), (0.5, 0.98, "center", "top"))
_EDGES += ((0.5, 0.02, "center", "bottom"),)


def montage(stored: Stored) -> Figure:
    """Six planes: segmentation solid, fitted shape dashed, 5 % to 95 % of the marginal probability shaded."""
    figure = Figure(figsize=(12.6, 7.6), layout="constrained", facecolor="black")  # of no window, of no backend
    for panel, view in zip(np.asarray(figure.subplots(2, 3)).ravel(), views_of(stored), strict=True):
        draw_contours(panel, view, stored)
        name_edges(panel, view)
    figure.legend(
        handles=contour_handles(), loc="outside lower center", ncols=3, frameon=False, labelcolor="white", fontsize=10
    )
    return figure


def contour_handles() -> list[Line2D]:
    """What a legend says about the contours."""
    return [
        Line2D([], [], color=SEGMENTATION, lw=1.5, label="segmentation"),
        Line2D([], [], color=SHAPE, lw=1.2, ls="--", label="fitted shape"),
        Line2D([], [], color=BAND, lw=5, alpha=0.5, label="5 % to 95 % of the marginal probability"),
    ]


def draw_contours(panel: Any, view: View, stored: Stored) -> None:
    """One plane of the CT with the contours of the result, and a scale of 2 mm."""
    (low, high), plane = window_of(stored.record), view.plane
    image = sample_plane(stored.ct, plane, outside=low)
    panel.imshow(image, cmap="gray", vmin=low, vmax=high, extent=plane.extent, origin="lower")
    across, along = plane.axes(image.shape)
    marginal = sample_plane(stored.marginal, plane)
    if np.ptp(marginal) > 0:
        panel.contourf(across, along, marginal, levels=[0.05, 0.95], colors=[BAND], alpha=0.35)
    segmentation = sample_plane(stored.smooth_segmentation, plane)
    level = sample_plane(stored.level, plane, outside=_OUTSIDE_MM)
    for values, middle, colour, style in ((segmentation, 0.5, SEGMENTATION, "-"), (level, 0.0, SHAPE, "--")):
        if values.min() < middle < values.max():
            panel.contour(across, along, values, levels=[middle], colors=colour, linestyles=style, linewidths=1.2)
    panel.set_title(plane.title, color="white", fontsize=10)
    panel.set_axis_off()
    left, bottom = plane.extent[0] + 0.4, plane.extent[2] + 0.4
    panel.plot([left, left + 2], [bottom, bottom], color="white", lw=2)
    panel.text(left + 1, bottom + 0.15, "2 mm", color="white", ha="center", va="bottom", fontsize=8)


def name_edges(panel: Any, view: View) -> None:
    """Where a picture's edges lie: right and left, front and back, or angles of the cochlea."""
    for (x, y, across, along), word in zip(_EDGES, view.edges, strict=True):
        panel.text(
            x, y, word, transform=panel.transAxes, ha=across, va=along, fontsize=8, color="white",
            bbox={"facecolor": "black", "alpha": 0.55, "edgecolor": "none", "pad": 1.2},
        )  # fmt: skip
