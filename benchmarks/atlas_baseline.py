"""The paper's baseline done with care: one specimen as atlas, warped to another by diffeomorphic demons.

    python benchmarks/atlas_baseline.py [--template F01] [--only F02 T01] [--timed F08 F11 T06] [--repeats 3]
    python benchmarks/atlas_baseline.py --all [--only F01 F02 F08 F10 T01 T03] [--smoothing 1.5] [--match all]

Crops lie in the true frame of their landmarks, left ears mirrored. The first form also fits our model to the same
crop of each target and prints both scores; on the targets named by --timed (one air- and two fluid-filled ones
unless told) both take turns once they are warm, and it prints the ratio of their times. The second form lets every
specimen be the atlas of all others. What was tuned was tuned on the six specimens of folds 1 and 2. The yardstick
is `score.py` beside the data; it shares no code with this package.
"""

import argparse
import dataclasses
import importlib.util
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import numpy as np
import SimpleITK as sitk  # noqa: N813 - its own documentation calls it so
from crossvalidate import AIR, KINDS
from engine import print_table, report
from scipy import ndimage
from specimens import FOLDS, data_folder

from logishape.cochlea import Cochlea, Frame, SegmentOptions, load_calibration
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.cochlea.labels import Painter, paint
from logishape.cochlea.landmarks import frame_from_points
from logishape.cochlea.lumen import find_intensities
from logishape.cochlea.reformat import Crop, reformat
from logishape.cochlea.search import Found, search
from logishape.core.volume import Volume
from logishape.inference.model import Model
from logishape.io import read_landmarks, read_mask, read_volume
from logishape.reproduce.atlas import Demons, register
from logishape.reproduce.atlas import look_at as atlas_look
from logishape.reproduce.atlas import warp as atlas_warp
from logishape.reproduce.cases import fold_of

TUNED_ON = sorted(FOLDS["1"] + FOLDS["2"])
TIMED = ("F08", "F11", "T06")
SCORES = ("dice", "hd95", "assd", "spill")
Scores = dict[str, dict[str, float]]


@dataclasses.dataclass(frozen=True)
class Ear:
    """A specimen: its CT, the frame of its landmarks, the crop there, and its masks on the CT's grid."""

    name: str
    volume: Volume
    frame: Frame
    crop: Crop
    masks: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Turn:
    """Wall and CPU seconds of one registration, one warp of the mask, one fit and one drawing of labels."""

    wall: np.ndarray
    cpu: np.ndarray


def load_ear(name: str) -> Ear:
    """One specimen from its files."""
    folder = data_folder() / name
    marks, volume = read_landmarks(folder / "landmarks.json"), read_volume(folder / "ct.nii.gz")
    frame = frame_from_points(marks.points, marks.side)
    paths = {key: folder / f"{key}.nii.gz" for key in ("region", *KINDS)}
    masks = {key: read_mask(path).data for key, path in paths.items() if path.exists()}
    return Ear(name, volume, frame, reformat(volume, frame), masks)


def look_at(ear: Ear, options: Demons) -> sitk.Image:
    """The crop of a specimen as it is compared."""
    return atlas_look(ear.crop, options)


def warp(field: sitk.Image, atlas: Ear, target: Ear) -> np.ndarray:
    """The atlas's manual mask on the target's own voxels."""
    mask = atlas.volume.with_data(atlas.masks["cochlea"])
    return atlas_warp(field, mask, atlas.frame, target.frame, target.volume)


def load_yardstick() -> ModuleType:
    """The module `score.py`."""
    path = data_folder().parents[1] / "eval" / "score.py"
    spec = importlib.util.spec_from_file_location("score", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def score(yardstick: ModuleType, prediction: np.ndarray, target: Ear) -> Scores:
    """What the yardstick says against each truth; it sees the block that holds region and prediction, no more."""
    region = target.masks["region"]
    rows = ndimage.find_objects((region | prediction).astype(np.uint8))[0]
    block = tuple(slice(max(row.start - 2, 0), row.stop + 2) for row in rows)
    truths = {kind: target.masks[kind] for kind in KINDS if kind in target.masks}
    return {
        kind: yardstick.compare(prediction[block], truth[block], region[block], target.volume.spacing)
        for kind, truth in truths.items()
    }


def fit_ours(target: Ear, options: SegmentOptions) -> Found:
    """Our fit in the landmarks' frame, with what was calibrated without the target's fold."""
    calibration = load_calibration(DEFAULT_FILE, fold_of(target.name))
    shape = Cochlea(None, options.free, calibration, distance=options.distance)
    model = Model(shape, shape.prior(gaussian=True), options.lengths[0])
    return search(model, target.crop, find_intensities(target.crop), options)


def label_ours(target: Ear, found: Found, options: SegmentOptions) -> np.ndarray:
    """Our labels on the target's own voxels, cut to the vestibule in the landmarks' frame."""
    shape = found.model.shape
    assert isinstance(shape, Cochlea)
    cochlea = Cochlea(target.frame, options.free, shape.calibration, distance=options.distance)
    painter = Painter(cochlea, found.fit.state.regions, target.frame, options.lengths[1])
    return paint(target.volume, painter, found.theta, None).on_grid("segmentation").data > 0


def timed(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall and CPU seconds (all threads) of one call, and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = jax.block_until_ready(run())
    return time.perf_counter() - wall, time.process_time() - cpu, result


def take_turn(atlas: Ear, moving: sitk.Image, target: Ear, demons: Demons) -> tuple[Turn, np.ndarray, np.ndarray]:
    """One registration and one fit, each followed by its labels: seconds, the warped mask and ours."""
    options = SegmentOptions()
    *register_s, field = timed(lambda: register(look_at(target, demons), moving, demons))
    *warp_s, warped = timed(lambda: warp(field, atlas, target))
    *fit_s, found = timed(lambda: fit_ours(target, options))
    *label_s, labels = timed(lambda: label_ours(target, found, options))
    wall, cpu = np.array([register_s, warp_s, fit_s, label_s]).T
    return Turn(wall, cpu), warped, labels


def compare_times(template: str, names: list[str], demons: Demons, repeats: dict[str, int]) -> None:
    """Prints scores and seconds of atlas and model, side by side on the same crops."""
    yardstick, atlas = load_yardstick(), load_ear(template)
    moving = look_at(atlas, demons)
    found: dict[str, dict[str, Scores]] = {"atlas": {}, "model": {}}
    rows, turns = [], []
    for name in names:
        target = load_ear(name)
        _, warped, labels = take_turn(atlas, moving, target, demons)  # compiles what is not compiled
        found["atlas"][name], found["model"][name] = (score(yardstick, mask, target) for mask in (warped, labels))
        own = [take_turn(atlas, moving, target, demons)[0] for _ in range(repeats.get(name, 0))]
        turns += own
        dices = [f"{found[who][name]['cochlea']['dice']:.3f}" for who in found]
        rows += [[name, *dices, *seconds_of(own)]] if own else []
        report(f"{name}: manual Dice of atlas and model {dices}" + (f", seconds {rows[-1][3:]}" if own else ""))
    means = [f"{np.mean([row['cochlea']['dice'] for row in found[who].values()]):.3f}" for who in found]
    if turns:
        rows.append(["all", *means, *seconds_of(turns)])
    print_scores(f"Atlas {template} and our model, pose from landmarks; mm, mm3", found)
    title = "Manual Dice, and median seconds of warm runs that took turns; all: Dice of all targets, times of these"
    print_table(title, TIME_HEADER, rows, [])


TIME_HEADER = (
    "target",
    "atlas Dice",
    "model Dice",
    "demons s",
    "fit s",
    "time fit : demons",
    "CPU s",
    "CPU fit : demons",
    "with labels s",
    "time with labels",
)


def seconds_of(turns: list[Turn]) -> list[str]:
    """Median seconds of demons and fit, ratios with their range, CPU seconds, and the same with labels."""
    wall, cpu = (np.array([getattr(turn, key) for turn in turns]) for key in ("wall", "cpu"))
    whole = wall.reshape(-1, 2, 2).sum(axis=2)
    middle = np.median(wall, axis=0)
    return [
        f"{middle[0]:.2f}",
        f"{middle[2]:.2f}",
        spread(wall[:, 2] / wall[:, 0]),
        " / ".join(f"{np.median(cpu[:, k]):.2f}" for k in (0, 2)),
        spread(cpu[:, 2] / cpu[:, 0]),
        " / ".join(f"{value:.2f}" for value in np.median(whole, axis=0)),
        spread(whole[:, 1] / whole[:, 0]),
    ]


def spread(values: np.ndarray) -> str:
    """The median and, in brackets, the range."""
    return f"{np.median(values):.1f} [{values.min():.1f}, {values.max():.1f}]"


def print_scores(title: str, found: dict[str, dict[str, Scores]]) -> None:
    """Prints a row for each method and truth: means over the targets and the worst Dice."""
    rows = []
    for who, targets in found.items():
        for kind, words in KINDS.items():
            chosen = [scores[kind] for scores in targets.values() if kind in scores]
            if chosen:
                rows.append([who, words, f"{len(chosen)}", *mean_scores(chosen)])
    print_table(title, ["", "truth", "n", "Dice", "HD95", "mean distance", "spill", "worst Dice"], rows, [])


def mean_scores(chosen: list[dict[str, float]]) -> list[str]:
    """Means of the scores, then the worst Dice."""
    return [
        *(f"{np.mean([row[key] for row in chosen]):.3f}" for key in SCORES),
        f"{min(r['dice'] for r in chosen):.3f}",
    ]


def compare_atlases(names: list[str], demons: Demons) -> None:
    """Prints how each specimen does as the atlas of all others, and groups of pairs."""
    yardstick, ears = load_yardstick(), [load_ear(name) for name in names]
    looks = {ear.name: look_at(ear, demons) for ear in ears}
    pairs: dict[tuple[str, str], Scores] = {}
    for target in ears:
        began = time.perf_counter()
        for atlas in ears:
            if atlas is not target:
                field = register(looks[target.name], looks[atlas.name], demons)
                pairs[atlas.name, target.name] = score(yardstick, warp(field, atlas, target), target)
        own = [scores["cochlea"]["dice"] for pair, scores in pairs.items() if pair[1] == target.name]
        report(f"{target.name}: manual Dice {np.mean(own):.3f}, {time.perf_counter() - began:.0f} s")
    tests: dict[str, Callable[[str, str], bool]] = {
        name: lambda atlas, _, name=name: atlas == name for name in names
    } | {
        "all pairs": lambda *_: True,
        "same lumen": lambda *pair: (pair[0] in AIR) == (pair[1] in AIR),
        "air and fluid": lambda *pair: (pair[0] in AIR) != (pair[1] in AIR),
        "tuned on": lambda *pair: set(pair) <= set(TUNED_ON),
        "both unseen": lambda *pair: not set(pair) & set(TUNED_ON),
    }
    chosen = {
        label: {f"{a} {t}": scores for (a, t), scores in pairs.items() if test(a, t)} for label, test in tests.items()
    }
    print_scores("Each specimen as atlas of the others, and groups of pairs; mm, mm3", chosen)


def main() -> None:
    """Parses the command line."""
    default = Demons()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--template", default="F01")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--timed", nargs="*", default=TIMED)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--look", choices=("normalised", "hu"), default=default.look)
    parser.add_argument("--match", choices=("bright", "all", "none"), default=default.match)
    parser.add_argument("--smoothing", type=float, default=default.smoothing)
    parser.add_argument("--iterations", type=int, nargs=3, default=default.iterations)
    chosen = parser.parse_args()
    demons = Demons(chosen.look, chosen.match, chosen.smoothing, iterations=tuple(chosen.iterations))
    names = chosen.only or sorted(sum(FOLDS.values(), ()))
    if chosen.all:
        compare_atlases(names, demons)
    else:
        targets = [name for name in names if name != chosen.template]
        compare_times(chosen.template, targets, demons, {name: chosen.repeats for name in chosen.timed})


if __name__ == "__main__":
    main()
