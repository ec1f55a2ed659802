"""What speaks against a result: each flag is a sentence, and says whether the result should not be trusted."""

import dataclasses

import numpy as np

from logishape.cochlea.evaluation import level_at
from logishape.cochlea.labels import Labels
from logishape.cochlea.measurements import Measurement
from logishape.cochlea.reformat import SPACING
from logishape.cochlea.search import Found
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.vestibule import shape_surprise
from logishape.core.status import Status
from logishape.metrics import dice
from logishape.posterior import ShapePosterior

USUAL_VOLUME = (40.0, 160.0)  # mm^3
LEAST_OVERLAP = 0.75  # Dice of segmentation and fitted shape; cross-validated ones have 0.86 and more
# Squared Mahalanobis distance of the form from the specimens' mean: theirs, cross-validated, reach 23.
ODD_SHAPE, IMPOSSIBLE_SHAPE = 30.0, 60.0
# Correlation with the template at the fitted pose; cross-validated specimens have 0.7 and more, phantoms 0.65.
DOUBTFUL_LIKENESS, WRONG_LIKENESS = 0.65, 0.5
MISSING_MM3 = 1.0  # of the shape outside the CT


@dataclasses.dataclass(frozen=True)
class Flag:
    """Something to know about a result; `is_serious` means that it should not be trusted."""

    name: str
    message: str
    is_serious: bool


def find_flags(
    found: Found,
    posterior: ShapePosterior | None,
    labels: Labels,
    measurements: dict[str, Measurement],
    likeness: float,
) -> tuple[Flag, ...]:
    """All flags that a result earns; `likeness` is that of the image to the template in the fitted frame."""
    flags = [*_of_fit(found, posterior), *_of_image(found), *_of_labels(labels, measurements)]
    if likeness < DOUBTFUL_LIKENESS:
        message = (
            f"The bone around the fitted pose resembles that of the specimens by {likeness:.2f} only (1 is the same, "
            f"{DOUBTFUL_LIKENESS} and more are usual); check that this is the cochlea."
        )
        flags.append(Flag("likeness", message, likeness < WRONG_LIKENESS))
    return tuple(flags)


def _of_fit(found: Found, posterior: ShapePosterior | None) -> list[Flag]:
    flags, fit = [], found.fit
    if not fit.status.is_usable:
        flags.append(Flag("fit", f"The fit ended as {fit.status.name.lower()}: {fit.status.advice}", True))
    if fit.status == Status.AT_BOX:
        names = ", ".join(fit.at_bound)
        flags.append(Flag("at_box", f"The fit lies on the border of plausible values of {names}.", False))
    if posterior is None or posterior.is_fallback:
        flags.append(
            Flag(
                "posterior",
                "The shape's posterior could not be computed in full; do not trust its intervals.",
                posterior is None,
            )
        )
    surprise = shape_surprise(_shape(found), found.theta)
    if surprise > ODD_SHAPE:
        words = "no cochlea looks" if surprise > IMPOSSIBLE_SHAPE else "few cochleae look"
        message = f"The fitted form is {np.sqrt(surprise):.1f} SD from the mean of the specimens; {words} like that."
        flags.append(Flag("odd_shape", message, surprise > IMPOSSIBLE_SHAPE))
    return flags


def _shape(found: Found) -> Cochlea:
    assert isinstance(found.model.shape, Cochlea)
    return found.model.shape


def _of_image(found: Found) -> list[Flag]:
    flags, seen = [], found.intensities
    if not seen.looks_like_hu:
        message = (
            f"Values are far from Hounsfield units: gain {seen.gain:.2f} and offset {seen.offset:.0f} were estimated "
            f"from lumen ({seen.lumen:.0f}) and dense bone ({seen.bone:.0f})."
        )
        flags.append(Flag("not_hu", message, False))
    inside = found.crop.points[~found.crop.is_covered]
    if inside.size:
        levels = level_at(_shape(found), found.theta, inside)
        missing = np.count_nonzero(levels > 0) * SPACING**3
        if missing > MISSING_MM3:
            flags.append(Flag("cut_field_of_view", f"{missing:.0f} mm3 of the cochlea lie outside the CT.", True))
    return flags


def _of_labels(labels: Labels, measurements: dict[str, Measurement]) -> list[Flag]:
    flags = []
    overlap = dice(labels.segmentation, labels.shape) if labels.segmentation.any() else 0.0
    if overlap < LEAST_OVERLAP:
        message = f"Segmentation and fitted shape overlap by a Dice of only {overlap:.2f}; one of them is wrong."
        flags.append(Flag("disagreement", message, True))
    volume = labels.volume_mm3()
    if not USUAL_VOLUME[0] <= volume <= USUAL_VOLUME[1]:
        message = (
            f"The segmented volume is {volume:.0f} mm3; cochleae have {USUAL_VOLUME[0]:.0f} to {USUAL_VOLUME[1]:.0f}."
        )
        flags.append(Flag("volume", message, True))
    turns = measurements["turns"].value
    if not 2.0 <= turns <= 3.2:
        flags.append(Flag("turns", f"The fitted cochlea has {turns:.2f} turns; 2.2 to 3 are usual.", False))
    return flags
