"""How well the cochlea's shape fits real ones: fits to masks, cross-validated, and figures of them.

Each specimen is fitted with the table that was calibrated without it and its fold. Parts of `cochlea_shape.py`.
"""

import dataclasses
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import equinox as eqx
import jax
import matplotlib.pyplot as plt
import numpy as np
from engine import print_table, report
from scipy import ndimage
from specimens import FOLDS, Specimen, load_specimens

import logishape as ls
from logishape.appearance import supervised_regions
from logishape.cochlea import Cochlea, load_calibration, load_folds, path, surface
from logishape.cochlea.calibration import DEFAULT_FILE
from logishape.report.effects import draw_effects

MODELS = {
    10: (),
    11: ("section_scale",),
    12: ("section_scale", "theta_max"),
    13: ("section_scale", "section_c2", "section_s2"),
    15: ("section_scale", "section_c2", "section_s2", "theta_max", "apex_offset"),
}
TABLES = {"anatomical": DEFAULT_FILE, "overlap alone": Path(__file__).parent / "tables" / "overlap.json"}
NUM_POINTS = 30000  # of the voxels near the surface, as many for each specimen: one program fits them all
REFERENCE_LENGTH = 0.1
WALL_DEGREES = (90, 180, 270, 360, 540, 720, 900)


@dataclasses.dataclass(frozen=True)
class Score:
    """Overlap with a mask and distances between borders (mm): HD95 is the mean of both directed percentiles."""

    dice: float
    hd95: float
    mean: float
    corti: float  # mm, length of the organ of Corti
    status: str


@eqx.filter_jit
def level_at(cochlea: Cochlea, theta: Any, points: Any) -> jax.Array:
    """The level, compiled once for all specimens."""
    return cochlea.level(theta, points)


def fit_mask(specimen: Specimen, mask: np.ndarray, free: tuple[str, ...], table: Path) -> tuple[Cochlea, ls.Fit]:
    """The shape that fits a mask best, by the engine, from the prior mean; the mask is a map of probabilities."""
    fold = next(key for key, names in load_folds(table).items() if specimen.name in names)
    cochlea = Cochlea(free=free, calibration=load_calibration(table, fold))
    near = specimen.near(mask)
    chosen = np.random.default_rng(0).choice(near, NUM_POINTS, replace=len(near) < NUM_POINTS)
    observation = ls.Observation.from_arrays(specimen.points[chosen], mask[chosen].astype(float))
    model = ls.Model(cochlea, cochlea.prior(), REFERENCE_LENGTH)
    start = ls.State(cochlea.mean(), supervised_regions())
    return cochlea, ls.fit(model, observation, start, ls.FitOptions(anneal=(3.0,)))


def inside(cochlea: Cochlea, theta: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Which points the shape holds."""
    padded = np.pad(points, ((0, -len(points) % 200_000), (0, 0))).astype(np.float32)
    return np.asarray(level_at(cochlea, theta, padded))[: len(points)] > 0


def score(specimen: Specimen, mask: np.ndarray, cochlea: Cochlea, fit: ls.Fit) -> Score:
    """The fitted shape against a mask, within the region where predictions are scored."""
    theta = np.asarray(fit.state.theta)
    found = inside(cochlea, theta, specimen.points)
    dice = 2 * np.sum(found & mask) / (np.sum(found) + np.sum(mask))
    there, back = border_distances(specimen, found, mask), border_distances(specimen, mask, found)
    hd95 = (np.percentile(there, 95) + np.percentile(back, 95)) / 2
    mean = (there.sum() + back.sum()) / (there.size + back.size)
    corti = path(cochlea, theta, "organ_of_corti").length[-1]
    return Score(float(dice), float(hd95), float(mean), float(corti), fit.status.name)


def border_distances(specimen: Specimen, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """From the border voxels of one mask to the border of the other; the region's own faces are no border."""
    low = specimen.voxels.min(axis=0) - 1
    shape = specimen.voxels.max(axis=0) + 2 - low
    region = np.zeros(shape, bool)
    rows = tuple((specimen.voxels - low).T)
    region[rows] = True

    def border(labels: np.ndarray) -> np.ndarray:
        volume = np.zeros(shape, bool)
        volume[rows] = labels
        return volume & ~np.asarray(ndimage.binary_erosion(volume | ~region, border_value=1), bool)

    return np.asarray(ndimage.distance_transform_edt(~border(b), sampling=specimen.spacing))[border(a)]


def measure_adequacy(specimens: list[Specimen], is_quick: bool) -> None:
    """Prints Dice and distances of all models, with and without the anatomical constraint, against both truths."""
    rows, lengths = [], []
    for table_name, table in TABLES.items():
        for num, free in MODELS.items():
            if is_quick and num != 10:
                continue
            both = {"micro-CT": [], "manual": []}
            for one in specimens:
                for truth, mask in (("micro-CT", one.reference), ("manual", one.manual)):
                    both[truth].append(score(one, mask, *fit_mask(one, mask, free, table)))
            report(f"adequacy: {table_name}, {num} parameters")
            fine, manual = both["micro-CT"], both["manual"]
            dice = [s.dice for s in fine]
            numbers = [np.mean(dice), min(dice), np.mean([s.hd95 for s in fine]), np.mean([s.mean for s in fine])]
            stuck = sum(s.status != "CONVERGED" for s in fine + manual)
            rows.append(
                [
                    table_name,
                    f"{num}",
                    *(f"{x:.3f}" for x in numbers),
                    f"{np.mean([s.dice for s in manual]):.3f}",
                    f"{stuck}",
                ]
            )
            if num == 11 or is_quick:
                corti = [s.corti for s in fine]
                lengths.append([table_name, *_anatomy(table), f"{min(corti):.1f}-{max(corti):.1f}"])
    header = ["table", "parameters", "Dice", "worst", "HD95", "mean distance", "Dice (manual)", "not converged"]
    title = (
        f"Fits to {len(specimens)} masks (no CT), each with the table calibrated without its fold; distances in mm"
    )
    print_table(title, header, rows, [])
    walls = [f"W {degrees}" for degrees in WALL_DEGREES]
    print_table("Anatomy (mm)", ["table", *walls, "turns", "organ of Corti, 11 parameters"], lengths, [])


def _anatomy(table: Path) -> list[str]:
    cochlea = Cochlea(calibration=load_calibration(table))
    found = path(cochlea, cochlea.mean(), "lateral_wall")
    walls = np.interp(np.radians(WALL_DEGREES), found.angle, found.radius)
    return [*(f"{w:.2f}" for w in walls), f"{found.angle[-1] / (2 * np.pi):.2f}"]


def draw_specimens(specimens: list[Specimen], folder: Path) -> None:
    """A figure of all masks (filled) with their fitted shapes (lines), in a plane through the axis and one across."""
    figure, panels = plt.subplots(4, 6, figsize=(15, 8.6), layout="constrained")
    for one, (axial, across) in zip(specimens, panels.reshape(-1, 2), strict=True):
        cochlea, fit = fit_mask(one, one.reference, MODELS[11], TABLES["anatomical"])
        theta = np.asarray(fit.state.theta)
        for panel, axes, third, at in ((axial, (0, 2), 1, 0.0), (across, (0, 1), 2, 0.8)):
            draw_plane(panel, one, (cochlea, theta), axes, third, at)
        dice = score(one, one.reference, cochlea, fit).dice
        axial.set_title(f"{one.name}: y = 0", fontsize=9)
        across.set_title(f"z = 0.8 mm; Dice {dice:.3f}", fontsize=9)
    figure.savefig(folder / "cochlea_specimens.png", dpi=100)
    plt.close(figure)


def draw_plane(panel: Any, one: Specimen, fitted: tuple, axes: tuple[int, int], third: int, at: float) -> None:
    """One plane of the cochlear frame: the mask's voxels near it, and the zero line of the level."""
    cochlea, theta = fitted
    slab = one.reference & (np.abs(one.points[:, third] - at) < 0.1)
    panel.scatter(*one.points[slab][:, axes].T, s=3, color="orange", linewidths=0)
    u, v = np.meshgrid(np.arange(-4.6, 7.4, 0.05), np.arange(-4, 5, 0.05))
    plane = np.zeros((u.size, 3))
    plane[:, axes[0]], plane[:, axes[1]], plane[:, third] = u.ravel(), v.ravel(), at
    level = np.asarray(level_at(cochlea, theta, plane.astype(np.float32))).reshape(u.shape)
    panel.contour(u, v, level, levels=[0], colors="black", linewidths=1)
    panel.set_aspect("equal")
    panel.set_xlim(-4.6, 7.4)
    panel.set_ylim(-4, 5)


def draw_surface(folder: Path) -> None:
    """A figure of the mean cochlea's surface, coloured by height, from two sides."""
    cochlea = Cochlea()
    mesh = surface(cochlea, cochlea.mean(), 0.12)
    figure = plt.figure(figsize=(9, 4), layout="constrained")
    for k, (elevation, azimuth) in enumerate(((80, -90), (15, -120))):
        panel: Any = figure.add_subplot(1, 2, k + 1, projection="3d")
        x, y, z = mesh.vertices.T
        panel.plot_trisurf(x, y, z, triangles=mesh.faces, cmap="viridis", linewidth=0)
        panel.view_init(elevation, azimuth)
        panel.set_aspect("equal")
        panel.set_axis_off()
    figure.savefig(folder / "cochlea_surface.png", dpi=110)
    plt.close(figure)


def main(parts: set[str], is_quick: bool, folder: Path) -> None:
    """Tables and figures; first those that need no specimens."""
    if "figures" in parts:
        folder.mkdir(parents=True, exist_ok=True)
        cochlea = Cochlea()
        effects = draw_effects(cochlea, cochlea.mean(), ("a", "b", "alpha", "phi"))
        effects.savefig(folder / "cochlea_effects.png", dpi=110)
        draw_surface(folder)
    specimens = load_specimens(FOLDS["1"][:1] if is_quick else ())
    if "adequacy" in parts:
        measure_adequacy(specimens, is_quick)
    if "figures" in parts and not is_quick:
        draw_specimens(specimens, folder)
