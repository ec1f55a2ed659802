"""Named points: three formats, two coordinate systems, one answer; and what is refused."""

import json

import numpy as np
import pytest

from logishape.io import NamedPoints, read_landmarks
from tests.unit.io.samples import refused

POINTS = {"A": (-8.68, -86.46, -53.9), "round window": (-11.13, -80.87, -55.05)}  # RAS
FCSV = """# Markups fiducial file version = 4.11
# CoordinateSystem = {system}
# columns = id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID
{rows}"""


def own(path, points=POINTS, **others):
    path.write_text(json.dumps({"id": "F01", "landmarks_ras_mm": points} | others))
    return path


def markup(path, system="LPS", points=POINTS, **others):
    signs = np.array([-1, -1, 1] if system in ("LPS", 1) else [1, 1, 1])
    control = [{"label": name, "position": list(signs * place)} for name, place in points.items()]
    content = {"@schema": "markups", "markups": [{"type": "Fiducial", "coordinateSystem": system} | others]}
    content["markups"][0].setdefault("controlPoints", control)
    path.write_text(json.dumps(content))
    return path


def fiducials(path, system="LPS", points=POINTS, text=FCSV):
    signs = np.array([-1, -1, 1] if system in ("LPS", "1") else [1, 1, 1])
    rows = []
    for k, (name, place) in enumerate(points.items()):
        x, y, z = signs * place
        rows.append(f'{k + 1},{x},{y},{z},0,0,0,1,1,1,0,"{name}",,')
    path.write_text(text.format(system=system, rows="\n".join(rows) + "\n"))
    return path


def check(found: NamedPoints):
    assert list(found.points) == list(POINTS)
    for name, place in POINTS.items():
        np.testing.assert_array_equal(found.points[name], place)


@pytest.mark.parametrize(("side", "expected"), [("LEFT", "left"), ("right", "right"), (None, None)])
def test_own_format(tmp_path, side, expected):
    found = read_landmarks(own(tmp_path / "landmarks.json", side=side))
    check(found)
    assert found.side == expected


@pytest.mark.parametrize("system", ["LPS", "RAS", 0, 1])
def test_slicer_markups(tmp_path, system):
    found = read_landmarks(markup(tmp_path / "F.mrk.json", system, coordinateUnits="mm"))
    check(found)
    assert found.side is None


@pytest.mark.parametrize("system", ["LPS", "RAS", "0", "1"])
def test_slicer_fiducials(tmp_path, system):
    check(read_landmarks(fiducials(tmp_path / "F.fcsv", system)))


def test_the_oldest_lists_of_slicer_know_ras_alone(tmp_path):
    lines = ["# Fiducial List file /home/somebody/F.fcsv", "# version = 2", "# numPoints = 2"]
    lines += [",".join([name, *map(str, place), "1", "1"]) for name, place in POINTS.items()]
    (tmp_path / "F.fcsv").write_text("\n".join(lines))
    check(read_landmarks(tmp_path / "F.fcsv"))


@pytest.mark.parametrize("units", [["mm", "UCUM", "millimeter"], ["mm"], "millimeter"])
def test_newer_files_give_the_unit_as_a_code(tmp_path, units):
    check(read_landmarks(markup(tmp_path / "F.mrk.json", coordinateUnits=units)))


def test_fiducials_with_other_columns_and_line_ends(tmp_path):
    lines = ["# CoordinateSystem = RAS", "# columns = label,x,y,z", "A,-8.68,-86.46,-53.9", ""]
    lines.append("round window,-11.13,-80.87,-55.05")
    (tmp_path / "F.fcsv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    check(read_landmarks(tmp_path / "F.fcsv"))


def test_points_not_yet_placed_are_left_out(tmp_path):
    control = [
        {"label": name, "position": list(place), "positionStatus": "defined"} for name, place in POINTS.items()
    ]
    control.append({"label": "later", "positionStatus": "undefined"})
    check(read_landmarks(markup(tmp_path / "F.mrk.json", "RAS", controlPoints=control)))


@pytest.mark.parametrize(
    ("points", "word"),
    [
        ({}, "at least one"),
        ({"A": (1.0, np.nan, 2.0)}, "finite"),
        ({"A": (1.0, np.inf, 2.0)}, "finite"),
        ({"A": (1.0, 2.0, 3.0), " A": (4.0, 5.0, 6.0)}, "twice"),
        ({"": (1.0, 2.0, 3.0)}, "label"),
    ],
)
@pytest.mark.parametrize(("make", "name"), [(own, "a.json"), (markup, "a.mrk.json"), (fiducials, "a.fcsv")])
def test_bad_points(tmp_path, make, name, points, word):
    path = make(tmp_path / name, points=points)
    with refused(name, word):
        read_landmarks(path)


@pytest.mark.parametrize("position", [[1, 2], [1, 2, "x"], "1 2 3", None, [True, 1, 2], [1, 2, 10**400]])
def test_positions_that_are_not_three_numbers(tmp_path, position):
    with refused("three finite numbers"):
        read_landmarks(own(tmp_path / "a.json", points={"A": position}))
    with refused("three finite numbers"):
        control = [{"label": "A", "position": position}]
        read_landmarks(markup(tmp_path / "a.mrk.json", controlPoints=control))


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("{", "parsed"),
        ("[" * 100_000, "parsed"),
        ("[1, 2]", "landmarks_ras_mm"),
        ('{"landmarks_lps_cm": {"A": [1, 2, 3]}}', "landmarks_ras_mm"),
        ('{"landmarks_ras_mm": [1, 2]}', "landmarks_ras_mm"),
        ('{"landmarks_ras_mm": {"A": [1, 2, 3], "A": [4, 5, 6]}}', "twice"),
        ('{"landmarks_ras_mm": {"A": [1, 2, 3]}, "side": "middle"}', "middle"),
        ('{"markups": [{"controlPoints": []}]}', "does not say"),
        ('{"markups": [{"coordinateSystem": "IJK"}]}', "IJK"),
        ('{"markups": [{"coordinateSystem": "LPS", "coordinateUnits": "um"}]}', "um"),
        ('{"markups": [{"coordinateSystem": "LPS", "coordinateUnits": ["cm", "UCUM", "centimeter"]}]}', "cm"),
        ('{"markups": [7]}', "structure"),
        ('{"markups": 7}', "structure"),
    ],
)
def test_bad_json(tmp_path, content, word):
    (tmp_path / "a.json").write_text(content)
    with refused("a.json", word):
        read_landmarks(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("A,1,2,3\n", "does not say"),
        ("# CoordinateSystem = 2\n1,1,2,3,0,0,0,1,1,1,0,A,,\n", "'2'"),
        ("# CoordinateSystem = RAS\n# columns = a,b\n1,2\n", "columns"),
        ("# CoordinateSystem = RAS\n1,1,2,three,0,0,0,1,1,1,0,A,,\n", "three finite numbers"),
        ("# CoordinateSystem = RAS\n1,1,2\n", "label"),
        ("# CoordinateSystem = RAS\n", "at least one"),
    ],
)
def test_bad_fiducials(tmp_path, content, word):
    (tmp_path / "a.fcsv").write_text(content)
    with refused("a.fcsv", word):
        read_landmarks(tmp_path / "a.fcsv")


def test_other_files(tmp_path):
    with refused("gone.json"):
        read_landmarks(tmp_path / "gone.json")
    (tmp_path / "a.txt").write_text("A 1 2 3")
    with refused("a.txt", ".fcsv"):
        read_landmarks(tmp_path / "a.txt")
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00\x01")
    with refused("a.json", "text"):
        read_landmarks(tmp_path / "a.json")
