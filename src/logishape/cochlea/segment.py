"""From a CT in memory and a rough pose to a segmented cochlea with its uncertainty: all stages, joined."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from logishape.cochlea.calibration import Calibration, load_calibration, paper_calibration
from logishape.cochlea.checks import check_ct, check_field, check_spacing
from logishape.cochlea.duct import OF_THE_FIT
from logishape.cochlea.estimate import estimate
from logishape.cochlea.frame import Frame
from logishape.cochlea.labels import Labels, Painter, paint
from logishape.cochlea.locate import Located, locate
from logishape.cochlea.lumen import find_intensities
from logishape.cochlea.measurements import measure_all
from logishape.cochlea.options import SegmentOptions
from logishape.cochlea.pose import Point, likeness
from logishape.cochlea.probability import check_map, crop_with_map, options_with_map
from logishape.cochlea.quality import WRONG_LIKENESS, find_flags
from logishape.cochlea.reformat import LEAST_COVERED, grid_points, reformat, sample
from logishape.cochlea.result import CaseResult
from logishape.cochlea.sampled import LOST, PLAIN, flags_of_chains
from logishape.cochlea.search import Found, plain_fit, search
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.signs import Signs, contrast, map_contrast, surface_errors
from logishape.cochlea.spread import population_of
from logishape.cochlea.template import Template, load_template
from logishape.cochlea.vestibule import BELIEVABLE, frame_of_model, frame_offset, pose_surprise
from logishape.core.errors import InputError
from logishape.core.observation import Observation
from logishape.core.volume import Volume
from logishape.inference.model import Model
from logishape.inference.objective import log_joint
from logishape.posterior import check_sampler

Progress = Callable[[str], None]
STAGES = ("locate", "fit", "posterior", "labels", "measurements")
UNCORRECTED = "What blur does to the sizes could not be taken off; they are those of the plain fit."
RIVAL_BALL = 4.0  # mm: rival poses are compared on the voxels of a ball this large


class Setting(NamedTuple):
    """What stays the same throughout a segmentation."""

    options: SegmentOptions
    calibration: Calibration
    template: Template
    progress: Progress
    probability: Volume | None = None

    def cochlea(self, frame: Frame | None = None) -> Cochlea:
        """The shape in a frame, with this calibration and these options; by its level where that is not fitted."""
        distance = "level" if self.options.distance in OF_THE_FIT else self.options.distance
        return Cochlea(frame, self.options.free, self.calibration, distance=distance)


class Fitted(NamedTuple):
    """A fit, the frame it was made in, and the frame of the cut (None: no cut)."""

    found: Found
    frame: Frame
    cut: Frame | None = None
    notes: tuple[str, ...] = ()


def segment(
    volume: Volume,
    pose: Frame | Point | Located | None = None,
    *,
    calibration: Calibration | None = None,
    template: Template | None = None,
    options: SegmentOptions | None = None,
    progress: Progress | None = None,
    appearance_probability: Volume | None = None,
) -> CaseResult:
    """The cochlea of a CT (HU, RAS mm): labels on its own voxels, shape, parameters, measurements, flags.

    Without a pose the cochlea is found; a CT that shows two needs one, `locate` gives both. A rough pose is what
    `locate` gave, a `Point` near the cochlea's middle, or a frame (`Frame.from_landmarks`).
    `calibration` and `template` replace those that ship with the package. `progress` is called with the name of each
    of `STAGES` as it begins ("locate" only where something has to be found). Same volume, pose, options and
    calibration: same numbers.

    `appearance_probability`: p(inside) of a network of your own, on the CT's grid or another in the same world. Its
    log odds then stand for log p(I | inside) - log p(I | outside), and intensities are not modelled: intervals that
    match blur become those of the observed information. Finding the cochlea and its checks still look at the CT.
    """
    volume = check_ct(volume)
    check_spacing(volume)
    options, notes = _settle(options or SegmentOptions(), appearance_probability, volume)
    template = template or load_template()
    told = progress or (lambda _: None)
    setting = Setting(options, _calibration(calibration, options), template, told, appearance_probability)
    place = _place(volume, pose, setting)
    setting.progress("fit")
    check_field(volume, place if isinstance(place, Frame) else place.frame, setting.cochlea())
    fitted = _fit(volume, place, setting)
    found, cochlea = fitted.found, setting.cochlea(fitted.frame)
    setting.progress("posterior")
    known = estimate(found, cochlea, options, setting.progress)
    setting.progress("labels")
    looks, length = found.fit.state.regions, options.lengths[1]
    painter = Painter(cochlea, looks, fitted.cut, length, appearance_probability, options.is_paper)
    labels = paint(volume, painter, known.theta, known.draws)
    setting.progress("measurements")
    measurements, curves = measure_all(cochlea, known.theta, known.draws)
    signs = _signs(volume, place, fitted, labels, setting)
    if options.posterior == "mcmc":
        notes += (LOST if known.chains is None else PLAIN,)
    if options.intervals == "matched" and known.matched is None:
        notes += (UNCORRECTED,)
    return CaseResult(
        side=fitted.frame.side,
        cochlea=cochlea,
        found=found,
        posterior=known.posterior,
        matched=known.matched,
        draws=known.draws,
        cut=fitted.cut,
        labels=labels,
        measurements=measurements,
        curves=curves,
        population=population_of(cochlea),
        flags=(
            *find_flags(volume, found, known.posterior, labels, measurements, signs),
            *flags_of_chains(known.chains),
        ),
        signs=signs,
        notes=(*notes, *fitted.notes),
        options=setting.options,
        chains=known.chains,
    )


def _settle(
    options: SegmentOptions, probability: Volume | None, volume: Volume
) -> tuple[SegmentOptions, tuple[str, ...]]:
    """The options as they go with a map, and what they leave out, in sentences; what is missing is an error."""
    notes: tuple[str, ...] = ()
    if probability is not None:
        check_map(probability, volume)
        options, note = options_with_map(options)
        notes = (note,)
    if options.posterior == "mcmc":
        check_sampler()
    return options, notes


def _place(volume: Volume, pose: Frame | Point | Located | None, setting: Setting) -> Frame | Located:
    """The frame of landmarks as it is; else what is found, at the point or anywhere."""
    if isinstance(pose, Frame | Located):
        return pose
    if pose is not None and not isinstance(pose, Point):
        raise InputError(
            f"expected a rough pose, a Frame (from landmarks), a Point or what locate found, but this is a "
            f"{type(pose).__name__}; give one, or none to have it found."
        )
    setting.progress("locate")
    found, *others = locate(volume, point=pose, template=setting.template)
    if others:
        raise InputError(
            "the CT shows both ears and one is segmented at a time; give one of those that locate finds."
        )
    return found


def _calibration(given: Calibration | None, options: SegmentOptions) -> Calibration:
    if options.is_paper and given is not None:
        raise InputError("the paper's preset has sections of its own but a calibration was given too; leave one out.")
    if given is not None:
        return given
    return paper_calibration() if options.is_paper else load_calibration()


def _fit(volume: Volume, place: Frame | Located, setting: Setting) -> Fitted:
    """The fit in the frame of landmarks or of what was found; in the model's own where that frame is rough.

    Landmarks that no fit agrees with only say where to look. The crop and the cut to the vestibule follow the frame.
    """
    frames = (place,) if isinstance(place, Frame) else (place.frame, *place.rivals)
    first = _best_fit(volume, frames, setting)
    if setting.options.is_paper:
        return first
    if _is_believable(first.found):
        return first._replace(cut=first.frame)
    if not isinstance(place, Frame):
        return _fit_again(volume, first, setting)
    again, follows = _fit_again(volume, first, setting) if _is_inside(volume, first, setting) else first, "fitted"
    if not (_is_believable(again.found) and _likeness(volume, again, setting) > WRONG_LIKENESS):
        again, follows = _fit(volume, _found_near(volume, place, setting), setting), "found"
    assert again.cut is not None
    away, turned = frame_offset(place, again.cut)
    note = (
        f"The landmarks are {away:.1f} mm and {turned:.0f} degrees from where the {follows} cochlea would have them; "
        f"the cut to the vestibule follows the {follows} cochlea."
    )
    return again._replace(notes=(note,))


def _best_fit(volume: Volume, frames: tuple[Frame, ...], setting: Setting) -> Fitted:
    """The fit in the frame in which the model explains the image best."""
    fits = [Fitted(_fit_in(volume, frames[0], setting), frames[0])]
    for frame in frames[1:]:
        try:
            fits.append(Fitted(_fit_in(volume, frame, setting), frame))
        except InputError:  # a rival that leaves the CT, or sees no lumen, is none
            continue
    return fits[0] if len(fits) == 1 else max(fits, key=lambda one: _height(volume, one, frames[0], setting))


def _height(volume: Volume, fitted: Fitted, around: Frame, setting: Setting) -> float:
    """The log joint of a fit on the same voxels whatever its frame: a ball around the cochlea's middle.

    Without the appearances' own prior, whose density is known up to a constant that differs from fit to fit.
    """
    found, centre = fitted.found, np.asarray(setting.calibration.centre)
    if not found.fit.status.is_usable:
        return -np.inf
    points = grid_points()
    points = points[np.linalg.norm(points - centre, axis=1) < RIVAL_BALL]
    intensities, is_covered = sample(setting.probability or volume, around, points)
    world = points @ np.asarray(around.axes) + np.asarray(around.origin)
    model = Model(setting.cochlea(fitted.frame), found.model.prior, found.model.reference_length)
    weights = setting.options.evidence * is_covered
    state = found.fit.state
    return float(
        log_joint(model, Observation.from_arrays(world, intensities, weights), state) - state.regions.log_prior()
    )


def _is_inside(volume: Volume, fitted: Fitted, setting: Setting) -> bool:
    """Whether the CT covers the surroundings of a fitted model."""
    frame = frame_of_model(setting.cochlea(fitted.frame), fitted.found.theta)
    points = grid_points()[::7]
    return float(np.mean(sample(volume, frame, points)[1])) >= LEAST_COVERED


def _fit_again(volume: Volume, fitted: Fitted, setting: Setting) -> Fitted:
    """The fit in the frame of the model that was fitted before."""
    frame = frame_of_model(setting.cochlea(fitted.frame), fitted.found.theta)
    found = _fit_in(volume, frame, setting)
    return Fitted(found, frame, frame_of_model(setting.cochlea(frame), found.theta))


def _found_near(volume: Volume, given: Frame, setting: Setting) -> Located:
    """The cochlea at the landmarks' middle, whichever way it lies."""
    middle = np.asarray(given.to_world(np.asarray(setting.calibration.centre)[None]))[0]
    try:
        return locate(volume, point=Point(middle, given.side), template=setting.template)[0]
    except InputError as error:
        raise InputError(
            f"the landmarks should lie on a {given.side} cochlea but neither a fit there nor a search around them "
            "found one; check the landmarks and the side."
        ) from error


def _signs(volume: Volume, place: Frame | Located, fitted: Fitted, labels: Labels, setting: Setting) -> Signs:
    """What speaks for or against the result; a registration's score is of another kind, and left out."""
    search = place if isinstance(place, Located) and place.by == "search" else None
    return Signs(
        likeness=_likeness(volume, fitted, setting),
        score=None if search is None else search.score,
        margin=None if search is None else search.margin,
        contrast=contrast(fitted.found),
        map_contrast=map_contrast(fitted.found),
        rival_gap=fitted.found.rival_gap,
        **surface_errors(volume, labels, fitted.cut),
    )


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


def _fit_in(volume: Volume, frame: Frame, setting: Setting) -> Found:
    """The fit in the coordinates of a frame, where both sides look alike."""
    options = setting.options
    shape = Cochlea(None, options.free, setting.calibration, distance=options.distance)
    crop = reformat(volume, frame)
    if setting.probability is not None:
        crop = crop_with_map(crop, setting.probability, frame, shape)
    model = Model(shape, shape.prior(gaussian=not options.is_paper), options.lengths[0])
    intensities = find_intensities(crop)
    return plain_fit(model, crop, intensities) if options.is_paper else search(model, crop, intensities, options)
