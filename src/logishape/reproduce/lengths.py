"""The reference length: what it does to the fit and, apart from that, to the labels."""

import dataclasses

from logishape.cochlea import SegmentOptions
from logishape.cochlea.search import Found, search
from logishape.reproduce.segmented import Scene

LENGTHS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)  # mm


def by_fit_length(scene: Scene, length: float, options: SegmentOptions) -> dict[str, float]:
    """Dice of labels and shape when the shape is found with this reference length."""
    found = _search(scene, dataclasses.replace(options, reference_length=length))
    return scene.dice(found.theta, found.fit.state.regions, options)


def by_label_lengths(scene: Scene, options: SegmentOptions) -> dict[str, float]:
    """Dice of the labels when they are drawn with each reference length, the fit being the same."""
    found = _search(scene, options)
    regions = found.fit.state.regions
    return {
        f"{length:g}": scene.dice(found.theta, regions, dataclasses.replace(options, label_length=length))[
            "posterior"
        ]
        for length in LENGTHS
    }


def _search(scene: Scene, options: SegmentOptions) -> Found:
    return search(scene.model(options), scene.crop, scene.intensities, options)
