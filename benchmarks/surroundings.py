"""Volumes to look for a cochlea in, made by seed: specimens in synthetic heads, volumes without one, cut ones.

A library for other benchmarks. Everything comes back as a `Scene`: the volume (HU, float32) and the true frames with
their sides, none if there is no cochlea. The same generator state gives the same numbers.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage
from scipy.spatial.transform import Rotation
from specimens import FOLDS, data_folder

from logishape.cochlea import Frame, PhantomOptions
from logishape.cochlea import phantom_grid as grids
from logishape.cochlea.frame import Side
from logishape.cochlea.landmarks import frame_from_points
from logishape.cochlea.phantom import make_phantom
from logishape.cochlea.phantom_ear import MIRROR, mirror_frame
from logishape.cochlea.phantom_head import AIR_HU, BRAIN_HU, SOFT_HU, Texture, Textures, blend, cover, head_hu
from logishape.cochlea.phantom_parts import Cone, Ellipsoid, Part, Torus
from logishape.cochlea.vestibule import frame_of_model
from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io import read_landmarks, read_volume

MIDDLE = np.array([[0.6, 0.2, 0.8]])  # of the cochlea, in its frame (mm)
KINDS = ("noise", "bone", "soft", "skull", "removed", "canals")
_FADE_MM = 4.0  # over which a specimen gives way to its surroundings, outside its own border
_ROOM_MM, _APART_MM = 13.0, 40.0  # from a cochlea's middle to the border of the volume, and to another cochlea's
_FAT_HU, _PLATE_HU, _NOISE_HU = -90.0, 1800.0, 120.0


class Scene(NamedTuple):
    """A volume and the side and frame of each cochlea in it."""

    volume: Volume
    truth: list[tuple[Side, Frame]]


def specimen(name: str) -> tuple[Volume, Frame]:
    """The CT of a specimen and the frame of its landmarks."""
    marks = read_landmarks(data_folder() / name / "landmarks.json")
    return read_volume(data_folder() / name / "ct.nii.gz"), frame_from_points(marks.points, marks.side)


def mirrored(volume: Volume, frame: Frame) -> tuple[Volume, Frame]:
    """A CT and its frame seen in the mirror: a left ear becomes a right one."""
    turn = np.eye(4)
    turn[:3, :3] = MIRROR
    return Volume(volume.data, turn @ volume.affine), mirror_frame(frame)


def middle_of(frame: Frame) -> np.ndarray:
    """The middle of the cochlea (world mm)."""
    return np.asarray(frame.to_world(MIDDLE), np.float64)[0]


# Specimens in larger volumes


def embedded(
    ct_volume: Volume, frame: Frame, side: Side, rng: np.random.Generator, size_mm: float = 70, spacing: float = 0.3
) -> Scene:
    """A specimen turned anyhow and put anywhere in a synthetic temporal bone; of the other side, its mirror image."""
    one = _on_side(ct_volume, frame, side)
    grid = _grid((size_mm,) * 3, spacing)
    return _embed([one], grid, [_place(grid, rng)], rng)


def embedded_pair(
    first: tuple[Volume, Frame],
    second: tuple[Volume, Frame],
    rng: np.random.Generator,
    size_mm: Any = (90.0, 60.0, 60.0),
    spacing: float = 0.3,
) -> Scene:
    """Two specimens at least 40 mm apart in one volume, the right ear first.

    The second is mirrored if it is an ear of the same side.
    """
    other: Side = "left" if first[1].side == "right" else "right"
    ears = sorted((first, _on_side(*second, other)), key=lambda ear: ear[1].side, reverse=True)
    grid = _grid(np.broadcast_to(size_mm, 3), spacing)
    while True:
        places = [_place(grid, rng), _place(grid, rng)]
        if np.linalg.norm(places[0] - places[1]) >= _APART_MM:
            return _embed(ears, grid, places, rng)


def _on_side(volume: Volume, frame: Frame, side: Side) -> tuple[Volume, Frame]:
    return (volume, frame) if frame.side == side else mirrored(volume, frame)


def _grid(size_mm: Any, spacing: Any) -> Volume:
    """An empty grid about the origin."""
    steps = np.broadcast_to(spacing, 3)
    shape = tuple(round(a / b) for a, b in zip(size_mm, steps, strict=True))
    affine = np.diag([*steps, 1.0])
    affine[:3, 3] = -steps * (np.array(shape) - 1) / 2
    return grids.empty(shape, affine)


def _place(grid: Volume, rng: np.random.Generator) -> np.ndarray:
    """A position (world mm) with room for a cochlea around it, as far as the grid has it."""
    half = np.array(grid.shape) * grid.spacing / 2
    reach = np.maximum(half - _ROOM_MM, 0.0)
    return rng.uniform(-reach, reach)


def _embed(
    ears: list[tuple[Volume, Frame]], grid: Volume, places: list[np.ndarray], rng: np.random.Generator
) -> Scene:
    """Each ear turned at random, with its cochlea's middle at its place."""
    bone = Bone.draw(grid, places, rng)
    hu = _seen(grid, bone.hu, bone.holes, rng)
    truth = []
    for (volume, frame), place in zip(ears, places, strict=True):
        turn = Rotation.random(rng=rng).as_matrix()
        move = np.eye(4)
        move[:3, :3], move[:3, 3] = turn, place - turn @ middle_of(frame)
        _paste(hu, grid, Volume(volume.data, move @ volume.affine), Texture.draw(rng, 2.0))
        axes, origin = np.asarray(frame.axes), np.asarray(frame.origin)
        truth.append((frame.side, Frame(axes @ turn.T, turn @ origin + move[:3, 3])))
    return Scene(grid.with_data(hu), truth)


def _paste(hu: np.ndarray, grid: Volume, ct: Volume, texture: Texture) -> None:
    """Puts a CT into HU on a grid, unchanged within its own borders.

    Beyond them its mirror images fade into what is there, over a length that varies from place to place.
    """
    lost = np.sqrt(np.maximum(grid.spacing.mean() ** 2 - ct.spacing**2, 0)) / 2  # what larger voxels blur, mm
    data = ndimage.gaussian_filter(ct.data.astype(np.float32), lost / ct.spacing)
    last = np.array(ct.shape) - 1
    centre = ct.to_world(last / 2)
    reach = float(np.linalg.norm(last * ct.spacing) / 2 + 1.5 * _FADE_MM)
    for part, points in grids.slabs(grid, grids.ball_block(grid, centre, reach)):
        index = ct.to_index(points)
        away = np.linalg.norm(np.maximum(np.maximum(-index, index - last), 0) * ct.spacing, axis=1)
        near = np.flatnonzero(away < 1.5 * _FADE_MM)
        uneven = away[near] * (1 + 0.35 * np.clip(texture.at(points[near]), -2, 2)) / _FADE_MM
        share = 0.5 + 0.5 * np.cos(np.pi * np.clip(uneven, 0, 1))
        values = ndimage.map_coordinates(data, index[near].T, order=1, mode="reflect")
        flat = hu[part].reshape(-1)
        flat[near] = blend(flat[near], np.asarray(values), share)
        hu[part] = flat.reshape(hu[part].shape)


# Synthetic bone


@dataclasses.dataclass(frozen=True, eq=False)
class Bone:
    """A temporal bone without an ear: spongy bone with cells, plates and tubes, soft tissue, and air outside."""

    masses: list[Ellipsoid]
    skin: np.ndarray  # the way out
    depth_mm: float  # of the skin along it
    plates: list[tuple[np.ndarray, float]]  # normal and offset of dense sheets
    holes: list[tuple[Part, float]]  # tubes and cavities, and their HU
    textures: Textures
    waves: Texture
    cells: float  # more: more air cells

    @classmethod
    def draw(cls, grid: Volume, places: list[np.ndarray], rng: np.random.Generator) -> "Bone":
        """One at random, whose masses hold the places (world mm)."""
        masses = [
            Ellipsoid(place + rng.uniform(-4, 4, 3), _axes(rng), rng.uniform((18, 22, 26), (26, 32, 44)))
            for place in places
        ]
        skin = _direction(rng)
        depth = float(max(place @ skin for place in places) + rng.uniform(16, 26))
        plates = [(_direction(rng), float(rng.uniform(-25, 25))) for _ in range(4)]
        holes = [(hole, float(rng.choice([AIR_HU, SOFT_HU]))) for hole in _holes(grid, rng, 8, (1.0, 4.0))]
        textures, waves = Textures.draw(rng), Texture.draw(rng, 5.0)
        return cls(masses, skin, depth, plates, holes, textures, waves, float(rng.uniform(-0.6, 0.3)))

    def hu(self, points: np.ndarray, width: float) -> np.ndarray:
        """HU at world points `(n, 3)` for voxels `width` mm wide."""
        waves = self.waves.at(points)
        under_skin = self.depth_mm - points @ self.skin + 1.5 * waves
        hu = blend(
            np.full(len(points), -1000.0, np.float32), _soft_hu(points, self.textures), cover(under_skin, width)
        )
        level = np.max([mass.level(points) for mass in self.masses], axis=0) + 2.5 * waves
        level = np.minimum(level, under_skin - 4.0)
        near = np.flatnonzero(level > -width)
        hu[near] = blend(
            hu[near], self._bone_hu(points[near], level[near], waves[near], width), cover(level[near], width)
        )
        return hu

    def _bone_hu(self, points: np.ndarray, level: np.ndarray, waves: np.ndarray, width: float) -> np.ndarray:
        spongy = _spongy_hu(points, self.textures)
        excess = self.textures.cells.at(points) - (0.7 - self.cells - 0.8 * waves)
        bone = blend(spongy, AIR_HU, cover(excess, 0.3))
        for normal, offset in self.plates:
            bone = blend(bone, _PLATE_HU, cover(0.7 - np.abs(points @ normal - offset + 2 * waves), width))
        return blend(bone, 1600.0, cover(1.3 - level, width))


def _spongy_hu(points: np.ndarray, textures: Textures) -> np.ndarray:
    """Trabecular bone, in places as dense as the otic capsule."""
    slow = textures.slow.at(points)
    hu = 750 + 250 * textures.trabeculae.at(points) + 120 * slow
    return blend(np.maximum(hu, 0.0), 1950.0, cover(slow - 1.0, 0.5))


def _soft_hu(points: np.ndarray, textures: Textures) -> np.ndarray:
    """Muscle and fat."""
    return blend(SOFT_HU + 10 * textures.lumen.at(points), _FAT_HU, cover(textures.slow.at(points) - 0.8, 0.5))


def _drill(hu: np.ndarray, grid: Volume, hole: Part, filling: float) -> None:
    """Makes a tube or a cavity; in bone it has a thin dense wall."""
    width = float(grid.spacing.mean())
    for part, points in grids.slabs(grid, grids.ball_block(grid, hole.centre, hole.reach + 1.0)):
        level = hole.level(points).reshape(hu[part].shape)
        wall = cover(level + 0.6, width) * (hu[part] > 300)
        hu[part] = blend(np.maximum(hu[part], blend(hu[part], 1700.0, wall)), filling, cover(level, width))


def _holes(grid: Volume, rng: np.random.Generator, count: int, radii: tuple[float, float]) -> list[Part]:
    """Tubes, rings and ellipsoids of about these radii (mm) anywhere in the grid."""
    half, found = np.array(grid.shape) * grid.spacing / 2, []
    for k in range(count):
        at, r = rng.uniform(-half, half), rng.uniform(*radii)
        if k % 3 == 0:
            found.append(Ellipsoid(at, _axes(rng), r * rng.uniform(0.6, 1.6, 3)))
        elif k % 3 == 1:
            found.append(Cone(at, at + rng.uniform(5, 40) * _direction(rng), 0.7 * r, 0.5 * r))
        else:
            found.append(Torus(at, _direction(rng), float(rng.uniform(2, 6)), 0.4 * r))
    return found


def _axes(rng: np.random.Generator) -> np.ndarray:
    return Rotation.random(rng=rng).as_matrix()


def _direction(rng: np.random.Generator) -> np.ndarray:
    vector = rng.normal(size=3)
    return vector / np.linalg.norm(vector)


def _seen(grid: Volume, tissue_hu: Any, holes: list[tuple[Part, float]], rng: np.random.Generator) -> np.ndarray:
    """What a CT makes of tissues, a function of points and the voxel's width, and holes: blurred, with noise."""
    hu = np.empty(grid.shape, np.float32)
    width = float(grid.spacing.mean())
    for part, points in grids.slabs(grid, tuple(slice(0, size) for size in grid.shape)):
        hu[part] = tissue_hu(points, width).reshape(hu[part].shape)
    for hole, filling in holes:
        _drill(hu, grid, hole, filling)
    hu = grids.blur(hu, grid.spacing, float(rng.uniform(0.1, 0.25)))
    hu += grids.draw_noise(grid, _NOISE_HU, 0.15, rng)
    return np.clip(hu, -1024, 3071, out=hu)


# Volumes without a cochlea


def without_cochlea(kind: str, rng: np.random.Generator) -> Scene:
    """A volume of 20 to 70 mm with voxels of 0.2 to 0.4 mm that has no cochlea.

    noise: white or correlated, around the values of HU or not. bone: a block with trabeculae, cells, plates, holes.
    soft: soft tissue with vessels and air. skull: the phantom's head without ears. removed: a specimen whose cochlea
    was filled with bone. canals: a specimen's other end, where the cochlea is out of view.
    """
    if kind not in KINDS:
        raise InputError(f"the kind must be one of {', '.join(KINDS)} but is {kind!r}; choose one.")
    spacing = float(rng.uniform(0.2, 0.4))
    longest = min(70.0, 230 * spacing)  # at most about twelve million voxels
    grid = _grid(rng.uniform(20.0, longest, 3), spacing)
    if kind in ("removed", "canals"):
        ct, frame = specimen(str(rng.choice(sorted(sum(FOLDS.values(), ())))))
        less = fill_cochlea(ct, frame, rng) if kind == "removed" else crop_to_canals(ct, frame)
        return Scene(_embed([(less, frame)], _grid([40.0] * 3, spacing), [rng.uniform(-4, 4, 3)], rng).volume, [])
    if kind == "noise":
        return Scene(grid.with_data(_noise(grid, rng)), [])
    tissue, holes = {"bone": _block, "soft": _muscle, "skull": _skull}[kind](grid, rng)
    return Scene(grid.with_data(_seen(grid, tissue, holes, rng)), [])


def _noise(grid: Volume, rng: np.random.Generator) -> np.ndarray:
    """Noise of a random grain; one half spans HU, the other any range; sometimes of two values alone."""
    noise = grids.draw_noise(grid, 1.0, float(rng.choice([0.0, 0.3, 0.6, 1.2, 2.5])), rng)
    if rng.random() < 0.3:
        noise = np.where(noise > rng.normal(0, 0.5), np.float32(1), np.float32(-1))
    mean, sd = (
        (rng.uniform(0, 1500), rng.uniform(300, 1200)) if rng.random() < 0.5 else (0.0, 10 ** rng.uniform(-2, 4))
    )
    return np.float32(mean) + np.float32(sd) * noise


def _block(grid: Volume, rng: np.random.Generator) -> tuple[Any, list[tuple[Part, float]]]:
    """Bone alone, dense or spongy, with many holes of the size of the ear's."""
    textures, share, cells = Textures.draw(rng), rng.uniform(-1.5, 1.5), rng.uniform(1.2, 3.0)
    size_cm3 = np.prod(np.array(grid.shape) * grid.spacing) / 1000
    filling = float(rng.choice([AIR_HU, 150.0]))
    holes = [(hole, filling) for hole in _holes(grid, rng, int(np.clip(3 * size_cm3, 15, 300)), (0.6, 3.0))]

    def hu(points: np.ndarray, width: float) -> np.ndarray:
        dense = 2000 + 110 * textures.dense.at(points)
        bone = blend(_spongy_hu(points, textures), dense, cover(textures.slow.at(points) - share, 0.5))
        return blend(bone, AIR_HU, cover(textures.cells.at(points) - cells, width))

    return hu, holes


def _muscle(grid: Volume, rng: np.random.Generator) -> tuple[Any, list[tuple[Part, float]]]:
    """Soft tissue with vessels, air pockets and now and then calcium."""
    textures = Textures.draw(rng)
    fillings = (AIR_HU, BRAIN_HU, 180.0, 350.0, 1500.0)
    holes = [(hole, float(rng.choice(fillings))) for hole in _holes(grid, rng, 80, (0.8, 4.0))]
    return lambda points, _: _soft_hu(points, textures), holes


def _skull(_: Volume, rng: np.random.Generator) -> tuple[Any, list[tuple[Part, float]]]:
    """The head about one of its petrous bones, or elsewhere."""
    textures = Textures.draw(rng)
    centre = rng.normal((36, -8, 0), 6) if rng.random() < 0.7 else rng.normal((0, 0, 20), (40, 45, 30))
    centre[0] *= rng.choice([-1, 1])
    return lambda points, width: head_hu(points + centre, textures, width), []


def fill_cochlea(ct: Volume, frame: Frame, rng: np.random.Generator) -> Volume:
    """A specimen with bone in place of its cochlea and the bone about it, within 6 mm of its middle."""
    textures = Textures.draw(rng)
    at, hu = middle_of(frame), ct.data.astype(np.float32)
    for part, points in grids.slabs(ct, grids.ball_block(ct, at, 8.0)):
        share = np.clip((7.5 - np.linalg.norm(points - at, axis=1)) / 1.5, 0, 1)
        bone = _spongy_hu(points, textures) + _NOISE_HU * rng.standard_normal(len(points))
        hu[part] = blend(hu[part].ravel(), bone, share).reshape(hu[part].shape)
    return ct.with_data(hu)


def crop_to_canals(ct: Volume, frame: Frame) -> Volume:
    """The part of a specimen farthest from its cochlea: along one voxel axis, from 5 mm off the middle on."""
    at, size = ct.to_index(middle_of(frame)) * ct.spacing, np.array(ct.shape) * ct.spacing
    axis = int(np.argmax(np.maximum(at, size - at)))
    lower = at[axis] > size[axis] - at[axis]
    first, last = (0.0, at[axis] - 5.0) if lower else (at[axis] + 5.0, size[axis])
    bounds = (round(edge / ct.spacing[axis]) for edge in (first, last))
    return _cropped(ct, axis, *bounds)


# Phantoms in large fields, and fields that cut


def phantom(ears: int, rng: np.random.Generator, size_mm: Any = None, spacing: float = 0.3, **options: Any) -> Scene:
    """A phantom with one ear in a field of 70 mm or with both in a head; other options are those of phantoms.

    Its frames are those that landmarks on these ducts would have on average, which is what can be seen.
    """
    seed, side = int(rng.integers(1 << 31)), str(rng.choice(["left", "right"]))
    if ears == 2:
        side, size_mm = "both", (112.0, 70.0, 70.0) if size_mm is None else size_mm
    size_mm = 70.0 if size_mm is None else size_mm
    lumen = str(rng.choice(["fluid", "air"]))
    chosen = {"side": side, "lumen": lumen, "size_mm": size_mm, "spacing_mm": spacing, **options}
    made = make_phantom(PhantomOptions(**chosen), seed)
    return Scene(made.volume, [(ear.side, frame_of_model(ear.cochlea, ear.theta)) for ear in made.ears])


def cut(volume: Volume, frame: Frame, direction: Any, distance_mm: float) -> Volume:
    """A volume that ends at this distance from the cochlea's middle, in a direction of the world.

    Voxels are kept as they are, so the border follows the voxel axis nearest to the direction; below zero the middle
    itself is outside.
    """
    along = np.linalg.solve(volume.affine[:3, :3] / volume.spacing, np.asarray(direction, np.float64))
    axis = int(np.argmax(np.abs(along)))
    at, step = volume.to_index(middle_of(frame))[axis], distance_mm / volume.spacing[axis]
    size = volume.shape[axis]
    if along[axis] > 0:
        return _cropped(volume, axis, 0, int(np.clip(np.floor(at + step) + 1, 1, size)))
    return _cropped(volume, axis, int(np.clip(np.ceil(at - step), 0, size - 1)), size)


def _cropped(volume: Volume, axis: int, first: int, last: int) -> Volume:
    """The volume between two indices of one axis."""
    affine, start = volume.affine.copy(), np.zeros(3)
    start[axis] = first
    affine[:3, 3] = volume.to_world(start)
    kept = [slice(None)] * 3
    kept[axis] = slice(first, last)
    return Volume(np.ascontiguousarray(volume.data[tuple(kept)]), affine)
