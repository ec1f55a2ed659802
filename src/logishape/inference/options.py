"""Settings of a fit, as one value."""

import dataclasses
import numbers
from collections.abc import Sequence
from typing import Literal

import numpy as np

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
    anneal: Sequence[float] = ()
    use_band: bool = True
    decrement_tolerance: float = 0.05
    rise_tolerance: float = 1e-3
    max_rounds: int = 100
    max_shape_steps: int = 20
    max_appearance_steps: int = 20
    band_drift: float = 2.0

    def __post_init__(self) -> None:
        if self.method not in ("gauss-newton", "bfgs"):
            raise InputError(f"method is {self.method!r} but must be 'gauss-newton' or 'bfgs'; use the first.")
        factors = tuple(np.atleast_1d(np.asarray(self.anneal, dtype=float)).tolist())
        object.__setattr__(self, "anneal", factors)  # a list would do for a user, but not for the compiler
        if any(not 1 < factor < np.inf for factor in factors) or list(factors) != sorted(factors, reverse=True):
            raise InputError(f"anneal must hold factors above one, largest first, but is {factors}; try (4.0, 2.0).")
        for name in ("max_rounds", "max_shape_steps", "max_appearance_steps"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or not 1 <= int(value) <= 10_000:
                raise InputError(f"{name} must be a whole number from 1 to 10000 but is {value}; try the default.")
        for name in ("decrement_tolerance", "rise_tolerance", "band_drift"):
            if not 0 < getattr(self, name) < np.inf:
                raise InputError(f"{name} must be positive and finite but is {getattr(self, name)}; try the default.")
