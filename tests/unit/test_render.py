import numpy as np
import pytest
from scipy import ndimage

from logishape.cochlea.reformat import SHAPE, SPACING, Crop, grid_points
from logishape.cochlea.render import EDGE_MM, Rendering, Scene, render

CENTRE, RADIUS = np.array([1.2, 0.0, 0.5]), 2.0


def ball_crop(blur_mm: float, noise: float, lumen: float = 150.0, bone: float = 2000.0) -> tuple[Crop, np.ndarray]:
    """A ball of lumen in bone that gets darker to one side, drawn on voxels a fourth as large; and its levels."""
    points, fine = grid_points(), 4
    offsets = (np.stack(np.meshgrid(*[np.arange(fine)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5) / fine - 0.5
    inside = np.mean(
        [np.linalg.norm(points + SPACING * offset - CENTRE, axis=1) < RADIUS for offset in offsets], axis=0
    )
    around = bone * (1 + 0.06 * points[:, 0])
    sharp = inside * lumen + (1 - inside) * around
    seen = np.asarray(ndimage.gaussian_filter(sharp.reshape(SHAPE), blur_mm / SPACING, mode="nearest")).ravel()
    seen += noise * np.random.default_rng(0).normal(size=seen.size)
    crop = Crop(points, seen.astype(np.float32), np.ones(len(points), bool))
    return crop, RADIUS - np.linalg.norm(points - CENTRE, axis=1)


def rendered(crop: Crop, levels: np.ndarray, beyond: np.ndarray) -> Rendering:
    """The rendering of a surface whose image has its edge just there."""
    return render(Scene(crop, levels - EDGE_MM, beyond))


@pytest.mark.parametrize("blur_mm", [0.2, 0.35, 0.5])
def test_the_point_spread_is_found_in_uneven_bone(blur_mm):
    crop, levels = ball_crop(blur_mm, noise=150.0)
    found = rendered(crop, levels, np.zeros(len(levels), bool))
    assert found.blur_mm == pytest.approx(blur_mm, abs=0.03)  # half of the steps in which it is tried
    clean, _ = ball_crop(blur_mm, noise=0.0)
    near = np.abs(levels) < 1.0
    # A twentieth of the step from lumen to bone: bone's brightness is known as a smooth field only.
    assert np.sqrt(np.mean(np.square(found.image - clean.intensities)[near])) < 0.05 * 1850
    assert found.residual == pytest.approx(150.0, rel=0.1)


def test_a_wrong_surface_is_told_by_what_is_left():
    crop, levels = ball_crop(0.3, noise=60.0)
    nowhere = np.zeros(len(levels), bool)
    right, wrong = (rendered(crop, levels + offset, nowhere).residual for offset in (0.0, 0.2))
    assert wrong > 1.3 * right


def test_beyond_the_cut_the_image_stands_for_itself():
    crop, levels = ball_crop(0.3, noise=60.0)
    beyond = crop.points[:, 0] > 3.5
    crop.intensities[beyond] = 900.0  # soft tissue, say
    found = rendered(crop, levels, beyond)
    assert found.blur_mm == pytest.approx(0.3, abs=0.03)
    deep = beyond & (crop.points[:, 0] > 5.0)
    np.testing.assert_allclose(found.image[deep], 900.0, rtol=0.01)


def test_what_was_found_before_is_looked_for_nearby():
    crop, levels = ball_crop(0.3, noise=60.0)
    scene = Scene(crop, levels - EDGE_MM, np.zeros(len(levels), bool))
    whole, near = render(scene), render(scene, 0.33)
    assert near.blur_mm == pytest.approx(whole.blur_mm, abs=0.01)
    assert near.lumen == pytest.approx(150.0, abs=30)
    # Bone's own brightness near the surface, as it was drawn.
    close = np.abs(levels) < 0.5
    np.testing.assert_allclose(near.bone[close], 2000 * (1 + 0.06 * crop.points[close, 0]), rtol=0.05)
