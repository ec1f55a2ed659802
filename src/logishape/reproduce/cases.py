"""The images of the study: the specimens of the bony labyrinth set where they are, phantoms where they are not."""

import dataclasses
import itertools
import os
from pathlib import Path

import numpy as np

from logishape.cochlea import Calibration, PhantomOptions, Template, load_calibration, load_template, make_phantom
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io import read_mask, read_volume

# Fixed once and for all, so that every score can be cross-validated; each has air- and fluid-filled ones.
FOLDS = {
    "1": ("F01", "F08", "T01"),
    "2": ("F02", "F10", "T03"),
    "3": ("F03", "F11", "T06"),
    "4": ("F05", "F14", "T07"),
}
TRUTHS = {"cochlea": "CT by hand", "cochlea_uct": "micro-CT"}
_NUM_PHANTOMS = 6


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A CT, the truths it is scored against, where it is scored, and what was calibrated without it."""

    name: str
    volume: Volume
    truths: dict[str, Volume]
    region: Volume | None
    calibration: Calibration
    template: Template

    @property
    def truth(self) -> Volume:
        """The truth on the CT itself: drawn by hand, or known."""
        return next(iter(self.truths.values()))

    def inside(self, volume: Volume) -> np.ndarray:
        """A mask, clipped to where this case is scored."""
        mask = volume.data > 0
        return mask if self.region is None else mask & (self.region.data > 0)


@dataclasses.dataclass(frozen=True)
class Source:
    """Where cases come from: the folder of the specimens, or phantoms of these seeds."""

    folder: Path | None
    names: tuple[str, ...]

    @property
    def kind(self) -> str:
        """What the cases are, in words."""
        if self.folder is None:
            return "made up, phantoms with known truth, since no specimens were given"
        return "specimens of the human bony labyrinth set (its dataset 3)"

    def load(self, name: str) -> Case:
        """One case, read or made."""
        return _phantom(name) if self.folder is None else _specimen(self.folder, name)


def fold_of(name: str) -> str:
    """The fold that a specimen is tested in."""
    return next(key for key, names in FOLDS.items() if name in names)


def find_source(data: str | os.PathLike[str] | None, most: int | None = None) -> Source:
    """The specimens in `data` or, without it, in the folder that LOGISHAPE_DATA names; else phantoms."""
    given = data or os.environ.get("LOGISHAPE_DATA")
    if given:
        root = Path(given)
        names = tuple(itertools.chain(*FOLDS.values()))
        folders = [place for place in (root, root / "bony_labyrinth") if (place / names[0]).is_dir()]
        if not folders:
            raise InputError(
                f"the specimens {names[0]} to {names[-1]} were expected in {root} but are not there; give the folder "
                "that holds theirs, or none for phantoms."
            )
        return Source(folders[0], names[:most])
    return Source(None, tuple(f"phantom-{seed}" for seed in range(1, 1 + min(most or _NUM_PHANTOMS, 99))))


def _specimen(folder: Path, name: str) -> Case:
    fold = fold_of(name)
    place = folder / name
    masks = {words: place / f"{key}.nii.gz" for key, words in TRUTHS.items()}
    return Case(
        name,
        read_volume(place / "ct.nii.gz"),
        {words: read_mask(path) for words, path in masks.items() if path.exists()},
        read_mask(place / "region.nii.gz"),
        load_calibration(DEFAULT_FILE, fold),
        load_template(fold),
    )


def _phantom(name: str) -> Case:
    seed = int(name.rpartition("-")[2])
    made = make_phantom(PhantomOptions(lumen="air" if seed % 2 else "fluid", orientation="oblique"), seed)
    return Case(name, made.volume, {"phantom": made.ear.truth}, None, load_calibration(), load_template())
