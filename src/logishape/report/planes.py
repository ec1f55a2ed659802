"""Planes through a CT: where they lie, and the values of any map there, resampled for the eye."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import ndimage

from logishape.cochlea.frame import Frame
from logishape.cochlea.surroundings import MIDDLE
from logishape.core.volume import Volume

_HALF = 6.2, 5.2  # mm


class Plane(NamedTuple):
    """A rectangle in the world: its middle, two directions of length one, and its half sizes (mm)."""

    title: str
    middle: Float[np.ndarray, " 3"]
    right: Float[np.ndarray, " 3"]
    up: Float[np.ndarray, " 3"]
    half: tuple[float, float]

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top (mm from the middle)."""
        return -self.half[0], self.half[0], -self.half[1], self.half[1]

    def axes(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Where the columns and rows of an image of this plane lie (mm from the middle)."""
        left, right, bottom, top = self.extent
        return np.linspace(left, right, shape[1]), np.linspace(bottom, top, shape[0])

    def points(self, step: float) -> Float[np.ndarray, "rows columns 3"]:
        """World positions of its pixels, the first row at the bottom."""
        across = np.arange(-self.half[0], self.half[0] + step / 2, step)
        along = np.arange(-self.half[1], self.half[1] + step / 2, step)
        return self.middle + along[:, None, None] * self.up + across[None, :, None] * self.right


def planes_along(frame: Frame) -> list[Plane]:
    """Three planes of a cochlea's own frame: along the basal turn, and two through the axis."""
    x, y, z = np.asarray(frame.axes)
    note = ", mirrored" if frame.side == "left" else ""
    named = ((f"basal turn, seen along the axis{note}", x, y), ("mid-modiolar", x, z))
    return _through(frame, (*named, (f"mid-modiolar, across{note}", y, z)))


def _through(frame: Frame, named: tuple[tuple[str, np.ndarray, np.ndarray], ...]) -> list[Plane]:
    middle = np.asarray(frame.to_world(MIDDLE[None]))[0]
    return [Plane(title, middle, right, up, _HALF) for title, right, up in named]


def sample_plane(volume: Volume, plane: Plane, step: float = 0.05, outside: float = 0.0) -> np.ndarray:
    """The volume's values on a plane by linear interpolation."""
    points = plane.points(step)
    index = volume.to_index(points.reshape(-1, 3))
    shape = np.array(volume.shape)
    first = np.clip(np.floor(index.min(axis=0)) - 1, 0, shape - 1).astype(int)
    last = np.clip(np.ceil(index.max(axis=0)) + 2, first + 1, shape).astype(int)
    block = volume.data[tuple(slice(a, b) for a, b in zip(first, last, strict=True))].astype(np.float32)
    values = ndimage.map_coordinates(block, (index - first).T, order=1, mode="constant", cval=outside)
    return np.asarray(values).reshape(points.shape[:2])
