"""Compute the mean bone code of the specimens in the cochlear frame; write the package's template file.

    python benchmarks/template.py [--out FILE]

One template of all twelve, and one for each fold without its three, so that locating can be cross-validated. Values
are rounded to 8 bits.
"""

import argparse
from pathlib import Path

import numpy as np
from specimens import FOLDS, data_folder

from logishape.cochlea.landmarks import frame_from_points
from logishape.cochlea.template import DEFAULT_FILE, code_at, template_points
from logishape.io import atomic_file, read_landmarks, read_volume


def codes(folder: Path) -> np.ndarray:
    """The bone codes of one specimen at the template's points."""
    marks = read_landmarks(folder / "landmarks.json")
    return code_at(read_volume(folder / "ct.nii.gz"), frame_from_points(marks.points, marks.side), template_points())


def main() -> None:
    """Writes the file and says how much the templates differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DEFAULT_FILE)
    out = parser.parse_args().out
    each = {name: codes(data_folder() / name) for name in sorted(sum(FOLDS.values(), ()))}
    tables = {"all": np.nanmean(np.stack(list(each.values())), axis=0)}
    for fold, left_out in FOLDS.items():
        tables[fold] = np.nanmean(np.stack([each[name] for name in each if name not in left_out]), axis=0)
    rounded = {
        name: np.round(255 * np.nan_to_num(values, nan=0.5)).astype(np.uint8) for name, values in tables.items()
    }
    with atomic_file(out) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **rounded)
    for fold in FOLDS:
        print(f"fold {fold}: correlation with all {np.corrcoef(tables[fold], tables['all'])[0, 1]:.4f}")
    print(f"{out.name}: {out.stat().st_size / 1024:.0f} kB, {len(rounded['all'])} points")


if __name__ == "__main__":
    main()
