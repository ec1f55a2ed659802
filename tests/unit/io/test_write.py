"""Volumes written and read again: every grid in every format, types, equal bytes, and what is refused."""

import gzip

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813
from hypothesis import given

from logishape.core.volume import Volume
from logishape.io import read_mask, read_scan, read_volume, write_volume
from tests.unit.io.samples import OBLIQUE, affines, make_affine, numbered, refused

STRAIGHT = ["ct.nii", "ct.nii.gz", "ct.nrrd", "ct.mha"]
SHEARED = ["ct.nii", "ct.nii.gz", "ct.nrrd"]


def check_affine(found, expected):
    """Equal to 1e-5 of each voxel size, and of the distance to the origin."""
    spacing = np.linalg.norm(expected[:3, :3], axis=0)
    assert np.all(np.abs(found - expected)[:3, :3] < 1e-5 * spacing)
    assert np.all(np.abs(found - expected)[:3, 3] < 1e-5 * max(1, np.linalg.norm(expected[:3, 3])))


@pytest.mark.parametrize("name", STRAIGHT)
@given(affine=affines())
def test_grids_with_right_angles(tmp_path, name, affine):
    write_volume(tmp_path / name, numbered(affine))
    found = read_volume(tmp_path / name)
    check_affine(found.affine, affine)
    np.testing.assert_array_equal(found.data, numbered().data)


@pytest.mark.parametrize("name", SHEARED)
@given(affine=affines(sheared=True))
def test_sheared_grids(tmp_path, name, affine):
    write_volume(tmp_path / name, numbered(affine))
    found = read_scan(tmp_path / name)
    check_affine(found.volume.affine, affine)
    np.testing.assert_array_equal(found.volume.data, numbered().data)
    assert any("sheared" in note for note in found.notes)


@pytest.mark.parametrize("name", STRAIGHT)
@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize(
    ("dtype", "stored"),
    [
        (bool, sitk.sitkUInt8),
        (np.uint8, sitk.sitkUInt8),
        (np.int16, sitk.sitkInt16),
        (np.float16, sitk.sitkFloat32),
        (np.float32, sitk.sitkFloat32),
        (np.float64, sitk.sitkFloat32),
        (">f8", sitk.sitkFloat32),
    ],
)
def test_types(tmp_path, name, compress, dtype, stored):
    data = (np.arange(720).reshape(9, 8, 10) % 2).astype(dtype)
    write_volume(tmp_path / name, numbered().with_data(data), compress)
    image = sitk.ReadImage(str(tmp_path / name))
    assert image.GetPixelID() == stored
    np.testing.assert_array_equal(sitk.GetArrayViewFromImage(image).T, data)
    np.testing.assert_array_equal(read_mask(tmp_path / name).data, data != 0)


@pytest.mark.parametrize("name", STRAIGHT)
def test_any_memory_order_gives_the_same_bytes(tmp_path, name):
    data = np.random.default_rng(0).normal(size=(9, 8, 10)).astype(np.float32)
    contents = set()
    for k, values in enumerate((data, np.asfortranarray(data), np.repeat(data, 2, axis=0)[::2])):
        (tmp_path / str(k)).mkdir()
        write_volume(tmp_path / str(k) / f"{k}{name}", Volume(values, make_affine(OBLIQUE)))
        contents.add((tmp_path / str(k) / f"{k}{name}").read_bytes())
    assert len(contents) == 1  # neither the name nor the time is in the file


def test_compression_is_by_name_or_wish(tmp_path):
    volume = numbered().with_data(np.zeros((9, 8, 10), dtype=np.uint8))
    for name in ("a.nii.gz", "a.nii", "a.nrrd", "a.mha"):
        write_volume(tmp_path / name, volume)
    write_volume(tmp_path / "b.nrrd", volume, compress=False)
    write_volume(tmp_path / "b.mha", volume, compress=False)
    assert (tmp_path / "a.nii.gz").read_bytes()[3:8] == bytes(5)  # no name, no time
    size = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert len(gzip.decompress((tmp_path / "a.nii.gz").read_bytes())) == size["a.nii"] == 352 + 720
    assert size["a.nrrd"] < size["b.nrrd"] - 600
    assert size["a.mha"] < size["b.mha"] - 600


def test_what_is_not_written(tmp_path):
    with refused("ct.jpg", ".nii.gz"):
        write_volume(tmp_path / "ct.jpg", numbered())
    with refused("int64"):
        write_volume(tmp_path / "ct.nii", numbered(dtype=np.int64))
    with refused("2 axes"):
        write_volume(tmp_path / "ct.nii", Volume(np.zeros((4, 5)), np.eye(3)))
    (tmp_path / "folder.nii").mkdir()
    with refused("folder.nii", "is a folder"):
        write_volume(tmp_path / "folder.nii", numbered())
    (tmp_path / "file").write_text("")
    with refused("is a file"):
        write_volume(tmp_path / "file" / "ct.nii", numbered())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.nii"]


def test_an_older_file_is_replaced_whole_or_kept(tmp_path):
    path = tmp_path / "new" / "ct.nii"
    write_volume(path, numbered())
    before = path.read_bytes()
    with refused("int32"):
        write_volume(path, numbered(dtype=np.int32))
    assert path.read_bytes() == before
    write_volume(path, numbered(dtype=np.int16))
    assert len(path.read_bytes()) == 352 + 1440
    assert [found.name for found in path.parent.iterdir()] == ["ct.nii"]
