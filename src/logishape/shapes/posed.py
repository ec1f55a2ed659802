"""A rigid motion in front of any shape."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray, as_double, as_vector, like, side_by_side
from logishape.core.errors import InputError
from logishape.core.rotations import apply_matrix, right_jacobian, rotation_matrix, rotation_matrix_2d
from logishape.shapes.base import AbstractShape, AbstractShapeWithDerivatives, Derivatives, derivatives

_POSE_NAMES = {2: ("tx", "ty", "angle"), 3: ("tx", "ty", "tz", "rx", "ry", "rz")}


class Posed(AbstractShapeWithDerivatives):
    """A shape seen through a rigid motion: level(theta, R (x - image_centre) + model_centre + t).

    Parameters: translation t (mm), rotation (rad; a rotation vector in space, an angle in the plane), then
    those of the shape. With both centres near the middle of the object, t and R are weakly coupled.
    """

    shape: AbstractShape
    image_centre: Float[AnyArray, " d"] = eqx.field(converter=as_double)
    model_centre: Float[AnyArray, " d"] = eqx.field(converter=as_double)

    def __init__(self, shape: AbstractShape, image_centre: object, model_centre: object = None):
        self.shape = shape
        self.image_centre = as_double(image_centre)
        if self.image_centre.shape not in ((2,), (3,)):
            raise InputError(
                f"image_centre must be 2 or 3 numbers (mm) but has shape {self.image_centre.shape}; "
                "give the middle of the object."
            )
        d = self.image_centre.shape[0]
        self.model_centre = as_vector(0.0 if model_centre is None else model_centre, d, "model_centre")
        if set(_POSE_NAMES[d]) & set(shape.parameter_names):
            raise InputError("this shape has a pose already; one Posed is enough.")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Translation, rotation, then the shape's own parameters."""
        return (*_POSE_NAMES[self.image_centre.shape[0]], *self.shape.parameter_names)

    @property
    def is_faceted(self) -> bool:
        """As the shape is."""
        return self.shape.is_faceted

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """The shape's level at the moved points."""
        _, moved = self._move(theta, points)
        return self.shape.level(self._split(theta)[2], moved)

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Derivatives:
        """The shape's derivatives, and those of the pose by the chain rule: no pass through the rotation per point.

        d/dt = grad S; d/dr = J_r' (x cross R' grad S) with the right Jacobian of the rotation, finite at r = 0
        (the paper's form is equal but 0/0 there); in the plane the cross product is a number.
        """
        centred, moved = self._move(theta, points)
        _, rotation, shape_theta = self._split(theta)
        inner = derivatives(self.shape, shape_theta, moved)
        gradient = apply_matrix(rotation.T, inner.gradient)
        if centred.shape[1] == 2:
            turn = (centred[:, 0] * gradient[:, 1] - centred[:, 1] * gradient[:, 0])[:, None]
        else:
            (x, y, z), (u, v, w) = centred.T, gradient.T
            torque = side_by_side([y * w - z * v, z * u - x * w, x * v - y * u])  # the cross product
            turn = apply_matrix(right_jacobian(theta[3:6]).T, torque)
        jacobian = side_by_side([inner.gradient, turn, inner.jacobian])
        return Derivatives(inner.level, jacobian, gradient)

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray] | None:
        """The box around the shape's own box, where the pose puts it."""
        box = self.shape.extent(self._split(theta)[2])
        if box is None:
            return None
        corners = np.stack(np.meshgrid(*zip(*box, strict=True), indexing="ij"), axis=-1).reshape(-1, len(box[0]))
        world = np.asarray(self.to_world(theta, corners))
        return world.min(axis=0), world.max(axis=0)

    def to_model(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, "n d"]:
        """World positions in the shape's own frame: y = R (x - image_centre) + model_centre + t."""
        return self._move(theta, jnp.asarray(points))[1]

    def to_world(self, theta: Float[AnyArray, " p"], model_points: Float[AnyArray, "n d"]) -> Float[jax.Array, "n d"]:
        """World positions of points given in the shape's own frame: x = R'(y - t - model_centre) + image_centre."""
        translation, rotation, _ = self._split(theta)
        return apply_matrix(rotation.T, model_points - self.model_centre - translation) + self.image_centre

    def _move(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> tuple[jax.Array, jax.Array]:
        """Points from the image centre, and where the motion takes them in the shape's frame."""
        translation, rotation, _ = self._split(theta)
        # Centres enter in the points' precision, so that a single-precision image stays single.
        centre, target = like((self.image_centre, self.model_centre), points)
        centred = points - centre
        return centred, apply_matrix(rotation, centred) + target + translation

    def _split(self, theta: Float[AnyArray, " p"]) -> tuple[jax.Array, jax.Array, jax.Array]:
        theta = jnp.asarray(theta)
        if self.image_centre.shape[0] == 2:
            return theta[:2], rotation_matrix_2d(theta[2]), theta[3:]
        return theta[:3], rotation_matrix(theta[3:6]), theta[6:]
