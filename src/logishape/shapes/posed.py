"""A rigid motion in front of any shape."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from logishape.core.arrays import AnyArray, as_double, as_vector, like
from logishape.core.errors import InputError
from logishape.core.rotations import rotation_matrix, rotation_matrix_2d
from logishape.shapes.base import AbstractShape

_POSE_NAMES = {2: ("tx", "ty", "angle"), 3: ("tx", "ty", "tz", "rx", "ry", "rz")}


class Posed(AbstractShape):
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

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """The shape's level at the moved points."""
        translation, rotation, shape_theta = self._split(theta)
        # Centres enter in the points' precision, so that a single-precision image stays single.
        centre, target = like((self.image_centre, self.model_centre), points)
        return self.shape.level(shape_theta, (points - centre) @ rotation.T + target + translation)

    def to_world(self, theta: Float[AnyArray, " p"], model_points: Float[AnyArray, "n d"]) -> Float[jax.Array, "n d"]:
        """World positions of points given in the shape's own frame: x = R'(y - t - model_centre) + image_centre."""
        translation, rotation, _ = self._split(theta)
        return (model_points - self.model_centre - translation) @ rotation + self.image_centre

    def _split(self, theta: Float[AnyArray, " p"]) -> tuple[jax.Array, jax.Array, jax.Array]:
        theta = jnp.asarray(theta)
        if self.image_centre.shape[0] == 2:
            return theta[:2], rotation_matrix_2d(theta[2]), theta[3:]
        return theta[:3], rotation_matrix(theta[3:6]), theta[6:]
