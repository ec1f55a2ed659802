"""Draw the contours of a cross-validated run on the CT of every specimen, beside the truth.

    python benchmarks/contours.py [--run out/crossvalidate-found-none] [--out docs/images/specimens.png]

Three planes of the found frame for each specimen: along the basal turn, and two through the axis. Run
`benchmarks/crossvalidate.py` before.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from engine import report
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from specimens import FOLDS, data_folder

from logishape.core.volume import Volume
from logishape.io import read_volume
from logishape.report.planes import Plane, sample_plane

MIDDLE, HALF, STEP = np.array([0.9, 0.2, 0.8]), (5.8, 4.8), 0.06
COLOURS = {"segmentation": "#ff4d4d", "truth": "#4dff88", "shape": "#ffd23f"}


def draw_specimen(panels: Any, name: str, folder: Path) -> None:
    """Three planes of one specimen."""
    (record,) = folder.glob("*/result.json")
    result = json.loads(record.read_text())
    axes, origin = (np.array(result["pose"]["frame"][key]) for key in ("axes", "origin_ras_mm"))
    x, y, z = axes
    middle = MIDDLE @ axes + origin
    ct = read_volume(data_folder() / name / "ct.nii.gz")
    maps = {
        "truth": read_volume(data_folder() / name / "cochlea.nii.gz"),
        "segmentation": read_volume(record.with_name("segmentation.nii.gz")),
        "shape": read_volume(record.with_name("shape.nii.gz")),
    }
    seen = result["appearance"]
    step = seen["bone_value"] - seen["lumen_value"]
    window = (seen["lumen_value"] - 0.25 * step, seen["bone_value"] + 0.25 * step)
    planes = [Plane("", middle, x, y, HALF), Plane("", middle, x, z, HALF), Plane("", middle, y, z, HALF)]
    for panel, plane in zip(panels, planes, strict=True):
        draw_plane(panel, plane, ct, maps, window)
    panels[0].set_title(f"{name}, {result['side']}, {seen['lumen']}", color="white", fontsize=9, loc="left")


def draw_plane(panel: Any, plane: Plane, ct: Volume, maps: dict[str, Volume], window: tuple[float, float]) -> None:
    """The CT with one contour for each mask."""
    image = sample_plane(ct, plane, STEP, outside=window[0])
    panel.imshow(image, cmap="gray", vmin=window[0], vmax=window[1], extent=plane.extent, origin="lower")
    across = np.linspace(plane.extent[0], plane.extent[1], image.shape[1])
    along = np.linspace(plane.extent[2], plane.extent[3], image.shape[0])
    for name, mask in maps.items():
        values = sample_plane(mask.with_data(mask.data.astype(np.float32)), plane, STEP)
        if np.ptp(values) > 0:
            style = "--" if name == "shape" else "-"
            panel.contour(across, along, values, levels=[0.5], colors=COLOURS[name], linewidths=0.8, linestyles=style)
    panel.set_axis_off()


def main() -> None:
    """Draws all specimens on one picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=Path("out/crossvalidate-found-none"))
    parser.add_argument("--out", type=Path, default=Path("docs/images/specimens.png"))
    chosen = parser.parse_args()
    names = sorted(sum(FOLDS.values(), ()))
    figure = Figure(figsize=(13, 12), layout="constrained", facecolor="black")
    panels = np.asarray(figure.subplots(len(names) // 2, 6))
    for k, name in enumerate(names):
        report(name)
        draw_specimen(panels[k // 2, 3 * (k % 2) : 3 * (k % 2) + 3], name, chosen.run / name)
    words = {"segmentation": "segmentation", "truth": "manual mask", "shape": "fitted shape"}
    handles = [
        Line2D([], [], color=COLOURS[key], ls="--" if key == "shape" else "-", label=text)
        for key, text in words.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, labelcolor="white")
    figure.savefig(chosen.out, dpi=80, facecolor="black", pil_kwargs={"optimize": True})
    print(f"{chosen.out}: {chosen.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
