"""Bayesian segmentation with a shape you can write down, and an honest answer to how sure it is.

`import logishape as ls`, then: a shape (`ls.shapes`), how inside and outside look (`ls.appearance`), a
`Model` with a `Prior`, an `Observation` of a `Volume`, and `ls.fit`, `ls.laplace`, `ls.label_probability`.
For the human cochlea in CT: `ls.read_volume` and `ls.cochlea.segment`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logishape import appearance, cochlea, core, inference, io, metrics, posterior, shapes
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
    from logishape.io import read_result, read_volume, write_volume
    from logishape.posterior import (
        Comparison,
        McmcOptions,
        NoiseCorrelation,
        SampledPosterior,
        ShapePosterior,
        compare,
        evidence,
        label_probability,
        laplace,
        marginal_label_probability,
        mcmc,
        noise_correlation,
    )
    from logishape.shapes import level_and_jacobian

    __version__: str

# Rooms and names are imported when they are first asked for, so that `logishape --help` answers at once.
_ROOMS = ("appearance", "cochlea", "core", "inference", "io", "metrics", "posterior", "shapes")
_PLACES = {
    "appearance": ("Regions",),
    "core": ("FitError", "InputError", "LogishapeError", "Observation", "Status", "Volume", "select_voxels"),
    "inference": (
        *("Fit", "FitOptions", "LengthProfile", "Model", "Multistart", "Prior", "State"),
        *("fit", "fit_batch", "multistart", "profile_reference_length"),
    ),
    "io": ("read_result", "read_volume", "write_volume"),
    "posterior": (
        *(
            "Comparison",
            "McmcOptions",
            "NoiseCorrelation",
            "SampledPosterior",
            "ShapePosterior",
            "compare",
            "evidence",
        ),
        *("label_probability", "laplace", "marginal_label_probability", "mcmc", "noise_correlation"),
    ),
    "shapes": ("level_and_jacobian",),
}
_ROOM_OF = {name: room for room, names in _PLACES.items() for name in names}

__all__ = [
    "Comparison",
    "Fit",
    "FitError",
    "FitOptions",
    "InputError",
    "LengthProfile",
    "LogishapeError",
    "McmcOptions",
    "Model",
    "Multistart",
    "NoiseCorrelation",
    "Observation",
    "Prior",
    "Regions",
    "SampledPosterior",
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
    "io",
    "label_probability",
    "laplace",
    "level_and_jacobian",
    "marginal_label_probability",
    "mcmc",
    "metrics",
    "multistart",
    "noise_correlation",
    "posterior",
    "profile_reference_length",
    "read_result",
    "read_volume",
    "select_voxels",
    "shapes",
    "write_volume",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("logishape.version").installed_version()
    elif name in _ROOMS:
        value = import_module(f"logishape.{name}")
    elif name in _ROOM_OF:
        value = getattr(import_module(f"logishape.{_ROOM_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'logishape' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
