"""Cochleae that the model cannot draw: their sections wander along the duct."""

import dataclasses

import numpy as np

from logishape.cochlea.calibration import Calibration
from logishape.cochlea.sections import COLUMNS
from logishape.cochlea.straying import add_series

# Standard deviations at misfit 1: centres (mm) and log sizes.
_SD = {"c0": 0.06, "c2": 0.05, "s2": 0.05, "dr": 0.12, "dz": 0.12}
_NUM_WAVES = 9  # half waves along the duct, up to


def wandering(calibration: Calibration, misfit: float, rng: np.random.Generator) -> Calibration:
    """The calibration with smooth random deviations of its sections, `misfit` times the usual ones."""
    table = calibration.table
    # A Chebyshev polynomial has a mean square of one half.
    scales = [misfit * _SD[name] * np.sqrt(2 / _NUM_WAVES) for name in COLUMNS]
    series = np.stack([scale * rng.normal(size=_NUM_WAVES) for scale in scales])
    powers = add_series(np.asarray(table.powers), np.pad(series, ((0, 0), (1, 0))))
    return dataclasses.replace(calibration, table=dataclasses.replace(table, powers=powers))
