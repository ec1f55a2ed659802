"""What the tests of files share: grids at odd angles, numbered voxels, and a check that an error is one sentence."""

import contextlib
import re

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from logishape.core.errors import InputError
from logishape.core.volume import Volume

SHAPE = (9, 8, 10)
OBLIQUE = Rotation.from_rotvec([0.5, -0.3, 0.8]).as_matrix()


def make_affine(axes=None, spacing=(0.4, 0.5, 1.25), origin=(-61.5, 22.25, 410.0), flips=(1, 1, 1), shear=None):
    """An affine from directions, spacing, flips and an upper triangular shear."""
    affine = np.eye(4)
    axes = np.eye(3) if axes is None else axes
    affine[:3, :3] = axes @ np.diag(flips) @ (np.eye(3) if shear is None else shear) @ np.diag(spacing)
    affine[:3, 3] = origin
    return affine


def numbered(affine=None, shape=SHAPE, dtype=np.float32):
    """A volume whose voxels hold their own number, so that a swapped or flipped axis shows."""
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    return Volume(values, make_affine(OBLIQUE, flips=(1, -1, 1)) if affine is None else affine)


@st.composite
def affines(draw, sheared=False):
    """Oblique, flipped, anisotropic and perhaps sheared grids at places of a body."""
    turn = draw(st.tuples(*[st.floats(-3, 3)] * 3))
    spacing = draw(st.tuples(*[st.floats(0.05, 5)] * 3))
    flips = draw(st.tuples(*[st.sampled_from([-1, 1])] * 3))
    origin = draw(st.tuples(*[st.floats(-500, 500)] * 3))
    shear = np.eye(3)
    if sheared:
        shear[np.triu_indices(3, 1)] = draw(st.tuples(*[st.floats(0.05, 0.5)] * 3))
    return make_affine(Rotation.from_rotvec(turn).as_matrix(), spacing, origin, flips, shear)


@contextlib.contextmanager
def refused(*words):
    """The block must raise an InputError of one sentence in which all these words stand."""
    with pytest.raises(InputError) as caught:
        yield
    text = str(caught.value)
    for word in words:
        assert word in text, text
    assert "\n" not in text
    assert text.endswith(".")
    assert not re.search(r"[.!?] [A-Z]", text), text


def patch(path, offset, content):
    """Overwrites some bytes of a file."""
    whole = bytearray(path.read_bytes())
    whole[offset : offset + len(content)] = content
    path.write_bytes(bytes(whole))
