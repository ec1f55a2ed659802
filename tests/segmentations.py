"""A phantom CT, its segmentation from file to folder, and the same CT seen otherwise: moved, mirrored, re-ordered."""

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from logishape.cochlea import CaseResult, Frame, Phantom, PhantomOptions, SegmentOptions, make_phantom, segment
from logishape.cochlea.phantom_files import write_phantom
from logishape.cochlea.pipeline import Outcome, Request, run
from logishape.core.volume import Volume
from logishape.report import write_page

OPTIONS = SegmentOptions(num_draws=20, num_starts=2)  # the same everywhere, so that all compile once
NAME = "Nightingale^Florence.nii.gz"  # of the CT: must not show in any result
MAPS = ("segmentation", "shape", "probability", "marginal")


@functools.cache
def phantom() -> Phantom:
    """Air-filled, with voxels of a clinical scanner's size."""
    return make_phantom(PhantomOptions(lumen="air", spacing_mm=0.3, size_mm=20, noise_hu=100.0), 1)


def write_case(folder: Path) -> Path:
    """The phantom's files in a folder, its CT under a name that should stay private."""
    write_phantom(folder, phantom())
    (folder / "ct.nii.gz").rename(folder / NAME)
    return folder


def request(folder: Path, out: Path, **choice) -> Request:
    """What is asked for with the phantom's files."""
    usual = {"landmarks": folder / "right" / "landmarks.json", "options": OPTIONS}
    return Request(**({"input": folder / NAME, "out": out} | usual | choice))


def run_case(asked: Request, progress=None) -> Outcome:
    """The case of one ear from file to folder, report included."""
    (outcome,) = run(asked, progress, write_page)
    return outcome


def beside(one: Volume, other: Volume) -> Volume:
    """Two volumes in one, joined along their first axis; the second keeps its place in the world."""
    affine = other.affine.copy()
    affine[:3, 3] = other.to_world([-one.shape[0], 0, 0])
    return Volume(np.concatenate([one.data, other.data]), affine)


def mirrored_data(volume: Volume) -> Volume:
    """The same grid with its values turned round along the first axis: a right ear becomes a left one."""
    return volume.with_data(np.ascontiguousarray(volume.data[::-1]))


class View(NamedTuple):
    """A CT with a pose, and how to bring a map on its grid back to that of the first CT."""

    volume: Volume
    frame: Frame
    order: tuple[int, ...] = (0, 1, 2)
    flips: tuple[int, ...] = ()

    def back(self, data: np.ndarray) -> np.ndarray:
        """A map in the order of the first CT's voxels."""
        return np.transpose(np.flip(data, self.flips), np.argsort(self.order))

    def moved(self) -> "View":
        """The patient lies elsewhere and turned: affine and pose move together."""
        motion = np.eye(4)
        motion[:3, :3], motion[:3, 3] = Rotation.from_rotvec([0.7, -1.1, 0.4]).as_matrix(), [-61.0, 140.0, 33.0]
        return self._seen(motion)

    def mirrored(self) -> "View":
        """The patient in the mirror: a right ear becomes a left one."""
        return self._seen(np.diag([-1.0, 1.0, 1.0, 1.0]))

    def reordered(self) -> "View":
        """The same world, stored with other axes first and two of them backwards."""
        order, flips = (2, 0, 1), (0, 2)
        data = np.flip(np.transpose(self.volume.data, order), flips)
        index = np.zeros((4, 4))  # from an index in the new order to one in the old
        for new, old in enumerate(order):
            index[old, new] = -1 if new in flips else 1
            index[old, 3] = data.shape[new] - 1 if new in flips else 0
        index[3, 3] = 1
        return View(Volume(np.ascontiguousarray(data), self.volume.affine @ index), self.frame, order, flips)

    def scaled(self, gain: float, offset: float) -> "View":
        """The values of a scanner that is not calibrated."""
        return self._replace(volume=self.volume.with_data(np.float32(gain) * self.volume.data + np.float32(offset)))

    def _seen(self, motion: np.ndarray) -> "View":
        axes, origin = np.asarray(self.frame.axes), np.asarray(self.frame.origin)
        frame = Frame(axes @ motion[:3, :3].T, motion[:3, :3] @ origin + motion[:3, 3])
        return self._replace(volume=Volume(self.volume.data, motion @ self.volume.affine), frame=frame)

    def segmented(self, **choice) -> CaseResult:
        """The cochlea of this CT."""
        return segment(self.volume, self.frame, options=OPTIONS, **choice)
