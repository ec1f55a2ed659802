"""Binary STL: what is written is read again, and other files are refused."""

import struct

import numpy as np
import pytest

from logishape.io import read_stl, write_stl
from tests.unit.io.samples import refused

VERTICES = np.array([[-60.5, 20.25, 410.0], [-50.5, 20.25, 410.0], [-60.5, 30.25, 410.0], [-60.5, 20.25, 420.0]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])  # normals outwards


def test_round_trip(tmp_path):
    write_stl(tmp_path / "surface.stl", VERTICES, FACES)
    vertices, faces = read_stl(tmp_path / "surface.stl")
    assert (vertices.shape, faces.shape) == ((4, 3), (4, 3))
    np.testing.assert_array_equal(vertices[faces], VERTICES[FACES])  # exact: quarters fit single precision
    assert [path.name for path in tmp_path.iterdir()] == ["surface.stl"]


def test_header_says_space_and_unit_and_normals_point_outwards(tmp_path):
    write_stl(tmp_path / "surface.stl", VERTICES, FACES)
    content = (tmp_path / "surface.stl").read_bytes()
    assert b"RAS" in content[:80]
    assert b"millimetre" in content[:80]
    assert not content.startswith(b"solid")  # that would be taken for text
    assert struct.unpack_from("<I", content, 80) == (4,)
    assert len(content) == 84 + 4 * 50
    assert struct.unpack_from("<3f", content, 84) == (0, 0, -1)
    np.testing.assert_allclose(struct.unpack_from("<3f", content, 84 + 150), np.full(3, 3**-0.5), rtol=1e-6)


def test_a_triangle_without_area_has_no_normal(tmp_path):
    write_stl(tmp_path / "flat.stl", VERTICES, [[0, 0, 1], [0, 1, 2]])
    assert struct.unpack_from("<3f", (tmp_path / "flat.stl").read_bytes(), 84) == (0, 0, 0)


@pytest.mark.parametrize(
    ("vertices", "faces", "word"),
    [
        (VERTICES[:, :2], FACES, "shapes"),
        (VERTICES, FACES[:, :2], "shapes"),
        (VERTICES, FACES[:0], "at least one"),
        (VERTICES, FACES + 1, "from 0 to 3"),
        (VERTICES, FACES - 1, "from 0 to 3"),
        (VERTICES, FACES + 0.5, "whole numbers"),
        (VERTICES * np.nan, FACES, "finite"),
        (VERTICES * 1e38, FACES, "finite"),
    ],
)
def test_bad_meshes(tmp_path, vertices, faces, word):
    with refused(word):
        write_stl(tmp_path / "surface.stl", vertices, faces)
    assert list(tmp_path.iterdir()) == []


def test_bad_files(tmp_path):
    path = tmp_path / "surface.stl"
    with refused("surface.stl"):
        read_stl(path)
    with refused(".stl"):
        write_stl(tmp_path / "surface.ply", VERTICES, FACES)
    write_stl(path, VERTICES, FACES)
    content = path.read_bytes()
    for wrong in (b"", content[:83], content[:-1], content + b"\0", b"solid name\nfacet normal 0 0 1\n" * 9):
        path.write_bytes(wrong)
        with refused("surface.stl", "binary STL"):
            read_stl(path)
    path.write_bytes(content[:96] + struct.pack("<f", np.nan) + content[100:])
    with refused("finite"):
        read_stl(path)
    path.write_bytes(content[:80] + bytes(4))
    with refused("triangles"):
        read_stl(path)
