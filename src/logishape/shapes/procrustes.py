"""Meshes brought into one frame: generalised Procrustes alignment."""

import numpy as np
from jaxtyping import Float

_MAX_ROUNDS = 100


def align_meshes(meshes: Float[np.ndarray, "k v d"], with_scale: bool) -> Float[np.ndarray, "k v d"]:
    """The meshes, each moved rigidly (and scaled, on request) onto the common mean.

    Rounds of aligning each to the mean and taking the mean anew, until the mean rests. The mean keeps the
    first mesh's orientation, the mean position of all and, with scaling, their mean size.
    """
    centres = meshes.mean(axis=1, keepdims=True)
    centred = meshes - centres
    sizes = np.linalg.norm(centred, axis=(1, 2), keepdims=True)
    if with_scale:
        centred = centred * (sizes.mean() / sizes)
    mean, aligned = centred[0], centred
    for _ in range(_MAX_ROUNDS):
        aligned = np.stack([mesh @ best_rotation(mesh, mean) for mesh in centred])
        new = aligned.mean(axis=0)
        if with_scale:
            new = new * (sizes.mean() / np.linalg.norm(new))
        has_settled = np.linalg.norm(new - mean) < 1e-12 * np.linalg.norm(mean)
        mean = new
        if has_settled:
            break
    # Rounds may drift together: turn all back onto the first mesh.
    return aligned @ best_rotation(mean, centred[0]) + centres.mean(axis=0)


def best_rotation(moving: Float[np.ndarray, "v d"], fixed: Float[np.ndarray, "v d"]) -> Float[np.ndarray, "d d"]:
    """R, without reflection, for which moving @ R is closest to fixed (Kabsch)."""
    u, _, vt = np.linalg.svd(moving.T @ fixed)
    signs = np.ones(len(vt))
    signs[-1] = np.sign(np.linalg.det(u @ vt))
    return (u * signs) @ vt
