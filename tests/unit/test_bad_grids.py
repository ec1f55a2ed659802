"""What users get wrong with masks, grids, modes and templates: each mistake meets one sentence."""

import jaxtyping
import numpy as np
import pytest

import logishape as ls
from logishape import shapes
from tests.problems import assert_one_sentence, grid, two_gaussians


@pytest.fixture(autouse=True)
def _as_a_user_runs_it(monkeypatch):
    """Without the suite's run-time type checks, which would speak first where a user has none."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


NAN = np.nan
GRID = ls.Volume.from_spacing(np.zeros((16, 16)), 0.5, -3.75)
AT = GRID.to_world(np.moveaxis(np.indices(GRID.shape), 0, -1))
LEVEL = 2.0 - np.linalg.norm(AT, axis=-1)
MASK = LEVEL > 0
DISC = GRID.with_data(LEVEL)
SHEARED = GRID.affine + np.array([[0, 0.2, 0], [0, 0, 0], [0, 0, 0]])
AFFINE = shapes.Affine(np.zeros(2))
CUT = np.linalg.norm(AT - 2.5, axis=-1) < 2
MODES = shapes.LevelSetModes(DISC, np.full((1, 16, 16), 0.3))


def from_masks(masks, affine=GRID.affine, **choice):
    return shapes.LevelSetModes.from_masks(masks, affine, **choice)


def masks(*radii):
    return [np.linalg.norm(AT, axis=-1) < radius for radius in radii]


def fit(shape, prior, points):
    observation = ls.Observation.from_arrays(points, np.zeros(len(points)))
    return ls.fit(ls.Model(shape, prior, 0.3), observation, ls.State(prior.mean, two_gaussians()))


ELSEWHERE = grid(12, 2, 10.0) + 400.0
POSED = shapes.Posed(MODES, np.zeros(2))
POSE = {"tx": (-1.0, 1.0), "ty": (-1.0, 1.0), "angle": (-0.1, 0.1)}
TEMPLATE = shapes.Template(DISC, AFFINE)
BOX = ls.Prior(-np.full(6, 0.5), np.full(6, 0.5))
TABLE = {
    # masks
    "empty mask": (lambda: shapes.signed_distance(0 * MASK), "none of 256 are inside; check the label"),
    "full mask": (lambda: shapes.signed_distance(MASK | True), "all of 256 are inside; check the label"),
    "soft mask": (lambda: shapes.signed_distance(LEVEL), "true and false, .*threshold it first"),
    "no spacing": (lambda: shapes.signed_distance(MASK, 0.0), r"positive but is \[0.0, 0.0\]; give the voxel size"),
    "spacing of space": (lambda: shapes.signed_distance(MASK, (1.0, 1.0, 2.0)), r"2 for spacing .*\(3,\)"),
    "object cut by the border": (
        lambda: shapes.Template.from_mask(GRID.with_data(CUT), AFFINE),
        r"the template must end within its grid but touches the border in \d+ voxels; pad the grid",
    ),
    "sheared grid": (
        lambda: shapes.Template.from_mask(ls.Volume(MASK, SHEARED), AFFINE),
        "right angles but these axes are sheared; resample",
    ),
    "empty template": (lambda: shapes.Template.from_mask(GRID, AFFINE), "none of 256 are inside"),
    # fields
    "grid of three nodes": (
        lambda: shapes.GridField(np.zeros((3, 8, 1)), np.eye(3)),
        r"at least 4 voxels along each axis but is \(3, 8\); pad it",
    ),
    "values not a number": (
        lambda: shapes.Template(GRID.with_data(np.where(AT[..., 0] > 3, NAN, LEVEL)), AFFINE),
        "32 of 256 values on the grid are not finite; replace",
    ),
    "field without an affine of its own": (
        lambda: shapes.GridField(np.zeros((8, 8, 1)), np.eye(4)),
        r"affine of shape \(3, 3\) but it is \(4, 4\)",
    ),
    "level that never turns negative": (
        lambda: shapes.Template(GRID.with_data(LEVEL + 9), AFFINE),
        "in 60 voxels; pad",
    ),
    # modes
    "one mask": (lambda: from_masks([MASK]), r"at least 2 masks of one shape but found 1 of shapes \[\(16, 16\)\]"),
    "no mask": (lambda: from_masks([]), "at least 2 masks of one shape but found 0"),
    "masks of unequal shape": (
        lambda: from_masks([MASK, MASK[:-1]]),
        r"found 2 of shapes \[\(15, 16\), \(16, 16\)\]",
    ),
    "a mask cut by the border": (lambda: from_masks([MASK, CUT]), "object in mask 1 must end within its grid but"),
    "an empty mask": (lambda: from_masks([MASK, 0 * MASK]), "none of 256 are inside"),
    "equal masks": (lambda: from_masks([MASK, MASK]), "do not differ, so there are no modes; give shapes that vary"),
    "more modes than masks": (
        lambda: from_masks(masks(1.5, 2.0, 2.5), num_modes=3),
        "3 training shapes have 2 modes but 3 were asked for; ask for fewer",
    ),
    "no modes": (lambda: from_masks(masks(1.5, 2.0), num_modes=0), "1 modes but 0 were asked for"),
    "share in percent": (lambda: from_masks(masks(1.5, 2.0), explained=95), r"in \(0, 1\] but is 95; try 0.95"),
    "modes of another grid": (
        lambda: shapes.LevelSetModes(DISC, np.zeros((2, 16, 15))),
        r"\(number of modes, \*\(16, 16\)\), the mean's, but have \(2, 16, 15\); resample",
    ),
    "mode without its axis": (lambda: shapes.LevelSetModes(DISC, LEVEL), r"but have \(16, 16\); resample"),
    "mode not a number": (lambda: shapes.LevelSetModes(DISC, [NAN * LEVEL]), "256 of 512 values .*not finite"),
    "mean cut by the border": (
        lambda: shapes.LevelSetModes(GRID.with_data(LEVEL + 9), [LEVEL]),
        "the mean shape must end within its grid",
    ),
    "prior of modes for a ball": (
        lambda: ls.Prior.of_modes(shapes.Ball(2)),
        "no parameters called mode_1 .*x, y, radius; use Prior.named",
    ),
    "prior of modes without a limit": (lambda: ls.Prior.of_modes(MODES, limit=NAN), "positive and finite but is nan"),
    "bounds of a mode": (lambda: ls.Prior.of_modes(MODES, {"mode_1": (0, 1)}), "but mode_1 has; use the limit"),
    "pose without bounds": (lambda: ls.Prior.of_modes(POSED), "missing: angle, tx, ty"),
    # deformations
    "centre on a line": (
        lambda: shapes.Affine([0.0]),
        r"2 or 3 numbers \(mm\) but is \[0.0\]; give the object.s middle",
    ),
    "displacements without components": (
        lambda: shapes.LowRank(np.zeros((2, 16, 16)), np.eye(3)),
        r"\(number of modes, \*grid, dimension\) but have \(2, 16, 16\); move",
    ),
    "box from above": (lambda: shapes.Cosines((1, 1), (0, 2)), r"\[1.0, 1.0\] and \[0.0, 2.0\]; mend"),
    "half a wave and a half": (lambda: shapes.Cosines((0, 0), (1, 1), 1.5), r"whole numbers, .*\[1.5, 1.5\]; try"),
    "no waves": (lambda: shapes.Cosines((0, 0), (1, 1), 0), r"not all zero, but is \[0.0, 0.0\]; try"),
    "waves of no size": (lambda: shapes.Cosines((0, 0), (1, 1), 1, 0.0), "one positive number but is 0.0; try"),
    "affine template with a pose": (lambda: shapes.Posed(TEMPLATE, np.zeros(2)), "has a pose already"),
    # images elsewhere
    "points of space on a grid of the plane": (
        lambda: fit(MODES, ls.Prior.of_modes(MODES), grid(5, 3)),
        "failed on 3D points .*the grid lies in 2D but the points have 3 coordinates.*same space",
    ),
    "template of the plane in space": (lambda: fit(TEMPLATE, BOX, grid(5, 3)), "failed on 3D points .*same space"),
    "image beside the grid": (
        lambda: fit(MODES, ls.Prior.of_modes(MODES), ELSEWHERE),
        r"no voxel .*voxels span \[345.0, 345.0\] to \[455.0, 455.0\] mm, the shape's box \[-3.8, -3.8\] to \[3.8",
    ),
    "image beside a posed grid": (
        lambda: fit(POSED, ls.Prior.of_modes(POSED, POSE), ELSEWHERE),
        r"no voxel .*to \[455.0, 455.0\] mm, the shape's box \[-3.8, -3.8\] to \[3.8, 3.8\] mm; move the start",
    ),
    "image beside a template": (lambda: fit(TEMPLATE, BOX, ELSEWHERE), r"no voxel .*box \[-3.8, -3.8\] to"),
}


@pytest.mark.parametrize("mistake", TABLE)
def test_a_mistake_meets_one_sentence(mistake):
    assert_one_sentence(*TABLE[mistake])
