"""Surfaces with values at their vertices, to and from binary PLY; RAS, millimetres."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from logishape.core.errors import InputError
from logishape.io.atomic import atomic_file
from logishape.io.meshes import check_mesh, read_surface_bytes

_FACE = np.dtype([("count", "u1"), ("corners", "<i4", 3)])
_COLOURS = [("red", "u1"), ("green", "u1"), ("blue", "u1")]
_MOST_HEADER = 4096
_HEADER = re.compile(
    rb"ply\nformat binary_little_endian 1\.0\n(?:comment [ -~]*\n)*element vertex (\d{1,9})\n"
    rb"property float x\nproperty float y\nproperty float z\n((?:property float \w+\n)*)"
    rb"(property uchar red\nproperty uchar green\nproperty uchar blue\n)?"
    rb"element face (\d{1,9})\nproperty list uchar int vertex_indices\nend_header\n"
)


def write_ply(
    path: str | os.PathLike[str], vertices: Any, faces: Any, values: Mapping[str, Any], colours: Any = None
) -> None:
    """A binary PLY file of triangles in RAS mm with named values at each vertex, there whole or not at all.

    `colours`: red, green and blue from 0 to 255, for programs that show no other values.
    """
    path = Path(path)
    if path.suffix.lower() != ".ply":
        raise InputError(f"{path.name} should end in .ply; choose such a name.")
    vertices, faces = np.asarray(vertices, dtype=np.float64), np.asarray(faces)
    check_mesh(vertices, faces)
    named = {name: np.asarray(one) for name, one in values.items()}
    for name, one in named.items():
        if not re.fullmatch(r"\w+", name, re.ASCII) or one.shape != (len(vertices),) or not np.all(np.isfinite(one)):
            raise InputError(
                f"expected a finite number for each of {len(vertices)} vertices as {name!r}; check them."
            )
    triangles = np.zeros(len(faces), _FACE)
    triangles["count"], triangles["corners"] = 3, faces
    columns = {**dict(zip("xyz", vertices.T, strict=True)), **named}
    table = np.zeros(
        len(vertices), [*((name, "<f4") for name in columns), *(_COLOURS if colours is not None else ())]
    )
    for name, one in columns.items():
        table[name] = one
    if colours is not None:
        for (name, _), one in zip(_COLOURS, np.asarray(colours).T, strict=True):
            table[name] = one
    properties = "".join(f"property float {name}\n" for name in columns)
    properties += "".join(f"property uchar {name}\n" for name, _ in _COLOURS) if colours is not None else ""
    head = (
        "ply\nformat binary_little_endian 1.0\ncomment SPACE=RAS\n"  # 3D Slicer looks for that
        "comment coordinates in RAS world space, unit millimetre\n"
        f"element vertex {len(vertices)}\n{properties}element face {len(faces)}\n"
        "property list uchar int vertex_indices\nend_header\n"
    )
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        stream.write(head.encode("ascii") + table.tobytes() + triangles.tobytes())


def read_ply(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Vertices, faces and values by name of a file that `write_ply` wrote, not its colours; others are refused."""
    path, content = Path(path), read_surface_bytes(Path(path))
    found = _HEADER.match(content[:_MOST_HEADER])
    names = [] if found is None else ["x", "y", "z", *re.findall(r"float (\w+)", found[2].decode())]
    num_vertices, num_faces = (0, 0) if found is None else (int(found[1]), int(found[4]))
    start = 0 if found is None else found.end()
    width = 4 * len(names) + (3 if found is not None and found[3] else 0)
    end = start + width * num_vertices
    if found is None or len(content) != end + num_faces * _FACE.itemsize or len(set(names)) != len(names):
        raise InputError(
            f"{path.name} should be a surface as logishape writes it but is not, so it is truncated, corrupt or of "
            "another program; segment the scan again."
        )
    rows = np.frombuffer(content, "u1", num_vertices * width, offset=start).reshape(num_vertices, width)
    table = np.ascontiguousarray(rows[:, : 4 * len(names)]).view("<f4")
    triangles = np.frombuffer(content, _FACE, num_faces, offset=end)
    vertices, faces = table[:, :3].astype(np.float64), triangles["corners"].astype(np.int64)
    if not np.all(np.isfinite(table)) or np.any(triangles["count"] != 3):
        raise InputError(
            f"{path.name} should hold triangles and finite numbers but does not; segment the scan again."
        )
    check_mesh(vertices, faces)
    return vertices, faces, dict(zip(names[3:], table[:, 3:].T.astype(np.float64), strict=True))
