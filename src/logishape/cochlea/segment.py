"""From a CT in memory and a rough pose to a segmented cochlea with its uncertainty: all stages, joined."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from logishape.cochlea.calibration import Calibration, load_calibration, paper_calibration
from logishape.cochlea.frame import Frame
from logishape.cochlea.labels import Painter, paint
from logishape.cochlea.lumen import find_intensities
from logishape.cochlea.measurements import measure
from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.pose import Point, frame_at, likeness
from logishape.cochlea.quality import WRONG_LIKENESS, find_flags
from logishape.cochlea.reformat import reformat
from logishape.cochlea.result import CaseResult
from logishape.cochlea.search import Found, plain_fit, search, search_again
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.template import Template, load_template
from logishape.cochlea.vestibule import BELIEVABLE, frame_of_model, frame_offset, pose_surprise
from logishape.core.errors import FitError, InputError
from logishape.core.volume import Volume
from logishape.inference.model import Model
from logishape.posterior import ShapePosterior, laplace
from logishape.shapes import FirstOrder

Progress = Callable[[str], None]
STAGES = ("pose", "fit", "posterior", "labels", "measurements")


class Setting(NamedTuple):
    """What stays the same throughout a segmentation."""

    options: SegmentOptions
    calibration: Calibration
    template: Template
    progress: Progress

    def cochlea(self, frame: Frame | None = None) -> Cochlea:
        """The shape in a frame, with this calibration and these options."""
        return Cochlea(frame, self.options.free, self.calibration, distance=self.options.distance)


class Fitted(NamedTuple):
    """A fit, the frame it was made in, and the frame of the cut (None: no cut)."""

    found: Found
    frame: Frame
    cut: Frame | None
    notes: tuple[str, ...] = ()


def segment(
    volume: Volume,
    pose: Frame | Point,
    *,
    calibration: Calibration | None = None,
    template: Template | None = None,
    options: SegmentOptions | None = None,
    progress: Progress | None = None,
) -> CaseResult:
    """The cochlea of a CT (HU, RAS mm): labels on its own voxels, shape, parameters, measurements, flags.

    The rough pose is a frame (`Frame.from_landmarks`), or a `Point` near the cochlea's middle with its side.
    `calibration` and `template` replace those that ship with the package. `progress` is called with the name of each
    of `STAGES` as it begins. Same volume, pose, options and calibration: same numbers.
    """
    options, template = options or SegmentOptions(), template or load_template()
    setting = Setting(options, _calibration(calibration, options), template, progress or (lambda _: None))
    volume = check_ct(volume)
    setting.progress("pose")
    if not isinstance(pose, Frame | Point):
        raise InputError(
            f"expected a rough pose, a Frame (from landmarks) or a Point with its side, but found a "
            f"{type(pose).__name__}; give one."
        )
    given = pose if isinstance(pose, Frame) else frame_at(volume, pose, template)
    setting.progress("fit")
    fitted = _fit(volume, given, isinstance(pose, Frame), setting)
    found, theta = fitted.found, fitted.found.theta
    cochlea = setting.cochlea(fitted.frame)
    setting.progress("posterior")
    posterior = _posterior(found, setting.options)
    draws = None if posterior is None else _draws(posterior, setting.options)
    setting.progress("labels")
    painter = Painter(cochlea, found.fit.state.regions, fitted.cut, setting.options.lengths[1])
    labels = paint(volume, painter, theta, draws)
    setting.progress("measurements")
    measurements = measure(cochlea, theta, draws)
    return CaseResult(
        side=fitted.frame.side,
        cochlea=cochlea,
        fit=found.fit,
        posterior=posterior,
        log_joints=found.log_joints,
        intensities=found.intensities,
        cut=fitted.cut,
        labels=labels,
        measurements=measurements,
        flags=find_flags(found, posterior, labels, measurements, _likeness(volume, fitted, setting)),
        notes=fitted.notes,
        options=setting.options,
    )


def _calibration(given: Calibration | None, options: SegmentOptions) -> Calibration:
    if options.is_paper and given is not None:
        raise InputError("the paper's preset has sections of its own but a calibration was given too; leave one out.")
    if given is not None:
        return given
    return paper_calibration() if options.is_paper else load_calibration()


def check_ct(volume: Volume) -> Volume:
    """The volume, if it is three-dimensional and its values can be those of a CT."""
    if volume.ndim != 3:
        raise InputError(f"a CT has three axes but this image has {volume.ndim}; give the whole volume.")
    if min(volume.shape) < 8:
        raise InputError(f"a CT needs at least 8 voxels along each axis but has {volume.shape}; give all its slices.")
    first = float(volume.data.flat[0])
    if np.isfinite(first) and np.all(volume.data == volume.data.flat[0]):
        raise InputError(f"the CT has the one value {first:g} everywhere; check how it was exported.")
    if not np.all(np.isfinite(volume.data)):
        count = int(np.count_nonzero(~np.isfinite(volume.data)))
        raise InputError(f"{count} voxels of the CT are not finite; replace them, by -1024 for example.")
    return volume


def _fit(volume: Volume, given: Frame, are_landmarks: bool, setting: Setting) -> Fitted:
    """The fit in the given frame; in the model's own where the landmarks are rough; anywhere near, if that fails.

    The crop and the cut to the vestibule follow the frame.
    """
    found = _fit_in(volume, given, setting)
    if setting.options.is_paper:
        return Fitted(found, given, None)
    if are_landmarks and _is_believable(found):
        return Fitted(found, given, given)
    frame = frame_of_model(setting.cochlea(given), found.theta)
    found = _fit_in(volume, frame, setting, None if are_landmarks else found)
    again = Fitted(found, frame, frame)
    if are_landmarks and not (_is_believable(found) and _likeness(volume, again, setting) > WRONG_LIKENESS):
        frame = _frame_near(volume, given, setting)
        found = _fit_in(volume, frame, setting)
    cut = frame_of_model(setting.cochlea(frame), found.theta)
    away, turned = frame_offset(given, cut)
    note = (
        f"The landmarks are {away:.1f} mm and {turned:.0f} degrees from where the fitted cochlea would have them; "
        "the cut to the vestibule follows the fitted cochlea."
    )
    return Fitted(found, frame, cut, (note,) if are_landmarks else ())


def _frame_near(volume: Volume, given: Frame, setting: Setting) -> Frame:
    """The frame of the cochlea at the landmarks' middle, whichever way it lies."""
    middle = np.asarray(given.to_world(np.asarray(setting.calibration.centre)[None]))[0]
    try:
        return frame_at(volume, Point(middle, given.side), setting.template)
    except InputError as error:
        raise InputError(
            f"the landmarks should lie on a {given.side} cochlea but neither a fit there nor a search around them "
            "found one; check the landmarks and the side."
        ) from error


def _likeness(volume: Volume, fitted: Fitted, setting: Setting) -> float:
    """How much the bone around the fitted pose resembles that of the specimens."""
    own = frame_of_model(setting.cochlea(fitted.frame), fitted.found.theta)
    return likeness(
        volume, fitted.frame if setting.options.is_paper else own, setting.template, fitted.found.intensities
    )


def _is_believable(found: Found) -> bool:
    """Whether the fit is one, and its pose within what careful landmarks leave."""
    shape = found.model.shape
    assert isinstance(shape, Cochlea)
    return found.fit.status.is_usable and pose_surprise(shape, found.theta) <= BELIEVABLE


def _fit_in(volume: Volume, frame: Frame, setting: Setting, before: Found | None = None) -> Found:
    """The fit in the coordinates of a frame, where both sides look alike; it may continue the one the frame is of."""
    shape, options = setting.cochlea(), setting.options
    crop = reformat(volume, frame)
    model = Model(shape, shape.prior(gaussian=not options.is_paper), options.lengths[0])
    intensities = find_intensities(crop)
    if before is not None:
        return search_again(before, crop, intensities, options)
    return plain_fit(model, crop, intensities) if options.is_paper else search(model, crop, intensities, options)


def _posterior(found: Found, options: SegmentOptions) -> ShapePosterior | None:
    """The Laplace posterior of the very objective that was fitted: each voxel counts for `evidence`.

    Second derivatives of the shape, zero in the mean, are left out: they would take a minute to compile.
    """
    model = Model(FirstOrder(found.model.shape), found.model.prior, found.model.reference_length)
    try:
        return laplace(model, found.observation, found.fit, "complete" if options.is_paper else "observed")
    except FitError:
        return None


def _draws(posterior: ShapePosterior, options: SegmentOptions) -> np.ndarray:
    return posterior.sample(jax.random.key(options.seed), options.num_draws)
