"""The shape on its way: every iteration of a fit that starts where the paper's does."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from logishape.cochlea import Cochlea, surface
from logishape.cochlea.evaluation import level_at
from logishape.core.arrays import double_precision
from logishape.inference.problem import unwhiten
from logishape.report.planes import sample_plane
from logishape.reproduce.efficiency import Run, set_up
from logishape.reproduce.maps import planes_of
from logishape.reproduce.segmented import Scene

SHOWN = 6  # contours
EDGE = 0.3  # mm, of the surfaces' meshes
_VIEW = {"elev": 35.0, "azim": -70.0}


def follow_fit(scene: Scene) -> dict[str, Any]:
    """Parameters and log joint at the start and after each iteration: Gauss-Newton by our level, all voxels."""
    problem = set_up(scene)
    model = problem.model("level")
    run = Run.begun(problem, model, "gauss-newton")
    thetas, heights = [np.asarray(problem.start.theta).tolist()], [float(run.progress.log_joint)]
    while run.goes_on:
        run.advance()
        with double_precision():
            thetas.append(np.asarray(unwhiten(model.prior, run.progress.phi)).tolist())
        heights.append(float(run.progress.log_joint))
    return {"thetas": thetas, "log_joints": heights, "converged": bool(run.progress.is_converged)}


def chosen_steps(count: int, most: int = SHOWN) -> list[int]:
    """Iterations worth showing of so many: close together at first, where the shape moves most, and the last."""
    return sorted({round(k) for k in np.concatenate([[0], np.geomspace(1, max(count - 1, 1), most - 1)])})


def draw(scene: Scene, found: dict[str, Any]) -> Figure:
    """Contours of the shape on three planes, from dotted green to solid red, above its surface at four of them."""
    steps = chosen_steps(len(found["thetas"]))
    figure = Figure(figsize=(12, 7), layout="constrained")
    top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=(1.15, 1)))
    _draw_contours(top, scene, found, steps)
    for k, step in enumerate(chosen_steps(len(found["thetas"]), 4)):
        panel: Any = bottom.add_subplot(1, 4, k + 1, projection="3d")
        _draw_surface(panel, scene, np.array(found["thetas"][step]), _colour(step, steps))
        panel.set_title(_words(step), fontsize=9)
    return figure


def _draw_contours(figure: Any, scene: Scene, found: dict[str, Any], steps: list[int]) -> None:
    cochlea = Cochlea(scene.frame, (), scene.case.calibration)
    seen = scene.intensities
    window = {"vmin": seen.lumen - 0.25 * seen.step, "vmax": seen.bone + 0.25 * seen.step}
    for panel, plane in zip(np.asarray(figure.subplots(1, 3)), planes_of(scene.frame), strict=True):
        image = sample_plane(scene.case.volume, plane, outside=window["vmin"])
        panel.imshow(image, cmap="gray", extent=plane.extent, origin="lower", **window)
        points = plane.points(0.1)
        across = np.linspace(plane.extent[0], plane.extent[1], points.shape[1])
        along = np.linspace(plane.extent[2], plane.extent[3], points.shape[0])
        for step in steps:
            levels = level_at(cochlea, np.array(found["thetas"][step]), points.reshape(-1, 3))
            style = "-" if step == steps[-1] else ":" if step == 0 else "--"
            values = levels.reshape(points.shape[:2])
            panel.contour(across, along, values, [0.0], colors=[_colour(step, steps)], linestyles=style)
        panel.set_title(plane.title, fontsize=9)
        panel.set_axis_off()


def _draw_surface(panel: Any, scene: Scene, theta: np.ndarray, colour: Any) -> None:
    """The shape in the cochlea's own frame, lit from one side."""
    mesh = surface(Cochlea(None, (), scene.case.calibration), theta, EDGE)
    corners = np.asarray(mesh.vertices)[np.asarray(mesh.faces)]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    light = 0.35 + 0.65 * np.clip(normals @ np.array([0.3, -0.5, 0.81]), 0, 1)
    faces = np.clip(light[:, None] * np.asarray(colour)[:3], 0, 1)
    panel.add_collection3d(Poly3DCollection(corners, facecolors=faces, edgecolors=faces, linewidths=0.2))
    panel.set(xlim=(-4, 7), ylim=(-5, 5), zlim=(-3, 5))
    panel.set_box_aspect((11, 10, 8), zoom=1.45)
    panel.view_init(**_VIEW)
    panel.set_axis_off()


def _colour(step: int, steps: list[int]) -> tuple[float, float, float]:
    """Green at the start, red at the end."""
    share = np.log1p(step) / max(np.log1p(steps[-1]), 1e-9)
    return (0.1 + 0.85 * share, 0.75 * (1 - share) + 0.1, 0.15)


def _words(step: int) -> str:
    return "start" if step == 0 else f"after {step} iteration{'s' if step > 1 else ''}"
