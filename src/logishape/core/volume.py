"""An image and where it lies: voxel data and the affine that takes voxel indices to world millimetres."""

import dataclasses
from typing import Any

import numpy as np

from logishape.core.arrays import as_vector
from logishape.core.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class Volume:
    """Voxel data with an affine to world millimetres (RAS for medical images), in 2D or 3D.

    The centre of voxel (i, j, k) lies at `affine @ (i, j, k, 1)`.
    """

    data: np.ndarray
    affine: np.ndarray

    def __post_init__(self) -> None:
        if np.ma.isMaskedArray(self.data):
            raise InputError("the image is a masked array; give its data here and its mask to the Observation.")
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
        _check_affine(affine, d)

    @classmethod
    def from_spacing(cls, data: Any, spacing: Any = 1.0, origin: Any = 0.0) -> "Volume":
        """A volume whose axes are the world axes, with voxel size `spacing` and first voxel at `origin` (mm)."""
        d = np.ndim(data)
        affine = np.eye(d + 1)
        affine[:d, :d] = np.diag(as_vector(spacing, d, "spacing"))
        affine[:d, d] = as_vector(origin, d, "origin")
        return cls(np.asanyarray(data), affine)  # a masked array stays one, and is refused

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
        _check_corners(lower, upper, self.ndim)
        corners = np.stack(np.meshgrid(*zip(lower, upper, strict=True), indexing="ij"), axis=-1)
        index = self.to_index(corners.reshape(-1, self.ndim))
        first = np.clip(np.floor(index.min(axis=0)), 0, self.shape).astype(int)
        last = np.clip(np.ceil(index.max(axis=0)) + 1, 0, self.shape).astype(int)
        return tuple(slice(int(a), max(int(b), int(a))) for a, b in zip(first, last, strict=True))


def _check_affine(affine: np.ndarray, d: int) -> None:
    if not np.all(np.isfinite(affine)):
        raise InputError("the affine must be finite but is not; check spacing and axes.")
    last = affine[d]
    if not np.array_equal(last, np.eye(d + 1)[d]):
        raise InputError(
            f"the affine's last row must be {np.eye(d + 1)[d].tolist()} but is {last.tolist()}; try its transpose."
        )
    axes = affine[:d, :d]
    if abs(np.linalg.det(axes)) <= 1e-9 * np.prod(np.linalg.norm(axes, axis=0)):
        raise InputError(
            "the affine must be invertible but an axis has no length or two are parallel; check spacing and axes."
        )


def _check_corners(lower: Any, upper: Any, d: int) -> None:
    lower, upper = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if lower.shape != (d,) or upper.shape != (d,):
        raise InputError(
            f"a box around a {d}D image needs two corners of {d} numbers but has shapes "
            f"{lower.shape} and {upper.shape}; give (lower, upper) in mm."
        )
    if not np.all(np.isfinite(lower) & np.isfinite(upper)):
        raise InputError(f"the box from {lower.tolist()} to {upper.tolist()} mm is not finite; give numbers.")
    if np.any(lower > upper):
        raise InputError(f"the box goes from {lower.tolist()} to {upper.tolist()} mm; lower must not exceed upper.")
