"""Bodies that a phantom is built of, each with a level (mm, positive inside), and where they lie about a cochlea."""

from typing import NamedTuple

import numpy as np

from logishape.cochlea.frame import Frame


class Ellipsoid(NamedTuple):
    """The rows of `axes` are its directions, `radii` its half-lengths along them (mm)."""

    centre: np.ndarray
    axes: np.ndarray
    radii: np.ndarray

    @property
    def reach(self) -> float:
        """The radius (mm) of a ball around the centre that holds it all."""
        return float(np.max(self.radii))

    def level(self, points: np.ndarray) -> np.ndarray:
        """The distance to first order: q (1 - q) / |grad| with q = 1 on the surface."""
        scaled = (points - self.centre) @ self.axes.T / self.radii
        q, slope = _length(scaled), _length(scaled / self.radii)
        return q * (1 - q) / np.maximum(slope, 1e-3)


class Torus(NamedTuple):
    """A ring of this radius about the normal through its centre, with a round tube (mm)."""

    centre: np.ndarray
    normal: np.ndarray
    radius: float
    tube: float

    @property
    def reach(self) -> float:
        """The radius (mm) of a ball around the centre that holds it all."""
        return self.radius + self.tube

    def level(self, points: np.ndarray) -> np.ndarray:
        """The exact distance."""
        offset = points - self.centre
        height = offset @ self.normal
        across = np.sqrt(np.maximum(_length(offset) ** 2 - height**2, 0))
        return self.tube - np.hypot(across - self.radius, height)


class Cone(NamedTuple):
    """A straight tube with round ends whose radius (mm) changes evenly from its start to its end."""

    start: np.ndarray
    end: np.ndarray
    start_radius: float
    end_radius: float

    @property
    def centre(self) -> np.ndarray:
        """Its middle."""
        return (self.start + self.end) / 2

    @property
    def reach(self) -> float:
        """The radius (mm) of a ball around the centre that holds it all."""
        return float(np.linalg.norm(self.end - self.start) / 2 + max(self.start_radius, self.end_radius))

    def level(self, points: np.ndarray) -> np.ndarray:
        """The distance, exact for a cylinder."""
        along, offset = self.end - self.start, points - self.start
        share = np.clip(offset @ along / (along @ along), 0, 1)
        away = _length(offset - share[..., None] * along)
        return self.start_radius + share * (self.end_radius - self.start_radius) - away


class Block(NamedTuple):
    """What planes leave of a ball: where `normals @ x` is below `offsets` (mm)."""

    centre: np.ndarray
    radius: float
    normals: np.ndarray
    offsets: np.ndarray

    def level(self, points: np.ndarray) -> np.ndarray:
        """The distance to the nearest of its faces, exact inside."""
        faces = np.min(self.offsets - points @ self.normals.T, axis=-1)
        return np.minimum(faces, self.radius - _length(points - self.centre))


Part = Ellipsoid | Torus | Cone


def _length(vectors: np.ndarray) -> np.ndarray:
    """The lengths of many vectors, several times as fast as `np.linalg.norm`."""
    return np.sqrt(np.einsum("...d,...d->...", vectors, vectors))


class Surroundings(NamedTuple):
    """What lies about a cochlea, in the cochlear frame of an average specimen (mm).

    The vestibule and the three semicircular canals share the cochlea's fluid or air. Dense bone is a shell about the
    labyrinth, `capsule_mm` thick, and `core`, which is most of the bone on its inner side; the middle ear keeps
    `wall_mm` off the labyrinth.
    """

    vestibule: Ellipsoid
    canals: tuple[Torus, ...]
    nerve_canals: tuple[Part, ...]
    carotid: Part
    middle_ear: Part
    core: Block
    capsule_mm: float
    wall_mm: float


# Where right ears of twelve specimens have them, averaged (mm): the vestibule with half-lengths along its three axes,
# then centre, normal and radius of the lateral, posterior and superior canal.
_VESTIBULE = ((4.7, -3.2, -1.7), (1.7, 2.4, 3.2))
_VESTIBULE_AXES = ((0.87, 0.0, 0.49), (0.32, -0.75, -0.58), (0.37, 0.66, -0.65))
_CANALS = (
    ((7.3, -5.5, -1.4), (0.26, 0.83, 0.49), 2.7),
    ((8.4, -3.7, -5.0), (0.18, 0.52, -0.84), 3.4),
    ((4.0, -7.2, -3.7), (0.96, -0.25, 0.02), 3.4),
)
LABYRINTH_CENTRE, LABYRINTH_REACH = np.array([3.8, -3.4, -2.0]), 11.5
# Dense bone of the specimens ends towards the brain above, towards the cells below, and under the middle ear.
_CORE_NORMALS = ((-0.46, -0.76, 0.46), (0.7, 0.7, 0.0), (0.3, 0.0, 1.0))
_CORE_OFFSETS = (4.35, 5.5, 1.9)


def draw_surroundings(rng: np.random.Generator) -> Surroundings:
    """Surroundings that differ a little from ear to ear, the labyrinth's rooms by 0.2 mm, what is farther by more."""
    about = _Scatter(rng)
    centre, radii = _VESTIBULE
    axes, _ = np.linalg.qr(np.array(_VESTIBULE_AXES).T)
    vestibule = Ellipsoid(about(centre, 0.1), axes.T, np.array(radii) * rng.uniform(0.95, 1.05, 3))
    canals = []
    for middle, normal, radius in _CANALS:
        turned = about(normal, 0.04)
        canals.append(
            Torus(about(middle), turned / np.linalg.norm(turned), radius + rng.normal(0, 0.15), rng.uniform(0.5, 0.6))
        )
    fundus = about((0.1, -0.6, -3.7), 0.3)
    inwards = about((-0.62, 0.34, -0.7), 0.06)
    facial, knee = about((0.1, -2.7, -2.4), 0.3), about((-0.2, -4.3, 1.2), 0.3)
    return Surroundings(
        vestibule,
        tuple(canals),
        (
            Cone(fundus, fundus + 14 * inwards, rng.uniform(2.1, 2.7), rng.uniform(2.3, 3.0)),
            Cone(fundus, about((0.9, 0.2, -1.0)), 1.8, rng.uniform(0.9, 1.3)),  # to the cochlea
            Cone(facial, knee, 0.8, 0.6),
            Cone(knee, about((9.5, -4.5, 1.5), 0.4), 0.6, 0.8),
        ),
        Cone(about((-6.0, 4.0, 5.0), 0.7), about((-12.0, 12.0, -4.0), 0.7), 2.4, 2.6),
        Ellipsoid(about((8.0, 1.0, 5.0), 0.5), np.eye(3), np.array([7.5, 6.5, 5.5]) * rng.uniform(0.9, 1.1)),
        _draw_core(about),
        rng.uniform(1.3, 1.9),
        rng.uniform(0.9, 1.3),
    )


class _Scatter(NamedTuple):
    """Draws points about a given one, never more than 2.5 standard deviations away along an axis."""

    rng: np.random.Generator

    def __call__(self, point: tuple[float, ...], sd: float = 0.2) -> np.ndarray:
        return np.array(point) + np.clip(self.rng.normal(0, sd, 3), -2.5 * sd, 2.5 * sd)


def _draw_core(about: _Scatter) -> Block:
    normals = np.array([about(normal, 0.08) for normal in _CORE_NORMALS])
    lengths = np.linalg.norm(normals, axis=1)
    radius = about.rng.uniform(8.5, 10.5)
    return Block(about((1.5, -0.5, -3.5), 0.7), radius, normals / lengths[:, None], about(_CORE_OFFSETS, 0.5))


def to_frame(frame: Frame, points: np.ndarray) -> np.ndarray:
    """World points (mm) in a frame, whatever the shape of their array."""
    return (points - frame.origin) @ np.asarray(frame.axes).T


def from_frame(frame: Frame, points: np.ndarray) -> np.ndarray:
    """Points of a frame in the world (mm)."""
    return points @ np.asarray(frame.axes) + frame.origin
