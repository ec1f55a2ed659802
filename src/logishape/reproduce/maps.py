"""How sure a segmentation is: probabilities at the best shape, and with the shape's uncertainty integrated out."""

from typing import Any

import numpy as np

from logishape.cochlea import SegmentOptions
from logishape.report.facts import window_between
from logishape.report.planes import planes_along
from logishape.report.uncertainty import PROBABILITIES, seen_on
from logishape.reproduce.cases import Case
from logishape.reproduce.segmented import segment_case

UNSURE = (0.05, 0.95)


def map_case(case: Case, options: SegmentOptions) -> dict[str, Any]:
    """How many cubic millimetres of a case are unsure on each map, and the maps on three planes."""
    result, _ = segment_case(case, options)
    voxel = case.volume.voxel_size
    found: dict[str, Any] = {"kind": None, "sd": [], "planes": []}
    if result.posterior is not None:
        found |= {"kind": result.posterior.kind, "sd": np.asarray(result.posterior.sd).tolist()}
    for name in PROBABILITIES:
        values = result.labels.on_block(name).data
        unsure = (values > UNSURE[0]) & (values < UNSURE[1])
        found[name] = {"unsure_mm3": float(np.count_nonzero(unsure) * voxel), "sum_mm3": float(values.sum() * voxel)}
    window = window_between(result.intensities.lumen, result.intensities.bone)
    maps = {name: result.labels.on_block(name) for name in PROBABILITIES}
    for plane in planes_along(result.cochlea.frame):
        seen_there = seen_on(plane, case.volume, window, maps)
        found["planes"].append(
            {
                key: np.round(one, 3).tolist() if isinstance(one, np.ndarray) else one
                for key, one in seen_there.items()
            }
        )
    return found
