"""How sure the labels are: probabilities at the best shape, and with the shape's uncertainty integrated out."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from logishape.core.volume import Volume
from logishape.report.facts import window_of
from logishape.report.planes import Plane, sample_plane
from logishape.report.stored import Stored
from logishape.report.views import views_of

PROBABILITIES = {"probability": "at the best shape", "marginal": "shape integrated out"}
STEP = 0.1  # mm between pixels


def uncertainty(stored: Stored) -> Figure:
    """Both maps on the three planes of the fitted spiral, the one at the best shape above."""
    maps = {name: getattr(stored, name) for name in PROBABILITIES}
    window = window_of(stored.record)
    planes = [view.plane for view in views_of(stored)[3:]]
    return draw_probabilities([seen_on(plane, stored.ct, window, maps) for plane in planes])


def seen_on(plane: Plane, ct: Volume, window: tuple[float, float], maps: dict[str, Volume]) -> dict[str, Any]:
    """The CT, from 0 for black to 1 for white, and the maps on one plane."""
    image = (sample_plane(ct, plane, STEP, window[0]) - window[0]) / np.ptp(window)
    values = {name: sample_plane(one, plane, STEP) for name, one in maps.items()}
    return {"title": plane.title, "extent": plane.extent, "ct": np.clip(image, 0, 1), **values}


def draw_probabilities(planes: list[dict[str, Any]]) -> Figure:
    """Both maps on each plane (as `seen_on` gives them) over the CT, with the level of one half in white."""
    figure = Figure(figsize=(11, 5.8), layout="constrained")
    panels = np.asarray(figure.subplots(len(PROBABILITIES), len(planes)))
    shown: Any = None
    for row, (name, words) in zip(panels, PROBABILITIES.items(), strict=True):
        for panel, plane in zip(row, planes, strict=True):
            values, extent = np.array(plane[name]), plane["extent"]
            panel.imshow(np.array(plane["ct"]), cmap="gray", extent=extent, origin="lower", vmin=0, vmax=1)
            clear = np.ma.masked_less(values, 0.01)
            shown = panel.imshow(clear, cmap="plasma", extent=extent, origin="lower", vmin=0, vmax=1, alpha=0.85)
            if values.min() < 0.5 < values.max():
                across = np.linspace(extent[0], extent[1], values.shape[1])
                along = np.linspace(extent[2], extent[3], values.shape[0])
                panel.contour(across, along, values, levels=[0.5], colors="white", linewidths=1)
            panel.set_title(f"{plane['title']}:\n{words}", fontsize=9)
            panel.set_axis_off()
    figure.colorbar(shown, ax=panels, shrink=0.7, label="p(inside | image)")
    return figure
