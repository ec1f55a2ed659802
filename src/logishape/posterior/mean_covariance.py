"""The average of covariance matrices from several cases."""

import numpy as np
from jaxtyping import Float

from logishape.core.errors import InputError


def log_euclidean_mean(
    covariances: Float[np.ndarray, "k p p"], widths: Float[np.ndarray, " p"]
) -> Float[np.ndarray, "p p"]:
    """exp(mean log C) with parameters measured in units of `widths` (the prior's box widths).

    The paper takes logarithms of covariances in mixed units, and its mean changes when millimetres become metres.
    In units of the box it does not.
    """
    _check(covariances)
    scaled = covariances / np.outer(widths, widths)
    mean = _apply(np.exp, np.mean([_apply(np.log, one) for one in scaled], axis=0))
    return mean * np.outer(widths, widths)


def affine_invariant_mean(
    covariances: Float[np.ndarray, "k p p"], tolerance: float = 1e-12, max_steps: int = 200
) -> Float[np.ndarray, "p p"]:
    """The Karcher mean: unchanged in meaning by any linear change of parameters, so it needs no widths."""
    _check(covariances)
    mean = np.mean(covariances, axis=0)
    for _ in range(max_steps):
        root = _apply(np.sqrt, mean)
        inverse_root = _apply(lambda v: 1 / np.sqrt(v), mean)
        step = np.mean([_apply(np.log, inverse_root @ one @ inverse_root) for one in covariances], axis=0)
        mean = root @ _apply(np.exp, step) @ root
        if np.abs(step).max() < tolerance:
            break
    return mean


def _apply(function, matrix: np.ndarray) -> np.ndarray:
    """A function of a symmetric matrix, through its eigenvalues."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * function(values)) @ vectors.T


def _check(covariances: np.ndarray) -> None:
    is_stack = covariances.ndim == 3 and covariances.shape[0] > 0 and covariances.shape[1] == covariances.shape[2]
    if not is_stack or not np.all(np.isfinite(covariances)) or np.any(np.linalg.eigvalsh(covariances) <= 0):
        raise InputError(
            f"expected a stack of positive definite matrices (k, p, p) but found shape {covariances.shape} or one "
            "that is not positive definite; leave out cases without a posterior."
        )
