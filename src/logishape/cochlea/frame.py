"""The cochlea's own frame: origin at the base, z along the modiolar axis to the apex, x towards the round window."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.core.arrays import AnyArray, as_numbers, like
from logishape.core.errors import InputError
from logishape.core.rotations import apply_matrix

Side = Literal["left", "right"]


class Frame(eqx.Module):
    """Where a cochlea lies in the world: y = axes (x - origin), mm.

    The rows of `axes` are the frame's x, y and z in world coordinates. For a right ear y = z cross x, so that the
    angle grows counter-clockwise seen from the apex; a left ear is a mirrored right one: its y is turned round.
    """

    axes: Float[AnyArray, "3 3"]
    origin: Float[AnyArray, " 3"]

    def __init__(self, axes: object, origin: object):
        self.axes, self.origin = as_numbers(axes, "the frame's axes"), _position(origin, "the frame's origin")
        if self.axes.shape != (3, 3) or not np.allclose(self.axes @ self.axes.T, np.eye(3), atol=1e-6):
            raise InputError(
                "the frame's axes must be three orthogonal rows of length one; use Frame.from_landmarks."
            )
        if not np.all(np.isfinite(self.origin)):
            raise InputError(f"the frame's origin must be finite but is {self.origin.tolist()}; check it.")

    @classmethod
    def from_landmarks(cls, centre: object, apex: object, round_window: object, side: Side) -> "Frame":
        """The frame with its origin at the base's centre, z to the apex and x towards the round window (RAS mm)."""
        if side not in ("left", "right"):
            raise InputError(f"the side must be left or right but is {side!r}; say which ear it is.")
        named = {"centre": centre, "apex": apex, "round window": round_window}
        c, a, w = (_position(value, f"the landmark {name}") for name, value in named.items())
        z, x = a - c, w - c
        away = x - z * (x @ z) / max(z @ z, 1e-12)
        if not np.all(np.isfinite([c, a, w])) or np.linalg.norm(z) < 0.1 or np.linalg.norm(away) < 0.1:
            raise InputError(
                "the landmarks must be finite, apex and round window away from the centre and from one line but are "
                f"{c.tolist()}, {a.tolist()}, {w.tolist()}; mark them again."
            )
        z, x = z / np.linalg.norm(z), away / np.linalg.norm(away)
        y = np.cross(z, x)
        return cls(np.stack([x, y if side == "right" else -y, z]), c)

    @classmethod
    def identity(cls, side: Side = "right") -> "Frame":
        """The world itself as frame; for a left ear mirrored in y."""
        return cls.from_landmarks([0, 0, 0], [0, 0, 1], [1, 0, 0], side)

    @property
    def side(self) -> Side:
        """Left if the frame mirrors, else right."""
        return "right" if np.linalg.det(self.axes) > 0 else "left"

    def to_cochlea(self, points: Float[AnyArray, "n 3"]) -> Float[jax.Array, "n 3"]:
        """World points (mm) in the cochlea's frame."""
        points = jnp.asarray(points)
        axes, origin = like((self.axes, self.origin), points)
        return apply_matrix(axes, points - origin)

    def to_world(self, points: Float[AnyArray, "n 3"]) -> Float[jax.Array, "n 3"]:
        """Points of the cochlea's frame in the world (mm)."""
        points = jnp.asarray(points)
        axes, origin = like((self.axes, self.origin), points)
        return apply_matrix(axes.T, points) + origin


def _position(value: object, name: str) -> np.ndarray:
    position = as_numbers(value, name)
    if position.shape != (3,):
        raise InputError(
            f"expected three numbers (RAS mm) for {name} but found shape {position.shape}; give x, y, z."
        )
    return position
