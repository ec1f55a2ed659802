"""The fitted surface with what is known at each of its vertices: angle, frequency, and how sure it is."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from logishape.cochlea.curves import Curves
from logishape.cochlea.surface import Mesh

SD_COLOURS, SD_FULL_MM = np.array([(49, 104, 189), (245, 245, 220), (190, 30, 45)]), 0.2


class ColouredSurface(NamedTuple):
    """A closed surface (world mm) with a value at each vertex; without a posterior there is no `sd_mm`."""

    vertices: Float[np.ndarray, "v 3"]
    faces: Int[np.ndarray, "f 3"]
    angle_degrees: Float[np.ndarray, " v"]
    frequency_hz: Float[np.ndarray, " v"]
    sd_mm: Float[np.ndarray, " v"] | None

    def values(self) -> dict[str, np.ndarray]:
        """The values by name, as far as there are any."""
        named = {"angle_degrees": self.angle_degrees, "frequency_hz": self.frequency_hz, "sd_mm": self.sd_mm}
        return {name: one for name, one in named.items() if one is not None}

    def colours(self) -> np.ndarray | None:
        """Red, green and blue (0 to 255) that say how sure each vertex is: blue at 0, pale, red from 0.2 mm on."""
        if self.sd_mm is None:
            return None
        levels = np.linspace(0, SD_FULL_MM, len(SD_COLOURS))
        return np.stack([np.interp(self.sd_mm, levels, one) for one in SD_COLOURS.T], axis=1).round().astype(np.uint8)


def coloured(mesh: Mesh, curves: Curves, sd_mm: Float[np.ndarray, " v"] | None) -> ColouredSurface:
    """A surface with the angle of each vertex along the duct, and the frequency that is heard there."""
    angle = angles_along(curves, mesh.vertices)
    frequency = np.interp(angle, curves.angle, curves.bands["frequency_hz"].value)
    return ColouredSurface(np.asarray(mesh.vertices), np.asarray(mesh.faces), angle, frequency, sd_mm)


def angles_along(curves: Curves, points: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, " n"]:
    """Degrees along the duct, whole turns counted: of the section in a point's half-plane, or of the duct's end,
    whose centre is nearest for its size.
    """
    model, centres = curves.to_model(points), curves.to_model(curves.centreline)
    azimuth = np.degrees(np.arctan2(model[:, 1], model[:, 0]))
    first, last = curves.centre_angle[[0, -1]]
    turns = np.arange(np.floor((first - 180) / 360), np.ceil((last + 180) / 360) + 1)
    angles = np.clip(azimuth[:, None] + 360 * turns, first, last)
    places = np.stack([np.interp(angles, curves.centre_angle, one) for one in centres.T], axis=-1)
    sizes = np.interp(angles, curves.centre_angle, curves.section_size)
    nearest = np.argmin(np.linalg.norm(places - model[:, None], axis=2) / sizes, axis=1)
    return np.take_along_axis(angles, nearest[:, None], axis=1)[:, 0]
