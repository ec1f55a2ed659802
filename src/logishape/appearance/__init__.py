"""Appearances: how intensities are distributed inside and outside the shape."""

from logishape.appearance.base import AbstractAppearance, Fixed
from logishape.appearance.gaussian import GaussianMixture, gaussian
from logishape.appearance.mixture import Components, PseudoCounts
from logishape.appearance.regions import Regions
from logishape.appearance.student import StudentMixture
from logishape.appearance.supervised import ProbabilityMap, supervised_regions

__all__ = [
    "AbstractAppearance",
    "Components",
    "Fixed",
    "GaussianMixture",
    "ProbabilityMap",
    "PseudoCounts",
    "Regions",
    "StudentMixture",
    "gaussian",
    "supervised_regions",
]
