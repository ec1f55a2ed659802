"""What the page's viewer shows, as plain values: the CT and its maps on one small grid, six planes, the surface."""

from typing import Any

import numpy as np
from matplotlib import colormaps
from skimage.transform import resize

from logishape.cochlea.surroundings import MIDDLE
from logishape.core.volume import Volume
from logishape.report.facts import pose_of, window_of
from logishape.report.packed import pack
from logishape.report.stored import Stored

MOST_VOXELS = 1_000_000  # finer CTs are shown on a coarser grid, so that a page stays below 8 MB
LEVEL_STEP_MM = 0.01
_HALF_MM, _REACH_MM = (6.2, 5.2), 6.0
_BASAL_TURN = 0.0, 360.0  # degrees


def scene_of(stored: Stored) -> dict[str, Any]:
    """All that the scripts of the page need, ready for JSON."""
    record = stored.record
    return {
        "side": record["side"],
        "unit": "HU" if stored.is_hu else "",
        "window": window_of(record),
        "volumes": _volumes(stored),
        "views": views_of(stored),
        "start": start_of(stored).tolist(),
        "ramps": {name: _ramp(map_name) for name, map_name in (("probability", "viridis"), ("uncertainty", "magma"))},
        "surface": _surface(stored),
    }


def shown_grid(volume: Volume, most: int = MOST_VOXELS) -> Volume:
    """The volume itself, or the same on a grid of so many voxels at most."""
    shape = np.array(volume.shape)
    factor = min(1.0, float(most / shape.prod()) ** (1 / 3))
    if factor == 1.0:
        return volume
    fewer = np.maximum(np.floor(shape * factor), 1).astype(int)
    data = resize(volume.data.astype(np.float32), fewer, order=1, mode="edge", anti_aliasing=True)
    scale, affine = shape / fewer, volume.affine.copy()
    affine[:3, 3] += affine[:3, :3] @ ((scale - 1) / 2)
    affine[:3, :3] *= scale
    return Volume(np.asarray(data, np.float32), affine)


def _volumes(stored: Stored) -> dict[str, Any]:
    """CT, segmentation, level and marginal probability: each value is scale * number + offset."""
    probability = stored.probability.data
    # As smooth as the probability, and on every voxel on the mask's side of one half.
    inside = np.where(stored.segmentation.data, np.maximum(probability, 0.502), np.minimum(probability, 0.498))
    found = {"ct": _whole_numbers(shown_grid(stored.ct))}
    found["segmentation"] = _scaled(shown_grid(stored.ct.with_data(inside)), np.uint8, 1 / 255)
    found["marginal"] = _scaled(shown_grid(stored.marginal), np.uint8, 1 / 255)
    found["level"] = _scaled(shown_grid(stored.level), np.int8, LEVEL_STEP_MM)
    return found


def _whole_numbers(volume: Volume) -> dict[str, Any]:
    """The CT as 16-bit numbers: as they are, if they are whole, or spread over all that 16 bits hold."""
    values, limits = volume.data.astype(np.float64), np.iinfo(np.int16)
    is_wide = values.max() - values.min() >= 500 and np.abs(values).max() <= limits.max
    if is_wide:  # Hounsfield units: fractions of one are nobody's
        return _scaled(volume, np.int16, 1.0)
    middle = (values.max() + values.min()) / 2
    return _scaled(volume, np.int16, max(values.max() - values.min(), 1e-30) / 65000, middle)


def _scaled(volume: Volume, kind: Any, scale: float, offset: float = 0.0) -> dict[str, Any]:
    limits = np.iinfo(kind)
    numbers = np.clip(np.rint((volume.data - offset) / scale), limits.min, limits.max).astype(kind)
    to_index = np.linalg.inv(volume.affine)[:3]
    return {"scale": scale, "offset": offset, "to_index": to_index.tolist(), "values": pack(numbers)}


def views_of(stored: Stored) -> list[dict[str, Any]]:
    """Three planes of the patient, seen as radiologists do, and three of the fitted spiral, all through one point."""
    right, front, up = np.eye(3)
    start = start_of(stored)
    x, y, z = np.asarray(stored.spiral.axes)
    note = ", mirrored" if stored.spiral.side == "left" else ""
    rows = (  # to the right, up, along the slices; the picture's edges; both ends of the slices
        ("axial", "Axial", (-right, front, up), ("R", "L", "A", "P"), ("feet", "head")),
        ("coronal", "Coronal", (-right, up, front), ("R", "L", "S", "I"), ("back", "front")),
        ("sagittal", "Sagittal", (-front, up, right), ("A", "P", "S", "I"), ("left", "right")),
        ("basal", f"Cochlear view, basal turn{note}", (x, y, z), ("180°", "0°", "90°", "270°"), ("base", "apex")),
        ("modiolar", "Mid-modiolar", (x, z, y), ("180°", "0°", "apex", "base"), ("270°", "90°")),
        ("across", f"Mid-modiolar, across{note}", (y, z, x), ("270°", "90°", "apex", "base"), ("180°", "0°")),
    )
    return [
        {
            "name": name,
            "title": title,
            **dict(zip(("right", "up", "normal"), (one.tolist() for one in axes), strict=True)),
            "middle": _beside(stored, start, axes[2]).tolist(),
            "half": _HALF_MM,
            "reach": _REACH_MM,
            "edges": dict(zip(("left", "right", "top", "bottom"), edges, strict=True)),
            "ends": ends,
        }
        for name, title, axes, edges, ends in rows
    ]


def _beside(stored: Stored, start: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The middle of the cochlea, moved along a normal into the plane of the point where the crosshair begins."""
    frame = pose_of(stored.record)
    middle = MIDDLE @ np.asarray(frame.axes) + np.asarray(frame.origin)
    return middle + normal * ((start - middle) @ normal)


def start_of(stored: Stored) -> np.ndarray:
    """Where the crosshair begins: on the modiolar axis, at the height of the basal turn."""
    line = stored.record["centreline"]
    points, angles = np.array(line["points_ras_mm"]), np.array(line["angle_degrees"])
    axis, origin = np.asarray(stored.spiral.axes)[2], np.asarray(stored.spiral.origin)
    is_basal = (angles >= _BASAL_TURN[0]) & (angles <= _BASAL_TURN[1])
    return origin + axis * np.mean((points[is_basal] - origin) @ axis)


def _ramp(name: str, count: int = 17) -> list[list[int]]:
    """Colours from 0 to 1, red, green and blue from 0 to 255."""
    return np.rint(255 * colormaps[name](np.linspace(0, 1, count))[:, :3]).astype(int).tolist()


def _surface(stored: Stored) -> dict[str, Any]:
    surface, line = stored.surface, stored.record["centreline"]
    kind = np.uint16 if len(surface.vertices) <= 2**16 else np.uint32
    values = {name: pack(one.astype(np.float32)) for name, one in surface.values().items()}
    return {
        "vertices": pack(surface.vertices.astype(np.float32)),
        "faces": pack(surface.faces.astype(kind)),
        "values": values,
        "line": {"angle": line["angle_degrees"], "points": line["points_ras_mm"]},
        "axes": np.asarray(stored.spiral.axes).tolist(),
        "origin": np.asarray(stored.spiral.origin).tolist(),
    }
