"""NIfTI files: which of the header's grids is used, what values mean, and what is refused."""

import gzip
import struct

import numpy as np
import pytest

from logishape.core.volume import Volume
from logishape.io import read_scan, read_volume, write_volume
from logishape.io.nifti_header import header_type
from tests.unit.io.samples import OBLIQUE, SHAPE, make_affine, numbered, patch, refused

DIM, DATATYPE, PIXDIM, VOX_OFFSET, SCL_SLOPE, UNITS, QFORM, SFORM, QUATERN, SROW = (
    40, 70, 76, 108, 112, 123, 252, 254, 256, 280
)  # fmt: skip


@pytest.fixture
def path(tmp_path):
    """A file whose grid is oblique with an axis flipped."""
    write_volume(tmp_path / "ct.nii", numbered())
    return tmp_path / "ct.nii"


def test_sform_is_used_and_a_differing_qform_said(path):
    scan = read_scan(path)
    np.testing.assert_allclose(scan.volume.affine, numbered().affine, rtol=1e-6, atol=1e-6)
    assert (scan.kind, scan.notes) == ("nifti", ())
    patch(path, SROW + 12, struct.pack("<f", 33.0))  # the x of the origin
    moved = read_scan(path)
    assert moved.volume.affine[0, 3] == 33.0
    assert any("differ by up to 94.50" in note for note in moved.notes)  # 33 + 61.5


def test_qform_is_used_without_an_sform(path):
    expected = read_volume(path).affine
    patch(path, SFORM, struct.pack("<h", 0))
    patch(path, SROW, bytes(48))
    scan = read_scan(path)
    # Quaternion and sizes are rounded to single precision one by one; over 500 mm that is 1e-4.
    np.testing.assert_allclose(scan.volume.affine, expected, rtol=0, atol=1e-5)
    assert scan.notes == ()


def test_without_orientation_voxel_sizes_remain(path):
    patch(path, QFORM, struct.pack("<hh", 0, 0))
    scan = read_scan(path)
    np.testing.assert_allclose(scan.volume.affine, np.diag([0.4, 0.5, 1.25, 1]), rtol=1e-6)
    assert any("no orientation" in note for note in scan.notes)


def test_shear_is_kept_and_said(tmp_path):
    affine = make_affine(OBLIQUE, shear=[[1, 0.1, 0.2], [0, 1, 0.3], [0, 0, 1]])
    write_volume(tmp_path / "ct.nii", numbered(affine))
    scan = read_scan(tmp_path / "ct.nii")
    np.testing.assert_allclose(scan.volume.affine, affine, rtol=1e-6, atol=1e-6)
    assert any("sheared" in note for note in scan.notes)


@pytest.mark.parametrize(("code", "scale"), [(1, 1000.0), (3, 0.001), (0, 1.0)])
def test_units_become_millimetres(path, code, scale):
    patch(path, UNITS, bytes([code]))
    scan = read_scan(path)
    np.testing.assert_allclose(scan.volume.affine[:3], scale * numbered().affine[:3], rtol=1e-6, atol=1e-6 * scale)
    assert len(scan.notes) == 1
    assert "metres" in scan.notes[0]


def test_scaling_of_stored_values(tmp_path):
    path = tmp_path / "ct.nii"
    write_volume(path, numbered(dtype=np.int16))
    patch(path, SCL_SLOPE, struct.pack("<ff", 0.5, -1024.0))
    np.testing.assert_array_equal(read_volume(path).data, 0.5 * numbered().data - 1024)
    patch(path, SCL_SLOPE, struct.pack("<ff", 0.0, -1024.0))  # zero: not scaled
    np.testing.assert_array_equal(read_volume(path).data, numbered().data)
    patch(path, SCL_SLOPE, struct.pack("<ff", np.nan, 0.0))
    scan = read_scan(path)
    np.testing.assert_array_equal(scan.volume.data, numbered().data)
    assert any("scaling" in note for note in scan.notes)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("code", "kind"), [(2, "u1"), (4, "i2"), (512, "u2"), (8, "i4"), (16, "f4"), (64, "f8")])
def test_versions_orders_and_types(tmp_path, version, order, code, kind):
    volume = numbered()
    values = (np.arange(volume.data.size) % 200).reshape(SHAPE).astype(order + kind)
    header = np.zeros(1, header_type(version, order))[0]
    header["sizeof_hdr"] = {1: 348, 2: 540}[version]
    header["magic"] = f"n+{version}".encode()
    header["dim"] = [4, *SHAPE, 1, 1, 1, 1]
    header["datatype"], header["vox_offset"], header["xyzt_units"] = code, 560, 2
    header["pixdim"], header["sform_code"], header["srow"] = 1, 1, volume.affine[:3]
    content = header.tobytes().ljust(560, b"\0") + values.tobytes(order="F")
    (tmp_path / "ct.nii").write_bytes(content)
    scan = read_scan(tmp_path / "ct.nii")
    np.testing.assert_array_equal(scan.volume.data, values)
    assert scan.volume.data.dtype == np.float32
    np.testing.assert_allclose(scan.volume.affine, volume.affine, rtol=1e-6, atol=1e-6)
    assert any("length one" in note for note in scan.notes)


def test_compression_is_told_from_content(tmp_path, path):
    plain = path.read_bytes()
    (tmp_path / "plain.nii.gz").write_bytes(plain)
    # Two members, as some compressors write them, and zeros after the last.
    (tmp_path / "packed.nii").write_bytes(gzip.compress(plain[:1000]) + gzip.compress(plain[1000:]) + bytes(99))
    expected = read_scan(path)
    for name in ("plain.nii.gz", "packed.nii"):
        scan = read_scan(tmp_path / name)
        assert scan.digest == expected.digest
        assert scan.notes == ()


def test_bytes_after_the_image_are_said(path):
    path.write_bytes(path.read_bytes() + bytes(5))
    assert any("ignored: 5." in note for note in read_scan(path).notes)


@pytest.mark.parametrize(
    ("offset", "content", "word"),
    [
        (0, b"\0\0\0\0", "NIfTI header"),
        (344, b"ni1\0", "NIfTI header"),
        (DIM, struct.pack("<h", 2), "flat"),
        (DIM, struct.pack("<h", 9), "axes"),
        (DIM + 6, struct.pack("<h", 1), "flat"),
        (DIM + 6, struct.pack("<h", -3), "no voxel"),
        (DIM, struct.pack("<8h", 4, 9, 8, 5, 2, 1, 1, 1), "4 axes"),
        (DIM, struct.pack("<8h", 5, 9, 8, 3, 1, 3, 1, 1), "vectors of 3"),
        (DATATYPE, struct.pack("<h", 128), "RGB"),
        (DATATYPE, struct.pack("<h", 32), "complex"),
        (DATATYPE, struct.pack("<h", 1536), "type 1536"),
        (PIXDIM + 4, struct.pack("<f", 0.0), "above zero"),
        (PIXDIM + 8, struct.pack("<f", -0.5), "above zero"),
        (PIXDIM + 12, struct.pack("<f", np.nan), "above zero"),
        (SROW, bytes(48), "above zero"),
        (SROW, struct.pack("<12f", 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0), "plane"),
        (SROW + 12, struct.pack("<f", np.inf), "(inf, "),
        (VOX_OFFSET, struct.pack("<f", 100.0), "byte 100"),
        (VOX_OFFSET, struct.pack("<f", np.nan), "byte nan"),
        (UNITS, b"\x05", "unit"),
    ],
)
def test_bad_headers(path, offset, content, word):
    patch(path, offset, content)
    with refused("ct.nii", word):
        read_scan(path)


def test_a_size_no_memory_could_hold_is_refused_before_reading(tmp_path):
    for name in ("ct.nii", "ct.nii.gz"):
        write_volume(tmp_path / "small.nii", numbered())
        patch(tmp_path / "small.nii", DIM, struct.pack("<4h", 3, 32767, 32767, 32767))
        content = (tmp_path / "small.nii").read_bytes()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        with refused(name, "truncated"):
            read_scan(tmp_path / name)


def test_written_header(tmp_path):
    """The fields other programs go by, read at their published offsets."""
    volume = Volume(np.zeros((3, 4, 5), dtype=bool), make_affine(spacing=(0.5, 0.25, 2.0), flips=(1, 1, -1)))
    write_volume(tmp_path / "mask.nii", volume)
    content = (tmp_path / "mask.nii").read_bytes()
    assert len(content) == 352 + 60
    assert struct.unpack_from("<4h", content, DIM) == (3, 3, 4, 5)
    assert struct.unpack_from("<hh", content, DATATYPE) == (2, 8)
    assert struct.unpack_from("<4f", content, PIXDIM) == (-1, 0.5, 0.25, 2.0)
    assert struct.unpack_from("<f", content, VOX_OFFSET) == (352,)
    assert struct.unpack_from("<hh", content, QFORM) == (1, 1)
    assert struct.unpack_from("<3f", content, QUATERN) == (0, 0, 0)
    assert content[344:348] == b"n+1\0"


def test_sheared_grid_has_no_qform(tmp_path):
    write_volume(tmp_path / "ct.nii", numbered(make_affine(shear=[[1, 0, 0.2], [0, 1, 0], [0, 0, 1]])))
    assert struct.unpack_from("<hh", (tmp_path / "ct.nii").read_bytes(), QFORM) == (0, 1)


def test_too_many_voxels_along_an_axis(tmp_path):
    with refused("32767", ".nrrd"):
        write_volume(tmp_path / "long.nii", Volume(np.zeros((40000, 1, 1), dtype=np.uint8), np.eye(4)))
    assert list(tmp_path.iterdir()) == []
