"""The posterior: Laplace covariances, draws, label maps, correlated noise, evidence."""

from logishape.posterior.correlation import NoiseCorrelation, noise_correlation
from logishape.posterior.evidence import Comparison, compare, evidence
from logishape.posterior.information import (
    AppearanceInformation,
    Information,
    VoxelScores,
    appearance_information,
    information,
    voxel_scores,
)
from logishape.posterior.labels import label_probability, marginal_label_probability
from logishape.posterior.laplace import ShapePosterior, laplace
from logishape.posterior.mean_covariance import affine_invariant_mean, log_euclidean_mean

__all__ = [
    "AppearanceInformation",
    "Comparison",
    "Information",
    "NoiseCorrelation",
    "ShapePosterior",
    "VoxelScores",
    "affine_invariant_mean",
    "appearance_information",
    "compare",
    "evidence",
    "information",
    "label_probability",
    "laplace",
    "log_euclidean_mean",
    "marginal_label_probability",
    "noise_correlation",
    "voxel_scores",
]
