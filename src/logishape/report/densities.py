"""What was learnt of the intensities: the voxels near the surface, and the mixtures inside and outside."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from scipy.special import expit

from logishape.appearance import StudentMixture
from logishape.cochlea.frame import Frame
from logishape.cochlea.search import NEAR
from logishape.cochlea.vestibule import is_beyond
from logishape.core.volume import Volume
from logishape.report.facts import cut_of, length_of, regions_of
from logishape.report.stored import Stored

_SIDES = {"inside": "tab:red", "outside": "tab:blue"}
_NUM_BINS, _NUM_VALUES = 100, 600
_SHOWN, _BEYOND = (0.2, 99.8), 0.08  # percent of the voxels, and a share of their range to each side


def densities(stored: Stored) -> Figure:
    """Histograms of the voxels, each inside with the probability that it is, with the fitted mixture (line) and its
    components (dashed); those within 1 mm of the surface, or all where the fit learnt from all.
    """
    values, sure = learnt(stored)
    regions = regions_of(stored.record)
    low, high = np.percentile(values, _SHOWN)
    margin = max(_BEYOND * (high - low), 1e-6)
    bins = np.linspace(low - margin, high + margin, _NUM_BINS + 1)
    figure = Figure(figsize=(7, 5), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    for panel, (name, colour), weights in zip(panels, _SIDES.items(), (sure, 1 - sure), strict=True):
        counts, _ = np.histogram(values, bins, weights=weights)
        total = max(float(np.sum(weights)), 1e-9)
        panel.stairs(counts / (total * np.diff(bins)), bins, fill=True, color=colour, alpha=0.3, label="voxels")
        _draw_mixture(panel, getattr(regions, name), np.linspace(bins[0], bins[-1], _NUM_VALUES), colour)
        panel.set(title=name, ylabel="density", yticks=[], xlim=(bins[0], bins[-1]), ylim=(0, None))
        panel.legend(fontsize=8, frameon=False)
    panels[1].set_xlabel("intensity (HU, or the image's own unit)")
    return figure


def learnt(stored: Stored) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Values of voxels near the fitted surface, as appearances learn from, and how probably they are inside."""
    chosen = _learnt_from(stored)
    values, record = stored.ct.data[chosen].astype(np.float32), stored.record
    log_odds = stored.level.data[chosen] / length_of(record) + np.asarray(regions_of(record).log_odds(values))
    return values, expit(log_odds)


def _learnt_from(stored: Stored) -> Bool[np.ndarray, "x y z"]:
    """The voxels within the reach that the appearances learn from, of the shape as it is stored."""
    if stored.record["options"]["preset"] == "paper":
        return np.ones(stored.ct.shape, bool)
    cut, chosen = cut_of(stored.record), np.abs(stored.level.data) < NEAR
    if cut is not None:
        index = np.argwhere(chosen)
        chosen[tuple(index[_is_cut(stored.ct, index, cut)].T)] = False
    return chosen


def _is_cut(ct: Volume, index: Float[np.ndarray, "n 3"], cut: Frame) -> Bool[np.ndarray, " n"]:
    return is_beyond((ct.to_world(index) - np.asarray(cut.origin)) @ np.asarray(cut.axes).T)


def _draw_mixture(panel: Any, mixture: StudentMixture, values: np.ndarray, colour: str) -> None:
    panel.plot(values, np.exp(mixture.log_prob(values)), color=colour, lw=1.5, label="fitted mixture")
    parts = mixture.components
    columns = (np.asarray(one) for one in (parts.weights, parts.means, parts.scales, mixture.dofs))
    for k, (weight, mean, scale, dof) in enumerate(zip(*columns, strict=True)):
        part = weight * np.exp(StudentMixture([1.0], [mean], [scale], [dof], estimate_dofs=False).log_prob(values))
        panel.plot(values, part, color=colour, lw=0.8, ls="--", label="components" if k == 0 else None)
