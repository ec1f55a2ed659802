"""Labels on the CT's own voxels: probabilities are evaluated there, never resampled."""

import dataclasses
from collections.abc import Iterable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage
from scipy.special import expit

from logishape.appearance import Regions
from logishape.cochlea.draws import Draws
from logishape.cochlea.evaluation import PIECE, level_at
from logishape.cochlea.frame import Frame
from logishape.cochlea.probability import map_at
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.vestibule import before_cut_mm, is_beyond
from logishape.core.arrays import AnyArray, double_precision
from logishape.core.errors import InputError
from logishape.core.observation import Observation
from logishape.core.volume import Volume

NEAR_MM, _ENOUGH = 0.3, 32  # of the surface, and draws: where and how the spread of the level is read
REACH = 1.2  # mm beyond the surface, and at least six reference lengths: farther out no intensity has a say


@dataclasses.dataclass(frozen=True, eq=False)
class Labels:
    """Maps on the block of the CT around the cochlea, and the grid they belong to.

    segmentation: probability of at least one half, largest component. shape: inside of the fitted shape.
    probability: p(Z = 1 | I, best parameters). marginal: the same with the shape's uncertainty integrated out
    (without a posterior it is the same map). All end at the cut to the vestibule. level: mm to the surface of what is
    left of the shape there, positive inside; farther out than `REACH` it is that.
    """

    grid_shape: tuple[int, ...]
    affine: Float[np.ndarray, "4 4"]
    block: tuple[slice, ...]
    segmentation: Bool[np.ndarray, "x y z"]
    shape: Bool[np.ndarray, "x y z"]
    probability: Float[np.ndarray, "x y z"]
    marginal: Float[np.ndarray, "x y z"]
    level: Float[np.ndarray, "x y z"]

    def on_grid(self, name: str) -> Volume:
        """One map on the CT's whole grid: zero outside the block; masks as 0 and 1 (uint8)."""
        values = getattr(self, name)
        whole = np.zeros(self.grid_shape, np.uint8 if values.dtype == bool else np.float32)
        whole[self.block] = values
        return Volume(whole, self.affine)

    def on_block(self, name: str) -> Volume:
        """One map on the block alone, where it lies in the world: small, whatever the size of the CT."""
        return Volume(getattr(self, name), placed(self.affine, self.block))

    def on_crop(self, name: str, crop: tuple[slice, ...]) -> Volume:
        """One map on another block of the grid, where it lies in the world; beyond its own as far outside."""
        values = getattr(self, name)
        fill = -REACH if name == "level" else 0
        found = np.full([s.stop - s.start for s in crop], fill, np.uint8 if values.dtype == bool else np.float32)
        shared = [slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(self.block, crop, strict=True)]
        if all(s.start < s.stop for s in shared):
            there = tuple(slice(s.start - b.start, s.stop - b.start) for s, b in zip(shared, crop, strict=True))
            here = tuple(slice(s.start - b.start, s.stop - b.start) for s, b in zip(shared, self.block, strict=True))
            found[there] = values[here]
        return Volume(found, placed(self.affine, crop))

    def volume_mm3(self, name: str = "segmentation") -> float:
        """The volume of one of the masks."""
        return float(np.count_nonzero(getattr(self, name)) * abs(np.linalg.det(self.affine[:3, :3])))


@dataclasses.dataclass(frozen=True, eq=False)
class Painter:
    """All that labels need: the fitted model in the world, its appearances, where it is cut, how sharp labels are.

    probability: the map that the appearances read instead of the CT, None without one. is_paper: draws keep the label
    length.
    """

    cochlea: Cochlea
    regions: Regions
    cut: Frame | None
    label_length: float
    probability: Volume | None = None
    is_paper: bool = False

    @property
    def reach(self) -> float:
        """How far beyond the surface labels are looked at, mm."""
        return max(REACH, 6 * self.label_length)


def paint(volume: Volume, painter: Painter, theta: np.ndarray, draws: Draws | None) -> Labels:
    """The maps of one cochlea; `draws` of the shape's posterior give the marginal one."""
    block, index = _voxels_near(volume, painter, theta)
    shape = tuple(s.stop - s.start for s in block)
    world = volume.to_world(index + np.array([s.start for s in block]))
    levels = level_at(painter.cochlea, theta, world)
    shown = np.maximum(_until_cut(painter, world, levels), -REACH).reshape(shape)
    is_kept = (levels > -painter.reach) & ~_is_cut(painter, world)
    index, world, levels = index[is_kept], world[is_kept], levels[is_kept]
    rows = tuple(index.T)
    values = volume.data[block][rows] if painter.probability is None else map_at(painter.probability, world)
    observation = Observation.from_arrays(world, values)
    probability = np.zeros(shape, np.float32)
    # The level is known here already: what is left of p(Z = 1 | I) is a sum in log odds.
    log_odds = _log_odds(painter.regions, observation)
    probability[rows] = expit(levels / painter.label_length + log_odds)
    marginal = probability
    if draws is not None:
        marginal = np.zeros(shape, np.float32)
        marginal[rows] = _mean_probability(painter, world, log_odds, draws)
    inside = np.zeros(shape, bool)
    inside[rows] = levels > 0
    return Labels(
        volume.shape,
        volume.affine,
        block,
        segmentation=largest_component(probability >= 0.5),
        shape=inside,
        probability=probability,
        marginal=marginal,
        level=shown.astype(np.float32),
    )


def placed(affine: Float[np.ndarray, "4 4"], block: tuple[slice, ...]) -> Float[np.ndarray, "4 4"]:
    """The affine of a block of the grid that this one is of."""
    found = affine.copy()
    found[:3, 3] += affine[:3, :3] @ np.array([s.start for s in block])
    return found


def largest_component(mask: Bool[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
    """The largest part of a mask whose voxels share faces."""
    parts = np.zeros(mask.shape, np.int32)
    ndimage.label(mask, output=parts)
    if parts.max() < 2:
        return mask
    return parts == 1 + np.argmax(np.bincount(parts.ravel())[1:])


def _voxels_near(volume: Volume, painter: Painter, theta: np.ndarray) -> tuple[tuple[slice, ...], np.ndarray]:
    """The block of voxels around the shape, and the index of each of them in it."""
    lower, upper = painter.cochlea.extent(theta)
    block = volume.index_bounds(lower - painter.reach, upper + painter.reach)
    shape = tuple(s.stop - s.start for s in block)
    if 0 in shape:
        raise InputError("expected the fitted cochlea inside the CT but it lies outside; check the landmarks.")
    return block, np.stack([axis.ravel() for axis in np.indices(shape)], axis=1)


def _is_cut(painter: Painter, world: np.ndarray) -> Bool[np.ndarray, " n"]:
    cut = painter.cut
    if cut is None:
        return np.zeros(len(world), bool)
    return is_beyond((world - np.asarray(cut.origin)) @ np.asarray(cut.axes).T)


def _until_cut(painter: Painter, world: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The level of the part of the shape that the cut leaves."""
    cut = painter.cut
    if cut is None:
        return levels
    return np.minimum(levels, before_cut_mm((world - np.asarray(cut.origin)) @ np.asarray(cut.axes).T))


def _log_odds(regions: Regions, observation: Observation) -> Float[np.ndarray, " n"]:
    """How much each voxel's intensity speaks for the inside."""
    values = np.asarray(observation.intensities)
    padded = np.pad(values, (0, -len(values) % PIECE), mode="edge").reshape(-1, PIECE)
    with double_precision():
        pieces = [np.asarray(_rho(regions, piece)) for piece in padded]
    return np.concatenate(pieces)[: len(values)]


@eqx.filter_jit
def _rho(regions: Regions, values: Float[AnyArray, " n"]) -> jax.Array:
    return regions.log_odds(values)


def _mean_probability(painter: Painter, world: np.ndarray, log_odds: np.ndarray, draws: Draws) -> np.ndarray:
    """The mean label over draws: of level and sections alone, what the intensities say is the same for all.

    Each draw has the label length of `drawn_length`, with the variance of the level over draws near the surface; the
    paper's preset keeps the label length, as the paper does.
    """
    near = world[np.abs(level_at(painter.cochlea, draws.theta.mean(axis=0), world)) < NEAR_MM]
    some = [level_at(painter.cochlea.with_sections(powers), theta, near) for theta, powers in _some(draws)]
    variance = float(np.mean(np.var(some, axis=0))) if len(near) and not painter.is_paper else 0.0
    length = drawn_length(painter.label_length, variance)
    total = np.zeros(len(world))
    for theta, powers in zip(*draws, strict=True):
        total += expit(level_at(painter.cochlea.with_sections(powers), theta, world) / length + log_odds)
    return total / len(draws.theta)


def drawn_length(label_length: float, variance: float) -> float:
    """The label length (mm) of a drawn shape, where levels vary by so much (mm^2) over draws.

    The label length l is how far labels leave the *fitted* shape, whose own error is part of it: a logistic variable
    of scale l has the variance pi^2 l^2 / 3. Draws have that error, so labels leave each of them by less:
    l'^2 = l^2 - 3 v / pi^2, at least l^2 / 4. Beyond the paper, where the same length counts the error twice.
    """
    return float(np.sqrt(max(label_length**2 - 3 * variance / np.pi**2, label_length**2 / 4)))


def _some(draws: Draws) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    """The first draws, enough to know a variance."""
    return zip(draws.theta[:_ENOUGH], draws.powers[:_ENOUGH], strict=True)
