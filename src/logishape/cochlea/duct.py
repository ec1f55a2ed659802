"""The cochlea in its own frame, without a pose: a tube along a spiral, its sections from a table."""

import itertools
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.cochlea.calibration import PARAMETERS, Calibration
from logishape.cochlea.derivatives import piece_derivatives
from logishape.cochlea.exact import contact, distance, exact_level
from logishape.cochlea.level import nearest_piece, place_of, union_level
from logishape.cochlea.sections import Form
from logishape.cochlea.sheets import spots, surface_jet
from logishape.core.arrays import AnyArray, double_precision, like
from logishape.core.errors import InputError
from logishape.shapes.base import AbstractShapeWithDerivatives, Derivatives

Distance = Literal["level", "exact", "mesh", "learned"]
DISTANCES = get_args(Distance)
OF_THE_FIT = ("mesh", "learned")  # what is asked for in the final fit alone; all else takes the level
DEFORMABLE = ("a", "b", "alpha", "phi")
FREE = ("section_scale", "section_c2", "section_s2", "theta_max", "apex_offset")


def check_distance(distance: object) -> None:
    """Raises unless it is one of `DISTANCES`."""
    if distance not in DISTANCES:
        names = f"{', '.join(DISTANCES[:-1])} or {DISTANCES[-1]}"
        raise InputError(f"the distance must be {names} but is {distance!r}; choose one.")


class Duct(AbstractShapeWithDerivatives):
    """The swept tube: parameters a, b, alpha, phi and the chosen ones of `FREE`; `Cochlea` is the whole shape."""

    calibration: Calibration
    free: tuple[str, ...] = eqx.field(static=True)
    distance: Distance = eqx.field(static=True)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """a, b, alpha, phi, then what else is free."""
        return (*DEFORMABLE, *self.free)

    @property
    def is_faceted(self) -> bool:
        """Whether second derivatives are to be left out: those of the exact distance are not known."""
        return self.distance == "exact"

    def form(self, theta: Float[AnyArray, " p"], reference: AnyArray) -> Form:
        """The spiral and sections with these parameters, in the precision of `reference`."""
        if np.shape(theta) != (self.num_parameters,):
            names = ", ".join(self.parameter_names)
            raise InputError(f"expected the parameters {names} but found shape {np.shape(theta)}; give them all.")
        calibration, theta = like((self.calibration, jnp.asarray(theta)), reference)
        values = dict(zip(self.parameter_names, theta, strict=True))
        zero = jnp.zeros((), theta.dtype)
        return Form(
            calibration.constants,
            calibration.table,
            calibration.start,
            values.pop("theta_max", calibration.end),
            depths=calibration.depths,
            **{name: values.get(name, zero) for name in (*DEFORMABLE, *FREE) if name != "theta_max"},
        )

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Float[jax.Array, " n"]:
        """The level or the signed distance of the union of all turns, mm."""
        points = jnp.asarray(points)
        form = self.form(theta, points)
        return exact_level(form, points) if self.distance == "exact" else union_level(form, points)

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Derivatives:
        """The level and its derivatives, exact; for the distance by the envelope theorem at the closest point."""
        points = jnp.asarray(points)
        form = self.form(theta, points)
        if self.distance == "level":
            return piece_derivatives(form, self.free, nearest_piece(form, place_of(points)), points)
        at = contact(form, points)
        first, second = (piece_derivatives(form, self.free, piece, at.point) for piece in at.pieces)
        w1, w2 = (weight[:, None] for weight in at.weights)
        return Derivatives(distance(at, points), w1 * first.jacobian + w2 * second.jacobian, at.normal.T)

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray]:
        """Corners (mm) of the box around the surface, in the duct's frame."""
        with double_precision():
            corners = np.asarray(_sheet_points(self, jnp.asarray(theta, float)))
        return corners.min(axis=1) - 0.1, corners.max(axis=1) + 0.1

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners (mm) of a box that holds the surface wherever the parameters are in their own box."""
        chosen = [PARAMETERS.index(name) for name in self.parameter_names]
        sides = zip(self.calibration.lower[chosen], self.calibration.upper[chosen], strict=True)
        boxes = np.array([self.extent(np.array(corner)) for corner in itertools.product(*sides)])
        return boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)


@eqx.filter_jit
def _sheet_points(duct: Duct, theta: AnyArray) -> jax.Array:
    """Points all over the sheets, shown or buried, components first."""
    return surface_jet(duct.form(theta, theta), spots(duct.form(theta, theta), theta.dtype)).point.reshape(3, -1)
