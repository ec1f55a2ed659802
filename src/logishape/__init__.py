"""Bayesian segmentation with a shape you can write down, and an honest answer to how sure it is.

`import logishape as ls`, then: a shape (`ls.shapes`), how inside and outside look (`ls.appearance`), a
`Model` with a `Prior`, an `Observation` of a `Volume`, and `ls.fit`, `ls.laplace`, `ls.label_probability`.
"""

from importlib.metadata import PackageNotFoundError, version

from logishape import appearance, cochlea, core, inference, posterior, shapes
from logishape.appearance import Regions
from logishape.core import FitError, InputError, LogishapeError, Observation, Status, Volume, select_voxels
from logishape.inference import (
    Fit,
    FitOptions,
    LengthProfile,
    Model,
    Multistart,
    Prior,
    State,
    fit,
    fit_batch,
    multistart,
    profile_reference_length,
)
from logishape.posterior import (
    Comparison,
    NoiseCorrelation,
    ShapePosterior,
    compare,
    evidence,
    label_probability,
    laplace,
    marginal_label_probability,
    noise_correlation,
)
from logishape.shapes import level_and_jacobian

try:
    __version__ = version("logishape")
except PackageNotFoundError:  # not installed: run from a source tree
    __version__ = "unknown"

__all__ = [
    "Comparison",
    "Fit",
    "FitError",
    "FitOptions",
    "InputError",
    "LengthProfile",
    "LogishapeError",
    "Model",
    "Multistart",
    "NoiseCorrelation",
    "Observation",
    "Prior",
    "Regions",
    "ShapePosterior",
    "State",
    "Status",
    "Volume",
    "__version__",
    "appearance",
    "cochlea",
    "compare",
    "core",
    "evidence",
    "fit",
    "fit_batch",
    "inference",
    "label_probability",
    "laplace",
    "level_and_jacobian",
    "marginal_label_probability",
    "multistart",
    "noise_correlation",
    "posterior",
    "profile_reference_length",
    "select_voxels",
    "shapes",
]
