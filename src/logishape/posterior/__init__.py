"""The posterior: Laplace covariances, draws, MCMC, label maps, correlated noise, evidence."""

from logishape.posterior.convergence import effective_sample_size, split_r_hat
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
from logishape.posterior.mcmc import McmcOptions, SampledPosterior, check_sampler, mcmc
from logishape.posterior.mean_covariance import affine_invariant_mean, log_euclidean_mean

__all__ = [
    "AppearanceInformation",
    "Comparison",
    "Information",
    "McmcOptions",
    "NoiseCorrelation",
    "SampledPosterior",
    "ShapePosterior",
    "VoxelScores",
    "affine_invariant_mean",
    "appearance_information",
    "check_sampler",
    "compare",
    "effective_sample_size",
    "evidence",
    "information",
    "label_probability",
    "laplace",
    "log_euclidean_mean",
    "marginal_label_probability",
    "mcmc",
    "noise_correlation",
    "split_r_hat",
    "voxel_scores",
]
