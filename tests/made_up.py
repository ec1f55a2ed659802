"""A stored result that nothing was fitted for: a spiral tube on an oblique grid, in a CT that is known everywhere.

Pages and pictures can be held against it in a second; `run_case` of `segmentations.py` makes real ones.
"""

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from scipy.special import expit
from skimage.measure import marching_cubes

from logishape.cochlea.coloured import ColouredSurface
from logishape.cochlea.frame import Frame
from logishape.cochlea.measurements import QUANTITIES
from logishape.cochlea.surroundings import MIDDLE
from logishape.core.volume import Volume
from logishape.io.results import VERSION
from logishape.report.stored import Stored

HU_AT_ORIGIN, HU_PER_MM = 400.0, np.array([150.0, -90.0, 60.0])
NAMES = ("tx", "ty", "tz", "rx", "ry", "rz", "a", "b", "alpha", "phi", "section_scale", "theta_max", "apex_offset")
REASON = "The duct is longer than in other ears: look at its apex."
_ANGLE = np.linspace(-30, 900, 400)  # degrees
_RADIUS_MM = 1.0 - 0.4 * (_ANGLE - _ANGLE[0]) / np.ptp(_ANGLE)


def made_up(spacing_mm: float = 0.25, size_mm: float = 16.0) -> Stored:
    """The result for a left ear that lies obliquely; to be checked."""
    turn = Rotation.from_rotvec([0.5, -0.8, 0.3]).as_matrix()
    frame = Frame(turn @ np.diag([1.0, -1.0, 1.0]), np.array([-31.0, 12.0, 47.0]))
    spiral = _spiral() @ np.asarray(frame.axes) + np.asarray(frame.origin)
    blank = _grid(frame, spacing_mm, size_mm)
    points = blank.to_world(np.argwhere(np.ones(blank.shape, bool)))
    level = _level(points, spiral).reshape(blank.shape)
    ct = np.rint(hu_at(points)).astype(np.int16).reshape(blank.shape)
    probability, marginal = expit(level / 0.1), expit(level / 0.2)
    return Stored(
        record=_record(frame, spiral, blank),
        ct=blank.with_data(ct),
        level=blank.with_data(level),
        segmentation=blank.with_data((probability >= 0.5).astype(np.uint8)),
        shape=blank.with_data((level > 0).astype(np.uint8)),
        probability=blank.with_data(probability),
        marginal=blank.with_data(marginal),
        surface=_surface(blank.with_data(level), spiral),
    )


def hu_at(points: np.ndarray) -> np.ndarray:
    """The CT's value at world points: a slope, so that interpolation is exact."""
    return HU_AT_ORIGIN + (points - np.array([-31.0, 12.0, 47.0])) @ HU_PER_MM


def _spiral() -> np.ndarray:
    """In the frame: narrowing and rising, as a cochlea's centreline does."""
    radians = np.radians(_ANGLE)
    radius = 4.0 * np.exp(-0.12 * radians)
    return np.stack([radius * np.cos(radians), radius * np.sin(radians), 0.2 * radians], axis=1)


def _grid(frame: Frame, spacing_mm: float, size_mm: float) -> Volume:
    """Voxels about the cochlea, turned against the world."""
    count = round(size_mm / spacing_mm)
    affine = np.eye(4)
    affine[:3, :3] = Rotation.from_rotvec([0.1, 0.05, -0.2]).as_matrix() * spacing_mm
    middle = MIDDLE @ np.asarray(frame.axes) + np.asarray(frame.origin)
    affine[:3, 3] = middle - affine[:3, :3] @ np.full(3, (count - 1) / 2)
    return Volume(np.zeros((count, count, count), np.float32), affine)


def _level(points: np.ndarray, spiral: np.ndarray) -> np.ndarray:
    far, nearest = cKDTree(spiral).query(points, distance_upper_bound=3.0)
    return np.where(np.isfinite(far), _RADIUS_MM[np.minimum(nearest, len(spiral) - 1)] - far, -3.0)


def _surface(level: Volume, spiral: np.ndarray) -> ColouredSurface:
    corners, faces, *_ = marching_cubes(level.data, 0.0, step_size=2)
    vertices = level.to_world(corners)
    angle = _ANGLE[cKDTree(spiral).query(vertices)[1]]
    return ColouredSurface(vertices, faces, angle, 20000 * np.exp(-angle / 130), 0.02 + 0.1 * angle / 900)


def _record(frame: Frame, spiral: np.ndarray, grid: Volume) -> dict:
    """All that `result.schema.json` asks for."""
    lie = {"origin_ras_mm": np.asarray(frame.origin).tolist(), "axes": np.asarray(frame.axes).tolist()}
    rng = np.random.default_rng(3)
    half = rng.normal(size=(len(NAMES), 40)) * 0.01
    covariance = half @ half.T
    parts = [
        {"weight": 0.6, "scale": 120.0, "degrees_of_freedom": 5.0},
        {"weight": 0.4, "scale": 200.0} | {"degrees_of_freedom": 5.0},
    ]
    fitted = {name: _measured(0.3 + 0.1 * k, 0.02) for k, name in enumerate(NAMES)}
    angle = np.arange(0, 901, 15.0)
    return {
        "format": "logishape result",
        "version": VERSION,
        "side": "left",
        "trusted": True,
        "verdict": "check",
        "flags": [{"name": "length", "message": REASON, "is_serious": False}],
        "quality": dict.fromkeys(("likeness", "score", "margin", "contrast", "rival_gap"), 1.0)
        | dict.fromkeys(("surface_error_mm", "shape_surface_error_mm"), 0.05)
        | {"map_contrast": None},
        "notes": [],
        "status": "converged",
        "parameters": {name: one | {"sd": 0.02} for name, one in fitted.items()},
        "covariance": covariance.tolist(),
        "posterior": {
            **{"kind": "sandwich", "effective_noise_fraction": 0.1, "draws": 100, "chains": None},
            "blur": {"point_spread_mm": 0.13, "sections_sd_mm": 0.05, "taken_off": dict.fromkeys(NAMES, 0.01)},
        },
        "measurements": {
            name: _measured(1.37 + 1.13 * k, 0.04) | {"unit": one.unit, "level": 0.9}
            for k, (name, one) in enumerate(QUANTITIES.items())
        },
        "population": {name: {"mean": 0.35, "sd": 0.2} for name in (*NAMES, "A", "B", "H")},
        "curves": {
            "angle_degrees": angle.tolist(),
            "frequency_hz": _curve(20000 * np.exp(-angle / 130)),
            "length_organ_of_corti_mm": _curve(0.037 * angle),
            "length_lateral_wall_mm": _curve(0.044 * angle),
        },
        "centreline": {"angle_degrees": _ANGLE.tolist(), "points_ras_mm": spiral.tolist()},
        "segmented_volume_mm3": 71.3,
        "shape_volume_mm3": 73.7,
        "reference_lengths_mm": {"fit": 0.1, "labels": 0.2},
        "appearance": {
            "lumen": "fluid",
            "lumen_value": 0.0,
            "bone_value": 1600.0,
            "gain": 1.0,
            "offset": 0.0,
            "model": "mixtures",
            "inside": [one | {"mean": mean} for one, mean in zip(parts, (0.0, 300.0), strict=True)],
            "outside": [one | {"mean": mean} for one, mean in zip(parts, (1600.0, 900.0), strict=True)],
        },
        "pose": {"frame": lie, "cut": None, "spiral": lie},
        "fit": {
            "steps": 6,
            "rounds": 2,
            "newton_decrement": 0.001,
            "log_joint": [-5210.0, -5100.0, -5094.0, -5093.5],
            "path": [[0.1] * len(NAMES), [0.2] * len(NAMES)],
            "starts_log_joint": [-5300.0],
        },
        "options": {
            **{"preset": "default", "reference_length": 0.1, "label_length": 0.2, "distance": "level"},
            **{"free": ["section_scale"], "num_draws": 100, "seed": 4711, "num_starts": 2, "evidence": 0.1},
            **{"worth": 30.0, "intervals": "matched", "posterior": "laplace"},
        },
        "provenance": {
            "software": "logishape",
            "version": "0.0.1",
            "input": {
                **{"format": "nifti", "sha256": "0123456789abcdef" * 4, "shape": list(grid.shape)},
                **{"spacing_mm": [0.25, 0.25, 0.25], "notes": []},
            },
            "appearance_probability": None,
            "pose": {"from": "landmarks", **lie},
            "calibration_sha256": "fedcba9876543210" * 4,
            "time": "2024-05-06T07:08:09+00:00",
            "statement": "Research use only; not a medical device.",
        },
    }


def _measured(value: float, half: float) -> dict:
    return {"value": value, "median": value + 0.1 * half, "lower": value - half, "upper": value + half}


def _curve(values: np.ndarray) -> dict:
    whole = {"value": values, "median": values, "lower": 0.97 * values, "upper": 1.03 * values}
    return {name: one.tolist() for name, one in whole.items()}
