"""Sections that stray from the calibrated ones along the duct, as smooth series of its angle."""

import numpy as np
from jaxtyping import Float

from logishape.cochlea.sections import COLUMNS
from logishape.core.arrays import AnyArray

# Deviations of centres (mm) and of log sizes and forms, in parts of the SD that is sought.
_PARTS = {"c0": 0.5, "c2": 0.4, "s2": 0.4, "dr": 1.0, "dz": 1.0}
_DEGREE = 8  # of the Chebyshev polynomials along the duct: half waves of 135 degrees
# The mean size is a parameter, or the calibration's.
MODES = [(row, k) for row, name in enumerate(COLUMNS) for k in range(name == "c0", _DEGREE + 1)]
NUM_MODES = len(MODES)


def _unit_sd() -> np.ndarray:
    """SDs of modes whose sum has an SD of one, times their part: a mode's mean square is 1/2, the constant's 1.

    Of c0 the constant is left out, so that its sum has 0.94 of that.
    """
    return np.array([_PARTS[COLUMNS[row]] * np.sqrt((1 if k == 0 else 2) / (_DEGREE + 1)) for row, k in MODES])


UNIT_SD = _unit_sd()


def strayed(
    powers: Float[AnyArray, "5 degree"], coefficients: Float[np.ndarray, " m"]
) -> Float[np.ndarray, "5 degree"]:
    """The powers of a section table to which Chebyshev series are added, a coefficient for each of `MODES`."""
    series = np.zeros((len(COLUMNS), _DEGREE + 1))
    series[tuple(np.transpose(MODES))] = coefficients
    return add_series(np.asarray(powers), series)


def add_series(
    powers: Float[np.ndarray, "5 degree"], series: Float[np.ndarray, "5 k"]
) -> Float[np.ndarray, "5 degree"]:
    """The powers of a section table to which Chebyshev series, lowest first, are added."""
    found = np.array(powers, float)
    for row, one in enumerate(series):
        plain = np.polynomial.chebyshev.cheb2poly(one)
        found[row, found.shape[1] - len(plain) :] += plain[::-1]
    return found
