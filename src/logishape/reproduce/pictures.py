"""The sections that are pictures: the ellipse, the uncertainty and the evolution of a fit."""

import dataclasses
from typing import Any

import numpy as np

from logishape.cochlea import SegmentOptions
from logishape.report.evolution import chosen_steps
from logishape.report.uncertainty import PROBABILITIES, draw_probabilities
from logishape.reproduce import ellipse as drawn
from logishape.reproduce import evolution as evolving
from logishape.reproduce import maps, paper
from logishape.reproduce.blocks import Picture, Section, Table
from logishape.reproduce.study import Study

SEED = 0
_LEVELS = {"squared": "R² - |x - C|², the paper's", "distance": "R - |x - C|, a distance"}


def ellipse(study: Study) -> Section:
    """A noisy ellipse seen with a circle: the optimal reference length, and what labels are at others."""
    found = study.part("ellipse", lambda: drawn.study(SEED), seed=SEED, lengths=drawn.LENGTHS.tolist())
    area = np.pi * np.prod(drawn.SEMI_AXES)
    rows = []
    for name, words in _LEVELS.items():
        one = found[name]
        dices = tuple(f"{one['labels'][length]['dice']:.3f}" for length in ("short", "optimal", "long"))
        share = f"{np.pi * one['circle'][2] ** 2 / area:.2f}"
        printed = paper.ELLIPSE_LENGTH if name == "squared" else "-"
        rows.append((words, f"{one['best_length']:.3f}", printed, share, *dices))
    header = (
        "level",
        "optimal length",
        "paper",
        "circle's area : ellipse's",
        "Dice, short",
        "Dice, optimal",
        "Dice, long",
    )
    shortest, longest = drawn.LENGTHS[0], drawn.LENGTHS[-1]
    return Section(
        "The ellipse and the circle",
        "The paper's synthetic image: an ellipse with Gaussian noise in the unit square, and a circle for a shape. "
        f"The length that makes the image most likely, and how labels drawn at {shortest:.3g}, at the optimum and at "
        f"{longest:.3g} agree with the ellipse.",
        (Table("Optimal reference length", header, tuple(rows)),),
        (
            Picture(
                "ellipse",
                drawn.draw(found, SEED),
                "With the distance: the image, the log joint by length, and the labels at three lengths. Short "
                "lengths give the circle, long ones the intensities.",
            ),
        ),
        (
            "The paper's level is positive outside as printed, and its lengths are squares: 0.021 belongs to the "
            "first row. It prints neither unit, size nor noise of its image; in a square from -1 to 1 our first "
            "length would be four times as large.",
            "The paper's text has the two limits the wrong way round: short lengths follow the shape.",
        ),
    )


def uncertainty(study: Study) -> Section:
    """Probabilities at the best shape and with the shape integrated out, default settings and the paper's."""
    name = study.first()
    made: dict[str, Any] = {}
    for preset in ("default", "paper"):
        options = SegmentOptions(preset=preset)
        made[preset] = study.part(
            f"uncertainty-{name}-{preset}",
            lambda options=options: maps.map_case(study.case(name), options),
            options=dataclasses.asdict(options),
        )
    rows = []
    for preset, one in made.items():
        if "refused" not in one:
            volumes = tuple(f"{one[key]['unsure_mm3']:.1f}" for key in PROBABILITIES)
            share = one["marginal"]["unsure_mm3"] / max(one["probability"]["unsure_mm3"], 1e-9)
            sds = ", ".join(f"{sd:.3f}" for sd in one["sd"][:3])
            rows.append((f"{preset} settings", one["kind"] or "none", sds, *volumes, f"{share:.2f}"))
    header = (
        "",
        "covariance",
        "SD of tx, ty, tz, mm",
        "at the best shape, mm³",
        "shape integrated out, mm³",
        "ratio",
    )
    words = "Above: p(inside | image) at the best shape. Below: the mean over draws of the shape. White: one half."
    shown, words = made["default"], f"{name}, default settings. {words}"
    pictures = () if "refused" in shown else (Picture("uncertainty", draw_probabilities(shown["planes"]), words),)
    return Section(
        "Uncertainty",
        f"{name}: what is unsure (probability from {maps.UNSURE[0]:g} to {maps.UNSURE[1]:g}) when the shape is taken "
        f"for known, and when {SegmentOptions().num_draws} draws of it are averaged, as the paper does.",
        (Table("Volume that is unsure", header, tuple(rows)),),
        pictures,
        (
            "The paper shows that integrating the shape out makes the labels much less sure, without a number. Its "
            "covariance (complete) is that of the labels as if they were known; the default (observed) counts what "
            "the labels leave open.",
            "How much it adds is a matter of two lengths: what the shape's SD is beside the reference length of the "
            f"labels, {SegmentOptions().label_length:g} mm by default, which blurs the labels whatever the shape.",
        ),
    )


def evolution(study: Study) -> Section:
    """The shape during a fit from the paper's start."""
    name = study.first()
    made = study.part(f"evolution-{name}", lambda: evolving.follow_fit(study.scene(name)))
    if "refused" in made:
        return Section("The shape during the fit", f"Not drawn: {made['refused']}")
    count, heights = len(made["thetas"]) - 1, made["log_joints"]
    steps = chosen_steps(count + 1)
    rows = tuple(
        (f"{step}", f"{heights[step] - heights[-1]:.1f}", *(f"{value:.2f}" for value in made["thetas"][step]))
        for step in steps
    )
    header = ("iteration", "log joint, to the last", "tx", "ty", "tz", "rx", "ry", "rz", "a", "b", "alpha", "phi")
    return Section(
        "The shape during the fit",
        f"{name}: Gauss-Newton by our level on all voxels of the crop from the paper's start, a = 4 mm, b = 0.15, "
        f"alpha = 0.6 mm, phi = 0.2 and pose zero; {count} iterations, "
        f"{'converged' if made['converged'] else 'not converged'}.",
        (Table("Parameters (mm, rad) and log joint (nats)", header, rows),),
        (
            Picture(
                "evolution",
                evolving.draw(study.scene(name), made),
                "Contours from the start (dotted green) to the end (solid red), and the surface at four iterations.",
            ),
        ),
        ("The problem is that of the efficiency table; a segmentation takes several starts and more parameters.",),
    )
