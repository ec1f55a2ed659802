"""Which series of a folder is read: found, split, chosen, named, and never telling who was scanned."""

import numpy as np
import pydicom
import pytest

from logishape.io import read_scan
from tests.unit.io.dicom_files import AFFINE, NAME, UID, ct, make_series, save
from tests.unit.io.samples import make_affine, refused

OTHER = "1.2.826.0.1.3680043.8.498.815"


@pytest.fixture
def two_series(tmp_path):
    """A small series and a large one."""
    save(tmp_path / "small", make_series(ct(), SeriesDescription="soft"))
    save(
        tmp_path / "large",
        make_series(ct(shape=(9, 8, 14)), SeriesInstanceUID=OTHER, SeriesDescription="sharp\n\x01 kernel"),
    )
    return tmp_path


def test_the_largest_is_read_and_the_others_listed(two_series):
    scan = read_scan(two_series)
    assert (scan.kind, scan.volume.shape) == ("dicom", (9, 8, 14))
    text = " ".join((*scan.notes, *scan.listing))
    for word in ("largest", UID, OTHER, "'soft'", "9 x 8 x 10", "9 x 8 x 14", "(2)"):
        assert word in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("series", "depth"),
    [("1", 14), ("2", 10), (UID, 10), (OTHER, 14), ("4711", 10), (OTHER[:-1], 14), (f" {UID} ", 10)],
)
def test_a_series_is_named_by_number_uid_or_part_of_it(two_series, series, depth):
    scan = read_scan(two_series, series=series)
    assert scan.volume.shape[2] == depth
    assert any("as asked for" in note for note in scan.notes)


@pytest.mark.parametrize("series", ["3", "0", "9.9", "1.2.826", ""])
def test_unknown_or_ambiguous_names_list_what_there_is(two_series, series):
    with refused(UID, OTHER, "'soft'", "9 x 8 x 14"):
        read_scan(two_series, series=series)


def test_other_directions_sizes_and_localisers_are_split_off(tmp_path):
    save(tmp_path / "axial", make_series(ct(shape=(9, 8, 12))))
    save(tmp_path / "coronal", make_series(ct(make_affine(np.eye(3)[[0, 2, 1]]), shape=(9, 8, 9))))
    save(tmp_path / "wide", make_series(ct(shape=(20, 8, 3))))
    save(tmp_path / "scout", make_series(ct(shape=(9, 8, 2)), ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"]))
    scan = read_scan(tmp_path)
    np.testing.assert_array_equal(scan.volume.data, ct(shape=(9, 8, 12)).data - 1024.0)
    text = " ".join((*scan.notes, *scan.listing))
    assert "direction: 14." in text  # 9 + 3 + 2
    assert "localiser" in text
    assert read_scan(tmp_path, series="2").volume.shape == (9, 8, 9)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"Modality": "MR"}, "MR instead of CT"),
        ({"Modality": "XA"}, "XA"),
        ({"Modality": "DX"}, "DX"),
        ({"Modality": None}, "not given"),
        ({"SOPClassUID": "1.2.840.10008.5.1.4.1.1.7"}, "secondary capture"),
        ({"ImageType": ["ORIGINAL", "PRIMARY", "LOCALIZER"]}, "localiser"),
        ({"SamplesPerPixel": 3}, "3 colours"),
        ({"ImagePositionPatient": None}, "no image position"),
        ({"ImageOrientationPatient": None}, "no image orientation"),
        ({"PixelSpacing": None}, "no pixel spacing"),
        ({"ImagePositionPatient": ["1", "2"]}, "no image position"),
    ],
)
def test_what_is_no_ct_volume(tmp_path, changes, word):
    save(tmp_path, make_series(ct(), **changes))
    with refused(word):
        read_scan(tmp_path)
    with refused(word):
        read_scan(tmp_path, series=UID)
    save(tmp_path / "more", make_series(ct(shape=(9, 8, 3)), SeriesInstanceUID=OTHER))
    with refused(word, "none of the series"):
        read_scan(tmp_path)
    save(tmp_path / "good", make_series(ct(), SeriesInstanceUID="1.2.3"))
    scan = read_scan(tmp_path)
    assert any(word in note for note in scan.listing)
    with refused(word, "chosen"):
        read_scan(tmp_path, series=UID)


def test_too_few_slices(tmp_path):
    save(tmp_path, make_series(ct(shape=(9, 9, 7))))
    with refused("fewer than 8"):
        read_scan(tmp_path)


def test_other_files_are_ignored(tmp_path):
    save(tmp_path / "deep" / "er", make_series(ct()))
    (tmp_path / "readme.txt").write_text("DICM is not at byte 128 here")
    (tmp_path / "DICOMDIR").write_bytes(bytes(128) + b"DICM and nothing of use")
    (tmp_path / "empty").write_bytes(b"")
    report = pydicom.Dataset()
    report.SeriesInstanceUID, report.Modality, report.SOPClassUID = "1.2.9", "SR", "1.2.840.10008.5.1.4.1.1.88.11"
    report.file_meta = pydicom.dataset.FileMetaDataset()
    report.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    report.SOPInstanceUID = "1.2.9.1"
    report.save_as(tmp_path / "report.dcm", enforce_file_format=True)
    scan = read_scan(tmp_path)
    assert scan.volume.shape == (9, 8, 10)
    assert scan.notes == ()


def damage(path, folder, length=700):
    """A slice cut off within its header."""
    save(folder, make_series(ct(shape=(9, 8, 1))), prefix="whole")
    whole = next(folder.glob("whole*"))
    path.write_bytes(whole.read_bytes()[:length])
    whole.unlink()


@pytest.mark.parametrize("length", [140, 300, 500, 700, 800])
def test_headers_cut_anywhere(tmp_path, length):
    damage(tmp_path / "slice.dcm", tmp_path, length)
    with refused("none was found (DICOM files with a damaged header: 1)"):
        read_scan(tmp_path)


def test_damaged_headers_are_counted(tmp_path):
    save(tmp_path, make_series(ct()))
    damage(tmp_path / "damaged", tmp_path)
    scan = read_scan(tmp_path)
    assert any("header is damaged: 1." in note for note in scan.notes)


def test_links_are_followed_inside_only(tmp_path):
    folder = save(tmp_path / "in", make_series(ct()))
    outside = save(tmp_path / "out", make_series(ct(shape=(9, 8, 30)), SeriesInstanceUID=OTHER))
    for k, path in enumerate(sorted(outside.iterdir())):
        (folder / f"link{k}").symlink_to(path)
    (folder / "again").symlink_to(min(path for path in folder.iterdir() if not path.is_symlink()))
    (folder / "around").symlink_to(folder, target_is_directory=True)
    scan = read_scan(folder)
    assert scan.volume.shape == (9, 8, 10)
    assert scan.notes == ("Links that lead out of the folder, not followed: 30.",)


def test_folders_without_images(tmp_path):
    with refused("none was found"):
        read_scan(tmp_path)
    damage(tmp_path / "damaged", tmp_path)
    with refused("damaged header: 1"):
        read_scan(tmp_path)


def test_a_single_slice_asks_for_the_folder(tmp_path):
    save(tmp_path, make_series(ct()))
    with refused("folder that holds"):
        read_scan(next(tmp_path.iterdir()))
    damage(tmp_path / "damaged.dcm", tmp_path / "more")
    with refused("damaged.dcm", "damaged;"):
        read_scan(tmp_path / "damaged.dcm")


def test_nobody_is_named(two_series):
    """Neither notes nor errors carry a name, an identifier or a birth date."""
    scan = read_scan(two_series)
    texts = [*scan.notes, *scan.listing]
    slices = make_series(ct(shape=(9, 8, 20)), SeriesInstanceUID="1.9.9")
    save(two_series / "gap", slices[:9] + slices[11:])
    for series in ("nobody", "1.9.9"):
        try:
            texts += read_scan(two_series, series=series).notes
        except ValueError as error:
            texts.append(str(error))
    assert len(texts) > 3
    # A description is free text: where it is shown to choose by, it is not among the notes, which go into records.
    assert scan.listing
    assert not any("UID" in note or "'" in note for note in scan.notes)
    for secret in (*NAME.split("^"), "SCUTARI", "1820"):
        assert not any(secret in text for text in texts)


def test_the_same_folder_gives_the_same_answer(two_series):
    assert read_scan(two_series).digest == read_scan(two_series).digest
    assert read_scan(two_series).digest != read_scan(two_series, series="2").digest
    np.testing.assert_allclose(read_scan(two_series).volume.affine, AFFINE, rtol=0, atol=1e-9)
