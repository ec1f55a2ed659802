"""The posterior: Laplace covariances, draws, and label maps."""

from logishape.posterior.information import Information, information
from logishape.posterior.labels import label_probability, marginal_label_probability
from logishape.posterior.laplace import ShapePosterior, laplace
from logishape.posterior.mean_covariance import affine_invariant_mean, log_euclidean_mean

__all__ = [
    "Information",
    "ShapePosterior",
    "affine_invariant_mean",
    "information",
    "label_probability",
    "laplace",
    "log_euclidean_mean",
    "marginal_label_probability",
]
