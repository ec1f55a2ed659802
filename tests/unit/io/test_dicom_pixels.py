"""The values of DICOM slices: rescaling, signs, compression, many frames, and damaged files."""

import numpy as np
import pydicom
import pytest
import SimpleITK as sitk  # noqa: N813
from pydicom.uid import DeflatedExplicitVRLittleEndian, RLELossless

from logishape.io import read_scan
from tests.unit.io.dicom_files import AFFINE, ct, decimal, make_enhanced, make_series, save
from tests.unit.io.samples import refused


def test_each_slice_has_its_own_scale(tmp_path):
    slopes, intercepts = 1 + 0.25 * np.arange(10), -1000.0 - np.arange(10)
    series = make_series(
        ct(), RescaleSlope=lambda k: decimal(slopes[k]), RescaleIntercept=lambda k: decimal(intercepts[k])
    )
    scan = read_scan(save(tmp_path, series))
    np.testing.assert_array_equal(scan.volume.data, ct().data * slopes + intercepts)
    assert any("differ between slices" in note for note in scan.notes)


def test_without_scale_values_are_taken_as_they_are(tmp_path):
    scan = read_scan(save(tmp_path, make_series(ct(), RescaleSlope=None, RescaleIntercept=None)))
    np.testing.assert_array_equal(scan.volume.data, ct().data)
    assert any("no rescale" in note for note in scan.notes)


@pytest.mark.parametrize(("dtype", "shift"), [(np.int16, -2000), (np.uint16, 60000)])
def test_signed_and_unsigned(tmp_path, dtype, shift):
    volume = ct().with_data((ct().data.astype(int) + shift).astype(dtype))
    scan = read_scan(save(tmp_path, make_series(volume)))
    np.testing.assert_array_equal(scan.volume.data, ct().data.astype(float) + shift - 1024)
    assert scan.volume.data.dtype == np.float32


def test_padding_and_derivation_are_said(tmp_path):
    changes = {"PixelPaddingValue": -2000, "ImageType": ["DERIVED", "SECONDARY", "MPR"]}
    scan = read_scan(save(tmp_path, make_series(ct(), **changes)))
    assert any("-2000" in note for note in scan.notes)
    assert any("derived" in note for note in scan.notes)


def test_run_length_encoding(tmp_path):
    series = make_series(ct())
    for piece in series:
        piece.compress(RLELossless)
    scan = read_scan(save(tmp_path, series))
    np.testing.assert_array_equal(scan.volume.data, ct().data - 1024.0)


def test_deflated_files(tmp_path):
    series = make_series(ct())
    for piece in series:
        piece.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    scan = read_scan(save(tmp_path, series))
    np.testing.assert_array_equal(scan.volume.data, ct().data - 1024.0)


def compress(folder, compressor):
    """A series whose pixels SimpleITK has compressed, under our own headers."""
    for k, piece in enumerate(make_series(ct())):
        writer = sitk.ImageFileWriter()
        writer.SetFileName(str(folder / "temporary.dcm"))
        writer.UseCompressionOn()
        writer.SetCompressor(compressor)
        writer.Execute(sitk.GetImageFromArray(piece.pixel_array))
        packed = pydicom.dcmread(folder / "temporary.dcm")
        piece.PixelData = packed.PixelData
        piece["PixelData"].is_undefined_length = True
        piece.file_meta.TransferSyntaxUID = packed.file_meta.TransferSyntaxUID
        save(folder / "series", [piece], prefix=str(k))
    return folder / "series"


@pytest.mark.parametrize("compressor", ["JPEG", "JPEG2000"])
def test_lossless_jpeg(tmp_path, capfd, compressor):
    scan = read_scan(compress(tmp_path, compressor))
    np.testing.assert_array_equal(scan.volume.data, ct().data - 1024.0)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("compressor", ["JPEG", "JPEG2000"])
def test_truncated_jpeg(tmp_path, capfd, compressor):
    """The last 4 bytes, the length of the end mark, may be lost without harm; else no value is made up."""
    folder = compress(tmp_path, compressor)
    path = min(folder.iterdir())
    content = path.read_bytes()
    for num_bytes in (2, 7, 9, 12, 20, 40, 80):
        path.write_bytes(content[:-num_bytes])
        if num_bytes > 4:
            with refused("JPEG"):
                read_scan(folder)
        else:
            np.testing.assert_array_equal(read_scan(folder).volume.data, ct().data - 1024.0)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("num_bytes", [1, 50, 140])
def test_truncated_slice(tmp_path, num_bytes):
    save(tmp_path, make_series(ct()))
    path = min(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:-num_bytes])
    with refused(path.name, "Explicit VR Little Endian", "copy it again"):
        read_scan(tmp_path)


def test_an_unknown_compression_is_named(tmp_path):
    series = make_series(ct())
    for piece in series:
        piece.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.4.100"  # a film
        piece.PixelData = pydicom.encaps.encapsulate([b"not a film"])
        piece["PixelData"].is_undefined_length = True
    with refused("MPEG2", "uncompressed"):
        read_scan(save(tmp_path, series))


def test_many_frames_in_one_file(tmp_path):
    save(tmp_path, [make_enhanced(ct())])
    for path in (tmp_path, next(tmp_path.iterdir())):
        scan = read_scan(path)
        np.testing.assert_array_equal(scan.volume.data, ct().data - 1000.0 - np.arange(10))
        np.testing.assert_allclose(scan.volume.affine, AFFINE, rtol=0, atol=1e-9)


def test_frames_without_positions(tmp_path):
    found = make_enhanced(ct())
    del found.PerFrameFunctionalGroupsSequence
    save(tmp_path, [found])
    with refused("no image position"):
        read_scan(next(tmp_path.iterdir()))


def test_another_number_of_pixels(tmp_path):
    save(
        tmp_path,
        make_series(ct(), SamplesPerPixel=None, PlanarConfiguration=None, BitsAllocated=8, BitsStored=8, HighBit=7),
    )
    with refused("slice"):
        read_scan(tmp_path)
