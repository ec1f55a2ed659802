"""Binary PLY: what is written is read again, here and by another program's rules, and other files are refused."""

import struct

import numpy as np
import pytest

from logishape.io import read_ply, write_ply
from tests.unit.io.samples import refused
from tests.unit.io.test_meshes import FACES, VERTICES

VALUES = {"angle_degrees": np.array([0.5, -1.0, 720.0, 3.25]), "sd_mm": np.full(4, 0.125)}


def test_round_trip(tmp_path):
    write_ply(tmp_path / "surface.ply", VERTICES, FACES, VALUES)
    vertices, faces, values = read_ply(tmp_path / "surface.ply")
    np.testing.assert_array_equal(vertices, VERTICES)  # exact: quarters fit single precision
    np.testing.assert_array_equal(faces, FACES)
    assert list(values) == list(VALUES)
    for name, one in VALUES.items():
        np.testing.assert_array_equal(values[name], one)
    assert [path.name for path in tmp_path.iterdir()] == ["surface.ply"]


def test_the_file_is_what_the_format_says(tmp_path):
    """Read by the header alone: a row for each vertex, then 3 and three numbers for each face."""
    write_ply(tmp_path / "surface.ply", VERTICES, FACES, VALUES)
    head, _, body = (tmp_path / "surface.ply").read_bytes().partition(b"end_header\n")
    lines = head.decode("ascii").splitlines()
    assert lines[:2] == ["ply", "format binary_little_endian 1.0"]
    assert any("RAS" in line and "millimetre" in line for line in lines if line.startswith("comment"))
    assert [line.split()[-1] for line in lines if line.startswith("property float")] == ["x", "y", "z", *VALUES]
    assert struct.unpack_from("<5f", body) == (-60.5, 20.25, 410.0, 0.5, 0.125)
    assert struct.unpack_from("<Biii", body, 4 * 20) == (3, 0, 2, 1)
    assert len(body) == 4 * 20 + 4 * 13


@pytest.mark.parametrize(
    ("vertices", "faces", "values", "word"),
    [
        (VERTICES[:, :2], FACES, {}, "shapes"),
        (VERTICES, FACES + 1, {}, "from 0 to 3"),
        (VERTICES, FACES, {"sd": np.zeros(3)}, "'sd'"),
        (VERTICES, FACES, {"sd": np.full(4, np.nan)}, "'sd'"),
        (VERTICES, FACES, {"two words": np.zeros(4)}, "'two words'"),
    ],
)
def test_bad_surfaces(tmp_path, vertices, faces, values, word):
    with refused(word):
        write_ply(tmp_path / "surface.ply", vertices, faces, values)
    assert list(tmp_path.iterdir()) == []


def test_bad_files(tmp_path):
    path = tmp_path / "surface.ply"
    with refused("surface.ply"):
        read_ply(path)
    with refused(".ply"):
        write_ply(tmp_path / "surface.stl", VERTICES, FACES, {})
    write_ply(path, VERTICES, FACES, VALUES)
    content = path.read_bytes()
    many = content.replace(b"vertex 4", b"vertex 400000000")
    text = content.replace(b"binary_little_endian", b"ascii")
    twice = content.replace(b"float sd_mm", b"float x")
    for wrong in (b"", content[:50], content[:-1], content + b"\0", many, text, twice):
        path.write_bytes(wrong)
        with refused("surface.ply", "segment the scan again"):
            read_ply(path)
    path.write_bytes(content[:-4] + struct.pack("<i", 4))  # a vertex that is not there
    with refused("from 0 to 3"):
        read_ply(path)
    path.write_bytes(content[:-13] + b"\4" + content[-12:])
    with refused("triangles"):
        read_ply(path)
