"""The specimens of the human bony labyrinth set: masks with truth on their own grid, and the cochlear frame."""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from logishape.cochlea import Frame
from logishape.core.errors import InputError
from logishape.reproduce.cases import FOLDS

NEAR_MM = 1.0  # voxels farther than this from the mask say nothing that nearer ones do not


@dataclasses.dataclass(frozen=True)
class Specimen:
    """Where a prediction is scored, and the truth there.

    `points` are the centres of the region's voxels in the cochlear frame (mm), `voxels` their indices; `manual` is
    the mask drawn on the CT, `reference` that of the micro-CT, or the manual mask where there is none.
    """

    name: str
    frame: Frame
    points: np.ndarray
    voxels: np.ndarray
    shape: tuple[int, ...]
    spacing: np.ndarray
    manual: np.ndarray
    reference: np.ndarray

    def near(self, mask: np.ndarray) -> np.ndarray:
        """Indices of the voxels within `NEAR_MM` of the mask."""
        found, _ = KDTree(self.points[mask]).query(self.points, distance_upper_bound=NEAR_MM)
        return np.flatnonzero(np.isfinite(found))


def data_folder() -> Path:
    """The folder of the specimens: LOGISHAPE_DATA, or ../shared/data beside the repository."""
    root = Path(os.environ.get("LOGISHAPE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    folder = root if (root / "F01").is_dir() else root / "bony_labyrinth"
    if not folder.is_dir():
        raise InputError(f"the specimens were expected in {folder} but are not there; set LOGISHAPE_DATA.")
    return folder


def load_specimens(names: tuple[str, ...] = ()) -> list[Specimen]:
    """All specimens of the folds, or those named."""
    folder = data_folder()
    return [load_specimen(folder / name) for name in names or sorted(sum(FOLDS.values(), ()))]


def load_specimen(folder: Path) -> Specimen:
    """One specimen with its masks."""
    record = json.loads((folder / "landmarks.json").read_text())
    marks = record["landmarks_ras_mm"]
    frame = Frame.from_landmarks(marks["C"], marks["A"], marks["RW"], record["side"].lower())
    region, affine = read_mask(folder / "region.nii.gz")
    manual, _ = read_mask(folder / "cochlea.nii.gz")
    fine = folder / "cochlea_uct.nii.gz"
    reference = read_mask(fine)[0] if fine.exists() else manual
    voxels = np.argwhere(region)
    world = voxels @ affine[:3, :3].T + affine[:3, 3]
    chosen = tuple(voxels.T)
    return Specimen(
        folder.name,
        frame,
        (world - frame.origin) @ frame.axes.T,
        voxels,
        region.shape,
        np.linalg.norm(affine[:3, :3], axis=0),
        manual[chosen],
        reference[chosen],
    )


def read_mask(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """A mask in voxel order x, y, z and the affine that takes its indices to RAS millimetres."""
    import SimpleITK as sitk  # noqa: N813 - its own documentation calls it so

    image = sitk.ReadImage(str(path))
    affine = np.eye(4)
    affine[:3, :3] = np.array(image.GetDirection()).reshape(3, 3) * np.array(image.GetSpacing())
    affine[:3, 3] = image.GetOrigin()
    return sitk.GetArrayFromImage(image).transpose(2, 1, 0) > 0, np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine
