"""MetaImage files: the direction matrix, detached and compressed data, and what is refused."""

import zlib

import numpy as np
import pytest

from logishape.io import read_scan, read_volume, write_volume
from tests.unit.io.samples import OBLIQUE, SHAPE, make_affine, numbered, refused

FIELDS = {
    "ObjectType": "Image",
    "NDims": "3",
    "BinaryData": "True",
    "BinaryDataByteOrderMSB": "False",
    "CompressedData": "False",
    "TransformMatrix": "0 1 0 0 0 1 1 0 0",
    "Offset": "10 20 30",
    "ElementSpacing": "0.5 0.6 1.5",
    "DimSize": "9 8 10",
    "ElementType": "MET_SHORT",
    "ElementDataFile": "LOCAL",
}
VALUES = np.arange(720, dtype="<i2")


def make(path, data=None, **changes):
    """A MetaImage file with some fields changed, or left out where None."""
    fields = FIELDS | changes
    fields["ElementDataFile"] = fields.pop("ElementDataFile")  # the last one ends the header
    header = "".join(f"{key} = {value}\n" for key, value in fields.items() if value is not None)
    path.write_bytes(header.encode() + (VALUES.tobytes() if data is None else data))
    return path


def test_rows_of_the_matrix_are_the_axes(tmp_path):
    scan = read_scan(make(tmp_path / "ct.mha"))
    # In LPS the first axis runs along y, the second along z, the third along x.
    expected = np.diag([-1, -1, 1, 1]) @ [[0, 0, 1.5, 10], [0.5, 0, 0, 20], [0, 0.6, 0, 30], [0, 0, 0, 1]]
    np.testing.assert_allclose(scan.volume.affine, expected)
    np.testing.assert_array_equal(scan.volume.data, VALUES.reshape(SHAPE, order="F"))
    assert (scan.kind, scan.notes) == ("metaimage", ())


def test_what_is_not_said_is_assumed_and_noted(tmp_path):
    scan = read_scan(make(tmp_path / "ct.mha", TransformMatrix=None, Offset=None, ElementSpacing=None))
    np.testing.assert_array_equal(scan.volume.affine, np.diag([-1, -1, 1, 1]))
    assert len(scan.notes) == 3


def test_detached_and_compressed(tmp_path):
    (tmp_path / "ct.raw").write_bytes(bytes(11) + VALUES.tobytes())
    path = make(tmp_path / "ct.mhd", b"", ElementDataFile="ct.raw", HeaderSize="-1")
    np.testing.assert_array_equal(read_volume(path).data, VALUES.reshape(SHAPE, order="F"))
    path = make(tmp_path / "ct.mhd", b"", ElementDataFile="ct.raw", HeaderSize="11")
    np.testing.assert_array_equal(read_volume(path).data, VALUES.reshape(SHAPE, order="F"))
    (tmp_path / "ct.zraw").write_bytes(zlib.compress(VALUES.tobytes()))
    path = make(tmp_path / "ct.mhd", b"", ElementDataFile="ct.zraw", CompressedData="True")
    np.testing.assert_array_equal(read_volume(path).data, VALUES.reshape(SHAPE, order="F"))


def test_big_endian(tmp_path):
    path = make(tmp_path / "ct.mha", VALUES.astype(">i2").tobytes(), BinaryDataByteOrderMSB="True")
    np.testing.assert_array_equal(read_volume(path).data, VALUES.reshape(SHAPE, order="F"))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"DimSize": None}, "DimSize"),
        ({"DimSize": "9 8 x"}, "numbers"),
        ({"DimSize": "9 80", "NDims": "2"}, "flat"),
        ({"DimSize": "9 8 5 2", "NDims": "4"}, "4 axes"),
        ({"BinaryData": "False"}, "text"),
        ({"ElementNumberOfChannels": "3"}, "holds 3"),
        ({"ElementType": "MET_STRING"}, "MET_STRING"),
        ({"ElementSpacing": "0.5 0 1"}, "above zero"),
        ({"ElementSpacing": "0.5 -1 1"}, "above zero"),
        ({"ElementSpacing": "0.5 1"}, "another number"),
        ({"TransformMatrix": "1 0 0 0 1 0 1 1 0"}, "plane"),
        ({"DistanceUnits": "um"}, "um"),
        ({"ElementDataFile": "LIST"}, "LIST"),
        ({"ElementDataFile": "gone.raw"}, "gone.raw"),
    ],
)
def test_bad_headers(tmp_path, changes, word):
    path = make(tmp_path / "ct.mha", **changes)
    with refused("ct.mha", word):
        read_scan(path)


def test_not_a_metaimage(tmp_path):
    (tmp_path / "ct.mha").write_bytes(b"something else")
    with refused("ElementDataFile"):
        read_scan(tmp_path / "ct.mha")


def test_a_sheared_grid_is_not_written(tmp_path):
    volume = numbered(make_affine(OBLIQUE, shear=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]))
    with refused("sheared", ".nrrd"):
        write_volume(tmp_path / "ct.mha", volume)
    assert list(tmp_path.iterdir()) == []
