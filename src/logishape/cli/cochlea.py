"""`logishape cochlea`: a CT file in, a segmented cochlea out."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from logishape.cli.terminal import one_line, prepare_jax, sentence_of, show_table, stages

UNITS = {"mm": "mm", "mm3": "mm³", "1": ""}


def command(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="INPUT...", help="DICOM folders or .zip of them, or .nii, .nii.gz, .nrrd, .mha files."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Results go to OUT/left and OUT/right; of several inputs to OUT/NAME/..."),
    ],
    side: Annotated[str, typer.Option(help="left, right, or auto: whichever are found.")] = "auto",
    at: Annotated[str | None, typer.Option(help="A point in the cochlea, X,Y,Z in RAS mm: look only there.")] = None,
    locate: Annotated[
        str, typer.Option(help="search, or register: lay a reference on the CT, which must lie alike.")
    ] = "search",
    reference: Annotated[
        Path | None,
        typer.Option(help="For --locate register: a folder with ct.nii.gz and landmarks.json; a phantom."),
    ] = None,
    landmarks: Annotated[
        Path | None,
        typer.Option(help="Base centre, apex and round window: .json, Slicer .mrk.json or .fcsv."),
    ] = None,
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
    distance: Annotated[
        str, typer.Option(help="level (fast), exact (Euclidean), mesh (to triangles), or learned (a network's).")
    ] = "level",
    weights: Annotated[
        Path | None, typer.Option(help="For --distance learned: a network of train-distance, not logishape's own.")
    ] = None,
    intervals: Annotated[
        str | None,
        typer.Option(
            help="matched (default: blur, noise and misfit), observed (noise alone), complete (the paper's)."
        ),
    ] = None,
    posterior: Annotated[
        str,
        typer.Option(help="laplace, or mcmc: draws by NUTS, to check the Gaussian by; with observed intervals."),
    ] = "laplace",
    appearance_probability: Annotated[
        Path | None,
        typer.Option(
            metavar="MAP", help="p(inside) of your own network, .nii, .nrrd or .mha: read instead of intensities."
        ),
    ] = None,
    calibration: Annotated[Path | None, typer.Option(help="Another calibration file.")] = None,
    formats: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="More files, with commas between: dicom-seg (for a PACS; names the patient as the scan does), "
            "seg-nrrd and markups (3D Slicer). nifti, stl, ply, json and csv are always written.",
        ),
    ] = "nifti,stl,ply,json,csv",
    draws: Annotated[int, typer.Option(help="Draws of the shape's posterior.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the draws and starts.")] = 0,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace earlier results, also of an ear that is looked for and not found any more."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print result.json on stdout and nothing else; a list of several.")
    ] = False,
) -> None:
    """Find and segment the cochlea in a CT, of one ear or both.

    Writes segmentation, fitted shape, probability maps, surface, result.json and report.html for each ear. Exit code
    2 means that there was nothing to segment, 3 that a result is written but should not be trusted.
    """
    position = parse_point(at)
    chosen = parse_side(side)
    if locate not in ("search", "register"):
        raise typer.BadParameter(f"expected search or register but found {locate!r}", param_hint="--locate")
    folders = name_outputs(inputs, out)
    if len(inputs) > 1 and any(one is not None for one in (at, landmarks, series, appearance_probability)):
        raise typer.BadParameter(
            "--at, --landmarks, --series and --appearance-probability belong to one scan but there are several inputs"
        )
    if weights is not None and distance != "learned":
        raise typer.BadParameter("a network is for --distance learned; give both or neither", param_hint="--weights")
    prepare_jax()
    from logishape.cochlea.exports import check_formats
    from logishape.cochlea.options import SegmentOptions
    from logishape.cochlea.pipeline import Request

    wanted = check_formats(name.strip().lower() for name in formats.split(",") if name.strip())

    lengths = {"reference_length": reference_length, "label_length": label_length}
    options: Any = {name: value for name, value in lengths.items() if value is not None}
    options |= {
        "preset": preset,
        "distance": distance,
        "intervals": intervals,
        "posterior": posterior,
        "num_draws": draws,
        "seed": seed,
    }
    chosen_calibration = read_calibration(calibration, weights)
    requests = [
        Request(
            input=one,
            out=folder,
            landmarks=landmarks,
            at=position,
            side=chosen,
            series=series,
            overwrite=overwrite,
            options=SegmentOptions(**options),
            is_registered=locate == "register",
            reference=reference,
            calibration=chosen_calibration,
            formats=wanted,
            appearance_probability=appearance_probability,
        )
        for one, folder in zip(inputs, folders, strict=True)
    ]
    code = run_all(requests, as_json)
    if code:
        raise typer.Exit(code)


def read_calibration(file: Path | None, weights: Path | None) -> Any:
    """The calibration in a file, with a network if one is given; None where the package's own will do."""
    import dataclasses

    from logishape.cochlea import load_calibration
    from logishape.cochlea.learned import load_network

    if file is None and weights is None:
        return None
    found = load_calibration(file)
    return found if weights is None else dataclasses.replace(found, network=load_network(weights))


def run_all(requests: list[Any], as_json: bool) -> int:
    """Runs and shows every scan; one that is refused does not stop the others. Returns the exit code."""
    records, codes = [], {0}
    for request in requests:
        if len(requests) > 1 and not as_json:
            typer.echo(f"{one_line(request.input)}:")
        try:
            outcomes = _run_one(request, as_json)
        except Exception as error:
            if len(requests) == 1:
                raise
            sentence = sentence_of(error)  # None: an error of ours, which does not stop the other scans either
            told = sentence or one_line(f"an unexpected {type(error).__name__}: {error}")
            typer.echo(f"logishape: {one_line(request.input)}: {told}", err=True)
            codes.add(1 if sentence is None else 2)
            continue
        records += [outcome.record for outcome in outcomes]
        codes |= {0 if outcome.result.is_trusted else 3 for outcome in outcomes}
    if as_json:
        typer.echo(json.dumps(records[0] if len(requests) == len(records) == 1 else records, indent=1))
    return next(code for code in (1, 2, 3, 0) if code in codes)


def _run_one(request: Any, as_json: bool) -> Any:
    from logishape.cochlea.pipeline import run
    from logishape.report import write_page

    with stages(is_quiet=as_json) as told:
        outcomes = run(request, told, write_page)
    scan = outcomes[0].scan
    notes = [*scan.notes, *scan.listing, *(note for outcome in outcomes for note in outcome.result.notes)]
    for note in dict.fromkeys(notes):
        told.console.print(f"  note: {note}", soft_wrap=True)
    if not as_json:
        for outcome in outcomes:
            show_outcome(outcome)
    return outcomes


def name_outputs(inputs: list[Path], out: Path) -> list[Path]:
    """The folder of each input's results: OUT itself for one, OUT/NAME for several."""
    if len(inputs) == 1:
        return [out]
    plain = [_plain_name(path) for path in inputs]
    longer = [f"{path.resolve().parent.name}-{name}" for path, name in zip(inputs, plain, strict=True)]
    for names in (plain, longer):
        if len(set(names)) == len(names):
            return [out / name for name in names]
    twice = next(name for name in longer if longer.count(name) > 1)
    raise typer.BadParameter(f"two inputs would write to the same folder, {twice}; run them one by one")


def _plain_name(path: Path) -> str:
    name = path.resolve().name
    for ending in (".nii.gz", ".nii", ".nrrd", ".nhdr", ".mha", ".mhd", ".zip"):
        if name.lower().endswith(ending):
            return name[: -len(ending)]
    return name


def show_outcome(outcome: Any) -> None:
    """The closing table, the verdict and where the files are."""
    from logishape.cochlea.measurements import QUANTITIES
    from logishape.cochlea.verdict import HEADLINES

    result = outcome.result
    rows = [("Segmented volume", f"{result.labels.volume_mm3():.1f} mm³", "")]
    for name, m in result.measurements.items():
        if QUANTITIES[name].is_main:  # all of them are in measurements.csv
            places, unit = 2 if name == "turns" else 1, UNITS[m.unit]
            interval = "" if m.lower is None else f"{m.lower:.{places}f} to {m.upper:.{places}f}"
            middle = m.value if m.median is None else m.median  # as the page has it
            rows.append((QUANTITIES[name].words, f"{middle:.{places}f} {unit}".strip(), interval))
    show_table(
        f"Cochlea, {result.side} ear ({result.intensities.filling}-filled)", ("", "median", "90 % interval"), rows
    )
    typer.echo(HEADLINES[result.verdict])
    for flag in sorted(result.flags, key=lambda one: not one.is_serious):
        typer.echo(f"  - {flag.message}")
    if result.is_trusted:
        typer.echo(result.caveat)
    typer.echo(
        f"Results in {one_line(outcome.folder)}; open report.html there. Research use only; not a medical device."
    )


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
