"""Settings of a fit, as one value."""

import dataclasses
from typing import Literal

from logishape.core.errors import InputError


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """How a fit runs. The defaults suit most problems.

    method: Gauss-Newton, or BFGS for comparison.
    anneal: factors of the reference length to fit at first, largest first; the fit ends at factor one.
    use_band: leave out voxels that cannot move the shape (the answer is the same, the work is less).
    decrement_tolerance: largest Newton decrement g' H^-1 g of a converged shape (unit-free).
    rise_tolerance: a rise of the log joint (nats) too small to go on for.
    max_rounds: rounds of shape steps and appearance steps for each reference length.
    max_shape_steps, max_appearance_steps: steps within one round.
    band_drift: how far a voxel's prior logit may drift before the band is chosen anew.
    """

    method: Literal["gauss-newton", "bfgs"] = "gauss-newton"
    anneal: tuple[float, ...] = ()
    use_band: bool = True
    decrement_tolerance: float = 0.05
    rise_tolerance: float = 1e-3
    max_rounds: int = 100
    max_shape_steps: int = 20
    max_appearance_steps: int = 20
    band_drift: float = 2.0

    def __post_init__(self) -> None:
        if self.method not in ("gauss-newton", "bfgs"):
            raise InputError(f"method must be 'gauss-newton' or 'bfgs' but is {self.method!r}.")
        if any(not factor > 0 for factor in self.anneal):
            raise InputError(f"anneal must hold positive factors but is {self.anneal}; try (4.0, 2.0).")
        if min(self.max_rounds, self.max_shape_steps, self.max_appearance_steps) < 1:
            raise InputError("max_rounds, max_shape_steps and max_appearance_steps must be at least one.")
        if not (self.decrement_tolerance > 0 and self.rise_tolerance > 0 and self.band_drift > 0):
            raise InputError("tolerances and band_drift must be positive.")
