"""What the page's viewer shows, as plain values: the CT and its maps on one small grid, six planes, the surface."""

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Colormap, ListedColormap
from skimage.transform import resize

from logishape.core.volume import Volume
from logishape.report.facts import window_of
from logishape.report.packed import pack
from logishape.report.still import ANGLES
from logishape.report.stored import Stored
from logishape.report.views import HALF_MM, REACH_MM, View, start_of, views_of

MOST_VOXELS = 1_000_000  # finer CTs are shown on a coarser grid, so that a page stays below 8 MB
LEVEL_STEP_MM = 0.01
RAMPS = {  # maps lie on the CT; the dark end of others would be lost on a dark page
    "probability": colormaps["viridis"],
    "uncertainty": colormaps["magma"],
    "angle_degrees": ANGLES,
    "frequency_hz": ListedColormap(colormaps["plasma"](np.linspace(0.15, 1, 256))),
}


def scene_of(stored: Stored) -> dict[str, Any]:
    """All that the scripts of the page need, ready for JSON."""
    record = stored.record
    return {
        "side": record["side"],
        "unit": "HU" if stored.is_hu else "",
        "window": window_of(record),
        "volumes": _volumes(stored),
        "views": [_as_plain(view) for view in views_of(stored)],
        "start": start_of(stored).tolist(),
        "ramps": {name: _plain_ramp(colours) for name, colours in RAMPS.items()},
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
    found = {"ct": _whole_numbers(shown_grid(stored.ct))}
    found["segmentation"] = _scaled(shown_grid(stored.smooth_segmentation), np.uint8, 1 / 255)
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


def _as_plain(view: View) -> dict[str, Any]:
    """A view as the scripts of the page read it."""
    return {
        "name": view.name,
        "title": view.title,
        **dict(zip(("right", "up", "normal"), view.axes.tolist(), strict=True)),
        "middle": view.middle.tolist(),
        "half": HALF_MM,
        "reach": REACH_MM,
        "edges": dict(zip(("left", "right", "top", "bottom"), view.edges, strict=True)),
        "ends": view.ends,
    }


def _plain_ramp(colours: Colormap, count: int = 17) -> list[list[int]]:
    """Colours from 0 to 1, red, green and blue from 0 to 255."""
    return np.rint(255 * colours(np.linspace(0, 1, count))[:, :3]).astype(int).tolist()


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
