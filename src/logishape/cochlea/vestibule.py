"""Where the cochlea ends and the vestibule begins: a cut, in the frame of the landmarks or in the model's own."""

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial.transform import Rotation

from logishape.cochlea.calibration import PARAMETERS
from logishape.cochlea.frame import Frame
from logishape.cochlea.shape import Cochlea
from logishape.core.arrays import AnyArray

BASE_X, BASE_YZ, FLOOR_Z = 2.4, -0.8, -3.0  # mm; the cut that defines the cochlear part of the specimens' masks

# The squared Mahalanobis distance that careful landmarks exceed once in a thousand times (chi squared, six degrees).
BELIEVABLE = 22.5


def is_beyond(points: Float[np.ndarray, "n 3"]) -> Bool[np.ndarray, " n"]:
    """Whether points of the cochlear frame (mm) lie beyond the cut: in the vestibule, or below the base.

    x > 2.4 and y + z/2 < -0.8, or z <= -3.
    """
    x, y, z = np.moveaxis(np.asarray(points), -1, 0)
    return ((x > BASE_X) & (y + z / 2 < BASE_YZ)) | (z <= FLOOR_Z)


def before_cut_mm(points: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, " n"]:
    """How far points of the cochlear frame are from the cut, mm: positive where they are kept, zero on it."""
    x, y, z = np.moveaxis(np.asarray(points), -1, 0)
    return np.minimum(np.maximum(BASE_X - x, (y + z / 2 - BASE_YZ) / np.hypot(1, 0.5)), z - FLOOR_Z)


def frame_of_model(cochlea: Cochlea, theta: Float[AnyArray, " p"]) -> Frame:
    """The frame that landmarks on this cochlea would give on average: the fitted pose without the mean one.

    The calibrated pose has a mean, because landmarks have a place in the model; a model with that very pose has the
    frame it was fitted in.
    """
    fitted, mean, centre = np.asarray(theta), cochlea.mean(), np.asarray(cochlea.calibration.centre)
    turn = Rotation.from_rotvec(fitted[3:6]).inv() * Rotation.from_rotvec(mean[3:6])
    # A point p of the landmarks' frame and the point q of the given one lie in the same place of the model when
    # R_mean (p - c) + t_mean = R_fit (q - c) + t_fit.
    origin = turn.apply(-centre) + Rotation.from_rotvec(fitted[3:6]).inv().apply(mean[:3] - fitted[:3]) + centre
    axes, given = np.asarray(cochlea.frame.axes), np.asarray(cochlea.frame.origin)
    return Frame(turn.as_matrix().T @ axes, origin @ axes + given)


def pose_surprise(cochlea: Cochlea, theta: Float[AnyArray, " p"]) -> float:
    """How far the fitted pose is from what careful landmarks leave: squared Mahalanobis distance, 6 on average."""
    offset = (np.asarray(theta) - cochlea.mean())[:6]
    return float(offset @ np.linalg.solve(np.asarray(cochlea.calibration.covariance)[:6, :6], offset))


def shape_surprise(cochlea: Cochlea, theta: Float[AnyArray, " p"]) -> float:
    """The same for the form: squared Mahalanobis distance of the parameters after the pose from their mean."""
    offset = (np.asarray(theta) - cochlea.mean())[6:]
    chosen = [PARAMETERS.index(name) for name in cochlea.parameter_names[6:]]
    covariance = np.asarray(cochlea.calibration.covariance)[np.ix_(chosen, chosen)]
    return float(offset @ np.linalg.solve(covariance, offset)) if np.all(np.isfinite(covariance)) else 0.0


def frame_offset(one: Frame, other: Frame) -> tuple[float, float]:
    """How far two frames of one side are apart: mm between their cochleae's middles, degrees between their axes."""
    middle = np.array([0.6, 0.2, 0.8])
    away = np.asarray(one.to_world(middle[None]))[0] - np.asarray(other.to_world(middle[None]))[0]
    turn = Rotation.from_matrix(np.asarray(one.axes) @ np.asarray(other.axes).T)
    return float(np.linalg.norm(away)), float(np.degrees(turn.magnitude()))
