"""Whether probabilities hold: of the voxels called inside with probability 0.7, 70 % should be."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from logishape.core.arrays import as_numbers
from logishape.core.errors import InputError
from logishape.metrics.masks import as_mask


@dataclasses.dataclass(frozen=True, eq=False)
class Reliability:
    """The reliability curve: for each of b bins of equal width from 0 to 1, what was said and what was true.

    counts: voxels. mean_probability: what was said of them. fraction: how many of them are inside in truth. The last
    two are NaN in a bin without voxels. Of cases pooled alike, counts are shares and add up to their number.
    """

    counts: Float[np.ndarray, " b"]
    mean_probability: Float[np.ndarray, " b"]
    fraction: Float[np.ndarray, " b"]

    @classmethod
    def of_sums(
        cls, counts: Float[np.ndarray, " b"], said: Float[np.ndarray, " b"], inside: Float[np.ndarray, " b"]
    ) -> "Reliability":
        """The curve from each bin's number of voxels, the sum of their probabilities, and how many are inside."""
        nothing = np.full(np.shape(counts), np.nan)
        means = (np.divide(total, counts, out=nothing.copy(), where=counts > 0) for total in (said, inside))
        return cls(counts, *means)

    @classmethod
    def pooled(cls, curves: Iterable["Reliability"], alike: bool = True) -> "Reliability":
        """The curve of several cases: each counts the same however many voxels it has, or (not alike) each voxel."""
        parts = []
        for one in curves:
            share = one.counts / (one.counts.sum() if alike else 1)
            sums = (np.where(share > 0, share * mean, 0.0) for mean in (one.mean_probability, one.fraction))
            parts.append([share, *sums])
        if len({len(part[0]) for part in parts}) != 1:
            raise InputError(
                "expected curves of the same bins but there are none, or of different ones; make them alike."
            )
        return cls.of_sums(*np.sum(parts, axis=0))

    @property
    def expected_error(self) -> float:
        """The expected calibration error: the mean over voxels of |mean probability - fraction| of their bin."""
        gaps = np.where(self.counts > 0, np.abs(self.mean_probability - self.fraction), 0.0)
        return float(np.sum(self.counts * gaps) / np.sum(self.counts))

    @property
    def bias(self) -> float:
        """Mean probability less the share inside: above zero where too much is called inside."""
        gaps = np.where(self.counts > 0, self.mean_probability - self.fraction, 0.0)
        return float(np.sum(self.counts * gaps) / np.sum(self.counts))


def reliability(probability: Any, truth: Any, bins: int = 20) -> Reliability:
    """The reliability curve of probabilities against a mask of the same shape; a bin holds its lower end."""
    said, inside = as_numbers(probability, "the probabilities"), as_mask(truth, "the truth")
    if said.shape != inside.shape:
        raise InputError(f"the probabilities have shape {said.shape} but the truth {inside.shape}; resample one.")
    if not said.size:
        raise InputError("expected probabilities of some voxels but there are none; check the band they lie in.")
    if not np.all((said >= 0) & (said <= 1)):
        raise InputError(
            f"probabilities must lie from 0 to 1 but these go from {said.min():g} to {said.max():g}; log odds go "
            "through a sigmoid first."
        )
    if bins < 1:
        raise InputError(f"the number of bins must be positive but is {bins}; try 20.")
    which = np.minimum((said.ravel() * bins).astype(int), bins - 1)
    return Reliability.of_sums(
        *(np.bincount(which, w, bins) for w in (np.ones(said.size), said.ravel(), inside.ravel()))
    )


def expected_calibration_error(probability: Any, truth: Any, bins: int = 20) -> float:
    """The mean over voxels of |mean probability - share inside| of their bin: 0 holds, 0.5 says nothing."""
    return reliability(probability, truth, bins).expected_error
