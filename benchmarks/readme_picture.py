"""Draw the README's first picture of a stored result: contours on the three planes of the cochlea, and its surface.

logishape cochlea ../shared/data/bony_labyrinth/F01/ct.nii.gz -o out/F01
python benchmarks/readme_picture.py out/F01/left [--out docs/images/cochlea.png]
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from engine import report
from matplotlib.figure import Figure

from logishape.report import Stored, read_stored
from logishape.report.montage import contour_handles, draw_contours
from logishape.report.still import Sight, draw_surface
from logishape.report.views import views_of

EYE = np.array([-0.35, -0.75, 0.75])  # where it is, from the spiral's middle, in the spiral's own frame
WORDS = {"basal": "basal turn", "modiolar": "mid-modiolar", "across": "perpendicular"}


def sight() -> Sight:
    """From between apex and side, with the apex up."""
    towards = EYE / np.linalg.norm(EYE)
    up = np.array([0, 0, 1]) - towards[2] * towards
    up /= np.linalg.norm(up)
    return Sight("", np.stack([np.cross(up, towards), up, towards]))


def picture(stored: Stored) -> Figure:
    """Planes and surface in one row."""
    figure = Figure(figsize=(13, 3.2), facecolor="black")
    width, left = 0.245, 0.0
    for view in views_of(stored)[3:]:
        panel: Any = figure.add_axes((left, 0.11, width, 0.81))
        draw_contours(panel, view, stored)
        panel.set_title(WORDS[view.name], color="white", fontsize=11, pad=3)
        left += width + 0.002
    panel = figure.add_axes((left, 0.02, 1 - left, 0.88))
    draw_surface(panel, stored, sight(), apart_mm=1.9)
    panel.margins(0.02)
    figure.text((1 + left) / 2, 0.935, "fitted surface, by angle", color="white", fontsize=11, ha="center")
    figure.legend(
        handles=contour_handles(),
        loc="lower center",
        bbox_to_anchor=(0.37, -0.015),
        ncols=3,
        frameon=False,
        labelcolor="white",
        fontsize=11,
    )
    return figure


def main() -> None:
    """Draws it and says how large it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/images/cochlea.png"))
    chosen = parser.parse_args()
    drawn = picture(read_stored(chosen.result))
    drawn.savefig(chosen.out, dpi=120, facecolor="black", metadata={"Software": None}, pil_kwargs={"optimize": True})
    report(f"{chosen.out}: {chosen.out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
