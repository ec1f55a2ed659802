"""The picture of a result: six planes of the CT with the contours of segmentation, shape and uncertainty."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from logishape.report.facts import pose_of, window_of
from logishape.report.planes import Plane, planes_along, planes_of_patient, sample_plane
from logishape.report.stored import Stored

SEGMENTATION, SHAPE, BAND = "#ff4d4d", "#ffd23f", "#4dc3ff"


def montage(stored: Stored) -> Figure:
    """Six planes: segmentation solid, fitted shape dashed, 5 % to 95 % of the marginal probability shaded."""
    figure = Figure(figsize=(12.6, 7.6), layout="constrained", facecolor="black")  # of no window, of no backend
    panels, frame = np.asarray(figure.subplots(2, 3)), pose_of(stored.record)
    for panel, plane in zip(panels.ravel(), planes_of_patient(frame) + planes_along(frame), strict=True):
        draw_contours(panel, plane, stored)
    handles = [
        Line2D([], [], color=SEGMENTATION, lw=1.5, label="segmentation"),
        Line2D([], [], color=SHAPE, lw=1.2, ls="--", label="fitted shape"),
        Line2D([], [], color=BAND, lw=5, alpha=0.5, label="5 % to 95 % of the marginal probability"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, labelcolor="white")
    return figure


def draw_contours(panel: Any, plane: Plane, stored: Stored) -> None:
    """One plane of the CT with the contours of the result, and a scale of 2 mm."""
    low, high = window_of(stored.record)
    image = sample_plane(stored.ct, plane, outside=low)
    panel.imshow(image, cmap="gray", vmin=low, vmax=high, extent=plane.extent, origin="lower")
    across, along = plane.axes(image.shape)
    marginal = sample_plane(stored.marginal, plane)
    if np.ptp(marginal) > 0:
        panel.contourf(across, along, marginal, levels=[0.05, 0.95], colors=[BAND], alpha=0.35)
    for mask, colour, style in ((stored.segmentation, SEGMENTATION, "-"), (stored.shape, SHAPE, "--")):
        values = sample_plane(mask, plane)
        if np.ptp(values) > 0:
            panel.contour(across, along, values, levels=[0.5], colors=colour, linestyles=style, linewidths=1.1)
    panel.set_title(plane.title, color="white", fontsize=10)
    panel.set_axis_off()
    left, bottom = plane.extent[0] + 0.4, plane.extent[2] + 0.4
    panel.plot([left, left + 2], [bottom, bottom], color="white", lw=2)
    panel.text(left + 1, bottom + 0.15, "2 mm", color="white", ha="center", va="bottom", fontsize=8)
