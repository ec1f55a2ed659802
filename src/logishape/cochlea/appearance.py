"""Appearance of a cochlea in CT: mixtures tied to what the image says of lumen and bone, or the paper's free ones."""

import math

from logishape.appearance import PseudoCounts, Regions, StudentMixture
from logishape.cochlea.lumen import Intensities

# Shares of the step from lumen to bone at which voxels are half one, half the other, seen from inside and outside.
INSIDE_PARTIAL, OUTSIDE_PARTIAL, PARTIAL_SPREAD = 0.21, 0.64, 0.10
INSIDE_WEIGHTS, OUTSIDE_WEIGHTS = (0.75, 0.25), (0.15, 0.585, 0.18, 0.005, 0.08)
_USUAL_NOISE_HU = 200.0  # of the specimens' lumen; what an image has more widens its partial volume too
_OTHER_HU = {
    "air": 100.0,
    "fluid": -900.0,
}  # what else lies around: soft tissue near an air-filled, air near a fluid one


def tied_regions(found: Intensities, num_inside: float, num_outside: float) -> Regions:
    """Inside: lumen and partial volume; outside: cavities, dense bone, partial volume, the rest.

    Pseudo-counts hold the mixtures near these values as firmly as if they had been seen on so many voxels.
    """
    middle = found.lumen + INSIDE_PARTIAL * found.step
    excess = max(found.lumen_noise**2 - (_USUAL_NOISE_HU * found.gain) ** 2, 0.0)
    spread = math.hypot(PARTIAL_SPREAD * found.step, math.sqrt(excess))
    other, other_scale = found.offset + found.gain * _OTHER_HU[found.filling], 200 * found.gain
    inside = StudentMixture(
        INSIDE_WEIGHTS,
        [found.lumen, middle],
        [found.lumen_noise, spread],
        [5, 30],
        PseudoCounts.worth(num_inside, INSIDE_WEIGHTS),
        estimate_dofs=False,
    )
    outside = StudentMixture(
        OUTSIDE_WEIGHTS,
        [found.lumen, found.bone, found.lumen + OUTSIDE_PARTIAL * found.step, other, middle],
        [found.lumen_noise, found.bone_noise, spread, other_scale, spread],
        [5, 5, 30, 5, 30],
        PseudoCounts.worth(num_outside, OUTSIDE_WEIGHTS),
        estimate_dofs=False,
    )
    return Regions(inside, outside)


def paper_regions(found: Intensities) -> Regions:
    """The paper's start in HU, free to learn: fluid and walls inside; fluid, capsule, air, temporal bone outside.

    In an air-filled cochlea air takes the place of fluid.
    """
    lumen = -700.0 if found.filling == "air" else 0.0
    inside = StudentMixture([0.70, 0.30], [lumen, 500], [200, 250], [5, 5])
    outside = StudentMixture([0.10, 0.45, 0.05, 0.40], [lumen, 2000, -1000, 600], [200, 300, 150, 400], [5, 5, 4, 4])
    return Regions(inside, outside)
