"""Grids as files describe them: how many voxels along which axis, and where they lie."""

import math

import numpy as np

from logishape.core.errors import InputError

_VOXEL_SIZES_MM = (1e-6, 1e6)  # what images have, with much room
_FARTHEST_MM = 1e9


def lps_to_ras(affine: np.ndarray) -> np.ndarray:
    """The affine with x and y turned round; the way back is the same."""
    return turn(affine, (-1, -1, 1))


def turn(affine: np.ndarray, signs: tuple[int, int, int]) -> np.ndarray:
    """The affine with the signs of x, y and z changed."""
    return affine * np.array([[*signs, 1]]).T


def make_affine(axes: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """The affine of a grid from its steps (columns, mm a voxel) and the centre of its first voxel (mm)."""
    affine = np.eye(4)
    affine[:3, :3] = axes
    affine[:3, 3] = origin
    return affine


def spatial_shape(sizes: tuple[int, ...], name: str) -> tuple[tuple[int, int, int], tuple[str, ...]]:
    """Voxels along x, y and z, and notes, of an image whose further axes have length one."""
    text = " x ".join(map(str, sizes))
    if any(size < 1 for size in sizes):
        raise InputError(f"{name} gives its size as {text}, which leaves no voxel; the file is corrupt.")
    if math.prod(sizes[3:]) > 1:
        raise InputError(
            f"{name} should hold one 3D image but has {len(sizes)} axes ({text}); save one of its images on its own."
        )
    if len(sizes) < 3 or min(sizes[:3]) == 1:
        raise InputError(f"{name} should hold a 3D image but is flat ({text}); give the whole volume.")
    shape = (sizes[0], sizes[1], sizes[2])
    if len(sizes) == 3:
        return shape, ()
    return shape, (f"The image has {len(sizes)} axes ({text}); those of length one after the third were dropped.",)


def check_axes(affine: np.ndarray, name: str) -> None:
    """An error where the grid has no place in space."""
    smallest, largest = _VOXEL_SIZES_MM
    lengths = np.linalg.norm(affine[:3, :3], axis=0)
    is_possible = (lengths >= smallest) & (lengths <= largest)
    if not np.all(is_possible) or not np.all(np.abs(affine) <= _FARTHEST_MM):
        text = " x ".join(f"{length:g}" for length in lengths)
        place = ", ".join(f"{x:g}" for x in affine[:3, 3])
        raise InputError(
            f"{name} should give a place in space and a voxel size above zero, but its voxels measure {text} mm "
            f"beginning at ({place}) mm; repair its header or export it again."
        )
    if abs(np.linalg.det(affine[:3, :3] / lengths)) < 1e-6:
        raise InputError(
            f"{name} should have three different axes but they lie in a plane; repair its header or export it again."
        )


def is_orthogonal(affine: np.ndarray, tolerance: float = 1e-5) -> bool:
    """Whether the axes stand at right angles, their cosines within the tolerance."""
    axes = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
    return bool(np.all(np.abs(axes.T @ axes - np.eye(3)) < tolerance))


def describe_shear(affine: np.ndarray, name: str) -> tuple[str, ...]:
    """A note where the axes do not stand at right angles."""
    if is_orthogonal(affine, 1e-4):
        return ()
    return (f"The axes of {name} are not at right angles; the grid was kept sheared, as the header gives it.",)
