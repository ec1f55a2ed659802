"""Files against SimpleITK: where it says a voxel lies and what it holds, for what we write and what we read."""

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813
from hypothesis import given

from logishape.io import read_scan, read_volume, write_volume
from tests.unit.io.dicom_files import ct, make_series, save
from tests.unit.io.samples import OBLIQUE, SHAPE, affines, make_affine, numbered

NAMES = ["ct.nii", "ct.nii.gz", "ct.nrrd", "ct.mha"]
CORNERS = [(0, 0, 0), (8, 0, 0), (0, 7, 0), (0, 0, 9), (8, 7, 9), (3, 5, 2)]


def tolerance(name):
    """NIfTI is single precision, and SimpleITK goes through a quaternion: 1e-6 of 900 mm. Text loses nothing."""
    return 1e-3 if ".nii" in name else 1e-9


def check_against(image, volume, atol=1e-9):
    """Every corner lies where SimpleITK (LPS) says, and the values along x, y and z are the same."""
    assert image.GetSize() == volume.shape
    np.testing.assert_array_equal(sitk.GetArrayViewFromImage(image).T, volume.data)
    for corner in CORNERS:
        lps = np.array(image.TransformIndexToPhysicalPoint(corner))
        np.testing.assert_allclose(volume.to_world(corner), lps * [-1, -1, 1], rtol=0, atol=atol)


def make_image(affine, dtype=np.int16):
    """A SimpleITK image on a grid given in RAS."""
    lps = np.diag([-1, -1, 1, 1]) @ affine
    spacing = np.linalg.norm(lps[:3, :3], axis=0)
    image = sitk.GetImageFromArray(np.arange(np.prod(SHAPE)).reshape(SHAPE[::-1]).astype(dtype))
    image.SetSpacing(spacing.tolist())
    image.SetOrigin(lps[:3, 3].tolist())
    image.SetDirection((lps[:3, :3] / spacing).ravel().tolist())
    return image


@pytest.mark.parametrize("name", NAMES)
@given(affine=affines())
def test_simpleitk_reads_what_we_write(tmp_path, name, affine):
    volume = numbered(affine)
    write_volume(tmp_path / name, volume)
    check_against(sitk.ReadImage(str(tmp_path / name)), volume, tolerance(name))


@given(affine=affines(sheared=True))
def test_simpleitk_reads_our_sheared_nrrd(tmp_path, affine):
    volume = numbered(affine)
    write_volume(tmp_path / "ct.nrrd", volume)
    check_against(sitk.ReadImage(str(tmp_path / "ct.nrrd")), volume)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compress", [True, False])
@given(affine=affines())
def test_we_read_what_simpleitk_writes(tmp_path, name, compress, affine):
    image = make_image(affine)
    sitk.WriteImage(image, str(tmp_path / name), useCompression=compress)
    volume = read_volume(tmp_path / name)
    check_against(image, volume, tolerance(name))
    np.testing.assert_allclose(volume.affine, affine, rtol=0, atol=tolerance(name))


@pytest.mark.parametrize("name", [*NAMES, "ct.nhdr", "ct.mhd"])
@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float32, np.float64]
)
def test_types(tmp_path, name, dtype):
    image = make_image(make_affine(OBLIQUE), dtype)
    sitk.WriteImage(image, str(tmp_path / name))
    check_against(image, read_volume(tmp_path / name), tolerance(name))


@pytest.mark.parametrize(
    "affine",
    [
        make_affine(flips=(-1, -1, 1)),
        make_affine(OBLIQUE, flips=(1, 1, 1)),
        make_affine(OBLIQUE, flips=(1, -1, 1)),
        make_affine(np.eye(3)[[2, 0, 1]]),
    ],
    ids=["axial", "oblique", "against the normal", "sagittal"],
)
def test_dicom_series(tmp_path, affine):
    save(tmp_path, make_series(ct(affine)))
    names = sitk.ImageSeriesReader.GetGDCMSeriesFileNames(str(tmp_path))
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(names)
    scan = read_scan(tmp_path)
    check_against(reader.Execute(), scan.volume)
    assert scan.notes == ()
