"""The shape on its way: every iteration of a fit that starts where the paper's does."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from logishape.cochlea import Cochlea
from logishape.core.arrays import double_precision
from logishape.inference.problem import unwhiten
from logishape.report.evolution import Way, draw_way
from logishape.report.facts import window_between
from logishape.reproduce.efficiency import Run, set_up
from logishape.reproduce.segmented import Scene


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


def draw(scene: Scene, found: dict[str, Any]) -> Figure:
    """Contours and surfaces of some of the iterations."""
    window = window_between(scene.intensities.lumen, scene.intensities.bone)
    cochlea = Cochlea(scene.frame, (), scene.case.calibration)
    return draw_way(Way(cochlea, np.array(found["thetas"]), scene.case.volume, window, "iteration"))
