"""Settings of a segmentation, as one value."""

import dataclasses
import numbers
from typing import Literal, get_args

from logishape.cochlea.duct import FREE, Distance, check_distance
from logishape.core.errors import InputError

Preset = Literal["default", "paper"]
Intervals = Literal["matched", "observed", "complete"]
INTERVALS: tuple[Intervals, ...] = get_args(Intervals)
Posterior = Literal["laplace", "mcmc"]
POSTERIORS: tuple[Posterior, ...] = get_args(Posterior)
_LENGTHS = {"default": (0.07, 0.2), "paper": (0.1, 0.25)}  # mm: for the shape, for labels


@dataclasses.dataclass(frozen=True)
class SegmentOptions:
    """How a cochlea is segmented. The defaults are those that were cross-validated.

    preset: "paper" takes the paper's plain settings: uncalibrated sections, a box prior, one start, free mixtures
        over the whole crop, no cut to the vestibule.
    reference_length: mm, for finding the shape; 0.07 (the paper's preset 0.1). label_length: mm, for drawing labels;
        0.2 (the paper's preset 0.25).
    distance: one of `DISTANCES`, as in `Cochlea`. "mesh" and "learned" are those of the final fit and its posterior;
        starts, labels and measurements take the level.
    free: parameters beyond the ten of pose and spiral.
    num_draws: of the shape's posterior, for the marginal map and the intervals.
    num_starts: fits from different starts, of which the best is kept.
    evidence: what one voxel of the crop counts for. Neighbours are not independent and no cochlea is exactly the
        model; at this share the calibrated prior has a say, as it had when it was calibrated.
    intervals: what the posterior counts. "matched": what the image's point spread does to the fit is taken off the
        parameters (`match`), and noise and misfit count as the image shows them; a second or two more. "observed":
        noise alone, about the plain fit. "complete": the paper's covariance, about the plain fit; the paper's preset
        knows no other.
    posterior: where draws come from. "laplace": a Gaussian about the fit. "mcmc": the No-U-turn sampler (extra
        `mcmc`), on the objective of the plain fit; it goes with "observed" intervals, and takes a minute or so.
    worth: pseudo-counts of the appearances, as a multiple of the voxels near the surface.
    """

    preset: Preset = "default"
    reference_length: float | None = None
    label_length: float | None = None
    distance: Distance = "level"
    free: tuple[str, ...] = ("section_scale", "theta_max", "apex_offset")
    num_draws: int = 100
    seed: int = 0
    num_starts: int = 6
    evidence: float = 0.1
    worth: float = 30.0
    intervals: Intervals | None = None
    posterior: Posterior = "laplace"

    def __post_init__(self) -> None:
        if self.preset not in ("default", "paper"):
            raise InputError(f"the preset must be default or paper but is {self.preset!r}; choose one.")
        check_distance(self.distance)
        for name, value in zip(("reference_length", "label_length"), _LENGTHS[self.preset], strict=True):
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.is_paper:
            object.__setattr__(self, "free", ())
            object.__setattr__(self, "evidence", 1.0)
        if not set(self.free) <= set(FREE):
            raise InputError(f"free must be among {', '.join(FREE)} but is {self.free}; see the help of Cochlea.")
        self._check_posterior()
        self._settle_intervals()
        _check_range("reference_length", self.reference_length, 0.02, 1.0)
        _check_range("label_length", self.label_length, 0.02, 1.0)
        _check_range("evidence", self.evidence, 1e-3, 1.0)
        _check_range("worth", self.worth, 0.0, 1e3)
        _check_whole("num_draws", self.num_draws, 10, 10_000)
        _check_whole("num_starts", self.num_starts, 1, 64)
        _check_whole("seed", self.seed, 0, 2**31 - 1)
        for name in ("num_draws", "num_starts", "seed"):  # plain numbers, whatever kind was given
            object.__setattr__(self, name, int(getattr(self, name)))
        for name in ("reference_length", "label_length", "evidence", "worth"):
            object.__setattr__(self, name, float(getattr(self, name)))

    def _check_posterior(self) -> None:
        if self.posterior not in POSTERIORS:
            raise InputError(f"posterior must be laplace or mcmc but is {self.posterior!r}; choose one.")
        if self.posterior == "laplace":
            return
        if self.is_paper or self.intervals not in (None, "observed"):
            given = "those of the paper's preset" if self.is_paper else str(self.intervals)
            raise InputError(
                f"posterior mcmc samples what observed intervals stand for but intervals are {given}; leave them "
                "out, or take posterior laplace."
            )
        if self.distance != "level":
            raise InputError(
                f"posterior mcmc asks for the level ten thousand times and more but the distance is {self.distance}; "
                "leave it out, or take posterior laplace."
            )
        object.__setattr__(self, "intervals", "observed")

    def _settle_intervals(self) -> None:
        if self.intervals is None:
            object.__setattr__(self, "intervals", "complete" if self.is_paper else "matched")
        if self.intervals not in INTERVALS:
            raise InputError(
                f"intervals must be one of {', '.join(INTERVALS)} but is {self.intervals!r}; choose one of them."
            )
        if self.is_paper and self.intervals != "complete":
            raise InputError(
                f"the paper's preset has complete intervals but {self.intervals} ones were asked for; leave them out."
            )

    @property
    def is_paper(self) -> bool:
        """Whether the paper's plain settings are asked for."""
        return self.preset == "paper"

    @property
    def lengths(self) -> tuple[float, float]:
        """The reference lengths (mm) of the shape and of the labels."""
        assert self.reference_length is not None
        assert self.label_length is not None
        return self.reference_length, self.label_length


def _check_range(name: str, value: object, low: float, high: float) -> None:
    if not isinstance(value, numbers.Real) or not low <= float(value) <= high:  # NaN is not in any range
        raise InputError(f"{name} must lie from {low:g} to {high:g} but is {value!r}; leave it out for the default.")


def _check_whole(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, numbers.Integral) or not low <= int(value) <= high:
        raise InputError(f"{name} must be a whole number from {low} to {high} but is {value!r}; try the default.")
