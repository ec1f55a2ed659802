"""One ear of a phantom: a cochlea from the calibrated prior, what surrounds it, and its HU."""

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

from logishape.cochlea.calibration import load_calibration
from logishape.cochlea.evaluation import level_at
from logishape.cochlea.frame import Frame
from logishape.cochlea.phantom_head import AIR_HU, SOFT_HU, Textures, blend, cover
from logishape.cochlea.phantom_misfit import wandering
from logishape.cochlea.phantom_options import PhantomOptions
from logishape.cochlea.phantom_parts import Part, Surroundings, draw_surroundings, from_frame, to_frame
from logishape.cochlea.shape import Cochlea
from logishape.cochlea.vestibule import is_beyond

MIRROR = np.diag([-1.0, 1.0, 1.0])  # right to left
# A right ear in RAS: where its base lies (mm), the modiolar axis (outwards, forwards, a little down) and the way to
# the round window (outwards, back, down). So the lateral canal lies flat and the superior one stands upright.
_ORIGIN, _AXIS, _TO_WINDOW = np.array([35.0, -8.0, 0.0]), np.array([0.62, 0.75, -0.2]), np.array([0.55, -0.65, -0.5])
_APEX, _ROUND_WINDOW = np.array([0.0, 0.0, 2.92]), np.array([5.81, 0.0, -0.01])  # mean of the specimens, mm
_CAPSULE_HU, _SPONGY_HU = 2000.0, 900.0
_WALL_MM = 0.5  # of bone between the labyrinth and other cavities
_MUCOSA_MM = 0.6  # of soft tissue in the middle ear, unless the bone is dried and the labyrinth full of air


@dataclasses.dataclass(frozen=True, eq=False)
class EarAnatomy:
    """All that one ear is made of.

    `body` is the frame that its surroundings are given in, which moves with the duct; `box` has the corners of a box
    around the duct (world mm).
    """

    cochlea: Cochlea
    theta: np.ndarray
    box: tuple[np.ndarray, np.ndarray]
    body: Frame
    surroundings: Surroundings
    textures: Textures
    lumen_hu: float
    landmarks: dict[str, np.ndarray]
    lining_mm: float

    @property
    def frame(self) -> Frame:
        """The cochlear frame."""
        return self.cochlea.frame

    def mirrored(self) -> "EarAnatomy":
        """The same ear on the other side of the head."""
        cochlea = Cochlea(mirror_frame(self.frame), self.cochlea.duct.free, self.cochlea.calibration)
        marks = {name: MIRROR @ point for name, point in self.landmarks.items()}
        box = _duct_box(cochlea, self.theta)
        return dataclasses.replace(self, cochlea=cochlea, box=box, body=mirror_frame(self.body), landmarks=marks)

    def in_duct(self, points: np.ndarray) -> np.ndarray:
        """Whether world points `(n, 3)` lie in the cochlea's duct: the sign of its level."""
        return level_at(self.cochlea, self.theta, points) > 0

    def fill_hu(self, points: np.ndarray) -> np.ndarray:
        """HU of the lumen at world points `(n, 3)`."""
        return (self.lumen_hu + 20 * self.textures.lumen.at(points)).astype(np.float32)

    def dress(self, hu: np.ndarray, points: np.ndarray, distance: np.ndarray, width: float) -> np.ndarray:
        """HU of what surrounds the labyrinth, in place of a head's at world points `(n, 3)`.

        `distance` is that to the labyrinth (mm), `width` the voxel's. The capsule comes first, then cavities, which
        keep off the labyrinth by a wall of bone.
        """
        local, parts, around = to_frame(self.body, points), self.surroundings, self.textures
        uneven = 0.25 * around.slow.at(points)
        middle_ear = np.minimum(parts.middle_ear.level(local), distance - parts.wall_mm)
        carotid = np.minimum(parts.carotid.level(local), distance - parts.capsule_mm)
        dense = np.maximum(parts.core.level(local) + 2 * uneven, parts.capsule_mm + uneven - distance)
        dense = np.minimum(dense, -np.maximum(middle_ear, carotid))
        hu = blend(hu, SOFT_HU, cover(np.maximum(middle_ear, carotid), width))
        hu = blend(hu, AIR_HU, cover(middle_ear - (0.0 if self.lumen_hu < -400 else _MUCOSA_MM), width))
        near = np.flatnonzero(dense > -width)
        grain = _CAPSULE_HU + 110 * around.dense.at(points[near])
        hu[near] = blend(hu[near], grain, cover(dense[near], width))
        hu = self._with_modiolus(hu, points, width)
        # The labyrinth's own voxels end half a voxel before the distance from their centres does.
        lining = np.flatnonzero(distance < self.lining_mm + width)
        half = 0.5 * (hu[lining] + self.lumen_hu)
        hu[lining] = blend(hu[lining], half, cover(self.lining_mm - (distance[lining] - 0.5 * width), width))
        nerves = np.max([tube.level(local) for tube in parts.nerve_canals], axis=0)
        nerves = np.minimum(nerves, distance - _WALL_MM)
        return blend(hu, AIR_HU if self.lumen_hu < -400 else 30.0, cover(nerves, width))

    def _with_modiolus(self, hu: np.ndarray, points: np.ndarray, width: float) -> np.ndarray:
        """HU with spongy bone about the axis."""
        level = self._modiolus(points)
        near = np.flatnonzero(level > -width)
        grain = _SPONGY_HU + 220 * self.textures.trabeculae.at(points[near])
        hu[near] = blend(hu[near], grain, cover(level[near], width))
        return hu

    def in_part(self, part: Part, points: np.ndarray) -> np.ndarray:
        """Whether world points `(n, 3)` lie in the vestibule or a canal.

        The vestibule ends at the cut, so that before it the lumen is the duct's alone.
        """
        found = part.level(to_frame(self.body, points)) > 0
        return found & is_beyond(to_frame(self.frame, points)) if part is self.surroundings.vestibule else found

    def _modiolus(self, points: np.ndarray) -> np.ndarray:
        """The level of a cone about the axis, 1.7 mm wide at the base and ending under the apical turn."""
        x, y, z = np.moveaxis(to_frame(self.body, points), -1, 0)
        slant = (1.4 - 0.45 * z - np.hypot(x, y)) / np.hypot(1, 0.45)
        return np.minimum(slant, np.minimum(z + 1.7, 2.2 - z))


def draw_ear(options: PhantomOptions, seed: tuple[int, ...]) -> EarAnatomy:
    """The anatomy of a right ear; the same whatever the grid, the noise and the point spread."""
    shape, place, around, grain, fill, error, wander = (np.random.default_rng([*seed, k]) for k in range(7))
    calibration = wandering(load_calibration(), options.misfit, wander) if options.misfit else None
    cochlea = Cochlea(_draw_frame(place), options.free, calibration)
    theta = _draw_theta(cochlea, options, shape)
    low, high = (-950, -700) if options.lumen == "air" else (100, 250)
    lumen_hu = fill.uniform(low, high) if options.lumen_hu is None else options.lumen_hu
    places = {"C": np.zeros(3), "A": _APEX, "RW": _ROUND_WINDOW}
    marks = {
        name: from_frame(cochlea.frame, at) + options.landmark_error_mm * error.normal(size=3)
        for name, at in places.items()
    }
    box, body, grains = _duct_box(cochlea, theta), _body_frame(cochlea, theta), Textures.draw(grain)
    parts, lumen = draw_surroundings(around), float(lumen_hu)
    return EarAnatomy(cochlea, theta, box, body, parts, grains, lumen, marks, options.lining_mm)


def mirror_frame(frame: Frame) -> Frame:
    """The frame seen in the mirror that exchanges left and right."""
    return Frame(np.asarray(frame.axes) @ MIRROR, MIRROR @ np.asarray(frame.origin))


def _draw_frame(rng: np.random.Generator) -> Frame:
    turn = Rotation.from_rotvec(np.clip(rng.normal(0, 0.1, 3), -0.25, 0.25)).as_matrix()
    origin = _ORIGIN + np.clip(rng.normal(0, 1.5, 3), -3, 3)
    return Frame.from_landmarks(origin, origin + turn @ _AXIS, origin + turn @ _TO_WINDOW, "right")


def _draw_theta(cochlea: Cochlea, options: PhantomOptions, rng: np.random.Generator) -> np.ndarray:
    """The parameters asked for, or a draw from the Gaussian within its box (by rejection)."""
    if options.theta is not None:
        return cochlea.check(options.theta)
    prior = cochlea.prior()
    factor = np.linalg.cholesky(np.linalg.inv(np.asarray(prior.precision)))
    while True:
        theta = np.asarray(prior.mean) + options.shape_spread * factor @ rng.normal(size=len(factor))
        if np.all((theta >= prior.lower) & (theta <= prior.upper)):
            return theta


def _body_frame(cochlea: Cochlea, theta: np.ndarray) -> Frame:
    """Where the cochlear frame of an average specimen lies when its duct is moved to where this one is."""
    mean, centre = cochlea.mean(), np.asarray(cochlea.calibration.centre)
    turn, back = Rotation.from_rotvec(mean[3:6]).as_matrix(), Rotation.from_rotvec(-theta[3:6]).as_matrix()
    origin = centre - back @ (turn @ centre + theta[:3] - mean[:3])
    return Frame((back @ turn).T @ np.asarray(cochlea.frame.axes), from_frame(cochlea.frame, origin))


def _duct_box(cochlea: Cochlea, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of a world box around the duct (mm), as `Cochlea.extent` gives it, without a program to compile."""
    centre, back = np.asarray(cochlea.calibration.centre), Rotation.from_rotvec(-theta[3:6]).as_matrix()
    ends = zip(*cochlea.duct.extent(theta[6:]), strict=True)
    corners = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, 3)
    world = from_frame(cochlea.frame, (corners - centre - theta[:3]) @ back.T + centre)
    return world.min(axis=0), world.max(axis=0)
