"""What the parameters do to the shape: the duct with less and more of each."""

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from logishape.cochlea import Calibration, Cochlea, path
from logishape.report.facts import cochlea_of, parameters_of
from logishape.report.stored import Stored

NUM_SDS = 2.0
_COLUMNS = 4
_COLOURS = {-1: "tab:blue", 0: "0.45", 1: "tab:red"}
_SHARE_OF_BOX = 0.25  # of a parameter without a standard deviation
_UNITS = {"a": " mm", "alpha": " mm", "phi": " rad", "theta_max": " rad", "apex_offset": " mm"}


def effects(stored: Stored, calibration: Calibration | None = None) -> Figure:
    """Less and more of each parameter of the form than this result has, by two standard deviations of the prior."""
    cochlea = cochlea_of(stored.record, calibration)
    return draw_effects(cochlea, parameters_of(stored.record), cochlea.parameter_names[6:])


def draw_effects(cochlea: Cochlea, theta: Float[np.ndarray, " p"], names: tuple[str, ...]) -> Figure:
    """The duct from the apex and its height along the angle, with less (blue) and more (red) of each parameter.

    Without the pose, in the shape's own frame; what would leave the box ends at it.
    """
    own, columns = Cochlea(None, cochlea.duct.free, cochlea.calibration), min(len(names), _COLUMNS)
    blocks = -(-len(names) // columns)
    figure = Figure(figsize=(3.25 * columns, 6.2 * blocks), layout="constrained")
    panels = np.asarray(figure.subplots(2 * blocks, columns, squeeze=False)).reshape(blocks, 2, columns)
    views, heights = panels[:, 0].ravel(), panels[:, 1].ravel()
    for view, height, name in zip(views, heights, names, strict=False):
        view.sharex(views[0])
        view.sharey(views[0])
        height.sharey(heights[0])
        _draw_one(view, height, own, np.asarray(theta, float), name)
    for unused in (*views[len(names) :], *heights[len(names) :]):
        unused.remove()
    for view, height in panels[:, :, 0]:
        view.set_ylabel("seen from the apex (mm)\nlateral wall, centre dotted")
        height.set_ylabel("height of the centre (mm)")
    return figure


def _draw_one(view: Any, height: Any, cochlea: Cochlea, theta: np.ndarray, name: str) -> None:
    k, prior = cochlea.parameter_names.index(name), cochlea.prior()
    sd = cochlea.sd()[k]
    step = NUM_SDS * sd if np.isfinite(sd) else _SHARE_OF_BOX * prior.widths[k]
    for sign, colour in _COLOURS.items():
        changed = np.concatenate([np.zeros(6), theta[6:]])
        changed[k] += sign * step
        changed = np.clip(changed, prior.lower, prior.upper)
        wall, centre = path(cochlea, changed, "lateral_wall"), path(cochlea, changed)
        order = 3 if sign == 0 else 2  # what a parameter leaves alone is grey
        label = f"{changed[k]:.2f}{_UNITS.get(name, '')}"
        view.plot(*wall.points[:, :2].T, "-", color=colour, lw=1.5, zorder=order, label=label)
        view.plot(*centre.points[:, :2].T, ":", color=colour, lw=1.5, zorder=order)
        height.plot(np.degrees(centre.angle), centre.height, color=colour, lw=1.5, zorder=order)
    view.set_aspect("equal")
    view.legend(fontsize=8, loc="lower right")
    view.set_title(name)
    height.set_xlabel("angle (degrees)")
