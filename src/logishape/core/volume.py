"""An image and where it lies: voxel data and the affine that takes voxel indices to world millimetres."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from logishape.core.errors import InputError


@dataclasses.dataclass(frozen=True)
class Volume:
    """Voxel data with an affine to world millimetres (RAS for medical images), in 2D or 3D.

    The centre of voxel (i, j, k) lies at `affine @ (i, j, k, 1)`.
    """

    data: np.ndarray
    affine: np.ndarray

    def __post_init__(self) -> None:
        data, affine = np.asarray(self.data), np.asarray(self.affine, dtype=np.float64)
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "affine", affine)
        d = data.ndim
        if d not in (2, 3):
            raise InputError(
                f"an image must have 2 or 3 axes but this one has {d} (shape {data.shape}); "
                "drop axes of length one or pick one channel."
            )
        if data.size == 0:
            raise InputError(f"an image needs at least one voxel but the shape is {data.shape}; check the crop.")
        if affine.shape != (d + 1, d + 1):
            raise InputError(
                f"a {d}D image needs an affine of shape {(d + 1, d + 1)} but it is {affine.shape}; "
                "use Volume.from_spacing if you only know the voxel size."
            )
        if not np.all(np.isfinite(affine)) or abs(np.linalg.det(affine[:d, :d])) < 1e-12:
            raise InputError("the affine must be finite and invertible but it is not; check spacing and axes.")

    @classmethod
    def from_spacing(cls, data: Any, spacing: float | Sequence[float] = 1.0, origin: Any = 0.0) -> "Volume":
        """A volume whose axes are the world axes, with voxel size `spacing` and first voxel at `origin` (mm)."""
        data = np.asarray(data)
        d = data.ndim
        affine = np.eye(d + 1)
        affine[:d, :d] = np.diag(np.broadcast_to(np.asarray(spacing, dtype=np.float64), (d,)))
        affine[:d, d] = np.broadcast_to(np.asarray(origin, dtype=np.float64), (d,))
        return cls(data, affine)

    @property
    def ndim(self) -> int:
        """The dimension of space."""
        return self.data.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels along each axis."""
        return self.data.shape

    @property
    def spacing(self) -> np.ndarray:
        """Voxel size along each axis, mm."""
        return np.linalg.norm(self.affine[: self.ndim, : self.ndim], axis=0)

    @property
    def voxel_size(self) -> float:
        """Volume (3D, mm^3) or area (2D, mm^2) of one voxel."""
        return float(abs(np.linalg.det(self.affine[: self.ndim, : self.ndim])))

    def to_world(self, index: Any) -> np.ndarray:
        """World positions (mm) of voxel indices `(..., d)`, which may be fractional."""
        d = self.ndim
        return np.asarray(index, dtype=np.float64) @ self.affine[:d, :d].T + self.affine[:d, d]

    def to_index(self, points: Any) -> np.ndarray:
        """Fractional voxel indices of world positions `(..., d)` in mm."""
        d = self.ndim
        offset = np.asarray(points, dtype=np.float64) - self.affine[:d, d]
        return offset @ np.linalg.inv(self.affine[:d, :d]).T

    def with_data(self, data: Any) -> "Volume":
        """Other values on the same grid."""
        data = np.asarray(data)
        if data.shape != self.shape:
            raise InputError(f"data has shape {data.shape} but the grid is {self.shape}; resample one of them.")
        return Volume(data, self.affine)

    def index_bounds(self, lower: Any, upper: Any) -> tuple[slice, ...]:
        """Index ranges of the smallest grid block that holds the world box from `lower` to `upper` (mm)."""
        corners = np.stack(np.meshgrid(*zip(lower, upper, strict=True), indexing="ij"), axis=-1)
        index = self.to_index(corners.reshape(-1, self.ndim))
        first = np.maximum(np.floor(index.min(axis=0)).astype(int), 0)
        last = np.minimum(np.ceil(index.max(axis=0)).astype(int) + 1, self.shape)
        return tuple(slice(int(a), max(int(b), int(a))) for a, b in zip(first, last, strict=True))
