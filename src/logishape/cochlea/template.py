"""The mean look of bone around a cochlea, in its own frame: what tells which way it lies before any fit."""

import dataclasses
from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy import ndimage

from logishape.cochlea.frame import Frame
from logishape.core.errors import InputError
from logishape.core.volume import Volume

DEFAULT_FILE = Path(__file__).parent / "data" / "template.npz"
CENTRE, RADIUS, SPACING = np.array([0.8, 0.5, 0.6]), 5.0, 0.4  # mm, in the cochlear frame
THRESHOLD_HU, WIDTH_HU, SMOOTHING_MM = 1200.0, 200.0, 0.25


@dataclasses.dataclass(frozen=True, eq=False)
class Template:
    """Mean bone codes at points of the cochlear frame (mm); left ears were mirrored."""

    points: Float[np.ndarray, "n 3"]
    values: Float[np.ndarray, " n"]

    def thinned(self, step: int) -> "Template":
        """Every so many points along each axis: a coarser look."""
        index = np.round((self.points - self.points.min(axis=0)) / SPACING).astype(int)
        keep = np.all(index % step == 0, axis=1)
        return Template(self.points[keep], self.values[keep])


def template_points() -> Float[np.ndarray, "n 3"]:
    """The grid points of a ball around the cochlea's middle, in the cochlear frame."""
    reach = int(RADIUS / SPACING)
    axis = SPACING * np.arange(-reach, reach + 1)
    cube = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    return cube[np.linalg.norm(cube, axis=1) <= RADIUS] + CENTRE


def load_template(fold: str = "all", file: Path = DEFAULT_FILE) -> Template:
    """The template of all specimens, or the one made without a fold's."""
    with np.load(file, allow_pickle=False) as stored:
        if fold not in stored:
            raise InputError(f"the template has the folds {', '.join(stored)} but not {fold!r}; choose one of them.")
        return Template(template_points(), stored[fold].astype(np.float64) / 255)


def bone_code(hu: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """sigmoid((HU - 1200) / 200): one in bone, zero in lumen and air alike."""
    return 1 / (1 + np.exp(-np.clip((hu - THRESHOLD_HU) / WIDTH_HU, -30, 30)))


def code_at(
    volume: Volume, frame: Frame, points: Float[np.ndarray, "n 3"], scale: tuple[float, float] = (1.0, 0.0)
) -> Float[np.ndarray, " n"]:
    """Bone codes of a CT, smoothed by 0.25 mm, at points of a frame; not a number outside the CT.

    `scale` is the gain and offset that take HU to the CT's values.
    """
    index = volume.to_index(points @ np.asarray(frame.axes) + np.asarray(frame.origin))
    margin = np.ceil(4 * SMOOTHING_MM / volume.spacing).astype(int)
    shape = np.array(volume.shape)
    first = np.clip(np.floor(index.min(axis=0)).astype(int) - margin, 0, shape - 1)
    last = np.clip(np.ceil(index.max(axis=0)).astype(int) + margin + 1, first + 1, shape)
    block = volume.data[tuple(slice(a, b) for a, b in zip(first, last, strict=True))].astype(np.float32)
    smooth = np.asarray(ndimage.gaussian_filter(block, SMOOTHING_MM / volume.spacing))
    values = ndimage.map_coordinates(smooth, (index - first).T, order=1, mode="nearest")
    is_covered = np.all((index >= 0) & (index <= shape - 1), axis=1)
    return np.where(is_covered, bone_code((np.asarray(values, np.float64) - scale[1]) / scale[0]), np.nan)
