"""Shapes given by a mesh whose vertices move with the parameters: exact signed distance, exact derivatives."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from logishape.core.arrays import AnyArray, as_double, as_vector, double_precision, like
from logishape.shapes.analytic import AXES
from logishape.shapes.base import AbstractNamed, AbstractShapeWithDerivatives, Derivatives
from logishape.shapes.mesh_checks import as_faces, check_crossings, check_vertices, edge_neighbours, orient
from logishape.shapes.mesh_level import Contact, find_contact, reach
from logishape.shapes.mesh_query import AbstractQuery, default_query


class AbstractSurface(AbstractNamed):
    """A family of meshes with one connectivity: triangles in space, the segments of closed polygons in the plane.

    Subclasses give `parameter_names`, `faces` and `vertices`; the vertices must be computed with `jax.numpy`.
    """

    faces: eqx.AbstractVar[Any]  # (f, d) vertex numbers

    @abc.abstractmethod
    def vertices(self, theta: Float[AnyArray, " p"]) -> Float[jax.Array, "v d"]:
        """Vertex positions, mm."""


class StretchedMesh(AbstractSurface):
    """A mesh stretched along the axes about a centre: centre + scale * (vertex - centre)."""

    faces: Int[AnyArray, "f d"] = eqx.field(converter=as_faces)
    template: Float[AnyArray, "v d"] = eqx.field(converter=as_double)
    centre: Float[AnyArray, " d"]

    def __init__(self, vertices: Any, faces: Any, centre: Any = 0.0):
        self.faces, self.template = as_faces(faces), as_double(vertices)
        check_vertices(self.template, self.faces)
        self.centre = as_vector(centre, self.template.shape[1], "the centre")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """One scale an axis; 1 is the mesh as it was given."""
        return tuple(f"scale_{axis}" for axis in AXES[: self.template.shape[1]])

    def vertices(self, theta: Float[AnyArray, " p"]) -> Float[jax.Array, "v d"]:
        """The stretched vertices."""
        template, centre = like((self.template, self.centre), theta)
        return centre + theta * (template - centre)


class MeshShape(AbstractShapeWithDerivatives):
    """The exact signed distance to a closed mesh that moves with the parameters.

    The mesh is checked once, at the parameters `checked_at`: closed, oriented, not crossing itself; faces that
    look inward are turned. Whether the mesh of a fit is still sound is for `check` to say.

    Facets are flat. Level and first derivatives are exact, but second derivatives are those of planes and edges: the
    bends between facets are creases that they do not see, on however fine a mesh. They are left out of the observed
    information (`is_faceted`), where their expectation is zero; on balls SDs then agree with `Ball` to two per cent.
    """

    surface: AbstractSurface
    faces: Int[AnyArray, "f d"]  # the surface's, turned outward
    neighbours: Int[AnyArray, "f e"]
    query: AbstractQuery | None

    def __init__(self, surface: AbstractSurface, checked_at: Any, query: AbstractQuery | None = None):
        vertices, faces = _vertices_at(surface, checked_at), as_faces(surface.faces)
        check_vertices(vertices, faces)
        self.surface, self.query = surface, query
        self.faces = orient(vertices, faces)
        check_crossings(vertices, self.faces)
        self.neighbours = edge_neighbours(self.faces)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Those of the surface."""
        return self.surface.parameter_names

    @property
    def is_faceted(self) -> bool:
        """True."""
        return True

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray]:
        """Corners (mm) of the box around the vertices."""
        vertices = _vertices_at(self.surface, theta)
        return vertices.min(axis=0), vertices.max(axis=0)

    def check(self, theta: Float[AnyArray, " p"]) -> "MeshShape":
        """Itself if the mesh at these parameters is sound; otherwise an error that says where it is not."""
        vertices = _vertices_at(self.surface, theta)
        check_vertices(vertices, np.asarray(self.faces))
        check_crossings(vertices, np.asarray(self.faces))
        return self

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """The signed distance; twice differentiable given the nearest part of the nearest face."""
        points = jnp.asarray(points)
        vertices = self._vertices(theta, points)
        return reach(vertices, self._contact(vertices, points), points).level

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Derivatives:
        """Level and derivatives from one query, by the envelope theorem.

        With n the outward normal at the closest point sum w_i v_i: dS/dtheta = n . sum w_i dv_i/dtheta, and
        -n is the gradient in space. The closest point's own motion along the surface does not matter.
        """
        theta, points = jnp.asarray(theta), jnp.asarray(points)
        vertices = self._vertices(theta, points)
        contact = self._contact(vertices, points)
        level, normal = reach(vertices, contact, points)
        motion = jax.jacfwd(lambda t: self._vertices(t, points))(theta)  # once for all points
        jacobian = jnp.zeros((points.shape[0], theta.shape[0]), motion.dtype)
        for k in range(points.shape[1]):  # corner by corner: three times less at once
            pull = contact.weights[k] * normal
            jacobian += jnp.sum(pull.T[:, :, None] * motion[contact.corners[:, k]], axis=1)
        return Derivatives(level, jacobian, -normal.T)

    def _vertices(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, "v d"]:
        """Vertices in the points' precision, whatever constants the surface is made of."""
        return like(jnp.asarray(self.surface.vertices(theta)), points)

    def _contact(self, vertices: Float[jax.Array, "v d"], points: Float[jax.Array, "n d"]) -> Contact:
        query = default_query(self.faces.shape[0]) if self.query is None else self.query
        vertices, points = jax.lax.stop_gradient((vertices, points))
        faces, neighbours = jnp.asarray(self.faces), jnp.asarray(self.neighbours)
        return find_contact(vertices, faces, neighbours, query(vertices, faces, points), points)


def _vertices_at(surface: AbstractSurface, theta: Any) -> Float[np.ndarray, "v d"]:
    """The vertices at these parameters, in double on the host."""
    theta = as_vector(theta, len(surface.parameter_names), "the parameters of the surface")
    with double_precision():
        return as_double(surface.vertices(jnp.asarray(theta)))
