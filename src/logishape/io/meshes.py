"""Surfaces to and from binary STL. The format names neither space nor unit; ours is RAS, millimetres."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from logishape.core.errors import InputError
from logishape.io.atomic import atomic_file

# 3D Slicer looks for SPACE=RAS in the header of a surface, and takes one without it as LPS.
_HEADER = b"binary STL, SPACE=RAS, coordinates in RAS world space, unit millimetre"
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def write_stl(path: str | os.PathLike[str], vertices: Any, faces: Any) -> None:
    """A binary STL file of triangles (rows of three vertex numbers) in RAS mm, there whole or not at all."""
    path = Path(path)
    if path.suffix.lower() != ".stl":
        raise InputError(f"{path.name} should end in .stl; choose such a name.")
    vertices, faces = np.asarray(vertices, dtype=np.float64), np.asarray(faces)
    check_mesh(vertices, faces)
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    triangles = np.zeros(len(faces), dtype=_TRIANGLE)
    triangles["normal"] = np.divide(normals, lengths, out=np.zeros_like(normals), where=lengths > 0)
    triangles["corners"] = corners
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        stream.write(_HEADER.ljust(80) + np.uint32(len(faces)).astype("<u4").tobytes() + triangles.tobytes())


def read_stl(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices `(n, 3)` as the file gives them and faces `(m, 3)`; corners at the same place become one vertex."""
    path, content = Path(path), read_surface_bytes(Path(path))
    num_faces = int(np.frombuffer(content[80:84], "<u4")[0]) if len(content) >= 84 else -1
    if len(content) != 84 + num_faces * _TRIANGLE.itemsize:
        raise InputError(
            f"{path.name} should be a binary STL but its {len(content)} bytes do not fit one, so it is text, "
            "truncated or corrupt; save it as binary STL."
        )
    corners = np.frombuffer(content, _TRIANGLE, num_faces, offset=84)["corners"].reshape(-1, 3)
    if num_faces == 0 or not np.all(np.isfinite(corners)):
        raise InputError(f"{path.name} should hold triangles with finite corners but does not; export it again.")
    vertices, index = np.unique(corners + np.float32(0), axis=0, return_inverse=True)
    return vertices.astype(np.float64), index.reshape(-1, 3)


def read_surface_bytes(path: Path) -> bytes:
    """All of a file; one that is not there or may not be opened is an error."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; check the path.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} could not be read ({error.strerror}); check that it may be opened.") from error


def check_mesh(vertices: np.ndarray, faces: np.ndarray) -> None:
    """An error where this is no surface of triangles."""
    if vertices.ndim != 2 or vertices.shape[1] != 3 or faces.ndim != 2 or faces.shape[1] != 3 or not len(faces):
        raise InputError(
            f"a surface needs vertices (n, 3) and at least one face (m, 3) but has shapes {vertices.shape} and "
            f"{faces.shape}; triangulate it."
        )
    if faces.dtype.kind not in "iu" or faces.min() < 0 or faces.max() >= len(vertices):
        raise InputError(f"faces should be whole numbers from 0 to {len(vertices) - 1}; check the numbering.")
    if not np.all(np.isfinite(vertices)) or np.abs(vertices).max() > np.finfo(np.float32).max:
        raise InputError("vertices should be finite but some are not; leave those faces out.")
