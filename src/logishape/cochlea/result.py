"""What comes back from a segmentation, and its record as plain numbers."""

import dataclasses
from typing import Any

import numpy as np

from logishape.cochlea.coloured import ColouredSurface, coloured
from logishape.cochlea.curves import Curves
from logishape.cochlea.draws import Draws
from logishape.cochlea.frame import Frame, Side
from logishape.cochlea.labels import Labels
from logishape.cochlea.lumen import Intensities
from logishape.cochlea.matched import Matched
from logishape.cochlea.measurements import LEVEL, Measurement
from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.search import Found
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.signs import Signs
from logishape.cochlea.spread import surface_sd
from logishape.cochlea.surface import Mesh, surface
from logishape.cochlea.verdict import Flag, Verdict, caveat_of, verdict_of
from logishape.inference.fit import Fit
from logishape.io.results import FORMAT, VERSION
from logishape.posterior import SampledPosterior, ShapePosterior


@dataclasses.dataclass(frozen=True, eq=False)
class CaseResult:
    """One segmented cochlea.

    cochlea: the shape in the world, `theta` its parameters. posterior: of them, None if there is none.
    matched: what was taken off the fit's parameters for blur, None where that was not asked for or could not be done.
    found: the fit, what it saw, and what each start reached. cut: the frame of the cut to the vestibule.
    draws: of the posterior, within its box; with a misfit, each with sections of its own.
    labels: maps on the CT's own grid (`labels.on_grid("segmentation")`). flags: what speaks against the result.
    signs: the numbers behind them.
    curves: frequency and length by angle, the spiral's frame and centreline. population: mean and SD of parameters
    and measurements by name, as the prior has them; None if it has none.
    notes: what was done differently from what was asked, in sentences. chains: of the sampler where it was asked for;
    `posterior` is then the Gaussian with their mean and covariance.
    """

    side: Side
    cochlea: Cochlea
    found: Found
    posterior: ShapePosterior | None
    matched: Matched | None
    cut: Frame | None
    draws: Draws | None
    labels: Labels
    measurements: dict[str, Measurement]
    curves: Curves
    population: dict[str, tuple[float, float]] | None
    flags: tuple[Flag, ...]
    signs: Signs
    notes: tuple[str, ...]
    options: SegmentOptions
    chains: SampledPosterior | None = None

    @property
    def fit(self) -> Fit:
        """The fit."""
        return self.found.fit

    @property
    def intensities(self) -> Intensities:
        """What fills the lumen, and the values of lumen and bone."""
        return self.found.intensities

    @property
    def theta(self) -> np.ndarray:
        """The best parameters."""
        return self.found.theta if self.matched is None else self.matched.theta

    @property
    def verdict(self) -> Verdict:
        """Good, to be checked, or not to be used; the flags say why."""
        return verdict_of(self.flags)

    @property
    def is_trusted(self) -> bool:
        """Whether no serious flag was raised."""
        return self.verdict != "do not use"

    @property
    def caveat(self) -> str:
        """What the intervals do not hold, in a sentence."""
        kind = None if self.posterior is None else self.posterior.kind
        blur_mm = None if self.matched is None else self.matched.blur_mm
        return caveat_of(kind, blur_mm, self.found.crop.probability is not None)

    def surface(self, edge_length: float = 0.15) -> Mesh:
        """The fitted surface in world millimetres (needs scikit-image)."""
        return surface(self.cochlea, self.theta, edge_length)

    def coloured_surface(self, edge_length: float = 0.15) -> ColouredSurface:
        """The same with angle, frequency and, where there is a posterior, standard deviation at each vertex."""
        mesh = self.surface(edge_length)
        sure = None
        if self.draws is not None:
            sure = surface_sd(self.cochlea, self.theta, self.draws, mesh.vertices)
        return coloured(mesh, self.curves, sure)

    def record(self) -> dict[str, Any]:
        """The result without its maps, as plain numbers and words, in the order of docs/result.md."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "side": self.side,
            "trusted": self.is_trusted,
            "verdict": self.verdict,
            "flags": [dataclasses.asdict(flag) for flag in self.flags],
            "quality": dataclasses.asdict(self.signs),
            "notes": list(self.notes),
            "status": self.fit.status.name.lower(),
            "parameters": self._parameters(),
            "covariance": None if self.posterior is None else np.asarray(self.posterior.covariance).tolist(),
            "posterior": self._posterior(),
            "measurements": {
                name: {**dataclasses.asdict(one), "level": LEVEL} for name, one in self.measurements.items()
            },
            "population": self._population(),
            "curves": self.curves.record(),
            "centreline": {
                "angle_degrees": np.round(self.curves.centre_angle, 3).tolist(),
                "points_ras_mm": np.round(self.curves.centreline, 4).tolist(),
            },
            "segmented_volume_mm3": self.labels.volume_mm3(),
            "shape_volume_mm3": self.labels.volume_mm3("shape"),
            "reference_lengths_mm": dict(zip(("fit", "labels"), self.options.lengths, strict=True)),
            "appearance": self._appearance(),
            "pose": _pose(self.cochlea.frame, self.cut, Frame(self.curves.axes, self.curves.origin)),
            "fit": {
                "steps": self.fit.num_steps,
                "rounds": self.fit.num_rounds,
                "newton_decrement": self.fit.decrement if np.isfinite(self.fit.decrement) else None,
                "log_joint": np.asarray(self.fit.log_joint).tolist(),
                "path": np.round(self.found.path, 6).tolist(),
                "starts_log_joint": [float(x) if np.isfinite(x) else None for x in self.found.log_joints],
            },
            "options": dataclasses.asdict(self.options),
        }

    def _parameters(self) -> dict[str, Any]:
        sds = self.posterior.sd if self.posterior is not None else np.full(self.theta.size, np.nan)
        levels = [0.5, (1 - LEVEL) / 2, (1 + LEVEL) / 2]
        ends = None if self.draws is None else np.quantile(self.draws.theta, levels, axis=0).T.tolist()
        found = {}
        for k, name in enumerate(self.cochlea.parameter_names):
            within = dict(zip(("median", "lower", "upper"), (None,) * 3 if ends is None else ends[k], strict=True))
            sd = float(sds[k]) if np.isfinite(sds[k]) else None
            found[name] = {"value": float(self.theta[k]), "sd": sd, **within}
        return found

    def _population(self) -> dict[str, Any] | None:
        if self.population is None:
            return None
        return {name: {"mean": mean, "sd": sd} for name, (mean, sd) in self.population.items()}

    def _posterior(self) -> dict[str, Any]:
        has_one = self.posterior is not None
        fraction = self.posterior.effective_fraction if self.posterior is not None else 1.0
        return {
            "kind": self.posterior.kind if self.posterior is not None else None,
            "effective_noise_fraction": self.options.evidence * fraction,
            "draws": self.options.num_draws if has_one else 0,
            "blur": self._blur(),
            "chains": None if self.chains is None else self.chains.summary(),
        }

    def _blur(self) -> dict[str, Any] | None:
        if self.matched is None:
            return None
        bias = dict(zip(self.cochlea.parameter_names, map(float, self.matched.bias), strict=True))
        return {
            "point_spread_mm": self.matched.blur_mm,
            "sections_sd_mm": self.matched.misfit.sd_mm,
            "taken_off": bias,
        }

    def _appearance(self) -> dict[str, Any]:
        seen, has_map = self.intensities, self.found.crop.probability is not None
        regions: dict[str, Any] = {"inside": None, "outside": None}
        for name in () if has_map else ("inside", "outside"):
            mixture: Any = getattr(self.fit.state.regions, name)
            parts = mixture.components
            columns = (parts.weights, parts.means, parts.scales, mixture.dofs)
            regions[name] = [
                dict(zip(("weight", "mean", "scale", "degrees_of_freedom"), map(float, row), strict=True))
                for row in zip(*map(np.asarray, columns), strict=True)
            ]
        return {
            "lumen": seen.filling,
            "lumen_value": seen.lumen,
            "bone_value": seen.bone,
            "gain": seen.gain,
            "offset": seen.offset,
            "model": "probability map" if has_map else "mixtures",
            **regions,
        }


def _pose(frame: Frame, cut: Frame | None, spiral: Frame) -> dict[str, Any]:
    def plain(one: Frame | None) -> dict[str, Any] | None:
        if one is None:
            return None
        return {"origin_ras_mm": np.asarray(one.origin).tolist(), "axes": np.asarray(one.axes).tolist()}

    return {"frame": plain(frame), "cut": plain(cut), "spiral": plain(spiral)}
