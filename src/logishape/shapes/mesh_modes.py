"""Statistical meshes: a mean and modes of variation learnt from meshes with the same vertices."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from logishape.core.arrays import AnyArray, as_double, like
from logishape.core.errors import InputError
from logishape.shapes.mesh import AbstractSurface, MeshShape
from logishape.shapes.mesh_checks import as_faces, check_vertices
from logishape.shapes.mesh_query import AbstractQuery
from logishape.shapes.modes import choose_modes, mode_names
from logishape.shapes.procrustes import align_meshes

Alignment = Literal["rigid", "similarity", "none"]


class MeshModes(AbstractSurface):
    """vertices = mean + sum_k theta_k modes_k: each mode is one standard deviation (mm), so theta is in SDs.

    The prior that the training meshes imply is N(0, 1) for every `mode_k`. `explained` is the share of the
    training variance that each mode holds.
    """

    faces: Int[AnyArray, "f d"] = eqx.field(converter=as_faces)
    mean: Float[AnyArray, "v d"] = eqx.field(converter=as_double)
    modes: Float[AnyArray, "p v d"] = eqx.field(converter=as_double)
    explained: Float[AnyArray, " p"] = eqx.field(converter=as_double)

    def __check_init__(self) -> None:
        check_vertices(self.mean, self.faces)
        if self.modes.ndim != 3 or self.modes.shape[1:] != self.mean.shape or not len(self.modes):
            raise InputError(
                f"modes must move each vertex, with shape (p, {self.mean.shape[0]}, {self.mean.shape[1]}), but have "
                f"shape {self.modes.shape}; give one displacement a vertex and mode."
            )
        if not np.all(np.isfinite(self.modes)):
            raise InputError("the modes must be finite but are not; check the meshes they were made from.")
        if self.explained.shape != (len(self.modes),):
            raise InputError(
                f"there are {len(self.modes)} modes but explained has shape {self.explained.shape}; give one each."
            )

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """mode_1, mode_2, ..., the largest first, in standard deviations."""
        return mode_names(self.modes.shape[0])

    def vertices(self, theta: Float[AnyArray, " p"]) -> Float[jax.Array, "v d"]:
        """The mean moved along the modes."""
        mean, modes = like((self.mean, self.modes), theta)
        return mean + jnp.tensordot(theta, modes, axes=1)


def from_meshes(
    vertices: Float[AnyArray, "k v d"],
    faces: Int[AnyArray, "f d"],
    num_modes: int | None = None,
    explained: float = 0.95,
    align: Alignment = "rigid",
    query: AbstractQuery | None = None,
) -> MeshShape:
    """The shape whose modes (`shape.surface`) are learnt from k meshes that share vertex order and faces.

    Generalised Procrustes (rotations without reflection; with `align="similarity"` sizes too), then principal
    components: `num_modes` of them, or as many as explain that share of the variance. The frame is the first
    mesh's orientation about the mean position; with "none" it is that of the meshes.
    """
    meshes, faces = _as_meshes(vertices), as_faces(faces)
    for mesh in meshes:
        check_vertices(mesh, faces)
    if align not in ("rigid", "similarity", "none"):
        raise InputError(f'align must be "rigid", "similarity" or "none" but is {align!r}; choose one of them.')
    aligned = meshes if align == "none" else align_meshes(meshes, with_scale=align == "similarity")
    mean = aligned.mean(axis=0)
    modes, shares = choose_modes((aligned - mean).reshape(len(aligned), -1), num_modes, explained)
    surface = MeshModes(faces, mean, modes.reshape(-1, *mean.shape), shares)
    return MeshShape(surface, np.zeros(len(modes)), query)


def _as_meshes(vertices: Any) -> Float[np.ndarray, "k v d"]:
    shapes = sorted({np.shape(mesh) for mesh in vertices})
    if len(shapes) > 1:
        raise InputError(
            f"all meshes must have the same vertices but their shapes are {', '.join(map(str, shapes))}; "
            "bring them into correspondence first."
        )
    meshes = as_double(vertices)
    if meshes.ndim != 3 or len(meshes) < 3:
        raise InputError(
            f"modes need at least 3 meshes, as an array (k, v, d), but the shape is {meshes.shape}; add meshes."
        )
    return meshes
