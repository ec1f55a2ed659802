"""`logishape demo`: a phantom CT, segmented from its file as any other, and scored against its truth."""

from pathlib import Path
from typing import Annotated

import typer

from logishape.cli.cochlea import show_outcome
from logishape.cli.terminal import prepare_jax, show_table, stages


def command(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for phantom and results.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Of the phantom.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier demo.")] = False,
) -> None:
    """Make a phantom CT with known truth, segment its cochlea, score it and draw the report; no data needed."""
    prepare_jax()
    from logishape.cochlea.phantom import make_phantom
    from logishape.cochlea.phantom_files import write_phantom
    from logishape.cochlea.phantom_options import PhantomOptions
    from logishape.cochlea.pipeline import Request, run
    from logishape.io import read_mask
    from logishape.metrics import compare
    from logishape.report import montage, read_stored, write_page

    options = PhantomOptions(side="left", orientation="oblique", landmark_error_mm=0.3)
    folder = out / "phantom"
    with stages(is_quiet=False) as told:
        told("making a phantom CT")
        write_phantom(folder, make_phantom(options, seed), overwrite)
        request = Request(folder / "ct.nii.gz", out / "result", overwrite=overwrite)
        (outcome,) = run(request, told, write_page)
        told("drawing contours")
        stored = read_stored(outcome.folder, outcome.result.labels)
        montage(stored).savefig(out / "contours.png", dpi=110, facecolor="black")
    show_outcome(outcome)
    truth = read_mask(folder / "left" / "truth.nii.gz")
    rows = []
    for name, words in (("segmentation", "Segmentation"), ("shape", "Fitted shape")):
        found = compare(read_mask(outcome.folder / f"{name}.nii.gz"), truth)
        distances = (found.hd95, found.mean_surface_distance)
        hd95, mean = ("none" if value is None else f"{value:.2f} mm" for value in distances)
        rows.append((words, f"{found.dice:.3f}", hd95, mean))
    typer.echo(f"Contours on the CT: {out / 'contours.png'}")
    show_table("Against the phantom's truth", ("", "Dice", "HD95", "mean distance"), rows)
    if not outcome.result.is_trusted:
        raise typer.Exit(3)
