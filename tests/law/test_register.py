"""What must be true of the registration to a reference: it follows a motion, knows the side, says when it fails."""

import functools
import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from logishape.cochlea import Frame, Located, Phantom, PhantomOptions, Point, make_phantom
from logishape.cochlea.blocks import BLOCK, Matches, choose_blocks, match_blocks, trimmed_motion
from logishape.cochlea.phantom_ear import MIRROR, mirror_frame
from logishape.cochlea.phantom_files import write_phantom
from logishape.cochlea.pipeline import Request, find_poses, run
from logishape.cochlea.reference import read_reference
from logishape.cochlea.register import Reference, register
from logishape.cochlea.vestibule import frame_of_model, frame_offset
from logishape.core.volume import Volume
from tests.problems import assert_one_sentence

TURN = Rotation.from_rotvec(np.radians(10) * np.array([0.6, -0.48, 0.64])).as_matrix()
SHIFT = np.array([2.0, -1.0, 2.0])  # 3 mm


@functools.cache
def phantom(lumen="fluid", seed=1) -> Phantom:
    return make_phantom(PhantomOptions(lumen=lumen, spacing_mm=0.4, size_mm=18, noise_hu=100.0), seed)


def true_frame(made: Phantom) -> Frame:
    return frame_of_model(made.ear.cochlea, made.ear.theta)


@functools.cache
def reference() -> Reference:
    """The same ear as in `phantom`, filled with air: other values in the lumen, other noise."""
    made = phantom("air")
    return Reference(made.volume, true_frame(made))


def moved(volume: Volume, frame: Frame) -> tuple[Volume, Frame]:
    """A CT and its frame after a motion about the cochlea."""
    middle = np.asarray(frame.origin)
    motion = np.eye(4)
    motion[:3, :3], motion[:3, 3] = TURN, middle + SHIFT - TURN @ middle
    return Volume(volume.data, motion @ volume.affine), Frame(np.asarray(frame.axes) @ TURN.T, middle + SHIFT)


def assert_near(one: Frame, other: Frame) -> None:
    assert one.side == other.side
    # Half a voxel, and what that is over the few millimetres that the ear reaches.
    assert np.all(np.array(frame_offset(one, other)) < [0.2, 4.0])


def test_a_moved_ct_has_the_moved_frame():
    volume, truth = moved(phantom().volume, true_frame(phantom()))
    (found,) = register(volume, reference(), side="right")
    assert found.by == "registration"
    assert_near(found.frame, truth)


def test_the_other_side_is_found_with_the_mirrored_reference():
    turn = np.diag([*np.diag(MIRROR), 1.0])
    volume, truth = Volume(phantom().volume.data, turn @ phantom().volume.affine), mirror_frame(true_frame(phantom()))
    (found,) = register(volume, reference())
    assert found.side == "left"
    assert_near(found.frame, truth)


def test_a_point_says_where_to_begin():
    volume, truth = moved(phantom().volume, true_frame(phantom()))
    point = Point(np.asarray(truth.to_world(np.array([[0.8, 0.5, 0.6]])))[0] + [1.0, -0.8, 0.6])
    (found,) = register(volume, reference(), point=point, side="right")
    assert_near(found.frame, truth)


def test_noise_is_refused():
    noise = np.random.default_rng(0).normal(800, 800, phantom().volume.shape)
    assert_one_sentence(
        lambda: register(Volume(noise, phantom().volume.affine), reference()), "registration .* failed"
    )


def test_blocks_find_a_motion_though_a_third_of_them_is_wrong():
    rng = np.random.default_rng(0)
    image = rng.normal(size=(20, 20, 20))
    seen = np.roll(image, (1, -2, 1), axis=(0, 1, 2))
    blocks = choose_blocks(image, 3)
    matches = match_blocks(image, seen, blocks, 3)
    np.testing.assert_array_equal(matches.found - matches.centres, np.tile([1, -2, 1], (len(blocks), 1)))
    np.testing.assert_allclose(matches.score, 1.0)
    assert blocks.min() >= 3
    assert blocks.max() <= 20 - BLOCK - 3
    centres = rng.uniform(0, 20, (90, 3))
    found = centres @ TURN.T + SHIFT
    found[::3] += rng.uniform(-5, 5, (30, 3))
    motion = trimmed_motion(Matches(centres, found, np.ones(90)))
    assert motion is not None
    np.testing.assert_allclose(motion.turn, TURN, atol=1e-9)
    np.testing.assert_allclose(motion.shift, SHIFT, atol=1e-8)
    assert trimmed_motion(Matches(centres[:5], found[:5], np.ones(5))) is None


def test_a_reference_is_a_scan_with_landmarks(tmp_path):
    folder = tmp_path / "reference"
    write_phantom(folder, phantom())
    found = read_reference(folder)
    assert found.frame.side == "right"
    np.testing.assert_allclose(found.frame.origin, phantom().ear.landmarks["C"], atol=1e-3)
    asked = Request(folder / "ct.nii.gz", tmp_path / "out", is_registered=True, reference=folder, side="right")
    (pose,) = find_poses(asked, None, phantom().volume, lambda _: None)
    assert isinstance(pose, Located)
    assert_near(pose.frame, found.frame)
    (folder / "right" / "landmarks.json").unlink()
    assert_one_sentence(lambda: read_reference(folder), "landmarks beside it")
    (folder / "landmarks.json").write_text(json.dumps({"side": "right", "landmarks_ras_mm": {"C": [0, 0, 0]}}))
    with pytest.raises(ValueError, match="apex"):
        read_reference(folder)
    (folder / "ct.nii.gz").unlink()
    assert_one_sentence(lambda: read_reference(folder), "hold a scan")
    assert_one_sentence(lambda: read_reference(tmp_path / "nowhere"), "no reference")


def test_a_registration_and_what_speaks_against_it_are_refused(tmp_path):
    asked = {"input": tmp_path / "ct.nii.gz", "out": tmp_path / "out"}
    assert_one_sentence(lambda: run(Request(**asked, reference=tmp_path)), "add --locate register")
    both = Request(**asked, landmarks=tmp_path / "l.json", is_registered=True)
    assert_one_sentence(lambda: run(both), "landmarks and a registration")
