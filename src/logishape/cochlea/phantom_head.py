"""What a head looks like to a CT around its ears: skin, skull, brain, petrous bone with air cells, and textures."""

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from logishape.cochlea.phantom_parts import Cone, Ellipsoid

AIR_HU, SOFT_HU, BRAIN_HU = -950.0, 45.0, 35.0
_SIZE = 48  # lattice points of a texture along each axis, after which it repeats itself
# A right ear; the left side is its mirror image. World RAS, mm: the middle of the head is the origin.
_HEAD = Ellipsoid(np.array([0.0, 0.0, 25.0]), np.eye(3), np.array([76.0, 95.0, 105.0]))
_PETROUS = Cone(np.array([64.0, -27.0, 0.0]), np.array([10.0, 5.0, -2.0]), 18.0, 8.0)
_EAR_CANAL = Cone(np.array([46.0, -7.5, -4.5]), np.array([95.0, -9.0, -4.0]), 2.5, 3.5)
_SCALP_MM, _SKULL_MM, _CORTEX_MM = 6.0, 6.5, 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class Texture:
    """Smooth noise of mean zero and standard deviation one, fixed in the world; grains are about `pitch_mm` large."""

    table: np.ndarray
    pitch_mm: float

    @classmethod
    def draw(cls, rng: np.random.Generator, pitch_mm: float) -> "Texture":
        """One at random."""
        table = ndimage.gaussian_filter(rng.standard_normal((_SIZE,) * 3, dtype=np.float32), 1.0, mode="wrap")
        return cls((table - table.mean()) / table.std(), pitch_mm)

    def at(self, points: np.ndarray) -> np.ndarray:
        """Its values at world points `(n, 3)`."""
        return ndimage.map_coordinates(
            self.table, points.T / self.pitch_mm, output=np.float32, order=1, mode="grid-wrap"
        )


class Textures(NamedTuple):
    """Bone's fine trabeculae and slow changes, air cells, the grain of dense bone, and mild changes of the lumen."""

    trabeculae: Texture
    slow: Texture
    cells: Texture
    dense: Texture
    lumen: Texture

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "Textures":
        """All at random."""
        return cls(*(Texture.draw(rng, pitch) for pitch in (0.35, 2.5, 0.8, 0.5, 1.0)))


def cover(level: np.ndarray, width: float) -> np.ndarray:
    """The share of a voxel `width` mm wide that a body covers, by its level at the centre."""
    return np.clip(0.5 + level / width, 0, 1)


def blend(hu: np.ndarray, other: np.ndarray | float, share: np.ndarray) -> np.ndarray:
    """HU with this share of another tissue."""
    return hu + share * (other - hu)


def head_hu(points: np.ndarray, textures: Textures, width: float) -> np.ndarray:
    """HU of a head without its inner ears at world points `(n, 3)`, for voxels `width` mm wide."""
    folded = np.column_stack([np.abs(points[:, 0]), points[:, 1:]])
    depth = _HEAD.level(folded)
    hu = np.full(len(points), -1000.0, np.float32)
    hu = blend(hu, SOFT_HU, cover(depth, width))
    skull = np.minimum(depth - _SCALP_MM, _SCALP_MM + _SKULL_MM - depth)
    hu = blend(hu, BRAIN_HU, cover(depth - _SCALP_MM - _SKULL_MM, width))
    hu = blend(hu, 1200.0, cover(skull, width))
    petrous = np.minimum(_PETROUS.level(folded), depth - _SCALP_MM)
    near = np.flatnonzero(petrous > -width)
    if near.size:
        hu[near] = blend(hu[near], _petrous_hu(points[near], petrous[near], textures), cover(petrous[near], width))
    return blend(hu, AIR_HU, cover(_EAR_CANAL.level(folded), width))


def _petrous_hu(points: np.ndarray, depth: np.ndarray, textures: Textures) -> np.ndarray:
    """Spongy bone in a dense rind, with air cells that are rare towards the middle and many behind the ear."""
    bone = 750 + 220 * textures.trabeculae.at(points) + 120 * textures.slow.at(points)
    bone = np.where(depth < _CORTEX_MM, 1500.0, np.maximum(bone, 100.0))
    lateral = 1 / (1 + np.exp(-(np.abs(points[:, 0]) - 43.0) / 3.0))
    excess = textures.cells.at(points) - (1.4 - 1.1 * lateral)
    return blend(bone, AIR_HU, cover(excess, 0.3) * (depth > _CORTEX_MM))
