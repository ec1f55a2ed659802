"""Where DICOM slices lie: order, oblique and tilted stacks, gaps, doubles and uneven steps."""

import numpy as np
import pytest

from logishape.io import read_scan
from tests.unit.io.dicom_files import AFFINE, ct, decimal, make_series, save
from tests.unit.io.samples import OBLIQUE, make_affine, refused

# Positions are written with up to 16 characters: some 1e-12 mm.
PLACE = {"rtol": 0, "atol": 1e-9}
STRAIGHT = make_affine(spacing=(0.4, 0.5, 0.75), origin=(10, 20, 30), flips=(-1, -1, 1))


@pytest.mark.parametrize(
    "affine",
    [
        STRAIGHT,
        make_affine(np.eye(3)[[2, 0, 1]]),
        make_affine(np.eye(3)[[0, 2, 1]], flips=(1, 1, -1)),
        AFFINE,
        make_affine(OBLIQUE, shear=[[1, 0, 0], [0, 1, 0.4], [0, 0, 1]]),
    ],
    ids=["axial", "sagittal", "coronal", "oblique", "tilted"],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_every_voxel_lies_where_its_slice_says(tmp_path, affine, backwards):
    """Whatever the order along the third axis, which is chosen along the slice normal."""
    volume = ct(affine)
    slices = make_series(volume)
    save(tmp_path, slices[::-1] if backwards else slices)
    found = read_scan(tmp_path).volume
    data, affine = volume.data, volume.affine
    if np.linalg.det(np.diag([-1, -1, 1]) @ affine[:3, :3]) < 0:  # made against the normal of its slices
        data = data[:, :, ::-1]
        affine = affine @ [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, -1, volume.shape[2] - 1], [0, 0, 0, 1]]
    np.testing.assert_allclose(found.affine, affine, **PLACE)
    np.testing.assert_array_equal(found.data, data - 1024.0)


def test_gantry_tilt_is_said(tmp_path):
    angle = np.radians(20)
    save(
        tmp_path,
        make_series(ct(STRAIGHT @ [[1, 0, 0, 0], [0, 1, np.tan(angle) * 1.5, 0], [0, 0, 1, 0], [0, 0, 0, 1]])),
    )
    assert any("tilted by 20.0 degrees" in note for note in read_scan(tmp_path).notes)


def test_an_even_upright_stack_needs_no_words(tmp_path):
    save(tmp_path, make_series(ct()))
    assert read_scan(tmp_path).notes == ()


def move(k, distance):
    """A change of position along z for one slice of the straight stack."""
    places = [STRAIGHT[:3, 3] * [-1, -1, 1] + [0, 0, 0.75 * i] for i in range(10)]
    places[k][2] += distance
    return lambda i: [decimal(x) for x in places[i]]


def test_steps_beyond_a_hundredth_are_refused_and_smaller_ones_said(tmp_path):
    save(tmp_path / "good", make_series(ct(STRAIGHT), ImagePositionPatient=move(4, 0.004)))
    scan = read_scan(tmp_path / "good")
    assert any("stray by up to 0.00" in note for note in scan.notes)
    np.testing.assert_allclose(scan.volume.affine, STRAIGHT, rtol=0, atol=0.003)
    save(tmp_path / "bad", make_series(ct(STRAIGHT), ImagePositionPatient=move(4, 0.012)))
    with refused("0.738", "0.762", "0.750"):
        read_scan(tmp_path / "bad")


def test_steps_that_drift(tmp_path):
    """Neighbours differ by less than a hundredth, but the ends of the stack lie off."""
    heights = np.cumsum(np.r_[np.full(70, 0.75), np.full(70, 0.7555)])
    places = [[decimal(x) for x in (0, 0, height)] for height in heights]
    save(tmp_path, make_series(ct(STRAIGHT, (9, 8, 140)), ImagePositionPatient=lambda k: places[k]))
    with refused("stray"):
        read_scan(tmp_path)


@pytest.mark.parametrize(("gone", "words"), [([5], ["lacks 1, at", "33.75"]), ([4, 5, 7], ["lacks 3, at"])])
def test_missing_slices(tmp_path, gone, words):
    slices = make_series(ct(STRAIGHT, (9, 8, 20)))
    save(tmp_path, [piece for k, piece in enumerate(slices) if k not in gone])
    with refused("every 0.750 mm", *words):
        read_scan(tmp_path)


def test_doubles_with_the_same_pixels_are_dropped(tmp_path):
    slices = make_series(ct())
    save(tmp_path / "a", slices)
    save(tmp_path / "b", slices[3:5])
    scan = read_scan(tmp_path)
    np.testing.assert_array_equal(scan.volume.data, ct().data - 1024.0)
    assert any("same pixels, dropped: 2." in note for note in scan.notes)


def test_doubles_that_differ_are_refused(tmp_path):
    save(tmp_path / "a", make_series(ct()))
    other = ct().with_data(ct().data + np.int16(1))
    save(tmp_path / "b", make_series(other)[3:4])
    with refused("two different ones"):
        read_scan(tmp_path)


def test_stacks_side_by_side_are_refused(tmp_path):
    save(tmp_path / "a", make_series(ct(STRAIGHT)))
    aside = STRAIGHT.copy()
    aside[0, 3] += 5
    save(tmp_path / "b", make_series(ct(aside)))
    with refused("two different ones"):
        read_scan(tmp_path)


def test_one_place_only(tmp_path):
    save(tmp_path, make_series(ct(), ImagePositionPatient=["0", "0", "0"]))
    with refused("two different ones"):
        read_scan(tmp_path)


def test_bad_orientation_and_spacing(tmp_path):
    save(tmp_path / "a", make_series(ct(), ImageOrientationPatient=["1", "0", "0", "1", "0", "0"]))
    with refused("right angles"):
        read_scan(tmp_path / "a")
    save(tmp_path / "b", make_series(ct(), PixelSpacing=["0.5", "0"]))
    with refused("above zero"):
        read_scan(tmp_path / "b")
