"""Appearance from a trained classifier: its probability map takes the place of intensities.

A classifier sees texture that no intensity model knows, but nothing of shape: it is noisy and fires on
other objects. The shape cleans its map up and reports parameters with standard deviations.

    python examples/supervised_appearance.py
"""

import numpy as np
from common import dice

import logishape as ls

SIZE = 96


def classifier_map(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The true mask of a tilted ellipse, and what a mediocre network makes of it: noise and a false object."""
    rng = np.random.default_rng(seed)
    y, x = np.indices((SIZE, SIZE)) - 47.5
    c, s = np.cos(0.4), np.sin(0.4)
    truth = ((c * y + s * x) / 24) ** 2 + ((-s * y + c * x) / 14) ** 2 < 1
    false_object = (y - 36) ** 2 + (x + 34) ** 2 < 81
    logit = np.where(truth | false_object, 1.5, -1.5) + rng.normal(0, 1.5, truth.shape)
    return truth, 1 / (1 + np.exp(-logit))


def run(seed: int = 0) -> tuple[float, float, ls.Fit, ls.ShapePosterior]:
    """Dice of the network alone and with the shape, the fit and its posterior."""
    truth, probability = classifier_map(seed)
    observation = ls.Observation.from_volume(ls.Volume.from_spacing(probability))
    shape = ls.shapes.Posed(ls.shapes.Ellipsoid(dimension=2), image_centre=[47.5, 47.5])
    prior = ls.Prior.named(
        shape,
        {"tx": (-15, 15), "ty": (-15, 15), "angle": (-1.5, 1.5), "semi_axis_x": (5, 40), "semi_axis_y": (5, 40)},
    )
    model = ls.Model(shape, prior, reference_length=1.0)
    regions = ls.appearance.supervised_regions(prevalence=0.5)  # never updated: the MI-step is skipped
    start = ls.State([3.0, -3.0, 0.0, 18.0, 18.0], regions)
    fit = ls.fit(model, observation, start, ls.FitOptions(anneal=(4.0, 2.0))).check()
    labels = ls.label_probability(model, observation, fit.state).reshape(truth.shape) >= 0.5
    return dice(probability >= 0.5, truth), dice(labels, truth), fit, ls.laplace(model, observation, fit)


def main() -> None:
    """Prints the gain and the parameters."""
    alone, together, fit, posterior = run()
    print(f"{fit.status.name.lower()}; Dice of the network alone {alone:.3f}, with the shape {together:.3f}")
    for name, (best, sd) in posterior.summary().items():
        print(f"{name:>12}  {best:7.2f} +- {sd:.2f}")


if __name__ == "__main__":
    main()
