"""What must be true where a network's probabilities stand in place of intensities."""

import copy
import json

import jsonschema
import numpy as np
import pytest
from scipy import ndimage

from logishape import cli
from logishape.cochlea import SegmentOptions, segment
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.cochlea.landmarks import frame_from_points
from logishape.cochlea.probability import UNKNOWN, check_map, map_at, options_with_map
from logishape.core.status import Status
from logishape.core.volume import Volume
from logishape.io import read_landmarks, read_result, write_volume
from logishape.metrics import compare
from logishape.report.figures import write_figures
from tests.problems import assert_one_sentence
from tests.segmentations import NAME, OPTIONS, View, phantom, write_case


def map_of(truth: np.ndarray, softness: float = 0.7) -> np.ndarray:
    """What a good network would say of a mask: 0.02 and 0.98, blurred a little (voxels)."""
    return ndimage.gaussian_filter(np.where(truth > 0, 0.98, 0.02).astype(np.float32), softness)


def true_map() -> Volume:
    ear = phantom().ear
    return ear.truth.with_data(map_of(ear.truth.data))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return write_case(tmp_path_factory.mktemp("private") / "phantom")


@pytest.fixture(scope="module")
def view(place) -> View:
    marks = read_landmarks(place / "right" / "landmarks.json")
    return View(phantom().volume, frame_from_points(marks.points, marks.side))


@pytest.fixture(scope="module")
def written(place, tmp_path_factory):
    """The command with the true map: nothing is told but the CT and the map."""
    folder = tmp_path_factory.mktemp("out")
    write_volume(place / "Nightingale.mha", true_map())
    call = ("cochlea", place / NAME, "--appearance-probability", place / "Nightingale.mha")
    code = run_command(*call, "--draws", 20, "--overwrite", "-o", folder)
    return code, folder / "right"


def run_command(*words) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["logishape", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
    return int(end.value.code or 0)


def dice(result, name="segmentation") -> float:
    return compare(result.labels.on_grid(name), phantom().ear.truth).dice


@pytest.mark.slow
def test_the_truth_as_a_map_gives_the_truth(written):
    code, folder = written
    stored = read_result(folder)
    assert code == 0, stored.record["flags"]
    assert compare(stored.segmentation, phantom().ear.truth).dice > 0.95
    assert compare(stored.shape, phantom().ear.truth).dice > 0.9
    assert stored.record["quality"]["map_contrast"] > 5  # 7.8 between 0.02 and 0.98


@pytest.mark.slow
def test_the_record_says_what_was_read(written, place):
    _, folder = written
    record = json.loads((folder / "result.json").read_text())
    schema = json.loads((DEFAULT_FILE.parent / "result.schema.json").read_text())
    jsonschema.validate(record, schema)
    assert record["appearance"]["model"] == "probability map"
    assert record["appearance"]["inside"] is None
    assert record["posterior"]["kind"] == record["options"]["intervals"] == "observed"
    assert any("probability map took the place" in note for note in record["notes"])
    read = record["provenance"]["appearance_probability"]
    assert read["format"] == "metaimage"
    assert len(read["sha256"]) == 64
    assert read["sha256"] != record["provenance"]["input"]["sha256"]
    page = (folder / "report.html").read_text()
    assert read["sha256"] in page
    assert "Nightingale" not in page + json.dumps(record)
    broken = copy.deepcopy(record)
    del broken["provenance"]["appearance_probability"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


@pytest.mark.slow
def test_figures_but_those_of_intensities(written):
    _, folder = written
    assert len(write_figures(folder, "overlay")) == 2
    assert_one_sentence(lambda: write_figures(folder, "densities"), "a probability map was read instead")


@pytest.mark.slow
def test_a_mirrored_ear_gives_mirrored_results(view):
    here = view.segmented(appearance_probability=true_map())
    mirrored = view.mirrored()
    there = mirrored.segmented(appearance_probability=Volume(true_map().data, mirrored.volume.affine))
    assert (here.side, there.side) == ("right", "left")
    np.testing.assert_allclose(there.theta, here.theta, atol=1e-4)
    for mask in ("segmentation", "shape"):
        one, other = (found.labels.on_grid(mask).data for found in (here, there))
        assert np.count_nonzero(one != other) <= 3
    assert np.abs(there.labels.marginal - here.labels.marginal).max() < 1e-3
    assert there.measurements["A"].value == pytest.approx(here.measurements["A"].value, rel=1e-3)


@pytest.mark.slow
def test_a_map_on_a_coarser_grid_that_lies_another_way(view):
    """0.5 mm voxels stored along other axes, about the ear alone, against 0.3 mm of the CT."""
    whole = true_map()
    axes = np.diag([0.5, 0.5, 0.5, 1.0])[[2, 0, 1, 3]]
    middle = np.array([0.6, 0.2, 0.8]) @ np.asarray(view.frame.axes) + np.asarray(view.frame.origin)
    axes[:3, 3] = middle - axes[:3, :3] @ np.full(3, 15.5)
    index = np.stack(np.meshgrid(*[np.arange(32)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    smooth = whole.with_data(ndimage.gaussian_filter(whole.data, 0.6))
    world = Volume(np.zeros((32, 32, 32)), axes).to_world(index)
    coarse = Volume(map_at(smooth, world).reshape(32, 32, 32), axes)
    found = view.segmented(appearance_probability=coarse)
    assert found.is_trusted, found.flags
    assert dice(found) > 0.9


@pytest.mark.slow
def test_a_map_that_says_nothing_leaves_the_prior_and_is_not_trusted(view):
    noise = np.random.default_rng(0).normal(0, 0.005, view.volume.shape)
    flat = view.volume.with_data((0.5 + noise).astype(np.float32))
    found = view.segmented(appearance_probability=flat)
    assert not found.is_trusted
    assert "map_contrast" in {flag.name for flag in found.flags if flag.is_serious}
    # 0.02 nats from voxel to voxel, over some thousand of them at a tenth each, move hardly anything.
    assert np.all(np.abs(found.theta - found.cochlea.mean()) < 0.1 * found.cochlea.sd())
    assert found.fit.status is Status.NO_INFORMATION
    assert found.posterior is None


@pytest.mark.slow
def test_the_other_channel_of_a_network_is_not_trusted(view):
    inverted = true_map()
    found = view.segmented(appearance_probability=inverted.with_data(1 - inverted.data))
    assert "map_contrast" in {flag.name for flag in found.flags if flag.is_serious}


def test_what_goes_with_a_map():
    """A correction for blur renders intensities; what was asked for beside it stays."""
    options, note = options_with_map(SegmentOptions())
    assert options.intervals == "observed"
    assert "blur does to sizes cannot be taken off" in note
    for choice in ({"preset": "paper"}, {"posterior": "mcmc"}, {"intervals": "complete"}):
        asked = SegmentOptions(**choice)
        options, note = options_with_map(asked)
        assert options == asked
        assert "not modelled" in note


# Sampling, and maps that cannot be used.


def test_a_map_on_the_same_grid_is_read_as_it_is():
    volume = Volume.from_spacing(np.random.default_rng(0).random((9, 10, 11)), 0.3, (-40.0, 12.0, 7.0))
    index = np.stack(np.meshgrid(*map(np.arange, volume.shape), indexing="ij"), axis=-1).reshape(-1, 3)
    found = map_at(volume, volume.to_world(index)).reshape(volume.shape)
    np.testing.assert_allclose(found, volume.data, atol=1e-6)
    assert np.all(map_at(volume, volume.to_world(index[:5] - 2)) == UNKNOWN)


def spoilt(good):
    data = good.data.copy()
    data[3, 4, 5] = np.nan
    return good.with_data(data)


BAD = {
    "bytes": (lambda good: good.with_data(np.round(255 * good.data)), "from 0 to 1 but .* to 25\\d; divide"),
    "logits": (lambda good: good.with_data(np.log(good.data / (1 - good.data))), "from 0 to 1 but .*; apply the sig"),
    "a number that is none": (spoilt, "finite numbers but 1 voxels are not"),
    "constant": (lambda good: good.with_data(np.full(good.shape, 0.5)), "every voxel is 0.5"),
    "elsewhere": (lambda good: Volume(good.data, _shifted(good.affine, 500)), "no part of the world"),
    "two axes": (lambda good: Volume.from_spacing(good.data[0]), "three axes but has 2"),
    "an array": (lambda good: good.data, "should be a Volume but is a ndarray"),
}


def _shifted(affine, by):
    moved = affine.copy()
    moved[0, 3] += by
    return moved


@pytest.mark.parametrize("name", BAD)
def test_bad_maps_are_refused_in_a_sentence(name):
    change, pattern = BAD[name]
    assert_one_sentence(lambda: check_map(change(true_map()), phantom().volume), pattern)


def test_a_map_beside_the_cochlea_is_refused(view):
    """It shares a corner of the CT, where the cochlea is not."""
    good = true_map()
    corner = Volume(good.data[:12, :12, :12] + np.linspace(0, 0.01, 12, dtype=np.float32), good.affine)
    assert_one_sentence(
        lambda: segment(view.volume, view.frame, options=OPTIONS, appearance_probability=corner),
        "should cover the cochlea but holds 0 % of it",
    )


def test_the_command_refuses_a_bad_map(place, tmp_path, capsys):
    good = true_map()
    write_volume(tmp_path / "map.nii.gz", good.with_data(100 * good.data))
    call = ("cochlea", place / NAME, "-o", tmp_path / "out", "--appearance-probability")
    assert run_command(*call, tmp_path / "map.nii.gz") == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert "from 0 to 1 but its values go from" in told
    assert not (tmp_path / "out").exists()
    assert run_command(*call, tmp_path / "none.nii.gz") == 2
