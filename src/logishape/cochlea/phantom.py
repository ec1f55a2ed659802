"""Synthetic CTs of the temporal bone with known truth: what is in them is exactly known, to test and to show."""

import dataclasses

import numpy as np
from scipy import ndimage

from logishape.cochlea import phantom_grid as grids
from logishape.cochlea.frame import Frame, Side
from logishape.cochlea.labels import largest_component
from logishape.cochlea.phantom_ear import MIRROR, EarAnatomy, draw_ear, mirror_frame
from logishape.cochlea.phantom_head import Textures, head_hu
from logishape.cochlea.phantom_options import PhantomOptions
from logishape.cochlea.phantom_parts import LABYRINTH_CENTRE, from_frame, to_frame
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.vestibule import is_beyond
from logishape.core.errors import InputError
from logishape.core.volume import Volume

__all__ = ["Phantom", "PhantomEar", "PhantomOptions", "make_phantom"]

_CAPSULE_REACH_MM = 3.0  # beyond the lumen: the capsule and the tails of the point spread
_EAR_REACH_MM = 24.0  # from the labyrinth's middle to the ends of its surroundings
_FAR_MM = 99.0


@dataclasses.dataclass(frozen=True, eq=False)
class PhantomEar:
    """The truth of one ear, on the CT's own grid and in its world (RAS mm).

    `cochlea` is the shape in its frame and `theta` its parameters; `landmarks` are C (base centre), A (apex) and RW
    (round window), with the error asked for; `frame` has none. `truth` holds the voxels whose centres lie in the
    duct and before the cut to the vestibule, `labyrinth` those of the whole labyrinth.
    """

    side: Side
    frame: Frame
    cochlea: Cochlea
    theta: np.ndarray
    landmarks: dict[str, np.ndarray]
    lumen_hu: float
    truth: Volume
    labyrinth: Volume


@dataclasses.dataclass(frozen=True, eq=False)
class Phantom:
    """A CT (float32 HU, RAS affine) and the truth of its ears, right before left."""

    volume: Volume
    ears: tuple[PhantomEar, ...]
    options: PhantomOptions
    seed: int

    @property
    def ear(self) -> PhantomEar:
        """The first ear, which is the only one unless both were asked for."""
        return self.ears[0]


def make_phantom(options: PhantomOptions | None = None, seed: int = 0) -> Phantom:
    """A phantom; the same options and seed give the same numbers.

    Anatomy depends on the seed and on `lumen`, `free`, `theta` and `shape_spread` alone: grids, orientations, point
    spreads and noise are ways to look at the same ear. A left ear is the mirror image of the right one.
    """
    options = PhantomOptions() if options is None else options
    if not isinstance(options, PhantomOptions):
        raise InputError(f"options must be PhantomOptions but is a {type(options).__name__}; make one.")
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"the seed must be a whole number from zero on but is {seed!r}; try 0.")
    if options.side != "left":
        return _make(options, int(seed))
    offset = tuple(float(x) for x in MIRROR @ np.array(options.offset_mm))
    found = _make(dataclasses.replace(options, side="right", offset_mm=offset), int(seed))
    ears = tuple(_mirror_ear(ear) for ear in found.ears)
    return Phantom(_mirror(found.volume), ears, options, int(seed))


def _make(options: PhantomOptions, seed: int) -> Phantom:
    ears = [draw_ear(options, (seed, 0))]
    centre = from_frame(ears[0].frame, LABYRINTH_CENTRE)
    if options.side == "both":
        ears.append(draw_ear(options, (seed, 1)).mirrored())
        centre = (centre + from_frame(ears[1].frame, LABYRINTH_CENTRE)) / 2
    grid = grids.make_grid(options, centre, np.random.default_rng([seed, 2]))
    if options.side == "both":
        _check_field(grid, ears)
    ducts = [_duct_mask(ear, grid) for ear in ears]
    lumens = [duct | _rooms_mask(ear, grid) for ear, duct in zip(ears, ducts, strict=True)]
    hu = _scan(options, grid, ears, lumens, Textures.draw(np.random.default_rng([seed, 3])))
    rng = np.random.default_rng([seed, 4])
    hu += grids.draw_noise(grid, options.noise_hu, options.noise_correlation_mm, rng)
    hu = np.float32(options.hu_gain) * hu + np.float32(options.hu_offset)
    truths = [_cut(ear, grid, duct) for ear, duct in zip(ears, ducts, strict=True)]
    found = tuple(_ear(*one, grid) for one in zip(ears, truths, lumens, strict=True))
    return Phantom(Volume(hu, grid.affine), found, options, seed)


def _ear(ear: EarAnatomy, truth: np.ndarray, lumen: np.ndarray, grid: Volume) -> PhantomEar:
    masks = Volume(truth, grid.affine), Volume(lumen, grid.affine)
    return PhantomEar(ear.frame.side, ear.frame, ear.cochlea, ear.theta, ear.landmarks, ear.lumen_hu, *masks)


def _scan(
    options: PhantomOptions, grid: Volume, ears: list[EarAnatomy], lumens: list[np.ndarray], textures: Textures
) -> np.ndarray:
    """HU without noise: tissues on the grid, the labyrinths on finer ones, and the point spread over both."""
    tissue = np.empty(grid.shape, np.float32)
    width = float(grid.spacing.mean())
    for part, points in grids.slabs(grid, tuple(slice(0, size) for size in grid.shape)):
        tissue[part] = head_hu(points, textures, width).reshape(tissue[part].shape)
    blocks = []
    for ear, lumen in zip(ears, lumens, strict=True):
        margin = np.ceil((_CAPSULE_REACH_MM + 4 * options.point_spread_mm) / grid.spacing).astype(int)
        blocks.append(grids.mask_block(lumen, margin))
        _dress(tissue, grid, ear, lumen, blocks[-1])
    hu = grids.blur(tissue, grid.spacing, options.point_spread_mm)
    for ear, block in zip(ears, blocks, strict=True):
        if block is not None:
            outer, inner = grids.without_margin(grid, block, 4 * options.point_spread_mm)
            hu[outer] = _scan_ear(options, grid, ear, tissue[block], block)[inner]
    return hu


def _dress(tissue: np.ndarray, grid: Volume, ear: EarAnatomy, lumen: np.ndarray, block: grids.Block | None) -> None:
    """Puts capsule, modiolus and cavities around a labyrinth."""
    distance = np.full(grid.shape, _FAR_MM, np.float32)
    if block is not None:
        distance[block] = ndimage.distance_transform_edt(~lumen[block], sampling=grid.spacing)
    near = grids.ball_block(grid, from_frame(ear.frame, LABYRINTH_CENTRE), _EAR_REACH_MM)
    width = float(grid.spacing.mean())
    for part, points in grids.slabs(grid, near):
        shape = tissue[part].shape
        tissue[part] = ear.dress(tissue[part].ravel(), points, distance[part].ravel(), width).reshape(shape)


def _scan_ear(
    options: PhantomOptions, grid: Volume, ear: EarAnatomy, tissue: np.ndarray, block: grids.Block
) -> np.ndarray:
    """HU of a block around a labyrinth, through a finer grid: voxels at its walls hold part lumen, part bone."""
    fine, parts = grids.refine(grid, block)
    lumen = _duct_mask(ear, fine) | _rooms_mask(ear, fine)
    hu = grids.spread(tissue, parts)
    index = np.argwhere(lumen)
    hu[lumen] = ear.fill_hu(fine.to_world(index))
    return grids.gather(grids.blur(hu, fine.spacing, options.point_spread_mm), parts)


def _duct_mask(ear: EarAnatomy, grid: Volume) -> np.ndarray:
    mask = np.zeros(grid.shape, bool)
    grids.mark(mask, grid, grid.index_bounds(*ear.box), ear.in_duct)
    return mask


def _rooms_mask(ear: EarAnatomy, grid: Volume) -> np.ndarray:
    """Vestibule and canals."""
    mask = np.zeros(grid.shape, bool)
    for part in (ear.surroundings.vestibule, *ear.surroundings.canals):
        block = grids.ball_block(grid, from_frame(ear.body, part.centre), part.reach)
        grids.mark(mask, grid, block, lambda points, part=part: ear.in_part(part, points))
    return mask


def _cut(ear: EarAnatomy, grid: Volume, duct: np.ndarray) -> np.ndarray:
    """The duct's voxels before the cut to the vestibule, the largest piece of them."""
    index = np.argwhere(duct)
    kept = index[~is_beyond(to_frame(ear.frame, grid.to_world(index)))]
    mask = np.zeros(grid.shape, bool)
    mask[tuple(kept.T)] = True
    block = grids.mask_block(mask, np.zeros(3, int))
    if block is not None:
        mask[block] = largest_component(mask[block])
    return mask


def _check_field(grid: Volume, ears: list[EarAnatomy]) -> None:
    for ear in ears:
        at = grid.to_index(from_frame(ear.frame, LABYRINTH_CENTRE))
        room = np.minimum(at, np.array(grid.shape) - 1 - at) * grid.spacing
        if np.min(room) < 6.0:
            raise InputError(
                "both ears must lie in the field of view but one is cut by its edge; leave size_mm and offset_mm out "
                "or give at least 100 mm from left to right and 24 mm otherwise."
            )


def _mirror(volume: Volume) -> Volume:
    """The volume seen in the mirror; its first voxel axis is turned round, so that a right-handed grid stays one."""
    turn, back = np.eye(4), np.eye(4)
    turn[:3, :3] = MIRROR
    back[0, 0], back[0, 3] = -1, volume.shape[0] - 1
    return Volume(np.ascontiguousarray(volume.data[::-1]), turn @ volume.affine @ back)


def _mirror_ear(ear: PhantomEar) -> PhantomEar:
    frame = mirror_frame(ear.frame)
    marks = {name: MIRROR @ point for name, point in ear.landmarks.items()}
    cochlea = Cochlea(frame, ear.cochlea.duct.free, ear.cochlea.calibration)
    truth, labyrinth = _mirror(ear.truth), _mirror(ear.labyrinth)
    return PhantomEar(frame.side, frame, cochlea, ear.theta, marks, ear.lumen_hu, truth, labyrinth)
