"""`logishape reproduce`: everything that the paper compared, measured anew, on one page."""

import time
from pathlib import Path
from typing import Annotated

import typer

from logishape.cli.terminal import prepare_jax

INTERRUPTED = 130


def command(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the page, pictures and parts.")] = Path(
        "reproduce"
    ),
    data: Annotated[
        Path | None,
        typer.Option(help="The folder of the specimens; else LOGISHAPE_DATA, else phantoms are made."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SECTION",
            help="efficiency, segmentation, lengths, robustness, atlas, ellipse, uncertainty or evolution; repeat "
            "it, or separate by commas, for several.",
        ),
    ] = None,
    cases: Annotated[int | None, typer.Option(min=1, help="At most so many cases.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two cases, two starts, one turn: a first look.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Measure again what is finished already.")] = False,
) -> None:
    """Measure everything that the paper compared, beside its own numbers: OUT/reproduce.html.

    On the specimens of its third dataset where they are, else on phantoms. What is finished is kept in OUT/parts and
    not done again. On specimens the whole takes half an hour or more on two cores.
    """
    prepare_jax()
    from logishape.reproduce.run import run

    began = time.perf_counter()

    def tell(part: str) -> None:
        minutes, seconds = divmod(int(time.perf_counter() - began), 60)
        typer.echo(f"  {minutes:3d}:{seconds:02d}  {part}", err=True)

    names = [name for one in only or [] for name in one.split(",") if name]
    try:
        sections = run(out, data, names, most=cases, is_quick=quick, is_fresh=overwrite, tell=tell)
    except KeyboardInterrupt:
        typer.echo(f"logishape: stopped; finished parts are kept in {out / 'parts'} and used next time.", err=True)
        raise SystemExit(INTERRUPTED) from None  # without the usual message
    count = "1 section" if len(sections) == 1 else f"{len(sections)} sections"
    typer.echo(f"{count} in {out / 'reproduce.html'}; the same as text in {out / 'reproduce.md'}.")
