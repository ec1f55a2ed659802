"""What counts as a mask, and what does not."""

from typing import Any

import numpy as np

from logishape.core.errors import InputError


def as_mask(mask: Any, name: str) -> np.ndarray:
    """The mask as booleans: true and false, or zero outside and one other whole number (1, 255) inside.

    A map of probabilities or of several labels is an error that calls it `name`: which of its values are inside is
    not for us to guess.
    """
    values = np.asarray(mask)
    if values.dtype == bool:
        return values
    if not np.issubdtype(values.dtype, np.number) or np.iscomplexobj(values):
        raise InputError(f"expected true and false for {name} but found {values.dtype}; give a mask.")
    inside = values != 0
    found = values[inside]
    if not found.size:
        return inside
    first = found.flat[0]
    if not np.isfinite(first) or first < 1 or first != np.floor(first):
        raise InputError(f"expected zeros and ones for {name} but found {first:g}; threshold it, at 0.5 for example.")
    other = found[found != first]
    if other.size:
        raise InputError(
            f"expected zero and one other value for {name} but found both {first:g} and {other.flat[0]:g}; threshold "
            "it or pick one label."
        )
    return inside


def as_mask_pair(prediction: Any, truth: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both masks as booleans of one shape."""
    a, b = as_mask(prediction, "the prediction"), as_mask(truth, "the truth")
    if a.shape != b.shape:
        raise InputError(f"the prediction has shape {a.shape} but the truth {b.shape}; resample one of them.")
    return a, b
