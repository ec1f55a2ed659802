"""What speaks against a result: each flag is a sentence, and says whether the result should not be trusted."""

import numpy as np

from logishape.cochlea.checks import input_flags
from logishape.cochlea.evaluation import level_at
from logishape.cochlea.labels import Labels
from logishape.cochlea.measurements import Measurement
from logishape.cochlea.reformat import SPACING
from logishape.cochlea.search import Found
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.signs import Signs
from logishape.cochlea.verdict import Flag
from logishape.cochlea.vestibule import is_beyond, shape_surprise
from logishape.core.status import Status
from logishape.core.volume import Volume
from logishape.metrics import dice
from logishape.posterior import ShapePosterior

USUAL_VOLUME = (40.0, 160.0)  # mm^3
LEAST_OVERLAP = 0.75  # Dice of segmentation and fitted shape; cross-validated ones have 0.86 and more
# Squared Mahalanobis distance of the form from the specimens' mean: theirs, cross-validated, reach 23.
ODD_SHAPE, IMPOSSIBLE_SHAPE = 30.0, 60.0
# Correlation with the template at the fitted pose; cross-validated specimens have 0.7 and more, phantoms 0.65.
DOUBTFUL_LIKENESS, WRONG_LIKENESS = 0.65, 0.5
MISSING_MM3 = 1.0  # of the shape outside the CT


# Of the search: below the first a cochlea is accepted only where nothing else looks alike (`locate`).
LOW_SCORE, SMALL_MARGIN = 0.78, 0.03
CLOSE_RIVAL = 5.0  # nats between the best start and one that ended elsewhere
# Of bone to lumen across the fitted surface, in standard deviations.
LOW_CONTRAST, NO_CONTRAST = 2.0, 1.0
# Of a given map's log odds across the fitted surface, nats: odds that differ by a factor of twenty, and of three.
LOW_MAP_CONTRAST, NO_MAP_CONTRAST = 3.0, 1.1
# The average surface errors (mm) of the segmentation and of the fitted shape: to be checked, not to be used.
# Cross-validated specimens reach 0.05 and 0.18, phantoms as clean 0.01 and 0.04.
ROUGH_MM, WRONG_MM = 0.12, 0.35
ROUGH_SHAPE_MM, WRONG_SHAPE_MM = 0.30, 0.55
CLEAR_SHAPE_MM = 0.15  # with less the image bears out what the search was not sure of


def find_flags(
    volume: Volume,
    found: Found,
    posterior: ShapePosterior | None,
    labels: Labels,
    measurements: dict[str, Measurement],
    signs: Signs,
) -> tuple[Flag, ...]:
    """All flags that a result earns."""
    return (
        *input_flags(volume, found.crop, found.intensities),
        *_of_fit(found, posterior),
        *_of_field(found),
        *_of_labels(labels, measurements),
        *flags_of_signs(signs),
    )


def flags_of_signs(signs: Signs) -> list[Flag]:
    """The flags that these numbers alone earn."""
    flags = []
    if signs.likeness < DOUBTFUL_LIKENESS:
        message = (
            f"The bone around the fitted pose resembles that of the specimens by {signs.likeness:.2f} only (1 is the "
            f"same, {DOUBTFUL_LIKENESS} and more are usual); check that this is the cochlea."
        )
        flags.append(Flag("likeness", message, signs.likeness < WRONG_LIKENESS))
    is_borne_out = signs.shape_surface_error_mm is not None and signs.shape_surface_error_mm < CLEAR_SHAPE_MM
    if signs.score is not None and signs.score < LOW_SCORE and not is_borne_out:
        message = f"What was found resembles a cochlea by {signs.score:.2f} only; check that it is one."
        flags.append(Flag("score", message, False))
    if signs.margin is not None and signs.margin < SMALL_MARGIN:
        message = "The cochlea fits nearly as well lying another way; check its orientation."
        flags.append(Flag("margin", message, False))
    if signs.rival_gap is not None and signs.rival_gap < CLOSE_RIVAL:
        message = "Another place or orientation explains the image nearly as well; check where the contours lie."
        flags.append(Flag("rival", message, False))
    if signs.contrast is not None and signs.contrast < LOW_CONTRAST:
        message = (
            f"Bone outside the fitted surface is brighter than the lumen inside by {signs.contrast:.1f} standard "
            "deviations only; the image hardly shows the cochlea, or it lies elsewhere."
        )
        flags.append(Flag("contrast", message, signs.contrast < NO_CONTRAST))
    if signs.map_contrast is not None and signs.map_contrast < LOW_MAP_CONTRAST:
        message = (
            f"The probability map's log odds are higher inside the fitted surface than outside by "
            f"{round(signs.map_contrast, 1) + 0.0:.1f} nats only; it hardly shows the cochlea, or shows it elsewhere."
        )
        flags.append(Flag("map_contrast", message, signs.map_contrast < NO_MAP_CONTRAST))
    errors = (
        ("surface_error", "segmentation", signs.surface_error_mm, ROUGH_MM, WRONG_MM),
        ("shape_surface_error", "fitted shape", signs.shape_surface_error_mm, ROUGH_SHAPE_MM, WRONG_SHAPE_MM),
    )
    for name, words, error, rough, wrong in errors:
        if error is None:
            flags.append(Flag(name, f"The image shows no border around the {words}.", True))
        elif error > rough:
            message = f"The border of the {words} is {error:.2f} mm from where the image has one, on average."
            flags.append(Flag(name, message, error > wrong))
    return flags


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


def _of_field(found: Found) -> list[Flag]:
    flags = []
    inside = found.crop.points[~found.crop.is_covered]
    if inside.size:
        levels = level_at(_shape(found), found.theta, inside)
        missing = np.count_nonzero(levels > 0) * SPACING**3
        if missing > MISSING_MM3:
            flags.append(Flag("cut_field_of_view", f"{missing:.0f} mm3 of the cochlea lie outside the CT.", True))
    unmapped = _of_map(found)
    if unmapped > MISSING_MM3:
        message = f"{unmapped:.0f} mm3 of the cochlea lie outside the probability map; there the shape decides alone."
        flags.append(Flag("cut_map", message, False))
    return flags


def _of_map(found: Found) -> float:
    """How much of the fitted cochlea (mm3) a given map does not show."""
    crop = found.crop
    if crop.is_mapped is None or crop.is_mapped.all():
        return 0.0
    points = crop.points[~crop.is_mapped & ~is_beyond(crop.points)]
    return float(np.count_nonzero(level_at(_shape(found), found.theta, points) > 0) * SPACING**3)


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
