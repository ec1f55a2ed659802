"""NRRD files: spaces, detached data, the axes of a list, and what is refused."""

import gzip

import numpy as np
import pytest

from logishape.io import read_scan, read_volume, write_volume
from tests.unit.io.samples import OBLIQUE, SHAPE, make_affine, numbered, refused

FIELDS = {
    "type": "short",
    "dimension": "3",
    "space": "left-posterior-superior",
    "sizes": "9 8 10",
    "space directions": "(0.5,0,0) (0,0.6,0) (0,0,1.5)",
    "space origin": "(10,20,30)",
    "kinds": "domain domain domain",
    "endian": "little",
    "encoding": "raw",
}
VALUES = np.arange(720, dtype="<i2")


def make(path, data=None, **changes):
    """A NRRD file with some fields changed, or left out where None; `_` in a name stands for a space."""
    fields = FIELDS | {key.replace("_", " "): value for key, value in changes.items()}
    lines = ["NRRD0004", "# a comment: of no meaning", "vendor:=something"]
    lines += [f"{key}: {value}" for key, value in fields.items() if value is not None]
    path.write_bytes(("\n".join(lines) + "\n\n").encode() + (VALUES.tobytes() if data is None else data))
    return path


@pytest.mark.parametrize(
    ("space", "signs"),
    [
        ("left-posterior-superior", (-1, -1, 1)),
        ("LPS", (-1, -1, 1)),
        ("right-anterior-superior", (1, 1, 1)),
        ("RAS", (1, 1, 1)),
        ("left-anterior-superior", (-1, 1, 1)),
    ],
)
def test_spaces(tmp_path, space, signs):
    scan = read_scan(make(tmp_path / "ct.nrrd", space=space))
    expected = np.diag([*signs, 1]) @ make_affine(spacing=(0.5, 0.6, 1.5), origin=(10, 20, 30))
    np.testing.assert_allclose(scan.volume.affine, expected)
    np.testing.assert_array_equal(scan.volume.data, VALUES.reshape(SHAPE, order="F"))
    assert (scan.kind, scan.notes) == ("nrrd", ())


def test_oblique_sheared_directions_are_exact(tmp_path):
    affine = make_affine(OBLIQUE, shear=[[1, 0.1, 0.2], [0, 1, 0.3], [0, 0, 1]])
    write_volume(tmp_path / "ct.nrrd", numbered(affine))
    scan = read_scan(tmp_path / "ct.nrrd")
    np.testing.assert_array_equal(scan.volume.affine, affine)  # text of doubles loses nothing
    assert any("sheared" in note for note in scan.notes)


def test_without_space_lps_is_assumed_and_said(tmp_path):
    scan = read_scan(
        make(tmp_path / "ct.nrrd", space=None, space_directions=None, space_origin=None, spacings="0.5 0.6 1.5")
    )
    np.testing.assert_allclose(scan.volume.affine, np.diag([-0.5, -0.6, 1.5, 1]))
    assert any("LPS" in note for note in scan.notes)
    assert any("origin" in note for note in scan.notes)


def test_an_axis_of_length_one_that_is_not_space(tmp_path):
    path = make(
        tmp_path / "ct.nrrd",
        dimension="4",
        sizes="1 9 8 10",
        space_directions="none (0.5,0,0) (0,0.6,0) (0,0,1.5)",
        kinds="list domain domain domain",
    )
    np.testing.assert_array_equal(read_volume(path).data, VALUES.reshape(SHAPE, order="F"))


@pytest.mark.parametrize("encoding", ["raw", "gzip"])
def test_detached_data_with_lines_and_bytes_to_skip(tmp_path, encoding):
    packed = b"abc" + VALUES.tobytes()
    (tmp_path / "ct.raw").write_bytes(
        b"first line\nsecond\n" + (gzip.compress(packed) if encoding == "gzip" else packed)
    )
    path = make(tmp_path / "ct.nhdr", b"", data_file="ct.raw", line_skip="2", byte_skip="3", encoding=encoding)
    np.testing.assert_array_equal(read_volume(path).data, VALUES.reshape(SHAPE, order="F"))


def test_data_at_the_end_of_a_file(tmp_path):
    (tmp_path / "ct.raw").write_bytes(bytes(77) + VALUES.tobytes())
    path = make(tmp_path / "ct.nhdr", b"", data_file="ct.raw", byte_skip="-1")
    np.testing.assert_array_equal(read_volume(path).data, VALUES.reshape(SHAPE, order="F"))


def test_big_endian_doubles(tmp_path):
    path = make(tmp_path / "ct.nrrd", VALUES.astype(">f8").tobytes(), type="double", endian="big")
    np.testing.assert_array_equal(read_volume(path).data, VALUES.reshape(SHAPE, order="F"))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"sizes": None}, "sizes"),
        ({"sizes": "9 8 ten"}, "numbers"),
        ({"type": "block"}, "block"),
        ({"encoding": "hex"}, "hex"),
        ({"endian": "middle"}, "endian"),
        ({"space_directions": "(1,0,0) (0,1,0)"}, "direction"),
        ({"space_directions": "(1,0,0) (0,1,0) (0,0,0)"}, "above zero"),
        ({"space_directions": "(1,0,0) (0,1,0) (1,1,0)"}, "plane"),
        ({"space_directions": "(1,0,0) (0,1,0) (0,0,nan)"}, "above zero"),
        ({"space_directions": "(1,0,0) (0,1,0) (0,0,1e300)"}, "above zero"),
        ({"space_origin": "(1,2)"}, "origin"),
        ({"space_origin": "(1,2,inf)"}, "place in space"),
        ({"space_units": '"um" "um" "um"'}, "um"),
        ({"sizes": "9 80", "dimension": "2", "space_directions": None, "kinds": None}, "flat"),
        ({"sizes": "9 8 5 2", "dimension": "4", "space_directions": None, "kinds": None}, "4 axes"),
        ({"sizes": "3 8 30", "kinds": "RGB-color domain domain"}, "rgb-color"),
        ({"data_file": "elsewhere.raw"}, "elsewhere.raw"),
        ({"byte_skip": "many"}, "header"),
    ],
)
def test_bad_headers(tmp_path, changes, word):
    path = make(tmp_path / "ct.nrrd", **changes)
    with refused("ct.nrrd", word):
        read_scan(path)


def test_files_that_are_not_nrrd(tmp_path):
    (tmp_path / "ct.nrrd").write_bytes(b"something else")
    with refused("begin with NRRD"):
        read_scan(tmp_path / "ct.nrrd")
    (tmp_path / "ct.nrrd").write_bytes(b"NRRD0004\ntype: short\n")
    with refused("truncated"):
        read_scan(tmp_path / "ct.nrrd")
