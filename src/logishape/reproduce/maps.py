"""How sure a segmentation is: probabilities at the best shape, and with the shape's uncertainty integrated out."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from logishape.cochlea import Frame, SegmentOptions
from logishape.report.planes import Plane, sample_plane
from logishape.reproduce.cases import Case
from logishape.reproduce.segmented import segment_case

MAPS = {"probability": "at the best shape", "marginal": "shape integrated out"}
UNSURE = (0.05, 0.95)
STEP = 0.1  # mm between pixels
_MIDDLE, _HALF = np.array([0.9, 0.2, 0.8]), (6.2, 5.2)


def planes_of(frame: Frame) -> list[Plane]:
    """Three planes of a cochlea's own frame: along the basal turn, and two through the axis."""
    middle = np.asarray(frame.to_world(_MIDDLE[None]))[0]
    x, y, z = np.asarray(frame.axes)
    named = (("basal turn", x, y), ("mid-modiolar", x, z), ("mid-modiolar, across", y, z))
    return [Plane(title, middle, right, up, _HALF) for title, right, up in named]


def map_case(case: Case, options: SegmentOptions) -> dict[str, Any]:
    """How many cubic millimetres of a case are unsure on each map, and the maps on three planes."""
    result, _ = segment_case(case, options)
    voxel = case.volume.voxel_size
    found: dict[str, Any] = {"kind": None, "sd": [], "planes": []}
    if result.posterior is not None:
        found |= {"kind": result.posterior.kind, "sd": np.asarray(result.posterior.sd).tolist()}
    for name in MAPS:
        values = result.labels.on_block(name).data
        unsure = (values > UNSURE[0]) & (values < UNSURE[1])
        found[name] = {"unsure_mm3": float(np.count_nonzero(unsure) * voxel), "sum_mm3": float(values.sum() * voxel)}
    seen = result.intensities
    window = (seen.lumen - 0.25 * seen.step, seen.bone + 0.25 * seen.step)
    for plane in planes_of(result.cochlea.frame):
        image = np.clip((sample_plane(case.volume, plane, STEP, window[0]) - window[0]) / np.ptp(window), 0, 1)
        maps = {name: sample_plane(result.labels.on_block(name), plane, STEP) for name in MAPS}
        found["planes"].append(
            {
                "title": plane.title,
                "extent": plane.extent,
                "ct": np.round(image, 3).tolist(),
                **{name: np.round(values, 3).tolist() for name, values in maps.items()},
            }
        )
    return found


def draw(found: dict[str, Any]) -> Figure:
    """Both maps on three planes, the plug-in above and the marginal below, with the level of one half."""
    planes = found["planes"]
    figure = Figure(figsize=(11, 5.8), layout="constrained")
    panels = np.asarray(figure.subplots(len(MAPS), len(planes)))
    shown: Any = None
    for row, (name, words) in zip(panels, MAPS.items(), strict=True):
        for panel, plane in zip(row, planes, strict=True):
            values = np.array(plane[name])
            extent = plane["extent"]
            panel.imshow(np.array(plane["ct"]), cmap="gray", extent=extent, origin="lower", vmin=0, vmax=1)
            clear = np.ma.masked_less(values, 0.01)
            shown = panel.imshow(clear, cmap="plasma", extent=extent, origin="lower", vmin=0, vmax=1, alpha=0.85)
            if values.min() < 0.5 < values.max():
                across = np.linspace(extent[0], extent[1], values.shape[1])
                along = np.linspace(extent[2], extent[3], values.shape[0])
                panel.contour(across, along, values, levels=[0.5], colors="white", linewidths=1)
            panel.set_title(f"{plane['title']}: {words}", fontsize=9)
            panel.set_axis_off()
    figure.colorbar(shown, ax=panels, shrink=0.7, label="p(inside | image)")
    return figure
