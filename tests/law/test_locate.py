"""What must be true of the search for cochleae: it finds them wherever they are, both or one, and nothing else."""

import functools
import sys
from pathlib import Path

import numpy as np
import pytest

from logishape.cochlea import Frame, Phantom, PhantomOptions, Point, make_phantom
from logishape.cochlea.locate import LEAST_SCORE, Located, locate
from logishape.cochlea.vestibule import frame_of_model, frame_offset
from logishape.core.volume import Volume
from tests.problems import assert_one_sentence
from tests.segmentations import View, beside, mirrored_data

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import surroundings


@functools.cache
def phantom(lumen="fluid", spacing=0.4) -> Phantom:
    """A right ear in a small field of view."""
    return make_phantom(PhantomOptions(lumen=lumen, spacing_mm=spacing, size_mm=16, noise_hu=100.0), 1)


def true_frame(made: Phantom) -> Frame:
    """The frame that landmarks on this duct would have on average, which is what can be seen."""
    return frame_of_model(made.ear.cochlea, made.ear.theta)


@functools.cache
def found_in(lumen="fluid", spacing=0.4) -> Located:
    (one,) = locate(phantom(lumen, spacing).volume)
    return one


def assert_near(one: Frame, other: Frame, mm: float, degrees: float) -> None:
    assert one.side == other.side
    assert np.all(np.array(frame_offset(one, other)) < [mm, degrees])


@pytest.mark.parametrize(("lumen", "spacing"), [("fluid", 0.4), ("air", 0.3)], ids=str)
def test_a_cochlea_is_found(lumen, spacing):
    one = found_in(lumen, spacing)
    # 0.1 mm and 5 to 8 degrees were seen; a fit mends up to 2 mm and 20 degrees.
    assert_near(one.frame, true_frame(phantom(lumen, spacing)), 1.0, 12.0)
    assert one.side == "right"
    assert one.score > LEAST_SCORE + 0.05
    assert one.margin > 0.1
    assert one.rivals == ()


CHANGES = {
    "both": lambda view: view.moved().mirrored(),
    "moved": lambda view: view.moved(),
    "mirrored": lambda view: view.mirrored(),
}


@pytest.mark.parametrize("name", ["both", *(pytest.param(one, marks=pytest.mark.slow) for one in list(CHANGES)[1:])])
def test_a_patient_elsewhere_is_found_there(name):
    """Turned, moved or mirrored in the world: the search sees the very same numbers."""
    changed = CHANGES[name](View(phantom().volume, found_in().frame))
    (found,) = locate(changed.volume)
    assert found.side == changed.frame.side == ("right" if name == "moved" else "left")
    np.testing.assert_allclose(found.frame.axes, changed.frame.axes, atol=1e-6)
    np.testing.assert_allclose(
        found.frame.origin, changed.frame.origin, atol=5e-6
    )  # voxel indices are single precision
    assert found.score == pytest.approx(found_in().score, abs=1e-6)


def test_the_order_of_voxels_does_not_matter():
    changed = View(phantom().volume, found_in().frame).reordered()
    (found,) = locate(changed.volume)
    assert_near(found.frame, found_in().frame, 0.3, 3.0)  # other lattice points, other orientations to start from


def to_bytes(values: np.ndarray) -> np.ndarray:
    """An 8-bit copy: 14 HU to a grey value."""
    return np.clip(np.round((values + 1000) * 255 / 3500), 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    "change",
    [
        lambda values: 0.7 * values + np.float32(200),
        to_bytes,
        pytest.param(lambda values: np.round(values + 1024).astype(np.int16), marks=pytest.mark.slow),
    ],
    ids=["another scale", "8 bits", "HU + 1024"],
)
def test_units_do_not_matter(change):
    volume = phantom().volume
    (found,) = locate(volume.with_data(change(volume.data)))
    assert_near(found.frame, found_in().frame, 0.3, 5.0)


def test_both_ears_are_found():
    """One ear and its mirror image, 16 mm apart: each where it would be alone."""
    volume = phantom().volume
    pair = beside(mirrored_data(volume), volume)
    found = locate(pair)
    assert sorted(one.side for one in found) == ["left", "right"]
    assert found[0].score >= found[1].score
    ears = {one.side: one for one in found}
    assert_near(ears["right"].frame, found_in().frame, 0.3, 3.0)
    mirror = np.diag([-1.0, 1.0, 1.0])  # about the plane between the two
    at = mirror @ (ears["left"].middle - seam(pair)) + seam(pair)
    assert np.linalg.norm(at - found_in().middle) < 0.3
    (right,) = locate(pair, side="right")
    assert_near(right.frame, ears["right"].frame, 0.1, 1.0)


def seam(volume: Volume) -> np.ndarray:
    return volume.to_world((np.array(volume.shape) - 1) / 2)


def test_two_of_one_side_need_a_point():
    """Nobody has two right ears: which is meant must be said, and can be."""
    volume = phantom().volume
    twins = beside(volume, volume)
    assert_one_sentence(lambda: locate(twins), r"two places look like a right cochlea .* say which with --at X,Y,Z")
    step = volume.affine[:3, 0] * volume.shape[0]
    for at in (found_in().middle, found_in().middle - step):
        (found,) = locate(twins, point=Point(at + np.array([1.0, -1.0, 1.0])))
        assert np.linalg.norm(found.middle - at) < 0.3


def test_the_other_ear_is_not_there():
    assert_one_sentence(lambda: locate(phantom().volume, side="left"), "no left cochlea was found: what looks most")
    at = found_in().middle
    assert_one_sentence(
        lambda: locate(phantom().volume, point=Point(at, "left")), r"no left cochlea was found within 2.5 mm of"
    )


def without(kind: str) -> Volume:
    """A small volume that has no cochlea."""
    rng = np.random.default_rng(5)
    if kind == "filled":
        return surroundings.fill_cochlea(phantom().volume, found_in().frame, rng)
    grid = surroundings._grid((18.0,) * 3, 0.4)
    tissue, holes = {"bone": surroundings._block, "soft": surroundings._muscle, "skull": surroundings._skull}[kind](
        grid, rng
    )
    return grid.with_data(surroundings._seen(grid, tissue, holes, rng))


@pytest.mark.parametrize("kind", ["bone", "soft", "skull", "filled"])
def test_what_is_no_cochlea_is_refused(kind):
    assert_one_sentence(lambda: locate(without(kind)), "no cochlea was found: (what looks most|nothing there)")


@pytest.mark.parametrize(
    "direction",
    [(0, 0, 1), *(pytest.param(one, marks=pytest.mark.slow) for one in ((1, 0, 0), (0, -1, 0)))],
    ids=str,
)
def test_half_a_cochlea_is_refused(direction):
    """The field of view ends within the cochlea; what is left of it is not taken for another one."""
    half = surroundings.cut(phantom().volume, true_frame(phantom()), direction, 0.0)
    assert_one_sentence(lambda: locate(half), "no cochlea was found")


def test_the_share_that_is_done_is_told():
    told: list[float] = []
    locate(phantom().volume, point=Point(found_in().middle), tell=told.append)
    assert told == sorted(told)
    assert told[-1] == 1
