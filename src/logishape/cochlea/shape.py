"""The cochlea as a shape: ten parameters of pose and spiral, and options that free more."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.cochlea.calibration import PARAMETERS, Calibration, load_calibration, paper_calibration
from logishape.cochlea.duct import FREE, OF_THE_FIT, Distance, Duct, check_distance
from logishape.cochlea.frame import Frame
from logishape.cochlea.learned import LearnedDuct, load_network
from logishape.cochlea.sections import Form
from logishape.core.arrays import AnyArray, as_numbers
from logishape.core.errors import InputError
from logishape.core.rotations import apply_matrix
from logishape.inference.model import Prior
from logishape.shapes.base import AbstractShape, AbstractShapeWithDerivatives, Derivatives, derivatives
from logishape.shapes.posed import Posed
from logishape.shapes.remeshed import Remeshed

Preset = Literal["default", "paper"]
MESH_SPACING = 0.15  # mm, of the lattice


class Cochlea(AbstractShapeWithDerivatives):
    """A tube along a spiral, posed in the world: tx ty tz rx ry rz (mm, rad), a (mm), b, alpha (mm), phi (rad).

    `frame` says roughly where the cochlea lies (`Frame.from_landmarks`); the pose is what is left to find, so that it
    starts at zero. `free` adds parameters: section_scale (of the log size), section_c2 and section_s2 (of the
    sections' form), theta_max (rad, the last angle), apex_offset (mm, of the apex along the axis), always in this
    order. Models with more and fewer of them are comparable by `ls.compare`. Left ears are mirrored right ears: the
    frame sees to it.

    `distance` is "level", analytic and good to first order (the default for fitting), "exact", the Euclidean signed
    distance of the union of all turns, "mesh", the distance to a triangle mesh that is made anew for each set of
    parameters, or "learned", that of a network (the calibration's, or the one that comes with logishape). The first
    two have the same sign everywhere, the others but for their error.
    """

    frame: Frame
    posed: Posed

    def __init__(
        self,
        frame: Frame | None = None,
        free: tuple[str, ...] = (),
        calibration: Calibration | None = None,
        preset: Preset = "default",
        distance: Distance = "level",
    ):
        _check_options(frame, free, calibration, preset, distance)
        if calibration is None:
            calibration = paper_calibration() if preset == "paper" else load_calibration()
        self.frame = Frame.identity() if frame is None else frame
        ordered = tuple(name for name in FREE if name in free)
        duct = Duct(calibration, ordered, "level" if distance in OF_THE_FIT else distance)
        self.posed = Posed(_seen_by(duct, distance), calibration.centre, calibration.centre)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Translation, rotation, a, b, alpha, phi, then what else is free."""
        return self.posed.parameter_names

    @property
    def is_faceted(self) -> bool:
        """Whether second derivatives are to be left out, as for the exact distance."""
        return self.posed.is_faceted

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Float[jax.Array, " n"]:
        """Millimetres to the surface at world points, positive inside."""
        return _level(self, jnp.asarray(theta), jnp.asarray(points))

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Derivatives:
        """The level and its exact derivatives in parameters and world position."""
        return _derivatives(self, jnp.asarray(theta), jnp.asarray(points))

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray]:
        """Corners (mm) of a world box around the surface."""
        lower, upper = self.duct.extent(np.asarray(theta)[6:])
        corners = np.stack(np.meshgrid(*zip(lower, upper, strict=True), indexing="ij"), axis=-1).reshape(-1, 3)
        world = np.asarray(self.to_world(theta, corners))
        return world.min(axis=0), world.max(axis=0)

    @property
    def calibration(self) -> Calibration:
        """What the shape takes from data."""
        return self.duct.calibration

    @property
    def duct(self) -> Duct:
        """The shape in its own frame, without a pose."""
        shape = self.posed.shape
        shape = shape.shape if isinstance(shape, Remeshed | LearnedDuct) else shape
        assert isinstance(shape, Duct)
        return shape

    def by_level(self) -> "Cochlea":
        """The same cochlea with the quick level in place of a mesh or a network; itself if it has none."""
        if isinstance(self.posed.shape, Duct):
            return self
        return Cochlea(self.frame, self.duct.free, self.calibration)

    def with_sections(self, powers: Float[AnyArray, "5 degree"]) -> "Cochlea":
        """The same cochlea with another section table (`SectionTable.powers`); it needs no other program."""
        return eqx.tree_at(lambda one: one.duct.calibration.table.powers, self, powers)

    def form(self, theta: Float[AnyArray, " p"]) -> Form:
        """The spiral and its sections with these parameters, in double precision where that is switched on."""
        return self.duct.form(jnp.asarray(theta)[6:], np.zeros(1))

    def to_model(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Float[jax.Array, "n 3"]:
        """World points (mm) in the frame of the fitted spiral: z its axis, theta = 0 along x."""
        return self.posed.to_model(theta, self.frame.to_cochlea(points))

    def to_world(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n 3"]) -> Float[jax.Array, "n 3"]:
        """Points of the spiral's own frame in the world (mm)."""
        return _to_world(self, jnp.asarray(theta), jnp.asarray(points))

    def mean(self) -> np.ndarray:
        """The prior mean of the parameters: the start of a fit."""
        return self.calibration.mean[self._chosen()]

    def sd(self) -> np.ndarray:
        """The prior's standard deviations; infinite where there is no Gaussian."""
        return np.sqrt(np.diag(self.calibration.covariance)[self._chosen()])

    def prior(self, gaussian: bool = True) -> Prior:
        """The calibrated box, with the specimens' Gaussian in it or (`gaussian=False`, the paper's) alone."""
        chosen, calibration = self._chosen(), self.calibration
        covariance = calibration.covariance[np.ix_(chosen, chosen)]
        lower, upper = calibration.lower[chosen], calibration.upper[chosen]
        if not gaussian or not np.all(np.isfinite(np.diag(covariance))):
            return Prior(lower, upper)
        return Prior(lower, upper, calibration.mean[chosen], covariance)

    def check(self, theta: object) -> np.ndarray:
        """The parameters as doubles if they are finite and in the box; otherwise an error that names a bad one."""
        values, names = as_numbers(theta, "the parameters"), self.parameter_names
        if values.shape != (len(names),):
            raise InputError(
                f"this cochlea has {len(names)} parameters ({', '.join(names)}) but numbers of shape "
                f"{values.shape} were given; give one vector of them all."
            )
        chosen = self._chosen()
        rows = zip(names, values, self.calibration.lower[chosen], self.calibration.upper[chosen], strict=True)
        for name, value, lower, upper in rows:
            if not np.isfinite(value):
                raise InputError(f"the parameter {name} must be finite but is {value}; check where it comes from.")
            if not lower - 1e-9 <= value <= upper + 1e-9:
                raise InputError(
                    f"the parameter {name} must lie in [{lower:g}, {upper:g}] but is {value:g}; no cochlea looks "
                    "like that: check its unit and its place in the list."
                )
        return values

    def _chosen(self) -> list[int]:
        return [PARAMETERS.index(name) for name in self.parameter_names]


def _seen_by(duct: Duct, distance: Distance) -> AbstractShape:
    """The duct itself, or what gives its distance."""
    if distance == "learned":
        return LearnedDuct(duct, duct.calibration.network or load_network())
    if distance == "mesh":
        lower, upper = duct.box()
        return Remeshed(duct, np.floor(lower / MESH_SPACING) * MESH_SPACING, upper, MESH_SPACING)
    return duct


@jax.jit  # a fit asks in many places: traced once for all of them
def _level(cochlea: Cochlea, theta: jax.Array, points: jax.Array) -> jax.Array:
    return cochlea.posed.level(theta, cochlea.frame.to_cochlea(points))


@jax.jit
def _derivatives(cochlea: Cochlea, theta: jax.Array, points: jax.Array) -> Derivatives:
    found = derivatives(cochlea.posed, theta, cochlea.frame.to_cochlea(points))
    axes = jnp.asarray(cochlea.frame.axes, found.gradient.dtype)
    return found._replace(gradient=apply_matrix(axes.T, found.gradient))


@jax.jit  # one program where there would be one for each operation
def _to_world(cochlea: Cochlea, theta: jax.Array, points: jax.Array) -> jax.Array:
    return cochlea.frame.to_world(cochlea.posed.to_world(theta, points))


def _check_options(frame: object, free: object, calibration: object, preset: object, distance: object) -> None:
    if frame is not None and not isinstance(frame, Frame):
        raise InputError(f"frame must be a Frame but is a {type(frame).__name__}; use Frame.from_landmarks.")
    if not isinstance(free, tuple | list):
        raise InputError(f"free must be a tuple of names but is {free!r}; write ({free!r},).")
    unknown = [name for name in free if name not in FREE]
    if unknown:
        raise InputError(f"free must be among {', '.join(FREE)} but has {unknown[0]!r}; see the help of Cochlea.")
    if preset not in ("default", "paper"):
        raise InputError(f"the preset must be default or paper but is {preset!r}; choose one.")
    if preset == "paper" and calibration is not None:
        raise InputError("the paper's preset has sections of its own but a calibration was given too; leave one out.")
    if calibration is not None and not isinstance(calibration, Calibration):
        raise InputError(
            f"calibration must come from load_calibration but is a {type(calibration).__name__}; load it."
        )
    check_distance(distance)
