"""What is fitted: a shape, a prior on its parameters and a reference length; and the state of a fit."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.appearance import Regions
from logishape.core.arrays import AnyArray, as_double, as_vector
from logishape.core.errors import InputError
from logishape.shapes import AbstractShape


class Prior(eqx.Module):
    """A box that parameters may not leave, and optionally a Gaussian within it.

    A parameter without a Gaussian (standard deviation infinite, the default) is uniform in its interval.
    The Gaussian's density is not renormalised for what the box cuts off.
    """

    lower: Float[AnyArray, " p"]
    upper: Float[AnyArray, " p"]
    mean: Float[AnyArray, " p"]
    precision: Float[AnyArray, "p p"]
    log_normaliser: Float[AnyArray, ""]

    def __init__(self, lower: Any, upper: Any, mean: Any = None, covariance: Any = None):
        self.lower, self.upper = np.atleast_1d(as_double(lower)), np.atleast_1d(as_double(upper))
        _check_box(self.lower, self.upper)
        p = self.lower.shape[0]
        if mean is not None and covariance is None:
            raise InputError("a prior mean was given without a covariance; give both, or neither for a flat prior.")
        self.mean = (self.lower + self.upper) / 2 if mean is None else as_vector(mean, p, "the prior's mean")
        if not np.all(np.isfinite(self.mean)):
            raise InputError(f"the prior's mean must be finite but is {self.mean.tolist()}; check it.")
        covariance = as_double(np.inf if covariance is None else covariance)
        if covariance.ndim < 2:
            covariance = np.diag(as_vector(covariance, p, "the prior's variances"))
        has_gaussian = _has_gaussian(covariance, p)
        self.precision, log_det = _invert(covariance, has_gaussian)
        log_volume = np.sum(np.log(self.widths[~has_gaussian]))
        log_gaussian = 0.5 * log_det - 0.5 * np.log(2 * np.pi) * has_gaussian.sum()
        self.log_normaliser = as_double(log_gaussian - log_volume)

    @classmethod
    def named(
        cls,
        shape: AbstractShape,
        bounds: Mapping[str, tuple[float, float]],
        sd: Mapping[str, float] | None = None,
    ) -> "Prior":
        """Bounds by parameter name; `sd` adds independent Gaussians about the middle of their intervals."""
        for name, interval in bounds.items():
            if np.shape(interval) != (2,) or not interval[0] < interval[1]:
                raise InputError(
                    f"the bounds of {name} must be two numbers, the lower first, but are {interval}; mend them."
                )
        lower = shape.theta({name: interval[0] for name, interval in bounds.items()})
        upper = shape.theta({name: interval[1] for name, interval in bounds.items()})
        sds = shape.theta(dict.fromkeys(shape.parameter_names, np.inf) | dict(sd or {}))
        if not np.all(sds > 0):
            raise InputError(f"standard deviations must be positive but are {dict(sd or {})}; leave out flat ones.")
        return cls(lower, upper, covariance=np.where(sds < 1e100, np.minimum(sds, 1e100) ** 2, np.inf))

    @classmethod
    def of_modes(
        cls, shape: AbstractShape, bounds: Mapping[str, tuple[float, float]] | None = None, limit: float = 4.0
    ) -> "Prior":
        """N(0, 1) within +-limit for each parameter called mode_1, mode_2, ..., and `bounds` for all others.

        Modes of a population are scaled by their standard deviations, so this is the prior they imply, whether they
        are modes of level sets, meshes or deformations, posed or not.
        """
        bounds, modes = dict(bounds or {}), [name for name in shape.parameter_names if name.startswith("mode_")]
        if not modes:
            raise InputError(
                f"the shape has no parameters called mode_1 and so on but {', '.join(shape.parameter_names)}; use "
                "Prior.named."
            )
        if not 0 < limit < np.inf:
            raise InputError(f"the limit of the modes must be positive and finite but is {limit}; try 4.")
        if set(modes) & set(bounds):
            given = ", ".join(name for name in modes if name in bounds)
            raise InputError(f"modes have no bounds of their own but {given} has; use the limit, or Prior.named.")
        return cls.named(shape, bounds | dict.fromkeys(modes, (-limit, limit)), dict.fromkeys(modes, 1.0))

    @property
    def widths(self) -> Float[AnyArray, " p"]:
        """Upper minus lower bound: the natural unit of each parameter."""
        return self.upper - self.lower

    def log_prob(self, theta: Float[AnyArray, " p"]) -> Float[jax.Array, ""]:
        """Log density at theta; minus infinity outside the box."""
        offset = theta - self.mean
        inside = jnp.all((theta >= self.lower) & (theta <= self.upper))
        return jnp.where(inside, self.log_normaliser - 0.5 * offset @ self.precision @ offset, -jnp.inf)


class Model(eqx.Module):
    """A shape, the prior of its parameters, and the reference length (mm) of the label prior."""

    shape: AbstractShape
    prior: Prior
    reference_length: Float[AnyArray, ""] = eqx.field(converter=as_double)

    def __check_init__(self) -> None:
        p = self.shape.num_parameters
        if self.prior.lower.shape[0] != p:
            raise InputError(
                f"the shape has {p} parameters ({', '.join(self.shape.parameter_names)}) but the prior "
                f"has {self.prior.lower.shape[0]}; give one interval a parameter."
            )
        length = self.reference_length
        if isinstance(length, np.ndarray) and not (length.shape == () and np.isfinite(length) and length > 1e-30):
            found = length.tolist()
            raise InputError(
                f"the reference length must be one positive number but is {found}; try a voxel size in mm."
            )

    def with_reference_length(self, reference_length: Any) -> "Model":
        """The same shape and prior with another reference length."""
        return Model(self.shape, self.prior, reference_length)


class State(eqx.Module):
    """All the next step needs: the shape's parameters and the two appearances."""

    theta: Float[AnyArray, " p"] = eqx.field(converter=as_double)
    regions: Regions

    def with_appearance(self, free_parameters: Float[AnyArray, " k"]) -> "State":
        """The same shape with other free parameters of the appearances."""
        return State(self.theta, self.regions.with_free_parameters(free_parameters))


def _has_gaussian(covariance: np.ndarray, p: int) -> np.ndarray:
    """Which parameters have a finite variance, after checking the matrix."""
    if covariance.shape != (p, p):
        raise InputError(
            f"the box has {p} parameters but the prior's covariance has shape {covariance.shape}; they must agree."
        )
    has_gaussian = ~np.isposinf(np.diag(covariance))
    variances = np.diag(covariance)[has_gaussian]
    if not np.all(np.isfinite(covariance[np.ix_(has_gaussian, has_gaussian)])) or np.any(np.abs(variances) < 1e-100):
        raise InputError(
            "the prior's covariance holds variances that are not finite or vanish; use inf only on its diagonal."
        )
    return has_gaussian


def _check_box(lower: np.ndarray, upper: np.ndarray) -> None:
    if lower.shape != upper.shape or lower.ndim != 1:
        raise InputError(
            f"the box needs as many lower as upper bounds but has {lower.shape} and {upper.shape}; give one of "
            "each a parameter."
        )
    if not np.all(np.abs([lower, upper]) < 1e15):
        raise InputError(
            f"the box must stay below 1e15 but goes from {lower.tolist()} to {upper.tolist()}; its widths are the "
            "units of the parameters, so give the widest plausible values."
        )
    if np.any(lower >= upper):
        raise InputError(
            f"every lower bound must be below its upper bound but parameter {int(np.argmax(lower >= upper))} "
            "is not; swap them or widen the interval."
        )


def _invert(covariance: np.ndarray, has_gaussian: np.ndarray) -> tuple[np.ndarray, float]:
    """The precision (zero where there is no Gaussian) and the log determinant of its Gaussian part."""
    precision = np.zeros(covariance.shape)
    part = covariance[np.ix_(has_gaussian, has_gaussian)]
    sign, log_det = np.linalg.slogdet(part) if part.size else (1.0, 0.0)
    is_definite = np.allclose(part, part.T) and (not part.size or np.all(np.linalg.eigvalsh(part) > 0))
    if sign <= 0 or not is_definite:
        raise InputError("the prior's covariance must be symmetric and positive definite; check its entries.")
    if part.size:
        precision[np.ix_(has_gaussian, has_gaussian)] = np.linalg.inv(part)
    return precision, -float(log_det)
