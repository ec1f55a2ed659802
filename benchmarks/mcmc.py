"""Is the Gaussian about the fit the posterior? Draws by NUTS from the same objective, against each kind of Laplace.

    python benchmarks/mcmc.py [--draws 1000] [--chains 4] [--picture docs/images/mcmc.png] [--quick]

A phantom and, where the specimens are there (LOGISHAPE_DATA, or ../shared/data beside the repository), F01. Needs the
extra `mcmc`. The picture is of the last case.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats
from specimens import data_folder

from logishape.cochlea import CaseResult, PhantomOptions, SegmentOptions, make_phantom, segment
from logishape.core.arrays import double_precision
from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.inference.model import Model, State
from logishape.inference.objective import log_joint
from logishape.io import read_volume
from logishape.posterior import McmcOptions, SampledPosterior, ShapePosterior, laplace, mcmc
from logishape.shapes import FirstOrder

FITTED, SECOND, COMPLETE = "observed", "with second derivatives", "complete"
WORDS = {"theta_max": "theta\nmax", "section_scale": "section\nscale", "apex_offset": "apex\noffset"}
BLUES, ORANGE, GREY = ("#c6dbef", "#6baed6"), "#d94801", "#636363"


class Study(NamedTuple):
    """One case: the Gaussians about its fit by name, the chains, how long they took, and how the log joint falls.

    At two SDs, by parameter, and along the directions in which half of the chains is narrower and wider than the
    Gaussian by most.
    """

    name: str
    gaussians: dict[str, ShapePosterior]
    chains: SampledPosterior
    seconds: float
    falls: np.ndarray
    falls_of_extremes: np.ndarray


def volumes(quick: bool) -> dict[str, Volume]:
    """A phantom, and a specimen where there is one."""
    found = {"phantom": make_phantom(PhantomOptions(size_mm=20.0), 1).volume}
    if quick:
        return found
    try:
        return found | {"F01": read_volume(data_folder() / "F01" / "ct.nii.gz")}
    except InputError as error:
        print(f"no specimen: {error}")
        return found


def study(name: str, volume: Volume, options: McmcOptions, quick: bool) -> Study:
    """The fit of a CT, and all posteriors of its own objective; appearances are held where the fit left them."""
    result = segment(volume, options=SegmentOptions(intervals="observed"))
    gaussians = gaussians_of(result, quick)
    found, began = result.found, time.perf_counter()
    mcmc(  # compiles
        found.model,
        found.observation,
        found.fit,
        gaussians[FITTED],
        jax.random.key(1),
        McmcOptions(2, options.num_warmup, 4),
    )
    print(f"{name}: {result.verdict}, {found.fit.status.name}; compiled in {time.perf_counter() - began:.0f} s")
    began = time.perf_counter()
    chains = mcmc(found.model, found.observation, found.fit, gaussians[FITTED], jax.random.key(0), options)
    seconds, fitted = time.perf_counter() - began, gaussians[FITTED]
    own = falls(result, (np.asarray(fitted.covariance) / fitted.sd).T)
    _, directions = extremes(halves(chains)[0], fitted)
    return Study(name, gaussians, chains, seconds, own, falls(result, directions))


def gaussians_of(result: CaseResult, quick: bool) -> dict[str, ShapePosterior]:
    """Laplace by kind; "observed" is the one of the pipeline, whose second derivatives are left out."""
    found = result.found
    plain = Model(FirstOrder(found.model.shape), found.model.prior, found.model.reference_length)
    kinds = {
        FITTED: laplace(plain, found.observation, found.fit, "observed", appearance_is_known=True),
        COMPLETE: laplace(plain, found.observation, found.fit, "complete"),
    }
    if not quick:  # compiles for two minutes
        kinds[SECOND] = laplace(found.model, found.observation, found.fit, "observed", appearance_is_known=True)
    return kinds


def falls(result: CaseResult, directions: np.ndarray) -> np.ndarray:
    """By how much the log joint falls (nats) two steps down and up along each of these rows: two nats of a Gaussian.

    A row is one SD long. That of a parameter is the way on which the others follow it, a column of the covariance.
    """
    found = result.found
    regions, theta = found.fit.state.regions, found.theta

    @jax.jit
    def height(theta: jax.Array) -> jax.Array:
        return log_joint(found.model, found.observation, State(theta, regions))

    with double_precision():
        top = float(height(theta))
        return np.array([[top - float(height(theta + steps * one)) for steps in (-2, 2)] for one in directions])


def show(found: Study) -> None:
    """The table of a case."""
    chains, fitted = found.chains, found.gaussians[FITTED]
    others = [name for name in (SECOND, COMPLETE) if name in found.gaussians]
    r_hat, worth = chains.r_hat, chains.effective_sample_size
    print(f"\n{found.name}: NUTS against the Gaussian about the fit")
    header = ["", "mean, SDs", "SD", *(f"SD, {name}" for name in others), "fall at -2, +2 SD", "ESS", "R-hat"]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for k, name in enumerate(chains.parameter_names):
        ratios = [f"{chains.sd[k] / found.gaussians[other].sd[k]:.2f}" for other in (FITTED, *others)]
        shift = (chains.mean[k] - fitted.mean[k]) / fitted.sd[k]
        low, high = found.falls[k]
        cells = [name, f"{shift:+.2f}", *ratios, f"{low:.1f}, {high:.1f}", f"{worth[k]:.0f}", f"{r_hat[k]:.3f}"]
        print("| " + " | ".join(cells) + " |")
    for name in (FITTED, *others):
        ratio, (overlap, _) = chains.sd / found.gaussians[name].sd, extremes(chains.all_draws, found.gaussians[name])
        print(
            f"{name}: SD of NUTS over SD of Laplace {ratio.min():.2f} to {ratio.max():.2f}, median "
            f"{np.median(ratio):.2f}; over all directions {overlap[0]:.2f} to {overlap[1]:.2f}"
        )
    first, second = halves(chains)
    seen, directions = extremes(first, fitted)
    again = [ratio_along(second, fitted, one) for one in directions]
    rows = zip(("narrowest", "widest"), seen, again, found.falls_of_extremes, strict=True)
    for words, one, other, (low, high) in rows:
        print(
            f"{FITTED}, where half of the chains is {words}: {one:.2f}, of the other half {other:.2f}; fall at -2, "
            f"+2 SD {low:.2f}, {high:.2f}"
        )
    chance = np.sqrt(len(worth) / len(chains.all_draws))
    print(f"as many independent draws of the Gaussian itself: all directions {1 - chance:.2f} to {1 + chance:.2f}")
    print(
        f"{chains.draws.shape[0]} chains of {chains.draws.shape[1]} draws, {chains.num_gradients} gradients in "
        f"{found.seconds:.0f} s ({1e3 * found.seconds / chains.num_gradients:.1f} ms each), {chains.num_divergent} "
        f"divergent; least ESS {worth.min():.0f}, largest R-hat {r_hat.max():.3f}, largest shift of a mean "
        f"{np.abs((chains.mean - fitted.mean) / fitted.sd).max():.2f} SDs"
    )


def halves(chains: SampledPosterior) -> tuple[np.ndarray, np.ndarray]:
    """The draws of the first half of the chains, and those of the others."""
    middle, num = chains.draws.shape[0] // 2, chains.draws.shape[-1]
    return chains.draws[:middle].reshape(-1, num), chains.draws[middle:].reshape(-1, num)


def extremes(draws: np.ndarray, gaussian: ShapePosterior) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest ratio of SDs over all directions of the parameters; those two, one SD long."""
    root = np.linalg.cholesky(np.asarray(gaussian.covariance))
    inverse = np.linalg.inv(root)
    values, vectors = np.linalg.eigh(inverse @ np.cov(draws.T) @ inverse.T)
    return np.sqrt(values[[0, -1]]), (root @ vectors[:, [0, -1]]).T


def ratio_along(draws: np.ndarray, gaussian: ShapePosterior, direction: np.ndarray) -> float:
    """The SD of draws over that of the Gaussian in the coordinate that a direction, one SD long, belongs to."""
    return float(np.std(draws @ np.linalg.solve(np.asarray(gaussian.covariance), direction)))


def draw(found: Study, path: Path) -> None:
    """A corner plot: NUTS as areas that hold 68 and 95 % of its draws, the Gaussian as ellipses that hold as much."""
    from matplotlib.figure import Figure

    chains, fitted, paper = found.chains, found.gaussians[FITTED], found.gaussians[COMPLETE]
    names, draws, num = chains.parameter_names, chains.all_draws, len(chains.parameter_names)
    figure = Figure(figsize=(14, 14), facecolor="white")
    panels: Any = figure.subplots(num, num, gridspec_kw={"wspace": 0.06, "hspace": 0.06})
    ends = [fitted.mean + sign * 3.6 * fitted.sd for sign in (-1, 1)]
    for row in range(num):
        for column in range(num):
            panel = panels[row, column]
            panel.set(xticks=[], yticks=[], xlim=(ends[0][column], ends[1][column]))
            if column > row:
                panel.set_visible(False)
            elif column == row:
                _draw_one(panel, draws[:, row], (fitted.mean[row], fitted.sd[row]))
            else:
                _draw_areas(panel, draws[:, [column, row]], fitted, [column, row])
                for held in (0.68, 0.95):
                    panel.plot(*_ellipse(fitted, [column, row], held), color=ORANGE, lw=1.1)
                panel.plot(*_ellipse(paper, [column, row], 0.95), color=GREY, lw=0.8, ls="--")
                panel.set_ylim(ends[0][row], ends[1][row])
            if row == num - 1:
                panel.set_xlabel(WORDS.get(names[column], names[column]), fontsize=12)
            if column == 0 and row:
                panel.set_ylabel(WORDS.get(names[row], names[row]), fontsize=12)
    _explain(figure, found.name)
    figure.savefig(path, dpi=90, bbox_inches="tight", metadata={"Software": None}, pil_kwargs={"optimize": True})
    print(f"\nwrote {path}, {path.stat().st_size / 1e3:.0f} kB")


def _draw_one(panel: Any, draws: np.ndarray, gaussian: tuple[float, float]) -> None:
    low, high = panel.get_xlim()
    grid = np.linspace(low, high, 200)
    panel.hist(draws, np.linspace(low, high, 41), density=True, color=BLUES[1])
    panel.plot(grid, stats.norm.pdf(grid, *gaussian), color=ORANGE, lw=1.4)


def _draw_areas(panel: Any, draws: np.ndarray, gaussian: ShapePosterior, which: list[int]) -> None:
    """Where the draws are dense, by a kernel in coordinates in which the Gaussian is round."""
    mean, root = gaussian.mean[which], np.linalg.cholesky(gaussian.covariance[np.ix_(which, which)])
    axis = np.linspace(-4, 4, 61)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij")).reshape(2, -1)
    height = stats.gaussian_kde(np.linalg.solve(root, (draws - mean).T))(grid)
    falling = np.sort(height)[::-1]
    share = np.cumsum(falling) / falling.sum()
    levels = [*(falling[np.searchsorted(share, held)] for held in (0.95, 0.68)), falling[0]]
    x, y = (mean[:, None] + root @ grid).reshape(2, axis.size, axis.size)
    panel.contourf(x, y, height.reshape(axis.size, axis.size), levels, colors=BLUES)


def _ellipse(gaussian: ShapePosterior, which: list[int], held: float) -> np.ndarray:
    """The line within which so much of a Gaussian of two parameters lies."""
    turn = np.linspace(0, 2 * np.pi, 100)
    root = np.linalg.cholesky(gaussian.covariance[np.ix_(which, which)])
    circle = np.sqrt(stats.chi2.ppf(held, 2)) * np.stack([np.cos(turn), np.sin(turn)])
    return gaussian.mean[which][:, None] + root @ circle


def _explain(figure: Any, name: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(color=BLUES[1], label="draws of NUTS: areas hold 68 and 95 % of them"),
        Line2D([], [], color=ORANGE, lw=2, label="the Gaussian about the fit, observed: 68 and 95 %"),
        Line2D([], [], color=GREY, lw=1.6, ls="--", label="the same, complete (the paper's): 95 %"),
    ]
    figure.legend(
        handles=handles,
        title=f"Posterior of the plain fit, {name}",
        loc="upper right",
        bbox_to_anchor=(0.9, 0.88),
        fontsize=17,
        title_fontsize=19,
        frameon=False,
        alignment="left",
    )


def main() -> None:
    """Runs both cases, prints their tables and draws the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--quick", action="store_true", help="the phantom alone, few draws, no second derivatives")
    chosen = parser.parse_args()
    options = McmcOptions(2, 100, 100) if chosen.quick else McmcOptions(chosen.chains, 300, chosen.draws)
    found = [study(name, volume, options, chosen.quick) for name, volume in volumes(chosen.quick).items()]
    for one in found:
        show(one)
    if chosen.picture is not None:
        draw(found[-1], chosen.picture)


if __name__ == "__main__":
    main()
