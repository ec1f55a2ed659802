"""The crop around a cochlea: any grid gives the same values, and its intensities say what fills the lumen."""

import jaxtyping
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from logishape.cochlea import Frame
from logishape.cochlea.lumen import Intensities, find_intensities, lumen_and_bone
from logishape.cochlea.reformat import LOWER, SHAPE, SPACING, UPPER, Crop, grid_points, reformat
from logishape.core.volume import Volume
from tests.problems import assert_one_sentence
from tests.unit.io.samples import OBLIQUE, make_affine

SLOPE = np.array([37.0, -21.0, 55.0])  # HU per mm
AIR, FLUID, BONE = -820.0, 190.0, 2130.0  # HU


@pytest.fixture(autouse=True)
def as_a_user_runs_it(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def place(side="right", seed=0) -> Frame:
    """A frame turned at random, its crop's middle near the world's (30, -10, 5)."""
    turn = Rotation.random(rng=np.random.default_rng(seed)).as_matrix()
    axes = turn @ np.asarray(Frame.identity(side).axes)
    return Frame(axes, np.array([30.0, -10.0, 5.0]) - 0.5 * (LOWER + UPPER) @ axes)


def world(frame: Frame, points: np.ndarray) -> np.ndarray:
    return points @ np.asarray(frame.axes) + np.asarray(frame.origin)


def ramp(shape, affine) -> Volume:
    """Values that grow evenly along the world's axes: linear interpolation makes no error."""
    volume = Volume(np.zeros(shape, np.float32), affine)
    positions = volume.to_world(np.moveaxis(np.indices(shape), 0, -1))
    return volume.with_data((positions @ SLOPE).astype(np.float32))


def centred(shape, spacing, flips=(1, 1, 1), axes=OBLIQUE, shift=(0.0, 0.0, 0.0)) -> Volume:
    """The ramp on a grid whose middle voxel lies in the middle of `place`'s crop."""
    affine = make_affine(axes, spacing, (0, 0, 0), flips)
    middle = (np.array(shape) - 1) / 2 @ affine[:3, :3].T
    affine[:3, 3] = np.array([30.0, -10.0, 5.0]) + shift - middle
    return ramp(shape, affine)


def test_the_crop_is_the_papers():
    points = grid_points()
    assert SHAPE == (60, 50, 50)
    assert points.shape == (150_000, 3)
    np.testing.assert_allclose(points.min(axis=0), LOWER + SPACING / 2)
    np.testing.assert_allclose(points.max(axis=0), UPPER - SPACING / 2)
    np.testing.assert_allclose(points[1] - points[0], [0, 0, SPACING], atol=1e-12)  # the last axis runs fastest


@pytest.mark.parametrize("flips", [(1, 1, 1), (-1, 1, -1), (-1, -1, -1)], ids=str)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_ramp_is_reproduced_from_any_grid(side, flips):
    frame = place(side, 1)
    volume = centred((80, 60, 50), (0.25, 0.35, 0.5), flips)
    crop = reformat(volume, frame)
    assert crop.intensities.dtype == np.float32
    assert crop.share_covered == 1
    # Single precision of values up to 3000 HU, and of the weights between two voxels.
    np.testing.assert_allclose(crop.intensities, world(frame, crop.points) @ SLOPE, atol=5e-3)


def test_integers_are_not_rounded():
    frame, volume = place(seed=2), centred((60, 60, 60), (0.4, 0.4, 0.4))
    whole = volume.with_data(np.round(volume.data).astype(np.int16))
    found = reformat(whole, frame).intensities
    assert np.mean(found != np.round(found)) > 0.9
    np.testing.assert_allclose(found, reformat(volume, frame).intensities, atol=0.51)  # half a HU, and rounding


def test_only_the_block_around_the_crop_is_read():
    frame, volume = place(seed=3), centred((90, 90, 90), (0.3, 0.3, 0.3))
    index = volume.to_index(world(frame, grid_points()))
    spoilt = np.full(volume.shape, np.nan, np.float32)
    first, last = np.floor(index.min(axis=0)).astype(int), np.ceil(index.max(axis=0)).astype(int)
    block = tuple(slice(a, b + 1) for a, b in zip(first, last, strict=True))
    spoilt[block] = volume.data[block]
    found = reformat(volume.with_data(spoilt), frame)
    np.testing.assert_array_equal(found.intensities, reformat(volume, frame).intensities)


def test_coverage_is_where_the_voxel_centres_reach():
    frame, volume = place(seed=4), centred((40, 60, 60), (0.25, 0.3, 0.3), shift=(1.0, 0.5, -1.0))
    crop = reformat(volume, frame)
    index = volume.to_index(world(frame, crop.points))
    expected = np.all((index > -1e-9) & (index < np.array(volume.shape) - 1 + 1e-9), axis=1)
    np.testing.assert_array_equal(crop.is_covered, expected)
    assert 0.5 < crop.share_covered < 0.95
    inside = crop.is_covered
    exact = world(frame, crop.points[inside]) @ SLOPE
    np.testing.assert_allclose(crop.intensities[inside], exact, atol=5e-3)
    assert np.all(np.isfinite(crop.intensities))  # beyond the border the nearest voxel's


@pytest.mark.parametrize("shift", [(8.0, 0.0, 0.0), (100.0, 0.0, 0.0)], ids=["cut", "elsewhere"])
def test_too_little_of_the_cochlea_is_refused(shift):
    volume = centred((40, 40, 40), (0.3, 0.3, 0.3), axes=np.eye(3), shift=shift)
    assert_one_sentence(lambda: reformat(volume, place(seed=5)), "holds only [0-9]+ %")


def make_crop(lumen: float, bone: float, noise: float, other: float | None = None, seed: int = 0) -> Crop:
    """A crop whose voxels are lumen (three in ten) or bone, with partial volume in between, and a strip of others."""
    rng, points = np.random.default_rng(seed), grid_points()
    kind = rng.random(len(points))
    share = np.where(kind < 0.3, 0.0, np.where(kind < 0.4, rng.random(len(points)), 1.0))
    values = lumen + share * (bone - lumen)
    if other is not None:
        values[points[:, 0] > 5.5] = other
    values = values + rng.normal(0, noise, len(points))
    return Crop(points, values.astype(np.float32), np.ones(len(points), bool))


CASES = {
    "fluid": make_crop(FLUID, BONE, 60.0, other=-900.0),
    "air": make_crop(AIR, BONE, 60.0, other=100.0),
    "noisy fluid": make_crop(FLUID, BONE, 300.0, other=-900.0),
    "noisy air": make_crop(AIR, BONE, 300.0, other=100.0),
}


@pytest.mark.parametrize("name", CASES)
def test_modes_and_filling(name):
    found, lumen = find_intensities(CASES[name]), FLUID if "fluid" in name else AIR
    # Partial volume pulls the medians by a hundredth or two of the step; much noise by more.
    tolerance = (0.08 if "noisy" in name else 0.02) * (BONE - lumen)
    assert found.filling == name.split()[-1]
    assert found.lumen == pytest.approx(lumen, abs=tolerance)
    assert found.bone == pytest.approx(BONE, abs=tolerance)
    assert found.step == found.bone - found.lumen
    assert found.looks_like_hu
    assert found.gain == pytest.approx(1, abs=0.12)
    assert abs(found.offset) < 200


def test_noise_is_that_of_the_image_and_never_too_small():
    found = find_intensities(CASES["noisy air"])
    assert 200 < found.lumen_noise < 400
    assert 250 <= found.bone_noise < 400
    quiet = find_intensities(make_crop(AIR, BONE, 1.0))
    # A floor of 150 and 250 HU: real edges are softer than their noise.
    assert quiet.lumen_noise == pytest.approx(150, rel=0.05)
    assert quiet.bone_noise == pytest.approx(250, rel=0.05)


@pytest.mark.parametrize(("gain", "offset"), [(0.7, 200.0), (1.3, -500.0), (0.05, 40.0), (12.0, 30_000.0)], ids=str)
@pytest.mark.parametrize("name", ["fluid", "air"])
def test_gain_and_offset_move_the_intensities_and_nothing_else(name, gain, offset):
    crop = CASES[name]
    before = find_intensities(crop)
    after = find_intensities(Crop(crop.points, np.float32(gain) * crop.intensities + offset, crop.is_covered))
    assert after.filling == name
    assert not after.looks_like_hu
    # Half a bin of the histogram that the modes are read from: the bins move along, but rounding may tip one.
    tolerance = gain * before.step / 100
    assert after.lumen == pytest.approx(gain * before.lumen + offset, abs=tolerance)
    assert after.bone == pytest.approx(gain * before.bone + offset, abs=tolerance)
    assert after.lumen_noise == pytest.approx(gain * before.lumen_noise, rel=0.02)
    assert after.bone_noise == pytest.approx(gain * before.bone_noise, rel=0.02)
    assert after.gain == pytest.approx(gain * before.gain, rel=0.02)
    assert after.offset == pytest.approx(gain * before.offset + offset, abs=3 * tolerance)


def test_a_clipped_scale_does_not_move_bone():
    """Scanners that end at 2000 HU or so pile up all bright bone in one value; the step stays visible."""
    crop = CASES["air"]
    clipped = np.minimum(crop.intensities, np.float32(2000))
    lumen, bone = lumen_and_bone(clipped.astype(float))
    assert lumen == pytest.approx(AIR, abs=60)
    assert bone == pytest.approx(2000, abs=1)


@pytest.mark.parametrize(
    ("gain", "offset", "expected"),
    [(1.0, 0.0, True), (0.85, 0.0, True), (1.2, 250.0, True), (0.75, 0.0, False), (1.3, 0.0, False), (1, 400, False)],
    ids=str,
)
@pytest.mark.parametrize("filling", ["fluid", "air"])
def test_what_looks_like_hu(filling, gain, offset, expected):
    lumen = gain * {"fluid": FLUID, "air": AIR}[filling] + offset
    found = Intensities(filling, lumen, gain * BONE + offset, 1.0, 1.0)
    assert found.gain == pytest.approx(gain)
    assert found.offset == pytest.approx(offset, abs=1e-9)
    assert found.looks_like_hu is expected


ONE_MODE = {
    "noise": np.random.default_rng(1).normal(500, 300, 150_000),
    "faint noise": np.random.default_rng(2).normal(40, 5, 150_000),
    "ramp": grid_points() @ SLOPE,
}


@pytest.mark.parametrize("values", ONE_MODE.values(), ids=list(ONE_MODE))
def test_one_mode_is_refused(values):
    crop = Crop(grid_points(), values.astype(np.float32), np.ones(len(values), bool))
    assert_one_sentence(lambda: find_intensities(crop), "have one mode")


def test_a_middle_outside_the_ct_is_refused():
    crop = CASES["air"]
    beyond = Crop(crop.points, crop.intensities, crop.points[:, 0] > 4.0)
    assert_one_sentence(lambda: find_intensities(beyond), "the cochlea's middle inside the CT")


def test_what_the_ct_does_not_cover_is_not_looked_at():
    crop = CASES["air"]
    is_covered = crop.points[:, 1] < 1.0
    spoilt = np.where(is_covered, crop.intensities, np.float32(9999))
    there, here = (find_intensities(Crop(crop.points, one, is_covered)) for one in (spoilt, crop.intensities))
    assert there == here
