"""The files for other programs against programs that did not write them: where each voxel lies, and what it is.

Masks are compared as sets of points in the world, so that a flip, a shift, a swapped axis or LPS taken for RAS shows.
"""

import json

import numpy as np
import pydicom
import pytest
import SimpleITK as sitk  # noqa: N813
from hypothesis import given, settings
from hypothesis import strategies as st

from logishape.core.volume import Volume
from logishape.io import read_landmarks, read_ply, read_scan, write_ply, write_stl
from logishape.io.dicom_segmentation import check_source, write_dicom_segmentation
from logishape.io.markups import Point, write_markups
from logishape.io.segments import Segment, write_seg_nrrd
from tests.unit.io.dicom_files import ct, make_enhanced, make_series, save
from tests.unit.io.samples import OBLIQUE, affines, make_affine, refused

TO_RAS = np.array([-1, -1, 1])
STUDY = {"StudyInstanceUID": "1.2.3.4", "FrameOfReferenceUID": "1.2.3.5", "AccessionNumber": "A7", "StudyID": "S9"}


def blobs(volume: Volume) -> tuple[np.ndarray, np.ndarray]:
    """Two masks that overlap, without symmetry, away from most slices."""
    one, other = np.zeros(volume.shape, bool), np.zeros(volume.shape, bool)
    one[2:5, 1:6, 3:7] = one[7, 2, 6] = True
    other[4:8, 5:7, 5:9] = True
    return one, other


def segments(volume: Volume, *data: np.ndarray, side="left") -> list[Segment]:
    names = ("Cochlea", "Cochlea, fitted shape")
    colours = ((1.0, 0.25, 0.0), (0.0, 1.0, 0.5))
    return [
        Segment(f"{name}, {side}", volume.with_data(one), colour, side)
        for name, one, colour in zip(names, data, colours, strict=False)
    ]


def same_points(found: np.ndarray, expected: np.ndarray, atol: float) -> None:
    """Two sets of points in the world are the same."""
    assert len(found) == len(expected) > 0
    order = [np.lexsort(np.round(points, 3).T) for points in (found, expected)]
    np.testing.assert_allclose(found[order[0]], expected[order[1]], rtol=0, atol=atol)


@given(affine=affines(sheared=True))
def test_seg_nrrd_by_simpleitk(tmp_path, affine):
    volume = Volume(np.zeros((9, 8, 10)), affine)
    masks = blobs(volume)
    write_seg_nrrd(tmp_path / "a.seg.nrrd", segments(volume, *masks))
    image = sitk.ReadImage(str(tmp_path / "a.seg.nrrd"))
    layers = sitk.GetArrayFromImage(image)
    for number, mask in enumerate(masks):
        np.testing.assert_array_equal(layers[..., number].T, mask)
        field = {key: image.GetMetaData(f"Segment{number}_{key}") for key in ("Name", "Color", "Layer", "LabelValue")}
        assert (field["Layer"], field["LabelValue"]) == (str(number), "1")
        ends = [int(x) for x in image.GetMetaData(f"Segment{number}_Extent").split()]
        index = np.argwhere(mask)
        assert ends == np.stack([index.min(axis=0), index.max(axis=0)], axis=1).ravel().tolist()
    assert image.GetMetaData("Segment1_Name") == "Cochlea, fitted shape, left"
    assert image.GetMetaData("Segment0_Color") == "1 0.25 0"
    assert "SCT^7771000^Left" in image.GetMetaData("Segment0_Tags")
    index = np.argwhere(masks[0])[::7]
    found = np.array([image.TransformIndexToPhysicalPoint(one.tolist()) for one in index]) * TO_RAS
    np.testing.assert_allclose(found, volume.to_world(index), rtol=0, atol=1e-9)


def test_an_empty_segment_and_other_names(tmp_path):
    volume = Volume(np.zeros((9, 8, 10)), make_affine(OBLIQUE))
    empty = segments(volume, np.zeros(volume.shape, bool), side="right")
    write_seg_nrrd(tmp_path / "a.seg.nrrd", empty)
    image = sitk.ReadImage(str(tmp_path / "a.seg.nrrd"))
    assert image.GetMetaData("Segment0_Extent") == "0 -1 0 -1 0 -1"
    assert "Right" in image.GetMetaData("Segment0_Tags")
    with refused(".seg.nrrd"):
        write_seg_nrrd(tmp_path / "a.nrrd", empty)
    moved = Volume(volume.data, make_affine())
    with refused("share a 3D grid"):
        write_seg_nrrd(tmp_path / "b.seg.nrrd", [*empty, *segments(moved, moved.data)])
    assert [path.name for path in tmp_path.iterdir()] == ["a.seg.nrrd"]


def frame_points(found: pydicom.Dataset, segment: int, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the voxels of a segment lie (RAS mm), by the standard's formula (C.7.6.2.1.1), and their values."""
    shared = found.SharedFunctionalGroupsSequence[0]
    orientation = np.array(shared.PlaneOrientationSequence[0].ImageOrientationPatient, float)
    row_distance, column_distance = map(float, shared.PixelMeasuresSequence[0].PixelSpacing)
    places, values = [], []
    for group, plane in zip(found.PerFrameFunctionalGroupsSequence, stored, strict=True):
        holder = group if "SegmentIdentificationSequence" in group else shared
        if holder.SegmentIdentificationSequence[0].ReferencedSegmentNumber != segment:
            continue
        corner = np.array(group.PlanePositionSequence[0].ImagePositionPatient, float)
        rows, columns = np.nonzero(plane)
        along_row = np.outer(columns * column_distance, orientation[:3])
        places.append((corner + along_row + np.outer(rows * row_distance, orientation[3:])) * TO_RAS)
        values.append(plane[rows, columns])
    return np.concatenate(places), np.concatenate(values)


def source_at(found: pydicom.Dataset) -> dict[str, np.ndarray]:
    """The position that each source slice has where a frame refers to it."""
    at = {}
    for group in found.PerFrameFunctionalGroupsSequence:
        item = group.DerivationImageSequence[0].SourceImageSequence[0]
        at[item.ReferencedSOPInstanceUID] = np.array(group.PlanePositionSequence[0].ImagePositionPatient, float)
    return at


@settings(max_examples=8)
@given(affine=affines(), side=st.sampled_from(["left", "right"]))
def test_dicom_segmentation_by_pydicom(tmp_path_factory, affine, side):
    folder = tmp_path_factory.mktemp("series")
    slices = make_series(ct(affine), **STUDY)
    scan = read_scan(save(folder / "ct", slices), with_source=True)
    check_source(scan.source, scan.volume)
    masks = blobs(scan.volume)
    write_dicom_segmentation(folder / "a.dcm", segments(scan.volume, *masks, side=side), scan.source)
    found = pydicom.dcmread(folder / "a.dcm")
    for number, mask in enumerate(masks, start=1):
        places, _ = frame_points(found, number, found.pixel_array)
        same_points(places, scan.volume.to_world(np.argwhere(mask)), 1e-4)  # numbers of 16 letters, fitted steps
        kind = found.SegmentSequence[number - 1].SegmentedPropertyTypeCodeSequence[0]
        assert kind.CodeMeaning == "Cochlea"
        assert kind.SegmentedPropertyTypeModifierCodeSequence[0].CodeMeaning.lower() == side
    position = {piece.SOPInstanceUID: np.array(piece.ImagePositionPatient, float) for piece in slices}
    for uid, place in source_at(found).items():
        np.testing.assert_allclose(place, position[uid], rtol=0, atol=1e-6)
    normal = np.cross(*(affine[:3, k] / np.linalg.norm(affine[:3, k]) for k in (0, 1)))
    distance = float(found.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0].SpacingBetweenSlices)
    assert distance == pytest.approx(abs(affine[:3, 2] @ normal), rel=1e-5)


@pytest.fixture(scope="module")
def tilted(tmp_path_factory):
    """A series with a tilted gantry, as a scan with its headers."""
    shear = np.eye(3)
    shear[1, 2] = 0.3
    series = make_series(ct(make_affine(OBLIQUE, spacing=(0.4, 0.5, 0.75), shear=shear)), **STUDY)
    return read_scan(save(tmp_path_factory.mktemp("series"), series), with_source=True), series


def test_probabilities_of_a_tilted_gantry_and_who_they_are_of(tilted, tmp_path):
    scan, series = tilted
    mask = blobs(scan.volume)[0]
    values = np.where(mask, np.random.default_rng(0).uniform(0.01, 1, mask.shape), 0)
    write_dicom_segmentation(tmp_path / "p.dcm", segments(scan.volume, values), scan.source, True)
    found = pydicom.dcmread(tmp_path / "p.dcm")
    places, stored = frame_points(found, 1, found.pixel_array)
    world = scan.volume.to_world(np.argwhere(mask))
    same_points(places, world, 1e-4)
    order = [np.lexsort(np.round(points, 3).T) for points in (places, world)]
    np.testing.assert_allclose(
        stored[order[0]] / found.MaximumFractionalValue, values[mask][order[1]], atol=0.5 / 255
    )
    assert (found.SegmentationType, found.SegmentationFractionalType) == ("FRACTIONAL", "PROBABILITY")
    kept = ["PatientName", "PatientID", "PatientBirthDate", "StudyInstanceUID", "FrameOfReferenceUID"]
    for name in (*kept, "AccessionNumber", "StudyID"):
        assert str(found[name].value) == str(series[0][name].value)
    assert found.SeriesInstanceUID != series[0].SeriesInstanceUID
    assert found.Modality == "SEG"
    # The same through the library's own eyes: a mask of the source's slices, found by their names.
    seg = pytest.importorskip("highdicom").seg.segread(tmp_path / "p.dcm")
    assert scan.source is not None
    uids = [header.SOPInstanceUID for header in scan.source.headers]
    back = seg.get_pixels_by_source_instance(
        uids, ignore_spatial_locations=True, assert_missing_frames_are_empty=True
    )
    np.testing.assert_allclose(back[..., 0].transpose(2, 1, 0), values, atol=0.5 / 255 + 1e-6)


def test_a_source_of_many_frames(tmp_path):
    volume = ct()
    scan = read_scan(save(tmp_path / "ct", [make_enhanced(volume, **STUDY)]), with_source=True)
    check_source(scan.source, scan.volume)
    masks = blobs(scan.volume)
    write_dicom_segmentation(tmp_path / "a.dcm", segments(scan.volume, *masks), scan.source)
    found = pydicom.dcmread(tmp_path / "a.dcm")
    for number, mask in enumerate(masks, start=1):
        same_points(frame_points(found, number, found.pixel_array)[0], scan.volume.to_world(np.argwhere(mask)), 1e-4)
    assert scan.source is not None
    frames = scan.source.headers[0].PerFrameFunctionalGroupsSequence
    for group in found.PerFrameFunctionalGroupsSequence:
        number = group.DerivationImageSequence[0].SourceImageSequence[0].ReferencedFrameNumber
        position = frames[int(number) - 1].PlanePositionSequence[0].ImagePositionPatient
        assert group.PlanePositionSequence[0].ImagePositionPatient == position


def test_sources_that_will_not_do(tmp_path, tilted):
    scan = read_scan(save(tmp_path / "ct", make_series(ct())), with_source=True)
    with refused("StudyInstanceUID", "dicom-seg"):
        check_source(scan.source, scan.volume)
    with refused("no DICOM"):
        check_source(None, scan.volume)
    enhanced = make_enhanced(ct(), **STUDY)
    shared = enhanced.SharedFunctionalGroupsSequence[0]
    for frame in enhanced.PerFrameFunctionalGroupsSequence:
        frame.PlaneOrientationSequence = shared.PlaneOrientationSequence
    del shared.PlaneOrientationSequence
    scan = read_scan(save(tmp_path / "odd", [enhanced]), with_source=True)
    with refused("headers"):
        check_source(scan.source, scan.volume)
    scan, _ = tilted
    with refused(".dcm"):
        write_dicom_segmentation(tmp_path / "a.nii", segments(scan.volume, blobs(scan.volume)[0]), scan.source)
    assert {path.name for path in tmp_path.iterdir()} == {"ct", "odd"}


def test_a_source_that_says_little_and_directions_that_differ_by_rounding(tmp_path):
    nothing = dict.fromkeys(["PatientName", "PatientID", "PatientBirthDate", "SliceThickness"])
    turns = make_series(ct())[0].ImageOrientationPatient

    def turned(k):
        return [f"{float(x) + 2e-6 * (k % 2):.6f}" for x in turns]

    series = make_series(ct(), **{name: value for name, value in STUDY.items() if name.endswith("UID")}, **nothing)
    for k, piece in enumerate(series):
        piece.ImageOrientationPatient = turned(k)
    scan = read_scan(save(tmp_path / "ct", series), with_source=True)
    check_source(scan.source, scan.volume)
    mask = blobs(scan.volume)[0]
    write_dicom_segmentation(tmp_path / "a.dcm", segments(scan.volume, mask), scan.source)
    found = pydicom.dcmread(tmp_path / "a.dcm")
    same_points(frame_points(found, 1, found.pixel_array)[0], scan.volume.to_world(np.argwhere(mask)), 1e-3)
    assert str(found.PatientName) == ""
    assert series[0].get("PatientName") is None  # what was read stays as it is


def test_headers_are_kept_only_when_asked_for(tmp_path):
    folder = save(tmp_path, make_series(ct(), **STUDY))
    assert read_scan(folder).source is None


@given(points=st.lists(st.tuples(*[st.floats(-500, 500)] * 3), min_size=1, max_size=9), kind=st.booleans())
def test_markups_are_lps_and_read_again(tmp_path, points, kind):
    path = tmp_path / "a.mrk.json"
    named = [Point(f"P{k}", place, "words") for k, place in enumerate(points)]
    write_markups(path, "Cochlea, left", named, "Curve" if kind else "Fiducial")
    (markup,) = json.loads(path.read_text())["markups"]
    assert (markup["coordinateSystem"], markup["type"]) == ("LPS", "Curve" if kind else "Fiducial")
    found = np.array([one["position"] for one in markup["controlPoints"]])
    np.testing.assert_array_equal(found * TO_RAS, np.array(points))
    # Slicer takes no whole number for a coordinate.
    assert all(isinstance(x, float) for one in markup["controlPoints"] for x in one["position"])
    again = read_landmarks(path).points
    np.testing.assert_array_equal(list(again.values()), np.array(points))


def test_markups_that_cannot_be_written(tmp_path):
    with refused("finite"):
        write_markups(tmp_path / "a.mrk.json", "a", [Point("A", (0, np.nan, 0))])
    with refused(".mrk.json"):
        write_markups(tmp_path / "a.json", "a", [Point("A", (0, 0, 0))])
    assert not list(tmp_path.iterdir())


def test_surfaces_by_libigl(tmp_path):
    igl = pytest.importorskip("igl")
    rng = np.random.default_rng(0)
    vertices, faces = rng.uniform(-200, 200, (12, 3)), np.array([[0, 2, 1], [3, 4, 5], [6, 7, 8], [9, 10, 11]])
    write_ply(tmp_path / "a.ply", vertices, faces, {"sd_mm": rng.uniform(0, 1, 12)})
    found, corners = igl.read_triangle_mesh(str(tmp_path / "a.ply"))
    np.testing.assert_allclose(found, vertices, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(corners, faces)
    write_stl(tmp_path / "a.stl", vertices, faces)
    found, corners = igl.read_triangle_mesh(str(tmp_path / "a.stl"))
    np.testing.assert_allclose(found[corners], vertices[faces], rtol=0, atol=1e-5)


def test_every_byte_of_a_coloured_surface(tmp_path):
    vertices, faces = np.arange(9.0).reshape(3, 3), np.array([[0, 1, 2]])
    colours = np.array([[255, 0, 0], [0, 128, 0], [0, 0, 64]])
    write_ply(tmp_path / "a.ply", vertices, faces, {"sd_mm": [0.25, 0.5, 1]}, colours)
    head, _, body = (tmp_path / "a.ply").read_bytes().partition(b"end_header\n")
    words = head.decode().splitlines()
    assert words[:3] == ["ply", "format binary_little_endian 1.0", "comment SPACE=RAS"]
    names = [line.split()[-1] for line in words if line.startswith("property") and "list" not in line]
    assert names == ["x", "y", "z", "sd_mm", "red", "green", "blue"]
    row = np.dtype([(name, "u1" if name in names[4:] else "<f4") for name in names])
    table = np.frombuffer(body, row, 3)
    np.testing.assert_array_equal(np.stack([table[axis] for axis in "xyz"], axis=1), vertices)
    np.testing.assert_array_equal(table["sd_mm"], [0.25, 0.5, 1])
    np.testing.assert_array_equal(np.stack([table[name] for name in names[4:]], axis=1), colours)
    assert body[3 * row.itemsize :] == b"\x03" + np.array([0, 1, 2], "<i4").tobytes()
    again = read_ply(tmp_path / "a.ply")
    np.testing.assert_array_equal(again[0], vertices)
    np.testing.assert_array_equal(again[1], faces)
    np.testing.assert_array_equal(again[2]["sd_mm"], [0.25, 0.5, 1])
