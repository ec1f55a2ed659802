"""Each case segmented from its CT alone: its scores, and where it was found, for all that is measured afterwards."""

import dataclasses
import time
from typing import Any

import numpy as np

from logishape.appearance import Regions
from logishape.cochlea import CaseResult, Cochlea, Frame, SegmentOptions, locate, segment
from logishape.cochlea.labels import Painter, paint
from logishape.cochlea.lumen import Intensities, find_intensities
from logishape.cochlea.reformat import Crop, reformat
from logishape.core.volume import Volume
from logishape.inference.model import Model
from logishape.metrics import compare, dice
from logishape.reproduce.cases import Case

MASKS = {"segmentation": "posterior", "shape": "shape"}
SCORES = ("dice", "hd95", "hd100", "spill_mm3")


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """A case in the frame in which it was found: the crop, its intensities, the cut, the default fit's parameters."""

    case: Case
    frame: Frame
    cut: Frame | None
    theta: np.ndarray
    crop: Crop
    intensities: Intensities

    def model(self, options: SegmentOptions) -> Model:
        """The model that is fitted to the crop."""
        shape = Cochlea(None, options.free, self.case.calibration, distance=options.distance)
        return Model(shape, shape.prior(), options.lengths[0])

    def dice(self, theta: np.ndarray, regions: Regions, options: SegmentOptions) -> dict[str, float]:
        """Dice of the labels and of the shape against the truth on the CT."""
        cochlea = Cochlea(self.frame, options.free, self.case.calibration)
        labels = paint(self.case.volume, Painter(cochlea, regions, self.cut, options.lengths[1]), theta, None)
        truth = self.case.inside(self.case.truth)
        return {words: dice(self.case.inside(labels.on_grid(name)), truth) for name, words in MASKS.items()}


def segment_case(case: Case, options: SegmentOptions) -> tuple[CaseResult, dict[str, float]]:
    """The case segmented from its CT and nothing else, and the seconds of its stages."""
    stamps: list[tuple[str, float]] = [("locate", time.perf_counter())]

    def tell(stage: str) -> None:
        stamps.append((stage, time.perf_counter()))

    found = locate(case.volume, template=case.template)[0]
    result = segment(
        case.volume,
        found,
        calibration=None if options.is_paper else case.calibration,
        template=case.template,
        options=options,
        progress=tell,
    )
    ends = [*(when for _, when in stamps[1:]), time.perf_counter()]
    return result, {name: end - began for (name, began), end in zip(stamps, ends, strict=True)}


def score(case: Case, prediction: Volume, truth: Volume) -> dict[str, float | None]:
    """How a mask agrees with a truth where this case is scored; mm, mm3."""
    found = compare(prediction, truth, case.region)
    return {name: getattr(found, name) for name in SCORES}


def summarise(case: Case, result: CaseResult, seconds: dict[str, float]) -> dict[str, Any]:
    """What a segmentation was like, as plain numbers: scores against each truth, pose and seconds."""
    scores = {
        words: {label: score(case, result.labels.on_grid(name), truth) for name, label in MASKS.items()}
        for words, truth in case.truths.items()
    }
    if len(case.truths) > 1:
        hand, fine = list(case.truths.values())[:2]
        scores[list(case.truths)[1]][next(iter(case.truths))] = score(case, hand, fine)
    return {
        "lumen": result.intensities.filling,
        "side": result.side,
        "trusted": result.is_trusted,
        "scores": scores,
        "seconds": seconds,
        "steps": result.fit.num_steps,
        "frame": _plain(result.cochlea.frame),
        "cut": None if result.cut is None else _plain(result.cut),
        "theta": result.theta.tolist(),
    }


def scene(case: Case, record: dict[str, Any]) -> Scene:
    """The case as it was found before."""
    frame = _frame(record["frame"])
    cut = None if record["cut"] is None else _frame(record["cut"])
    crop = reformat(case.volume, frame)
    return Scene(case, frame, cut, np.array(record["theta"]), crop, find_intensities(crop))


def _plain(frame: Frame) -> dict[str, Any]:
    return {"axes": np.asarray(frame.axes).tolist(), "origin": np.asarray(frame.origin).tolist()}


def _frame(plain: dict[str, Any]) -> Frame:
    return Frame(np.array(plain["axes"]), np.array(plain["origin"]))
