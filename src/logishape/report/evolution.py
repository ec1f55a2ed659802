"""The shape on its way: contours and surfaces of some of the parameters that a fit went through."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from logishape.cochlea import Calibration, Cochlea, surface
from logishape.cochlea.evaluation import level_at
from logishape.cochlea.surface import Mesh
from logishape.core.volume import Volume
from logishape.report.facts import cochlea_of, path_of, window_of
from logishape.report.planes import planes_along, sample_plane
from logishape.report.stored import Stored

SHOWN, SHOWN_SURFACES = 6, 4  # at most
EDGE = 0.3  # mm, of the surfaces' meshes
_VIEW = {"elev": 35.0, "azim": -70.0}


class Way(NamedTuple):
    """Parameters from start to end, the shape they belong to, the CT it was fitted to, its black and white, and what
    one entry after the other is called.
    """

    cochlea: Cochlea
    thetas: Float[np.ndarray, "r p"]
    ct: Volume
    window: tuple[float, float]
    step: str = "round"


def evolution(stored: Stored, calibration: Calibration | None = None) -> Figure:
    """The shape from the best start through the rounds of the fit, before any blur was taken off."""
    cochlea, path = cochlea_of(stored.record, calibration), path_of(stored.record)
    return draw_way(Way(cochlea, path, stored.ct, window_of(stored.record)))


def chosen_steps(count: int, most: int = SHOWN) -> list[int]:
    """Entries worth showing of so many: close together at first, where the shape moves most, and the last."""
    return sorted({round(k) for k in np.concatenate([[0], np.geomspace(1, max(count - 1, 1), most - 1)])})


def draw_way(way: Way) -> Figure:
    """Contours of the shape on three planes, from dotted green to solid red, above its surface at some of them."""
    steps, shown = chosen_steps(len(way.thetas)), chosen_steps(len(way.thetas), SHOWN_SURFACES)
    figure = Figure(figsize=(12, 7), layout="constrained")
    top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=(1.15, 1)))
    _draw_contours(top, way, steps)
    meshes = [own_surface(way.cochlea, way.thetas[step]) for step in shown]
    corners = np.concatenate([mesh.vertices for mesh in meshes])
    for k, (step, mesh) in enumerate(zip(shown, meshes, strict=True)):
        panel: Any = bottom.add_subplot(1, len(shown), k + 1, projection="3d")
        draw_mesh(panel, mesh, _colour(step, steps))
        show_box(panel, corners.min(axis=0), corners.max(axis=0))
        panel.set_title(_words(step, way.step), fontsize=9, y=0.95)
    return figure


def _draw_contours(figure: Any, way: Way, steps: Sequence[int]) -> None:
    low, high = way.window
    for panel, plane in zip(np.asarray(figure.subplots(1, 3)), planes_along(way.cochlea.frame), strict=True):
        image = sample_plane(way.ct, plane, outside=low)
        panel.imshow(image, cmap="gray", extent=plane.extent, origin="lower", vmin=low, vmax=high)
        points = plane.points(0.1)
        for step in steps:
            levels = level_at(way.cochlea, way.thetas[step], points.reshape(-1, 3)).reshape(points.shape[:2])
            style = "-" if step == steps[-1] else ":" if step == 0 else "--"
            panel.contour(*plane.axes(levels.shape), levels, [0.0], colors=[_colour(step, steps)], linestyles=style)
        panel.set_title(plane.title, fontsize=9)
        panel.set_axis_off()


def own_surface(cochlea: Cochlea, theta: Float[np.ndarray, " p"]) -> Mesh:
    """The surface in the cochlea's own frame."""
    return surface(Cochlea(None, cochlea.duct.free, cochlea.calibration), theta, EDGE)


def draw_mesh(panel: Any, mesh: Mesh, colour: Sequence[float]) -> None:
    """A surface, lit from one side, in a panel whose projection is 3d."""
    corners = np.asarray(mesh.vertices)[np.asarray(mesh.faces)]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    light = 0.35 + 0.65 * np.clip(normals @ np.array([0.3, -0.5, 0.81]), 0, 1)
    faces = np.clip(light[:, None] * np.asarray(colour)[..., :3], 0, 1)
    # Thousands of triangles would make a drawing of megabytes: in an SVG they are one image.
    lit = Poly3DCollection(corners, facecolors=faces, edgecolors=faces, linewidths=0.2, rasterized=True)
    panel.add_collection3d(lit)
    panel.set_axis_off()


def show_box(panel: Any, lower: Float[np.ndarray, " 3"], upper: Float[np.ndarray, " 3"]) -> None:
    """The panel shows this box of space (mm), all axes alike."""
    panel.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), zlim=(lower[2], upper[2]))
    panel.set_box_aspect(upper - lower, zoom=1.3)
    panel.view_init(**_VIEW)


def _colour(step: int, steps: Sequence[int]) -> tuple[float, float, float]:
    """Green at the start, red at the end."""
    share = np.log1p(step) / max(np.log1p(steps[-1]), 1e-9)
    return (0.1 + 0.85 * share, 0.75 * (1 - share) + 0.1, 0.15)


def _words(step: int, noun: str) -> str:
    return "start" if step == 0 else f"after {step} {noun}{'s' if step > 1 else ''}"
