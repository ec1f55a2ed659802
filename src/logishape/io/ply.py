"""Surfaces with values at their vertices, to and from binary PLY; RAS, millimetres."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from logishape.core.errors import InputError
from logishape.io.atomic import atomic_file
from logishape.io.meshes import check_mesh

_FACE = np.dtype([("count", "u1"), ("corners", "<i4", 3)])
_MOST_HEADER = 4096
_HEADER = re.compile(
    rb"ply\nformat binary_little_endian 1\.0\n(?:comment [ -~]*\n)*element vertex (\d{1,9})\n"
    rb"property float x\nproperty float y\nproperty float z\n((?:property float \w+\n)*)"
    rb"element face (\d{1,9})\nproperty list uchar int vertex_indices\nend_header\n"
)


def write_ply(path: str | os.PathLike[str], vertices: Any, faces: Any, values: Mapping[str, Any]) -> None:
    """A binary PLY file of triangles in RAS mm with named values at each vertex, there whole or not at all."""
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
    properties = "".join(f"property float {name}\n" for name in ("x", "y", "z", *named))
    head = (
        "ply\nformat binary_little_endian 1.0\ncomment coordinates in RAS world space, unit millimetre\n"
        f"element vertex {len(vertices)}\n{properties}element face {len(faces)}\n"
        "property list uchar int vertex_indices\nend_header\n"
    )
    table = np.column_stack([vertices, *named.values()]).astype("<f4")
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        stream.write(head.encode("ascii") + table.tobytes() + triangles.tobytes())


def read_ply(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Vertices, faces and values by name of a file that `write_ply` wrote; other PLY files are refused."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {path}; check the path.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} could not be read ({error.strerror}); check that it may be opened.") from error
    found = _HEADER.match(content[:_MOST_HEADER])
    names = [] if found is None else ["x", "y", "z", *re.findall(r"float (\w+)", found[2].decode())]
    num_vertices, num_faces = (0, 0) if found is None else (int(found[1]), int(found[3]))
    start = 0 if found is None else found.end()
    end = start + 4 * num_vertices * len(names)
    if found is None or len(content) != end + num_faces * _FACE.itemsize or len(set(names)) != len(names):
        raise InputError(
            f"{path.name} should be a surface as logishape writes it but is not, so it is truncated, corrupt or of "
            "another program; segment the scan again."
        )
    table = np.frombuffer(content, "<f4", num_vertices * len(names), offset=start).reshape(num_vertices, -1)
    triangles = np.frombuffer(content, _FACE, num_faces, offset=end)
    vertices, faces = table[:, :3].astype(np.float64), triangles["corners"].astype(np.int64)
    if not np.all(np.isfinite(table)) or np.any(triangles["count"] != 3):
        raise InputError(
            f"{path.name} should hold triangles and finite numbers but does not; segment the scan again."
        )
    check_mesh(vertices, faces)
    return vertices, faces, dict(zip(names[3:], table[:, 3:].T.astype(np.float64), strict=True))
