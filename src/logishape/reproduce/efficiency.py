"""What an iteration costs by each way to a distance and each method, measured in turns on the same voxels."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from logishape.cochlea import Cochlea, SegmentOptions
from logishape.cochlea.duct import DISTANCES
from logishape.cochlea.search import PAPER_START, Method, search
from logishape.cochlea.search import begin as begin_search
from logishape.cochlea.vestibule import is_beyond
from logishape.core.arrays import AnyArray, double_precision
from logishape.core.errors import InputError
from logishape.core.observation import Observation
from logishape.inference.fit import fit
from logishape.inference.model import Model, State
from logishape.inference.options import FitOptions
from logishape.inference.rounds import Progress, begin, em_round, goes_on
from logishape.reproduce.segmented import Scene
from logishape.shapes import FiniteDifferences, Posed, Remeshed, nearest_by_libigl, nearest_by_tree
from logishape.shapes.base import AbstractShape, AbstractShapeWithDerivatives, Derivatives, derivatives

STEP = 0.01  # of finite differences, in widths of the box
MOST_ROUNDS = 300
METHODS: tuple[Method, ...] = ("gauss-newton", "bfgs")
WAYS: dict[str, tuple[Method, str]] = {
    "bfgs-mesh": ("bfgs", "mesh"),
    "newton-mesh": ("gauss-newton", "mesh"),
    "newton-learned": ("gauss-newton", "learned"),
    "newton-level": ("gauss-newton", "level"),
}


class Problem(NamedTuple):
    """The paper's: ten parameters, all voxels of the crop, one start.

    With the sections of all specimens, which the learned distance knows: seconds are measured here, not scores.
    """

    scene: Scene
    observation: Observation
    start: State
    length: float

    def model(self, distance: str) -> Model:
        """The model by one way to a distance; for the mesh with derivatives by differences, as the paper has them."""
        options = SegmentOptions(free=(), distance=distance)  # pyright: ignore[reportArgumentType]
        cochlea = Cochlea(None, options.free, distance=options.distance)
        shape = by_differences(cochlea) if distance == "mesh" else cochlea
        return Model(shape, cochlea.prior(), self.length)


class ByDerivatives(AbstractShapeWithDerivatives):
    """The same shape; whoever differentiates its level gets its derivatives, as BFGS does."""

    shape: AbstractShapeWithDerivatives

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """As the shape's."""
        return self.shape.parameter_names

    @property
    def is_faceted(self) -> bool:
        """As the shape's."""
        return self.shape.is_faceted

    def level(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Float[jax.Array, " n"]:
        """As the shape's."""

        @jax.custom_vjp
        def level(theta: Any, points: Any) -> Any:
            return self.shape.level(theta, points)

        def forward(theta: Any, points: Any) -> Any:
            found = self.shape.derivatives(theta, points)
            return found.level, (found.jacobian, found.gradient, theta)

        def backward(kept: Any, by_level: Any) -> Any:
            jacobian, gradient, theta = kept
            return (by_level @ jacobian).astype(theta.dtype), by_level[:, None] * gradient

        level.defvjp(forward, backward)
        return level(jnp.asarray(theta), jnp.asarray(points))

    def derivatives(self, theta: Float[AnyArray, " p"], points: Float[AnyArray, "n d"]) -> Derivatives:
        """As the shape's."""
        return self.shape.derivatives(theta, points)

    def extent(self, theta: Float[AnyArray, " p"]) -> tuple[np.ndarray, np.ndarray] | None:
        """As the shape's."""
        return self.shape.extent(theta)


def by_differences(cochlea: Cochlea) -> AbstractShape:
    """The distance to a mesh made anew: two maps for each parameter of the form, the pose through the gradient."""
    mesh = cochlea.posed.shape
    assert isinstance(mesh, Remeshed)
    upper = np.array(mesh.lower) + mesh.spacing * (np.array(mesh.counts) - 1)
    quick = Remeshed(mesh.shape, mesh.lower, upper, mesh.spacing, find_query()[1])
    differences = FiniteDifferences(quick, STEP * cochlea.prior().widths[6:])
    centre = cochlea.calibration.centre
    return ByDerivatives(Posed(differences, centre, centre))


def find_query() -> tuple[str, Callable[..., Any]]:
    """The quicker query for the nearest face that is installed, with its name."""
    try:
        nearest_by_libigl(np.eye(3), np.array([[0, 1, 2]]), np.zeros((1, 3)))
    except InputError:
        return "a KD-tree", nearest_by_tree
    return "libigl", nearest_by_libigl


def set_up(scene: Scene) -> Problem:
    """The problem on this case's crop; the start is the paper's, in the frame in which the case was found."""
    options = SegmentOptions(free=())
    level = Model(cochlea := Cochlea(None, ()), cochlea.prior(), options.lengths[0])
    _, start = begin_search(level, scene.crop, scene.intensities, options)
    crop = scene.crop
    theta = np.clip(PAPER_START, level.prior.lower, level.prior.upper)
    weights = options.evidence * (crop.is_covered & ~is_beyond(crop.points))
    observation = Observation.from_arrays(crop.points, crop.intensities, weights)
    return Problem(scene, observation, State(theta, start.regions), options.lengths[0])


def measure(scene: Scene, num_turns: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Seconds of iterations by each way, of level and derivatives alone, and of whole fits by our level."""
    problem = set_up(scene)
    ways = {name: way for name, way in WAYS.items() if way[1] in DISTANCES}
    skipped = {name: "not in this version" for name in WAYS if name not in ways}
    runs: dict[str, Run] = {}
    for name, (method, distance) in ways.items():
        tell(f"{name}: compiling")
        try:
            runs[name] = Run.started(problem, problem.model(distance), method)
        except InputError as error:
            skipped[name] = str(error)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(num_turns):
        for name, run in runs.items():
            tell(f"{name}: turn {turn + 1} of {num_turns}")
            seconds[name].append(run.advance())
    tell("level and derivatives alone")
    alone = {d: _derivative_seconds(problem, d, num_turns) for d in dict.fromkeys(way[1] for way in ways.values())}
    tell("whole fits")
    return {
        "voxels": problem.observation.num_voxels,
        "parameters": len(problem.start.theta),
        "query": find_query()[0],
        "skipped": skipped,
        "iteration_seconds": seconds,
        "derivative_seconds": alone,
        **_whole_fits(problem, num_turns),
    }


class Run:
    """A fit that is advanced by one iteration at a time: one shape step and one appearance step on all voxels."""

    def __init__(self, problem: Problem, model: Model, options: FitOptions, progress: Progress):
        self.problem, self.model, self.options, self.progress = problem, model, options, progress

    @classmethod
    def begun(cls, problem: Problem, model: Model, method: Method) -> "Run":
        """Before the first iteration."""
        options = FitOptions(
            method=method,
            use_band=False,
            max_rounds=MOST_ROUNDS,
            max_shape_steps=1,
            max_appearance_steps=1,
        )
        with double_precision():
            progress = _begin(model, problem.observation, problem.start, options)
        return cls(problem, model, options, progress)

    @classmethod
    def started(cls, problem: Problem, model: Model, method: Method) -> "Run":
        """After the first iteration, which compiles."""
        run = cls.begun(problem, model, method)
        run.advance()
        return run

    def advance(self) -> float:
        """Seconds of one more iteration."""
        began = time.perf_counter()
        with double_precision():
            self.progress = jax.block_until_ready(
                _round(self.model, self.problem.observation, self.progress, self.options)
            )
        return time.perf_counter() - began

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended yet."""
        with double_precision():
            return bool(goes_on(self.progress, self.options))


_begin = eqx.filter_jit(begin)


@eqx.filter_jit
def _round(model: Model, observation: Observation, progress: Progress, options: FitOptions) -> Progress:
    return em_round(model, observation, progress, observation.num_voxels, options)


@eqx.filter_jit
def _derivatives(shape: AbstractShape, theta: Any, points: Any) -> Any:
    found = derivatives(shape, theta, points)
    return found.level, found.jacobian


def _derivative_seconds(problem: Problem, distance: str, num_turns: int) -> list[float]:
    try:
        shape = problem.model(distance).shape
    except InputError:
        return []
    seconds = []
    for _ in range(num_turns + 1):
        began = time.perf_counter()
        with double_precision():
            jax.block_until_ready(_derivatives(shape, problem.start.theta, problem.observation.points))
        seconds.append(time.perf_counter() - began)
    return seconds[1:]  # the first compiles


def count(scene: Scene) -> dict[str, Any]:
    """Shape steps of whole fits by our level on all voxels, by both methods, and how they ended.

    With several shape steps to an appearance step, as a fit is run: BFGS forgets its last gradient when the
    appearances change, and would learn nothing from single steps.
    """
    problem, found = set_up(scene), {}
    for method in METHODS:
        options = FitOptions(method=method, use_band=False, max_rounds=MOST_ROUNDS)
        ended = fit(problem.model("level"), problem.observation, problem.start, options)
        found[method] = {
            "steps": ended.num_steps,
            "status": ended.status.name.lower().replace("_", " "),
            "log_joint": float(ended.log_joint[-1]),
        }
    return found


def _whole_fits(problem: Problem, num_turns: int) -> dict[str, Any]:
    """Seconds of our fit of this very problem as a user gets it, and of the default search of the same crop."""
    model, scene, options = problem.model("level"), problem.scene, SegmentOptions()
    default = scene.model(options)

    def same() -> Any:
        return fit(model, problem.observation, problem.start)

    def usual() -> Any:
        return search(default, scene.crop, scene.intensities, options)

    ended = same()
    return {
        "fit_seconds": _seconds(same, num_turns),
        "fit_steps": ended.num_steps,
        "fit_log_joint": float(ended.log_joint[-1]),
        "default_seconds": _seconds(usual, num_turns),
    }


def _seconds(run: Callable[[], Any], num_turns: int) -> list[float]:
    """Seconds of several calls after one that compiles."""
    seconds = []
    for _ in range(num_turns + 1):
        began = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - began)
    return seconds[1:]
