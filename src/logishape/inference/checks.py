"""Checks at the border of a fit: one sentence instead of a NaN."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from logishape.appearance import Fixed, ProbabilityMap
from logishape.core.arrays import AnyArray, double_precision
from logishape.core.errors import InputError
from logishape.core.observation import LARGEST_INTENSITY, Observation
from logishape.inference.labels import prior_logit
from logishape.inference.model import Model, State
from logishape.inference.objective import log_joint, log_joint_at


def check_state(model: Model, observation: Observation, state: State) -> None:
    """Raises unless the state belongs to the model, and the model to the observation."""
    observation.checked()
    names = model.shape.parameter_names
    theta = np.asarray(state.theta)
    if theta.shape != (len(names),):
        raise InputError(
            f"the shape has {len(names)} parameters ({', '.join(names)}) but theta has shape {theta.shape}; "
            "give one for each."
        )
    if not np.all(np.isfinite(theta)):
        raise InputError(f"the parameters must be finite but are {theta.tolist()}; check them.")
    check_level(model, observation)
    values = np.asarray(observation.intensities)
    if _is_supervised(state) and (values.min() < 0 or values.max() > 1):
        raise InputError(
            f"supervised regions read probabilities but the values lie in [{values.min():g}, {values.max():g}]; "
            "observe the classifier's map, not the image."
        )


def _is_supervised(state: State) -> bool:
    """Whether a region, or what a `Fixed` holds, reads probabilities."""
    both = (state.regions.inside, state.regions.outside)
    return any(isinstance(one.appearance if isinstance(one, Fixed) else one, ProbabilityMap) for one in both)


def check_start(model: Model, observation: Observation, start: State) -> None:
    """Raises unless a fit can begin here: in the box, over voxels, with a finite log joint."""
    check_state(model, observation, start)
    theta = np.asarray(start.theta)
    check_in_box(model, theta, "the start")
    in_use = np.asarray(observation.weights) > 0
    fewest = 2 ** (observation.ndim + 1)
    if np.count_nonzero(in_use) < fewest:
        raise InputError(
            f"the observation has {np.count_nonzero(in_use)} voxels but a fit needs at least {fewest}; "
            "enlarge the region."
        )
    with double_precision():
        logits = np.asarray(eqx.filter_jit(prior_logit)(model, theta, observation.points))
        height = float(eqx.filter_jit(log_joint)(model, observation, start))
    if not np.all(np.isfinite(logits)):
        raise InputError("the shape's level is not finite at the start; check the formula and the start's values.")
    if logits[in_use].max() <= 0:
        where = _extents(model, observation, theta)
        raise InputError(
            f"the starting shape contains no voxel of the observation with a weight: {where}; move the start to "
            "where the object is, in world millimetres."
        )
    if not np.isfinite(height):
        raise InputError("the log joint is not finite at the start; check the scales of the appearances.")


def check_in_box(model: Model, theta: Float[AnyArray, " p"], name: str) -> None:
    """Raises, calling the parameters `name`, unless they lie in the prior's box."""
    theta, prior = np.asarray(theta), model.prior
    outside = ~((theta >= prior.lower) & (theta <= prior.upper))
    if np.any(outside):
        k = int(np.argmax(outside))
        raise InputError(
            f"{name} has {model.shape.parameter_names[k]} = {theta[k]:g}, outside the prior's box "
            f"[{prior.lower[k]:g}, {prior.upper[k]:g}]; move the start or widen the box."
        )


def _extents(model: Model, observation: Observation, theta: np.ndarray) -> str:
    """Where voxels and shape lie, as far as the shape knows it: voxel units and millimetres show at once."""
    used = np.asarray(observation.points)[np.asarray(observation.weights) > 0]
    lower, upper = (corner.round(1).tolist() for corner in (used.min(axis=0), used.max(axis=0)))
    text = f"its voxels span {lower} to {upper} mm"
    with double_precision():
        box = model.shape.extent(theta)
    if box is None:
        return text
    lower, upper = (np.asarray(corner).round(1).tolist() for corner in box)
    return f"{text}, the shape's box {lower} to {upper} mm"


def looks_sound(model: Model, observation: Observation, start: State) -> Bool[Array, ""]:
    """Whether `check_start` would let a case pass, in one pass and without its sentences; for use under vmap."""
    logits = prior_logit(model, start.theta, observation.points)
    return is_sound(jnp, observation, start, logits, log_joint_at(model, observation, start, logits))


def is_sound(xp: Any, observation: Observation, start: State, logits: AnyArray, height: AnyArray) -> Any:
    """The same where logits and log joint of the start are known; `xp` is `jnp`, or `np` for what is on the host."""
    values, weights = xp.asarray(observation.intensities), xp.asarray(observation.weights)
    lowest, highest = (0.0, 1.0) if _is_supervised(start) else (-LARGEST_INTENSITY, LARGEST_INTENSITY)
    in_use = weights > 0
    return (
        xp.all(xp.isfinite(observation.points))
        & xp.all((values >= lowest) & (values <= highest))
        & xp.all(xp.isfinite(weights) & (weights >= 0))
        & (xp.sum(in_use) >= 2 ** (observation.ndim + 1))
        & xp.all(xp.isfinite(logits))
        & xp.any(in_use & (logits > 0))
        & xp.isfinite(height)  # minus infinity outside the box
    )


def find_problem(check: Callable[..., None], *arguments: Any) -> str:
    """The sentence with which a check refuses its arguments; empty if it does not."""
    try:
        check(*arguments)
    except InputError as error:
        return str(error)
    return ""


def has_right_shapes(model: Model, observation: Observation, start: State) -> bool:
    """Whether the arrays of a case, whatever they hold, can be stacked with those of others."""
    points, rows = np.shape(observation.points), np.shape(observation.intensities)
    has_rows = len(points) == 2 and points[0] > 0 and points[:1] == rows == np.shape(observation.weights)
    return has_rows and np.shape(start.theta) == (model.shape.num_parameters,)


def check_batch(observations: Sequence[Observation], starts: Sequence[State]) -> None:
    """Raises unless the cases can be stacked: as many starts as images, all of one kind."""
    if not observations or len(observations) != len(starts):
        raise InputError(
            f"a batch needs as many starts as observations and at least one but has {len(observations)} observations "
            f"and {len(starts)} starts; give one start each."
        )
    points = [one.points for one in observations if np.ndim(one.points) == 2]
    kinds = {(one.shape[1], np.dtype(one.dtype).name) for one in points}
    if len(kinds) > 1:
        raise InputError(f"a batch has images of one dimension and precision but found {sorted(kinds)}; split it.")
    looks = [start.regions for start in starts]
    structures = {(jax.tree.structure(one), tuple(np.shape(leaf) for leaf in jax.tree.leaves(one))) for one in looks}
    if len(structures) > 1:
        raise InputError("the starts of a batch must have the same kinds of appearance; split the batch.")


def check_level(model: Model, observation: Observation) -> None:
    """Raises unless the shape's level gives one float a point of the observation."""
    points = np.asarray(observation.points)
    try:
        level = jax.eval_shape(model.shape.level, np.asarray(model.prior.mean, points.dtype), points)
    except Exception as error:  # whatever the user's own formula raises
        reason = (str(error).strip() or "no reason given").split("\n")[0].split(". ")[0].rstrip(".")
        raise InputError(
            f"the shape's level failed on {observation.ndim}D points ({type(error).__name__}: {reason}); shape and "
            "image must live in the same space, and the formula must use jax.numpy, with jnp.where for if."
        ) from error
    shape, dtype = np.shape(level), getattr(level, "dtype", np.dtype(object))
    if shape != (len(points),) or not jnp.issubdtype(dtype, jnp.floating):
        raise InputError(
            f"the shape's level must return one float a point, shape ({len(points)},), but returned shape {shape} "
            f"of {dtype}; return millimetres, positive inside."
        )
