"""The picture of a result: six planes of the CT with the contours of segmentation, shape and uncertainty."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from logishape.cochlea.result import CaseResult
from logishape.core.volume import Volume
from logishape.report.planes import Plane, sample_plane

SEGMENTATION, SHAPE, BAND = "#ff4d4d", "#ffd23f", "#4dc3ff"
_MIDDLE, _HALF = np.array([0.9, 0.2, 0.8]), (6.2, 5.2)


def planes_of(result: CaseResult) -> list[Plane]:
    """Axial, coronal and sagittal through the cochlea's middle, and three planes of its own frame."""
    frame = result.cochlea.frame
    axes = np.asarray(frame.axes)
    middle = np.asarray(frame.to_world(_MIDDLE[None]))[0]
    x, y, z = axes
    right, front, up = np.eye(3)
    mirrored = ", mirrored" if result.side == "left" else ""
    # Radiological habit: the patient's right is on the left of axial and coronal pictures.
    return [
        Plane("axial", middle, -right, front, _HALF),
        Plane("coronal", middle, -right, up, _HALF),
        Plane("sagittal", middle, -front, up, _HALF),
        Plane(f"basal turn, seen along the axis{mirrored}", middle, x, y, _HALF),
        Plane("mid-modiolar", middle, x, z, _HALF),
        Plane(f"mid-modiolar, across{mirrored}", middle, y, z, _HALF),
    ]


def montage(result: CaseResult, volume: Volume) -> Figure:
    """Six planes: segmentation solid, fitted shape dashed, 5 % to 95 % of the marginal probability shaded."""
    figure = Figure(figsize=(12.6, 7.6), layout="constrained", facecolor="black")  # of no window, of no backend
    panels = np.asarray(figure.subplots(2, 3))
    maps = {name: result.labels.on_block(name) for name in ("segmentation", "shape", "marginal")}
    seen = result.intensities
    window = (seen.lumen - 0.25 * seen.step, seen.bone + 0.25 * seen.step)
    for panel, plane in zip(panels.ravel(), planes_of(result), strict=True):
        _draw(panel, plane, volume, maps, window)
    handles = [
        Line2D([], [], color=SEGMENTATION, lw=1.5, label="segmentation"),
        Line2D([], [], color=SHAPE, lw=1.2, ls="--", label="fitted shape"),
        Line2D([], [], color=BAND, lw=5, alpha=0.5, label="5 % to 95 % of the marginal probability"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, labelcolor="white")
    return figure


def _draw(panel: Any, plane: Plane, volume: Volume, maps: dict[str, Volume], window: tuple[float, float]) -> None:
    image = sample_plane(volume, plane, outside=window[0])
    panel.imshow(image, cmap="gray", vmin=window[0], vmax=window[1], extent=plane.extent, origin="lower")
    across = np.linspace(plane.extent[0], plane.extent[1], image.shape[1])
    along = np.linspace(plane.extent[2], plane.extent[3], image.shape[0])
    found = {name: sample_plane(one, plane) for name, one in maps.items()}
    if np.ptp(found["marginal"]) > 0:
        panel.contourf(across, along, found["marginal"], levels=[0.05, 0.95], colors=[BAND], alpha=0.35)
    for name, colour, style in (("segmentation", SEGMENTATION, "-"), ("shape", SHAPE, "--")):
        if np.ptp(found[name]) > 0:
            panel.contour(across, along, found[name], levels=[0.5], colors=colour, linestyles=style, linewidths=1.1)
    panel.set_title(plane.title, color="white", fontsize=10)
    panel.set_axis_off()
    left, bottom = plane.extent[0] + 0.4, plane.extent[2] + 0.4
    panel.plot([left, left + 2], [bottom, bottom], color="white", lw=2)
    panel.text(left + 1, bottom + 0.15, "2 mm", color="white", ha="center", va="bottom", fontsize=8)
