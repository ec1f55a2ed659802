"""The posterior: Laplace covariances, draws, and label maps."""

from logishape.posterior.information import Information, information
from logishape.posterior.labels import label_probability, marginal_label_probability
from logishape.posterior.laplace import ShapePosterior, laplace

__all__ = [
    "Information",
    "ShapePosterior",
    "information",
    "label_probability",
    "laplace",
    "marginal_label_probability",
]
