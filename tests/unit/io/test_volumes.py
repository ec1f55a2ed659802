"""The gateway: what every format promises, and what none accepts."""

import dataclasses
import gzip
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logishape.core.errors import InputError
from logishape.core.volume import Volume
from logishape.io import read_mask, read_scan, read_volume, write_volume
from tests.unit.io.samples import make_affine, numbered, patch, refused

NAMES = ["ct.nii", "ct.nii.gz", "ct.nrrd", "ct.mha"]


@pytest.mark.parametrize("name", NAMES)
def test_scan_is_single_precision_frozen_and_has_a_digest(tmp_path, name):
    write_volume(tmp_path / name, numbered())
    scan = read_scan(tmp_path / name)
    assert scan.volume.data.dtype == np.float32
    np.testing.assert_array_equal(scan.volume.data, numbered().data)
    assert len(scan.digest) == 64
    with pytest.raises(dataclasses.FrozenInstanceError):
        scan.kind = "other"


def test_digest_is_of_values_and_place_not_of_the_container(tmp_path):
    affine = make_affine(spacing=(0.5, 0.25, 2.0))  # exact in single precision, so in every format
    digests = set()
    for name in NAMES:
        write_volume(tmp_path / name, numbered(affine))
        digests.add(read_scan(tmp_path / name).digest)
    assert len(digests) == 1
    changed = numbered(affine).data.copy()
    changed[3, 4, 5] += 1
    for other in (Volume(changed, affine), numbered(make_affine(spacing=(0.5, 0.25, 4.0)))):
        write_volume(tmp_path / "other.nii", other)
        assert read_scan(tmp_path / "other.nii").digest not in digests


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated_files(tmp_path, name, share):
    path = tmp_path / name
    write_volume(path, numbered().with_data(np.random.default_rng(0).normal(size=(9, 8, 10))))
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with refused(name):
        read_scan(path)


@pytest.mark.parametrize(("name", "old"), [("ct.nii.gz", b"\n\0\1\0"), ("ct.nrrd", b" 8 10"), ("ct.mha", b" 8 10")])
def test_intact_compressed_data_of_a_smaller_image(tmp_path, name, old):
    """The header promises a slice more than there is."""
    path = tmp_path / name
    write_volume(path, numbered())
    content = path.read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    assert old in content
    content = content.replace(old, old.replace(b"\n\0", b"\v\0").replace(b"10", b"11"), 1)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with refused(name, "9 x 8 x 11", "truncated"):
        read_scan(path)


@pytest.mark.parametrize("name", ["ct.nii.gz", "ct.nrrd", "ct.mha"])
@pytest.mark.parametrize("place", [-3, -7, -200])
def test_a_wrong_bit_in_compressed_data(tmp_path, name, place):
    path = tmp_path / name
    write_volume(path, numbered().with_data(np.random.default_rng(0).normal(size=(9, 8, 10))))
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(bytes(content))
    with refused(name, "corrupt"):
        read_scan(path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compress", [True, False])
@given(wrong=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3))
def test_whatever_is_wrong_in_a_header_is_one_sentence(tmp_path, name, compress, wrong):
    write_volume(tmp_path / name, numbered(), compress)
    for place, byte in wrong:
        patch(tmp_path / name, place, bytes([byte]))
    try:
        found = read_scan(tmp_path / name)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - some wrong bytes do no harm
    else:
        assert np.isfinite(found.volume.data).all()


def test_missing_empty_and_unknown(tmp_path):
    with refused("there is no file or folder", "gone.nii"):
        read_scan(tmp_path / "gone.nii")
    for name in [*NAMES, "ct.nhdr", "ct.mhd", "slice.dcm"]:
        (tmp_path / name).write_bytes(b"")
        with refused(name, "empty"):
            read_scan(tmp_path / name)
    for name in ("ct.jpg", "ct.hdr", "ct", "ct.7z"):
        (tmp_path / name).write_bytes(b"some bytes")
        with refused(name, ".nii.gz", "DICOM folder"):
            read_scan(tmp_path / name)
    os.mkfifo(tmp_path / "pipe.nii")
    with refused("pipe.nii"):
        read_scan(tmp_path / "pipe.nii")


def test_a_series_is_for_dicom(tmp_path):
    write_volume(tmp_path / "ct.nii", numbered())
    with refused("series"):
        read_scan(tmp_path / "ct.nii", series="1")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(tmp_path, name, value):
    data = numbered().data.copy()
    data[2:4, 3, 4] = value
    write_volume(tmp_path / name, numbered().with_data(data))
    with refused(name, "2 of 720"):
        read_scan(tmp_path / name)
    with refused(name, "2 of 720"):
        read_mask(tmp_path / name)


@pytest.mark.parametrize("name", NAMES)
def test_constant_and_thin_images(tmp_path, name):
    write_volume(tmp_path / name, numbered().with_data(np.full((9, 8, 10), -1000.0)))
    with refused(name, "-1000"):
        read_scan(tmp_path / name)
    write_volume(tmp_path / name, numbered(shape=(20, 7, 20)))
    with refused(name, "20 x 7 x 20"):
        read_scan(tmp_path / name)
    write_volume(tmp_path / name, numbered(shape=(20, 20, 1)))
    with refused(name, "flat"):
        read_scan(tmp_path / name)


@pytest.mark.parametrize("name", NAMES)
def test_masks(tmp_path, name):
    labels = (np.arange(720).reshape(9, 8, 10) % 7).astype(np.uint8)
    write_volume(tmp_path / name, numbered().with_data((3 * (labels > 4)).astype(np.uint8)))
    mask = read_mask(tmp_path / name)
    assert mask.data.dtype == bool
    np.testing.assert_array_equal(mask.data, labels > 4)
    np.testing.assert_allclose(mask.affine, numbered().affine, rtol=1e-6, atol=1e-6)
    write_volume(tmp_path / name, numbered().with_data(np.zeros((9, 8, 10), dtype=bool)))
    assert not read_mask(tmp_path / name).data.any()
    write_volume(tmp_path / name, numbered().with_data(labels))
    with refused(name, "one label", "from 1 to 6"):
        read_mask(tmp_path / name)
    write_volume(tmp_path / name, numbered().with_data(labels / 2))
    with refused(name, "whole numbers", "threshold"):
        read_mask(tmp_path / name)


def test_a_mask_is_a_file(tmp_path):
    with refused("folder"):
        read_mask(tmp_path)
    with refused("gone.nii"):
        read_mask(tmp_path / "gone.nii")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the administrator may read everything")
def test_files_that_may_not_be_opened(tmp_path):
    write_volume(tmp_path / "ct.nii", numbered())
    (tmp_path / "ct.nii").chmod(0)
    with refused("ct.nii", "ermission"):
        read_volume(tmp_path / "ct.nii")


def test_importing_loads_neither_simpleitk_nor_pydicom():
    code = "import sys, logishape.io; print([m for m in ('SimpleITK', 'pydicom') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.slow  # writes and reads a third of a gigabyte
def test_a_large_scan_fits_into_three_gigabytes(tmp_path):
    """512 x 512 x 600 of int16 become 630 MB of single precision; a second copy, or one of doubles, would show."""
    write_volume(tmp_path / "small.nii", numbered(shape=(9, 8, 10), dtype=np.int16))
    header = bytearray((tmp_path / "small.nii").read_bytes()[:352])
    header[42:48] = np.array([512, 512, 600], dtype="<i2").tobytes()
    with (tmp_path / "ct.nii").open("wb") as stream:
        stream.write(header)
        for k in range(600):
            stream.write(np.full(512 * 512, k, dtype="<i2").tobytes())
    code = (
        "import resource, sys; from logishape.io import read_scan\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "scan = read_scan(sys.argv[1])\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(scan.volume.data[0, 0, 599], before, after)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "ct.nii")]
    found = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.split()
    assert float(found[0]) == 599
    kilobytes = 1 if sys.platform != "darwin" else 1024
    assert int(found[2]) / kilobytes < 3e6
    assert (int(found[2]) - int(found[1])) / kilobytes < 0.8e6  # one copy and some room
