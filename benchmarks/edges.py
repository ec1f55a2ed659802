"""How sharp the lumen's border is: in the specimens, against micro-CT or manual masks, and in phantoms.

    python benchmarks/edges.py

For voxels within 0.6 mm of the true border, the median value between lumen (0) and bone (1) is taken in steps of
0.1 mm and a Gaussian's distribution function is fitted: its middle says how far outside the true border the image
has its half value, its SD how wide the point spread is. The phantom's defaults for both come from here.
"""

import numpy as np
from engine import print_table
from scipy import ndimage
from scipy.optimize import curve_fit
from scipy.stats import norm
from specimens import FOLDS, data_folder

from logishape.cochlea import Frame, PhantomOptions
from logishape.cochlea.landmarks import frame_from_points
from logishape.cochlea.lumen import find_intensities
from logishape.cochlea.phantom import make_phantom
from logishape.cochlea.reformat import reformat
from logishape.core.volume import Volume
from logishape.io import read_landmarks, read_mask, read_volume


def edge(volume: Volume, truth: np.ndarray, region: np.ndarray, frame: Frame) -> tuple[float, float]:
    """Middle and SD (mm) of the border's profile."""
    spacing = volume.spacing
    outside, inside = (np.asarray(ndimage.distance_transform_edt(m, sampling=spacing)) for m in (~truth, truth))
    distance = np.where(truth, 0.5 * spacing.mean() - inside, outside - 0.5 * spacing.mean())
    seen = find_intensities(reformat(volume, frame))
    near = region & (np.abs(distance) < 0.6)
    bins = np.arange(-0.6, 0.61, 0.1)
    which = np.digitize(distance[near], bins) - 1
    value = (volume.data[near] - seen.lumen) / seen.step
    middle = 0.5 * (bins[1:] + bins[:-1])
    median = np.array([np.median(value[which == k]) for k in range(len(middle))])
    (offset, sd), _ = curve_fit(lambda x, m, s: norm.cdf((x - m) / s), middle, median / median.max(), p0=(0.0, 0.15))
    return float(offset), float(sd)


def main() -> None:
    """Prints one table."""
    rows = []
    for name in sorted(sum(FOLDS.values(), ())):
        folder = data_folder() / name
        fine = folder / "cochlea_uct.nii.gz"
        truth = read_mask(fine if fine.exists() else folder / "cochlea.nii.gz").data
        marks = read_landmarks(folder / "landmarks.json")
        frame = frame_from_points(marks.points, marks.side)
        found = edge(read_volume(folder / "ct.nii.gz"), truth, read_mask(folder / "region.nii.gz").data, frame)
        rows.append([name, *(f"{x:.3f}" for x in found)])
    means = np.mean([[float(x) for x in row[1:]] for row in rows], axis=0)
    rows.append(["mean of twelve", *(f"{x:.3f}" for x in means)])
    for lumen in ("fluid", "air"):
        phantom = make_phantom(PhantomOptions(lumen=lumen, spacing_mm=(0.156, 0.156, 0.2)), 5)
        ear = phantom.ear
        region = ~(ear.labyrinth.data & ~ear.truth.data)
        found = edge(phantom.volume, ear.truth.data, region, ear.frame)
        rows.append([f"phantom, {lumen}", *(f"{x:.3f}" for x in found)])
    print_table(
        "Border of the lumen (mm): half value outside the true border, SD", ["image", "offset", "SD"], rows, []
    )


if __name__ == "__main__":
    main()
