"""A shape of your own in 3D: write its level, get the fit, the posterior and the labels.

python examples/your_own_shape.py
"""

import jax
import jax.numpy as jnp
import numpy as np

import logishape as ls


class Capsule(ls.shapes.AbstractShape):
    """All points within `radius` of a segment from (ax, ay, az) to (bx, by, bz), in mm."""

    parameter_names = ("ax", "ay", "az", "bx", "by", "bz", "radius")

    def level(self, theta, points):
        """Radius minus the distance to the segment: positive inside."""
        a, b, radius = theta[:3], theta[3:6], theta[6]
        along = jnp.clip((points - a) @ (b - a) / jnp.vdot(b - a, b - a), 0, 1)
        return radius - ls.shapes.safe_norm(points - a - along[:, None] * (b - a))


def make_volume(theta: np.ndarray, seed: int) -> ls.Volume:
    """A noisy 3D image of the capsule with 0.5 mm voxels."""
    volume = ls.Volume.from_spacing(np.zeros((56, 48, 40)), spacing=0.5)
    points = volume.to_world(np.indices(volume.shape).reshape(3, -1).T)
    inside = np.asarray(Capsule().level(theta, points)).reshape(volume.shape) > 0
    return volume.with_data(np.where(inside, 300.0, 0.0) + np.random.default_rng(seed).normal(0, 150, volume.shape))


def run(seed: int = 0) -> tuple[np.ndarray, ls.Fit, ls.ShapePosterior, np.ndarray]:
    """Truth, fit, posterior and label probabilities."""
    shape = Capsule()
    truth = np.array([8.0, 9.0, 8.0, 20.0, 14.0, 11.0, 3.0])
    observation = ls.Observation.from_volume(make_volume(truth, seed))
    prior = ls.Prior(lower=[0, 0, 0, 0, 0, 0, 1], upper=[28, 24, 20, 28, 24, 20, 8])
    model = ls.Model(shape, prior, reference_length=0.25)
    regions = ls.Regions(ls.appearance.gaussian(250, 100), ls.appearance.gaussian(50, 100))
    start = ls.State([6, 8, 9, 22, 12, 9, 4], regions)
    fit = ls.fit(model, observation, start, ls.FitOptions(anneal=(8.0, 4.0, 2.0))).check()
    posterior = ls.laplace(model, observation, fit)
    marginal = ls.marginal_label_probability(model, observation, fit.state, posterior, jax.random.key(0))
    return truth, fit, posterior, marginal


def main() -> None:
    """Prints each parameter with its 90% interval beside the truth."""
    truth, fit, posterior, marginal = run()
    print(f"{fit.status.name.lower()}: {fit.status.advice}")
    for name, true, best, (low, high) in zip(
        fit.parameter_names, truth, posterior.mean, posterior.interval(jax.random.key(1)), strict=True
    ):
        print(f"{name:>7}  {best:7.3f} mm  90% in [{low:.3f}, {high:.3f}]  true {true:g}")
    print(f"segmented volume {0.125 * np.sum(marginal >= 0.5):.1f} mm^3")


if __name__ == "__main__":
    main()
