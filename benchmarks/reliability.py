"""Do the label maps hold? Of the voxels said to be inside with probability 0.7, 70 % should be.

    python benchmarks/crossvalidate.py --part segment
    python benchmarks/reliability.py [--out out/crossvalidate-found-none] [--study FOLDER] [--image FILE]

For the twelve specimens as crossvalidate.py segmented them (the CT alone, calibrated without the specimen's fold):
within 0.5 mm of the truth's surface, within the region where predictions are scored, the expected calibration error
and the curve of the plug-in probability and of the marginal one, against micro-CT and manual masks. All voxels
count alike. `--study` adds the phantoms that calibration.py has left in a folder, within 0.5 mm of the true surface.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from engine import print_table
from scipy import ndimage
from specimens import FOLDS, data_folder

from logishape.io import read_volume
from logishape.metrics import Reliability, reliability

BAND_MM, NUM_BINS = 0.5, 20
MAPS = ("probability", "marginal")
TRUTHS = {"cochlea_uct": "micro-CT", "cochlea": "manual masks"}
Curves = dict[str, Reliability]


def band_of(truth: np.ndarray, region: np.ndarray, spacing: np.ndarray) -> np.ndarray:
    """Voxels of the region within the band about the truth's surface."""
    inside, outside = (np.asarray(ndimage.distance_transform_edt(mask, sampling=spacing)) for mask in (truth, ~truth))
    return (np.maximum(inside, outside) < BAND_MM) & region


def specimen_curves(out: Path, name: str, kind: str) -> Curves | None:
    """The curves of one specimen; None where it has no such truth or was not segmented."""
    folder, found = data_folder() / name, sorted(out.glob(f"{name}/*/marginal.nii.gz"))
    if not (folder / f"{kind}.nii.gz").is_file() or not found:
        return None
    truth = read_volume(folder / f"{kind}.nii.gz")
    band = band_of(truth.data > 0, read_volume(folder / "region.nii.gz").data > 0, truth.spacing)
    maps = {one: read_volume(found[0].with_name(f"{one}.nii.gz")).data[band] for one in MAPS}
    return {one: reliability(values, truth.data[band] > 0, NUM_BINS) for one, values in maps.items()}


def study_curves(folder: Path, misfit: float) -> Curves:
    """The curves of the phantoms of a class, from the bins that each case has left."""
    cases = [json.loads(path.read_text()) for path in sorted(folder.glob("case-*.json"))]
    cases = [one for one in cases if one.get("verdict") in ("good", "check") and one["settings"]["misfit"] == misfit]
    if not cases:
        return {}
    bins = {name: np.sum([one["labels"][name] for one in cases], axis=0).T for name in MAPS}
    return {name: Reliability.of_sums(*sums) for name, sums in bins.items()}


def draw(panels: dict[str, Curves], path: Path) -> None:
    """A reliability diagram for each truth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6 * len(panels), 4.3), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, (words, curves) in zip(axes, panels.items(), strict=True):
        panel.plot([0, 1], [0, 1], color="0.6", lw=0.8)
        for (name, curve), style in zip(curves.items(), ("o--", "s-"), strict=True):
            label = f"{name}, error {curve.expected_error:.3f}"
            panel.plot(curve.mean_probability, curve.fraction, style, ms=3, lw=1.2, label=label)
        panel.set(title=words, xlabel="probability", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        panel.legend(frameon=False, fontsize=8, loc="upper left")
    axes[0].set_ylabel("inside in truth")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Prints the table and draws the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/crossvalidate-found-none"))
    parser.add_argument("--study", type=Path)
    parser.add_argument("--image", type=Path)
    chosen = parser.parse_args()
    panels: dict[str, Curves] = {}
    for kind, words in TRUTHS.items():
        each = {name: specimen_curves(chosen.out, name, kind) for name in sorted(sum(FOLDS.values(), ()))}
        kept = {name: one for name, one in each.items() if one is not None}
        if not kept:
            continue
        rows = [
            [name, *(f"{one[key].expected_error:.3f} {one[key].bias:+.3f}" for key in MAPS)]
            for name, one in kept.items()
        ]
        print_table(f"Specimens against {words}: expected calibration error, bias", ["", *MAPS], rows, [])
        panels[f"{len(kept)} specimens, {words}"] = {
            key: Reliability.pooled([one[key] for one in kept.values()], alike=False) for key in MAPS
        }
    if chosen.study is not None:
        for misfit, words in ((0.0, "phantoms of the model's family"), (1.0, "phantoms of another family")):
            panels |= {words: found} if (found := study_curves(chosen.study, misfit)) else {}
    rows = [
        [words, *(f"{one[key].expected_error:.3f} {one[key].bias:+.3f}" for key in MAPS)]
        for words, one in panels.items()
    ]
    print_table("All voxels together: expected calibration error, bias", ["", *MAPS], rows, [])
    if chosen.image is not None:
        draw(panels, chosen.image)


if __name__ == "__main__":
    main()
