"""A zip of DICOM: read as its folder is, and whatever else it holds does no harm."""

import io
import struct
import tempfile
import zipfile

import numpy as np
import pytest

from logishape.io import archive, read_scan, write_volume
from tests.unit.io.dicom_files import ct, make_series, save
from tests.unit.io.samples import numbered, patch, refused

LINK = 0o120777 << 16


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder beside the one where zips are unpacked, which must be empty at the end."""
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "unpacked"))
    before = sorted(tmp_path.iterdir())
    yield tmp_path / "here"
    assert sorted(tmp_path.iterdir()) == before  # nothing climbed out
    assert list((tmp_path / "unpacked").iterdir()) == []


def pack(path, members, method=zipfile.ZIP_DEFLATED):
    """A zip of names and bytes."""
    with zipfile.ZipFile(path, "w", method) as packed:
        for name, content in members:
            packed.writestr(name, content)
    return path


def study(place):
    """The DICOM files of a series, as names and bytes."""
    folder = save(place / "study", make_series(ct()))
    return folder, [(f"DICOM/{path.name}", path.read_bytes()) for path in sorted(folder.iterdir())]


def test_a_zip_reads_as_its_folder(place):
    folder, members = study(place)
    extra = [("DICOMDIR", b"x"), ("__MACOSX/._scan.nii.gz", b"x"), ("DICOM/", b""), ("notes.txt", b"hello")]
    packed = pack(place / "scan.ZIP", [*members, *extra])
    one, other = read_scan(packed), read_scan(folder)
    assert one.digest == other.digest
    assert (one.kind, one.notes) == ("dicom", other.notes)
    np.testing.assert_array_equal(one.volume.affine, other.volume.affine)


def test_a_zip_of_one_image(place):
    write_volume(place / "ct.nii.gz", numbered())
    packed = pack(place / "scan.zip", [("a/ct.nii.gz", (place / "ct.nii.gz").read_bytes())], zipfile.ZIP_STORED)
    assert read_scan(packed).digest == read_scan(place / "ct.nii.gz").digest
    with refused("scan.zip", "no series"):
        read_scan(packed, series="1")
    pack(packed, [(f"{k}.nii.gz", (place / "ct.nii.gz").read_bytes()) for k in range(2)])
    with refused("scan.zip", "2 images"):
        read_scan(packed)


@pytest.mark.parametrize("name", ["../../{}", "/tmp/{}", "..\\..\\{}", "C:\\{}", "a/../../../{}", "{}\x00.txt"])
def test_names_lead_nowhere(place, name):
    folder, members = study(place)
    packed = pack(place / "scan.zip", [(name.format(key.split("/")[1]), content) for key, content in members])
    assert read_scan(packed).digest == read_scan(folder).digest


def test_links_are_left_out(place):
    folder, members = study(place)
    link = zipfile.ZipInfo("DICOM/slice99")
    link.external_attr = LINK
    packed = pack(place / "scan.zip", [*members, (link, "/etc/passwd")])
    assert read_scan(packed).digest == read_scan(folder).digest
    with refused("scan.zip", "holds no file"):
        read_scan(pack(packed, [(link, "/etc/passwd")]))


def test_what_holds_no_scan(place):
    with refused("scan.zip", "holds no file"):
        read_scan(pack(place / "scan.zip", []))
    with refused("scan.zip", "none was found"):
        read_scan(pack(place / "scan.zip", [("readme.txt", b"hello")]))
    inner = io.BytesIO()
    pack(inner, study(place)[1])
    with refused("scan.zip", "none was found"):
        read_scan(pack(place / "scan.zip", [("scan.zip", inner.getvalue())]))
    (place / "text.zip").write_text("no zip at all")
    with refused("text.zip", "intact zip"):
        read_scan(place / "text.zip")


def test_a_damaged_zip(place):
    _, members = study(place)
    packed = pack(place / "scan.zip", members)
    whole = packed.read_bytes()
    packed.write_bytes(whole[: len(whole) // 2])
    with refused("scan.zip", "damaged"):
        read_scan(packed)
    packed.write_bytes(whole)
    patch(packed, 80, b"\xff" * 8)
    with refused("scan.zip", "damaged"):
        read_scan(packed)
    pack(packed, members, zipfile.ZIP_LZMA)
    with refused("scan.zip", "unknown way"):
        read_scan(packed)


def test_a_password(place):
    packed = pack(place / "scan.zip", [("a", b"secret")])
    whole = packed.read_bytes()
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        patch(packed, whole.index(mark) + offset, struct.pack("<H", 1))
    with refused("scan.zip", "password"):
        read_scan(packed)


def test_bombs(place, monkeypatch):
    monkeypatch.setattr(archive, "_ALWAYS_ALLOWED", 1 << 20)
    bomb = pack(place / "scan.zip", [(f"{k}", bytes(1 << 22)) for k in range(2)])
    with refused("scan.zip", "beyond"):
        read_scan(bomb)
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 16)
    with refused("scan.zip", "beyond"):
        read_scan(pack(bomb, [("a", np.random.default_rng(0).bytes(1 << 17))]))
    monkeypatch.setattr(archive, "MOST_MEMBERS", 3)
    with refused("scan.zip", "at most 3 files"):
        read_scan(pack(bomb, [(f"{k}", b"") for k in range(4)]))


def test_a_size_that_is_a_lie(place):
    """The sizes in the directory and beside the data say 4 GB or nothing; what counts is what comes."""
    for size in (0xFFFFFFF0, 0):
        packed = pack(place / "scan.zip", [("a", b"hello" * 100)])
        whole = packed.read_bytes()
        for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
            patch(packed, whole.index(mark) + offset, struct.pack("<I", size))
        with refused("scan.zip"):
            read_scan(packed)
