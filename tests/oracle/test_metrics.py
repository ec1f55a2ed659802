"""Measures of agreement against SimpleITK's and SciPy's own."""

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813 - its own documentation calls it so
from scipy import ndimage
from scipy.spatial import distance

from logishape import Volume
from logishape.metrics import boundary, compare, dice, jaccard, surface_distances

SPACINGS = [(1.0, 1.0, 1.0), (0.3, 0.3, 0.8)]
each_spacing = pytest.mark.parametrize("spacing", SPACINGS, ids=str)
each_seed = pytest.mark.parametrize("seed", range(3))


def blobs(seed, size=28):
    """Two masks of smooth random shape that overlap in part."""
    rng = np.random.default_rng(seed)
    common, a, b = (ndimage.gaussian_filter(rng.normal(size=(size,) * 3), 3) for _ in range(3))
    masks = [common + 0.5 * own > 0.02 for own in (a, b)]
    for mask in masks:
        mask[[0, -1]] = mask[:, [0, -1]] = mask[:, :, [0, -1]] = False
    return masks


def image(mask, spacing):
    found = sitk.GetImageFromArray(mask.astype(np.uint8).transpose(2, 1, 0))
    found.SetSpacing([float(step) for step in spacing])
    return found


@each_seed
def test_overlap(seed):
    a, b = blobs(seed)
    measures = sitk.LabelOverlapMeasuresImageFilter()
    measures.Execute(image(a, (1, 1, 1)), image(b, (1, 1, 1)))  # its second image is the truth
    found = compare(Volume.from_spacing(a), Volume.from_spacing(b))
    assert found.dice == pytest.approx(measures.GetDiceCoefficient())
    assert jaccard(a, b) == pytest.approx(measures.GetJaccardCoefficient())
    assert found.precision is not None
    assert found.recall is not None
    assert found.volume_error is not None
    assert 1 - found.precision == pytest.approx(measures.GetFalseDiscoveryRate())
    assert 1 - found.recall == pytest.approx(measures.GetFalseNegativeError())
    # Its volume similarity is 2 (source - target) / (source + target).
    error = found.volume_error
    assert abs(2 * error / (2 + error)) == pytest.approx(abs(measures.GetVolumeSimilarity()))
    assert 0.3 < dice(a, b) < 0.95


@each_spacing
@each_seed
def test_the_hausdorff_distance_of_borders(seed, spacing):
    a, b = blobs(seed)
    measures = sitk.HausdorffDistanceImageFilter()
    measures.Execute(image(boundary(a), spacing), image(boundary(b), spacing))
    found = surface_distances(a, b, spacing)
    assert found.max_percentile(100) == pytest.approx(measures.GetHausdorffDistance(), rel=1e-5)  # theirs is single


@each_spacing
@each_seed
def test_directed_distances(seed, spacing):
    a, b = blobs(seed)
    at_a, at_b = (np.argwhere(boundary(mask)) * np.array(spacing) for mask in (a, b))
    found = surface_distances(a, b, spacing)
    assert found.there.max() == pytest.approx(distance.directed_hausdorff(at_a, at_b)[0])
    assert found.back.max() == pytest.approx(distance.directed_hausdorff(at_b, at_a)[0])
    table = distance.cdist(at_a, at_b)
    there, back = table.min(axis=1), table.min(axis=0)
    assert found.percentile(95) == pytest.approx((np.percentile(there, 95) + np.percentile(back, 95)) / 2)
    assert found.mean() == pytest.approx((there.sum() + back.sum()) / (there.size + back.size))


@each_seed
def test_the_border_is_that_of_a_contour(seed):
    """SimpleITK's binary contour with faces as neighbours, for masks that keep off the image's edge."""
    mask, _ = blobs(seed)
    contour = sitk.BinaryContour(image(mask, (1, 1, 1)), fullyConnected=False)
    expected = sitk.GetArrayFromImage(contour).transpose(2, 1, 0) > 0
    np.testing.assert_array_equal(boundary(mask), expected)


@each_seed
def test_sheared_grids(seed):
    a, b = blobs(seed)
    steps = np.array([[0.4, 0.15, 0.0], [0.0, 0.4, -0.1], [0.05, 0.0, 0.6]])
    at_a, at_b = (np.argwhere(boundary(mask)) @ steps.T for mask in (a, b))
    found = surface_distances(a, b, steps)
    assert found.there.max() == pytest.approx(distance.directed_hausdorff(at_a, at_b)[0])
    assert found.back.max() == pytest.approx(distance.directed_hausdorff(at_b, at_a)[0])
