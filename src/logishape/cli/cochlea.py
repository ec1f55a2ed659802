"""`logishape cochlea`: a CT file in, a segmented cochlea out."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from logishape.cli.terminal import prepare_jax, show_table, stages

NAMES = {
    "A": "A, basal diameter",
    "B": "B, across A",
    "H": "H, height",
    "duct_length_organ_of_corti": "Duct length, organ of Corti",
    "duct_length_lateral_wall": "Duct length, lateral wall",
    "turns": "Turns",
    "volume": "Volume of the shape",
}
UNITS = {"mm": "mm", "mm3": "mm³", "1": ""}


def command(
    input: Annotated[Path, typer.Argument(help="A DICOM folder, or a .nii, .nii.gz, .nrrd, .mha file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Results go to OUT/left or OUT/right.")],
    landmarks: Annotated[
        Path | None,
        typer.Option(help="Base centre, apex and round window: .json, Slicer .mrk.json or .fcsv."),
    ] = None,
    at: Annotated[str | None, typer.Option(help="A point in the cochlea, X,Y,Z in RAS mm; needs --side.")] = None,
    side: Annotated[str, typer.Option(help="left, right, or auto (as the landmark file says).")] = "auto",
    series: Annotated[
        str | None, typer.Option(help="Which DICOM series: its UID, or its number in the list.")
    ] = None,
    preset: Annotated[str, typer.Option(help="default, or paper for the paper's plain settings.")] = "default",
    reference_length: Annotated[
        float | None, typer.Option(help="mm, for finding the shape; 0.07, or the paper's 0.1 with --preset paper.")
    ] = None,
    label_length: Annotated[
        float | None, typer.Option(help="mm, for drawing labels; 0.2, or 0.25 with --preset paper.")
    ] = None,
    distance: Annotated[str, typer.Option(help="level (fast) or exact (Euclidean).")] = "level",
    calibration: Annotated[Path | None, typer.Option(help="Another calibration file.")] = None,
    draws: Annotated[int, typer.Option(help="Draws of the shape's posterior.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the draws and starts.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print result.json on stdout and nothing else.")] = False,
) -> None:
    """Segment the cochlea in a CT, starting from a rough pose (--landmarks, or --at with --side).

    Writes segmentation, fitted shape, probability maps, surface, result.json and report.html. Exit code 3 means that
    the result is written but should not be trusted.
    """
    position = parse_point(at)
    chosen = parse_side(side)
    prepare_jax()
    from logishape.cochlea import load_calibration
    from logishape.cochlea.options import SegmentOptions
    from logishape.cochlea.pipeline import Request, run
    from logishape.report import write_page

    lengths = {"reference_length": reference_length, "label_length": label_length}
    options: Any = {name: value for name, value in lengths.items() if value is not None}
    request = Request(
        input=input,
        out=out,
        landmarks=landmarks,
        at=position,
        side=chosen,
        series=series,
        overwrite=overwrite,
        options=SegmentOptions(preset=preset, distance=distance, num_draws=draws, seed=seed, **options),  # pyright: ignore[reportArgumentType]
        calibration=None if calibration is None else load_calibration(calibration),
    )
    with stages(is_quiet=as_json) as told:
        outcome = run(request, told, write_page)
    for note in (*outcome.scan.notes, *outcome.scan.listing, *outcome.result.notes):
        told.console.print(f"  note: {note}", soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(outcome.record, indent=1))
    else:
        show_outcome(outcome)
    if not outcome.result.is_trusted:
        raise typer.Exit(3)


def show_outcome(outcome: Any) -> None:
    """The closing table, the verdict and where the files are."""
    result = outcome.result
    rows = [("Segmented volume", f"{result.labels.volume_mm3():.1f} mm³", "")]
    for name, m in result.measurements.items():
        places, unit = 2 if name == "turns" else 1, UNITS[m.unit]
        interval = "" if m.lower is None else f"{m.lower:.{places}f} to {m.upper:.{places}f}"
        rows.append((NAMES[name], f"{m.value:.{places}f} {unit}".strip(), interval))
    show_table(
        f"Cochlea, {result.side} ear ({result.intensities.filling}-filled)", ("", "value", "90 % interval"), rows
    )
    for flag in result.flags:
        typer.echo(("Do not trust this result: " if flag.is_serious else "Note: ") + flag.message)
    if result.is_trusted:
        typer.echo(
            "No quality check failed. Intervals hold the fitted model for true; their coverage on CT is not tested."
        )
    typer.echo(f"Results in {outcome.folder}; open report.html there. Research use only; not a medical device.")


def parse_point(text: str | None) -> tuple[float, float, float] | None:
    """Three numbers from X,Y,Z."""
    if text is None:
        return None
    try:
        x, y, z = (float(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise typer.BadParameter(f"expected X,Y,Z in RAS mm but found {text!r}", param_hint="--at") from None
    return x, y, z


def parse_side(text: str) -> Any:
    """left, right or None for auto."""
    if text not in ("auto", "left", "right"):
        raise typer.BadParameter(f"expected auto, left or right but found {text!r}", param_hint="--side")
    return None if text == "auto" else text
