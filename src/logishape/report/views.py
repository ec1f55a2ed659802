"""The six planes of the pictures and the page, all through one point: on the axis, as high as the basal turn."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from logishape.cochlea.surroundings import MIDDLE
from logishape.report.facts import centreline_of, pose_of, spiral_of
from logishape.report.planes import Plane
from logishape.report.stored import Stored

HALF_MM, REACH_MM = (6.2, 5.2), 6.0
_BASAL_TURN = 0.0, 360.0  # degrees


class View(NamedTuple):
    """A plane with the words around it: at the edges of its picture, and at both ends of its slices."""

    name: str
    title: str
    middle: Float[np.ndarray, " 3"]
    axes: Float[np.ndarray, "3 3"]  # to the right, up, along the slices
    edges: tuple[str, str, str, str]  # left, right, top, bottom
    ends: tuple[str, str]

    @property
    def plane(self) -> Plane:
        """The rectangle that its picture shows."""
        return Plane(self.title, self.middle, self.axes[0], self.axes[1], HALF_MM)


def views_of(stored: Stored) -> tuple[View, ...]:
    """Three planes of the patient, seen as radiologists do, and three of the fitted spiral."""
    right, front, up = np.eye(3)
    spiral = spiral_of(stored.record)
    x, y, z = np.asarray(spiral.axes)
    note = ", mirrored" if spiral.side == "left" else ""
    start = start_of(stored)
    rows = (
        ("axial", "Axial", (-right, front, up), ("R", "L", "A", "P"), ("feet", "head")),
        ("coronal", "Coronal", (-right, up, front), ("R", "L", "S", "I"), ("back", "front")),
        ("sagittal", "Sagittal", (-front, up, right), ("A", "P", "S", "I"), ("left", "right")),
        ("basal", f"Cochlear view, basal turn{note}", (x, y, z), ("180°", "0°", "90°", "270°"), ("base", "apex")),
        ("modiolar", "Mid-modiolar, 180° to 0°", (x, z, y), ("180°", "0°", "apex", "base"), ("270°", "90°")),
        ("across", f"Perpendicular, 270° to 90°{note}", (y, z, x), ("270°", "90°", "apex", "base"), ("180°", "0°")),
    )
    return tuple(
        View(name, title, _beside(stored, start, axes[2]), np.stack(axes), edges, ends)
        for name, title, axes, edges, ends in rows
    )


def start_of(stored: Stored) -> Float[np.ndarray, " 3"]:
    """The point that all six go through, where the page's crosshair begins."""
    angles, points = centreline_of(stored.record)
    spiral = spiral_of(stored.record)
    axis, origin = np.asarray(spiral.axes)[2], np.asarray(spiral.origin)
    is_basal = (angles >= _BASAL_TURN[0]) & (angles <= _BASAL_TURN[1])
    return origin + axis * np.mean((points[is_basal] - origin) @ axis)


def _beside(stored: Stored, start: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The middle of the cochlea, moved along a normal into the plane of the point that all go through."""
    frame = pose_of(stored.record)
    middle = MIDDLE @ np.asarray(frame.axes) + np.asarray(frame.origin)
    return middle + normal * ((start - middle) @ normal)
