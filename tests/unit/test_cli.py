"""The command line: light to start, and whatever is wrong is one sentence, exit code 2 and nothing written."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - its own documentation calls it so
import typer

import logishape as ls
from logishape import cli
from logishape.cli.cochlea import name_outputs
from logishape.io import write_volume
from tests.unit.io.dicom_files import UID, ct, make_series, save
from tests.unit.io.samples import make_affine

HEAVY = ("jax", "SimpleITK", "matplotlib", "scipy", "numpy", "pydicom", "skimage")
C, A, RW = (30.0, -10.0, 5.0), (30.0, -10.0, 8.0), (36.0, -10.0, 5.0)
MARKS = {"C": C, "A": A, "RW": RW}


@pytest.fixture(autouse=True)
def as_a_user_runs_it(monkeypatch, tmp_path):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", os.environ.get("JAX_COMPILATION_CACHE_DIR", str(tmp_path)))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def run(monkeypatch, capsys):
    """A command as if typed: exit code, stdout and stderr."""

    def call(*arguments) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["logishape", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return int(caught.value.code or 0), *capsys.readouterr()

    return call


def scan(spacing=0.5, shape=(40, 40, 40)) -> ls.Volume:
    """An image with something in it, from (20, -20, -5) on; there is no cochlea to be found."""
    values = np.random.default_rng(0).normal(500, 300, shape).astype(np.float32)
    return ls.Volume.from_spacing(values, spacing, (20, -20, -5))


@pytest.fixture
def place(tmp_path):
    """A folder with a CT and landmarks that would be tried."""
    write_volume(tmp_path / "ct.nii.gz", scan())
    write_marks(tmp_path / "marks.json")
    return tmp_path


def write_marks(path, points=MARKS, side="right"):
    path.write_text(json.dumps({"side": side, "landmarks_ras_mm": points}))
    return path


# Starting.

_STARTED = """
import sys
sys.argv = ["logishape", *sys.argv[1:]]
from logishape.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("heavy:", *sorted(set(sys.modules) & set({heavy!r})))
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], ("cochlea", "phantom", "evaluate", "figure", "demo", "reproduce")),
        (
            ["cochlea", "--help"],
            (
                *("--landmarks", "--at", "--side", "--series", "--preset", "--formats", "--overwrite", "--json"),
                *("--posterior", "--appearance-probability"),
            ),
        ),
        (["phantom", "--help"], ("--spacing", "--lumen")),
        (["evaluate", "--help"], ("--region",)),
        (["figure", "--help"], ("overlay", "evolution", "--out")),
        (["report", "--help"], ("OUT", "report.html")),
        (["reproduce", "--help"], ("--data", "--only", "--quick", "robustness")),
        (["--version"], (ls.__version__,)),
        ([], ("Usage",)),
    ],
    ids=lambda value: " ".join(value) or "nothing",
)
def test_help_is_light(arguments, words):
    code = _STARTED.format(heavy=HEAVY)
    began = os.times()
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
    ended = os.times()
    took = ended.children_user + ended.children_system - began.children_user - began.children_system
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    if arguments:
        assert done.returncode == 0, text
        assert done.stdout.splitlines()[-1].strip() == "heavy:"
    for word in words:
        assert word in text
    assert took < 2  # seconds of the processor; 0.4 on a quiet machine


# What is refused.


def plain(path, place):
    return [path, "-o", place / "out", "--landmarks", place / "marks.json"]


def missing(place):
    return plain(place / "gone.nii.gz", place)


def empty(place):
    (place / "empty.nii.gz").write_bytes(b"")
    return plain(place / "empty.nii.gz", place)


def truncated(place):
    whole = (place / "ct.nii.gz").read_bytes()
    (place / "half.nii.gz").write_bytes(whole[: len(whole) // 2])
    return plain(place / "half.nii.gz", place)


def corrupt(place):
    write_volume(place / "ct.nrrd", scan())
    whole = (place / "ct.nrrd").read_bytes()
    (place / "ct.nrrd").write_bytes(whole[:-4000] + bytes(4000))
    return plain(place / "ct.nrrd", place)


def unknown_kind(place):
    (place / "ct.jpg").write_bytes(b"\xff\xd8\xff")
    return plain(place / "ct.jpg", place)


def of_axes(*sizes):
    def make(place):
        values = np.random.default_rng(0).normal(size=sizes).astype(np.float32)
        sitk.WriteImage(sitk.GetImageFromArray(values, isVector=False), str(place / "odd.nii.gz"))
        return plain(place / "odd.nii.gz", place)

    return make


def no_dicom(place):
    (place / "notes").mkdir()
    (place / "notes" / "readme.txt").write_text("nothing here")
    return plain(place / "notes", place)


def mr_series(place):
    return plain(save(place / "mr", make_series(ct(), Modality="MR", SOPClassUID="1.2.840.10008.5.1.4.1.1.4")), place)


def with_values(change):
    def make(place):
        values = scan().data
        change(values)
        write_volume(place / "odd.nii.gz", scan().with_data(values))
        return plain(place / "odd.nii.gz", place)

    return make


def set_nan(values):
    values[3, 4, 5] = np.nan


def set_all(values):
    values[:] = 40


def set_mask(values):
    values[:] = values > 700


def with_shape(*shape):
    def make(place):
        write_volume(place / "odd.nii.gz", scan(shape=shape))
        return plain(place / "odd.nii.gz", place)

    return make


def several(*options):
    def make(place):
        return [place / "ct.nii.gz", place / "other.nii.gz", "-o", place / "out", *options]

    return make


def coarse(place):
    write_volume(place / "coarse.nii.gz", scan(0.8, (25, 25, 25)))
    return plain(place / "coarse.nii.gz", place)


def no_marks(place):
    return [place / "ct.nii.gz", "-o", place / "out", "--landmarks", place / "gone.json"]


def bad_marks(place):
    (place / "marks.json").write_text("{")
    return plain(place / "ct.nii.gz", place)


def with_marks(**points):
    def make(place):
        write_marks(place / "marks.json", MARKS | points)
        return plain(place / "ct.nii.gz", place)

    return make


def without_side(place):
    write_marks(place / "marks.json", side=None)
    return plain(place / "ct.nii.gz", place)


def with_options(*options, landmarks=True):
    def make(place):
        given = plain(place / "ct.nii.gz", place) if landmarks else [place / "ct.nii.gz", "-o", place / "out"]
        return [*given, *options]

    return make


def below_a_file(place):
    (place / "file").write_text("")
    return [place / "ct.nii.gz", "-o", place / "file" / "out", "--landmarks", place / "marks.json"]


def onto_a_file(place):
    (place / "file").write_text("")
    return [place / "ct.nii.gz", "-o", place / "file", "--landmarks", place / "marks.json"]


def calibration(place):
    (place / "calibration.json").write_text("{}")
    return [*plain(place / "ct.nii.gz", place), "--calibration", place / "calibration.json"]


def unknown_series(place):
    folder = save(place / "series", make_series(ct(make_affine(spacing=(0.4, 0.5, 0.5)))))
    return [*plain(folder, place), "--series", "9.9.9"]


BAD = {
    "missing file": (missing, "there is no file or folder"),
    "empty file": (empty, "empty"),
    "truncated": (truncated, "half.nii.gz"),
    "corrupt nrrd": (corrupt, "ct.nrrd"),
    "unknown kind": (unknown_kind, "not read"),
    "2D": (of_axes(20, 20), "odd.nii.gz"),
    "4D": (of_axes(3, 20, 20, 20), "odd.nii.gz"),
    "no DICOM": (no_dicom, "DICOM images but none"),
    "MR": (mr_series, "MR"),
    "NaN": (with_values(set_nan), "finite"),
    "constant": (with_values(set_all), "every voxel is 40"),
    "voxels of 0.8 mm": (coarse, "0.6 mm or smaller"),
    "no landmark file": (no_marks, "no landmark file"),
    "landmarks unparsable": (bad_marks, "cannot be parsed"),
    "landmarks outside": (with_marks(C=(130.0, 0, 0), A=(130.0, 0, 3), RW=(136.0, 0, 0)), "outside the CT"),
    "landmarks too near": (with_marks(A=(30.0, -10.0, 5.5)), "1.5 to 6 mm"),
    "landmarks too far": (with_marks(RW=(45.0, -10.0, 5.0)), "3 to 9 mm"),
    "landmarks exchanged": (with_marks(C=RW, RW=C), "names"),
    "landmark twice": (with_marks(apex=A), "there are 2"),
    "no side": (without_side, "which ear"),
    "other side": (with_options("--side", "left"), "right ear but the side given is left"),
    "unknown side": (with_options("--side", "middle"), "--side"),
    "few slices": (with_shape(40, 40, 9), "give all its slices"),
    "a mask": (with_values(set_mask), "as masks have"),
    "side of a point": (with_options("--at", "30,-10,5", "--side", "both", landmarks=False), "--side"),
    "two numbers": (with_options("--at", "30,-10", "--side", "left", landmarks=False), "--at"),
    "words": (with_options("--at", "a,b,c", "--side", "left", landmarks=False), "--at"),
    "not a number": (with_options("--at", "nan,0,0", "--side", "left", landmarks=False), "the point"),
    "point outside": (with_options("--at", "300,0,0", "--side", "left", landmarks=False), "outside the CT"),
    "both poses": (with_options("--at", "30,-10,5"), "both given"),
    "output below a file": (below_a_file, "is a file"),
    "output is a file": (onto_a_file, "is a file"),
    "unknown preset": (with_options("--preset", "fast"), "preset must be"),
    "unknown distance": (with_options("--distance", "euclid"), "distance must be"),
    "unknown series": (unknown_series, UID),
    "series of a file": (with_options("--series", "1"), "leave the series out"),
    "few draws": (with_options("--draws", "3"), "num_draws"),
    "draws in words": (with_options("--draws", "many"), "--draws"),
    "negative seed": (with_options("--seed", "-1"), "seed"),
    "reference length": (with_options("--reference-length", "0"), "reference_length"),
    "label length": (with_options("--label-length", "nan"), "label_length"),
    "calibration": (calibration, "calibration.json"),
    "unknown format": (with_options("--formats", "ply,docx"), "docx"),
    "DICOM from no DICOM": (with_options("--formats", "markups,dicom-seg"), "the input is no DICOM"),
    "unknown option": (with_options("--colour", "red"), "--colour"),
    "several and a point": (several("--at", "30,-10,5"), "belong to one scan"),
    "several and landmarks": (several("--landmarks", "marks.json"), "belong to one scan"),
    "several and a series": (several("--series", "1"), "belong to one scan"),
    "several and a map": (several("--appearance-probability", "map.nii.gz"), "belong to one scan"),
    "no map": (with_options("--appearance-probability", "map.nii.gz"), "map.nii.gz"),
    "unknown posterior": (with_options("--posterior", "gibbs"), "laplace or mcmc"),
    "mcmc and matched": (with_options("--posterior", "mcmc", "--intervals", "matched"), "intervals are matched"),
    "the same twice": (lambda place: [*[place / "ct.nii.gz"] * 2, "-o", place / "out"], "same folder"),
    "no output": (lambda place: [place / "ct.nii.gz"], "--out"),
}


def listing(folder) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(run, place, name):
    make, word = BAD[name]
    arguments = make(place)
    before = listing(place)
    code, out, err = run("cochlea", *arguments)
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    check_sentence(err, word)
    assert listing(place) == before


def check_sentence(line: str, word: str) -> None:
    (sentence,) = line.splitlines()
    assert sentence.startswith("logishape: ")
    assert sentence.endswith(".")
    assert not re.search(r"[.!?] [A-Z]", sentence.removeprefix("logishape: ")), sentence
    assert word in sentence


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ((), "no cochlea was found: "),
        (("--side", "left"), "no left cochlea was found: "),
        (("--at", "30,-10,5"), "no cochlea was found within 2.5 mm of [30.0, -10.0, 5.0]"),
    ],
    ids=["anywhere", "a side", "a point"],
)
def test_noise_holds_no_cochlea(run, place, options, word):
    """What was done before is told, then one sentence."""
    code, out, err = run("cochlea", place / "ct.nii.gz", "-o", place / "out", *options)
    assert (code, out) == (2, "")
    stage, sentence = err.splitlines()
    assert re.fullmatch(r"  reading the CT: [\d.]+ s", stage)
    check_sentence(sentence, word)
    assert not (place / "out").exists()
    code, out, err = run("cochlea", place / "ct.nii.gz", "-o", place / "out", *options, "--json")
    assert (code, out, err) == (2, "", sentence + "\n")


def test_each_input_has_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = Path("out")
    assert name_outputs([Path("a.nii.gz")], out) == [out]
    some = [Path("a.nii.gz"), Path("b.c.NRRD"), Path("series"), Path("d.zip")]
    assert name_outputs(some, out) == [out / "a", out / "b.c", out / "series", out / "d"]
    same = [Path("one/ct.nii.gz"), Path("two/ct.nii")]
    assert name_outputs(same, out) == [out / "one-ct", out / "two-ct"]
    with pytest.raises(typer.BadParameter, match="same folder, one-ct"):
        name_outputs([*same, Path("three/one/ct.mha")], out)


@dataclasses.dataclass(frozen=True)
class Case:
    """A stand-in for a finished case: what decides on exit codes and on what is printed."""

    name: str
    is_trusted: bool = True

    @property
    def record(self) -> dict[str, str]:
        return {"name": self.name}

    @property
    def result(self) -> "Case":
        return self


@pytest.mark.parametrize(
    ("found", "code", "printed"),
    [
        ({"a": ["a left"]}, 0, {"name": "a left"}),
        ({"a": ["a left", "a right"]}, 0, [{"name": "a left"}, {"name": "a right"}]),
        ({"a": ["a left"], "b": []}, 2, [{"name": "a left"}]),
        ({"a": [], "b": ["bad b"], "c": ["c left"]}, 2, [{"name": "bad b"}, {"name": "c left"}]),
        ({"a": ["bad a"], "b": ["b left"]}, 3, [{"name": "bad a"}, {"name": "b left"}]),
        ({"a": [], "b": []}, 2, []),
    ],
    ids=["one", "both ears", "one of two", "one of three", "a bad one", "none"],
)
def test_codes_and_records_of_several(run, tmp_path, monkeypatch, found, code, printed):
    """One result is a record and several are a list; refused ones are sentences that name their file."""

    def run_one(request, as_json):
        cases = [Case(name, "bad" not in name) for name in found[request.input.name]]
        if not cases:
            raise ls.InputError("no cochlea was found: it is a melon; try another.")
        return cases

    monkeypatch.setattr(cli.cochlea, "_run_one", run_one)
    exit_code, out, err = run("cochlea", *(tmp_path / name for name in found), "-o", tmp_path / "out", "--json")
    assert exit_code == code
    assert (json.loads(out) if out else None) == printed
    refused = [tmp_path / name for name, cases in found.items() if not cases]
    assert err.splitlines() == [
        f"logishape: {path}: no cochlea was found: it is a melon; try another." for path in refused
    ]


def test_an_older_result_is_not_lost(run, place):
    (place / "out" / "right").mkdir(parents=True)
    (place / "out" / "right" / "result.json").write_text("{}")
    code, _, err = run("cochlea", *plain(place / "ct.nii.gz", place))
    assert code == 2
    assert "is there already" in err
    assert "--overwrite" in err
    assert (place / "out" / "right" / "result.json").read_text() == "{}"


def test_json_leaves_stderr_to_the_error_alone(run, place):
    code, out, err = run("cochlea", *coarse(place), "--json")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_a_break_is_not_a_traceback(run, place, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("logishape.cochlea.pipeline.read_scan", stop)
    code, out, err = run("cochlea", *plain(place / "ct.nii.gz", place))
    assert (code, out) == (130, "")
    assert err == "logishape: stopped; no result was left half-written.\n"
    assert not (place / "out").exists()


def test_a_study_that_is_interrupted_keeps_what_is_finished(run, monkeypatch, tmp_path):
    from logishape.reproduce import run as study

    def ellipse(work):
        work.part("one", lambda: 1)
        raise KeyboardInterrupt

    monkeypatch.setitem(study.SECTIONS, "ellipse", ellipse)
    code, _, err = run("reproduce", "-o", tmp_path, "--only", "ellipse")
    assert code == 130
    assert err.splitlines()[-1].startswith("logishape: stopped; finished parts are kept")
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["one.json"]


def test_a_study_of_what_does_not_exist_is_refused(run, tmp_path):
    for arguments, word in ((("--only", "efficacy"), "efficacy"), (("--data", tmp_path / "gone"), "F01")):
        code, out, err = run("reproduce", "-o", tmp_path / "out", *arguments)
        assert code == 2
        assert word in err
        assert len(err.splitlines()) == 1
        assert out == ""
    assert not (tmp_path / "out").exists()


# The other commands.


@pytest.fixture
def masks(tmp_path):
    """Two cubes that overlap, a region, and a mask on another grid."""
    grid = np.zeros((20, 20, 20), np.uint8)
    for name, low in (("prediction", 4), ("truth", 5), ("region", 2)):
        values = grid.copy()
        values[low : 14 + (name == "region"), 4:14, 4:14] = 1
        write_volume(tmp_path / f"{name}.nii.gz", ls.Volume.from_spacing(values, 0.5))
    write_volume(tmp_path / "other.nii.gz", ls.Volume.from_spacing(grid + np.uint8(1), 0.4))
    return tmp_path


def test_evaluate(run, masks):
    pair = (masks / "prediction.nii.gz", masks / "truth.nii.gz")
    code, out, err = run("evaluate", *pair)
    assert (code, err) == (0, "")
    expected = 2 * 900 / 1900
    for words in ("Dice", "HD95", "Hausdorff", "Mean surface distance", f"{expected:.3f}", "125.000 mm³"):
        assert words in out
    assert "outside the region" not in out
    code, out, err = run("evaluate", *pair, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["dice"] == pytest.approx(expected)
    assert found["recall"] == 1
    assert found["precision"] == pytest.approx(0.9)
    assert found["hd100_max"] == pytest.approx(0.5)
    assert found["volume_prediction_mm3"] == pytest.approx(125)
    code, out, _ = run("evaluate", *pair, "--region", masks / "region.nii.gz")
    assert code == 0
    assert "outside the region" in out


@pytest.mark.parametrize(
    ("prediction", "truth", "word"),
    [
        ("other.nii.gz", "truth.nii.gz", "grid|voxel|spacing|affine"),
        ("prediction.nii.gz", "gone.nii.gz", "there is no file"),
        ("prediction.nii.gz", ".", "is a folder"),
    ],
)
def test_evaluate_refuses(run, masks, prediction, truth, word):
    code, out, err = run("evaluate", masks / prediction, masks / truth)
    assert (code, out) == (2, "")
    assert re.search(word, err)
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--lumen", "gel"), "gel"),
        (("--side", "middle"), "middle"),
        (("--spacing", "0"), "spacing_mm"),
        (("--noise", "-1"), "noise_hu"),
        (("--seed", "-1"), "seed"),
        (("-n", "0"), "number"),
    ],
    ids=" ".join,
)
def test_phantom_refuses(run, tmp_path, options, word):
    code, out, err = run("phantom", "-o", tmp_path / "out", *options)
    assert (code, out) == (2, "")
    assert word in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_phantom_writes_its_files(run, tmp_path):
    asked = ("phantom", "-o", tmp_path / "out", "--spacing", 0.8, "--size", 16, "--seed", 3, "--side", "left")
    code, out, _ = run(*asked)
    assert code == 0
    assert "1 phantom in" in out
    folder = tmp_path / "out" / "phantom-003"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    ear = ("truth.nii.gz", "labyrinth.nii.gz", "landmarks.json", "parameters.json")
    assert files == {"ct.nii.gz", "phantom.json", *(f"left/{name}" for name in ear)}
    volume = ls.read_volume(folder / "ct.nii.gz")
    assert volume.shape == (20, 20, 20)
    np.testing.assert_allclose(volume.spacing, 0.8, rtol=1e-6)
    marks = json.loads((folder / "left" / "landmarks.json").read_text())
    assert marks["side"] == "left"
    assert set(marks["landmarks_ras_mm"]) == {"C", "A", "RW"}
    code, _, err = run(*asked)
    assert code == 2
    assert "exists" in err
    assert run(*asked, "--overwrite")[0] == 0
