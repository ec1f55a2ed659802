"""`logishape figure`: figures for papers from a stored result."""

from pathlib import Path
from typing import Annotated

import typer

from logishape.cli.terminal import one_line, prepare_jax


def command(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="A folder that logishape cochlea wrote: of one ear, of both, or of several scans."
        ),
    ],
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="overlay (contours on the CT), uncertainty (probabilities at the best shape, and with the shape "
            "integrated out), densities (intensities and fitted mixtures), evolution (the shape during the fit) or "
            "effects (what each parameter does to the shape).",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="A folder, or a .png or .svg file (both are written); else figures/KIND.png beside the result.",
        ),
    ] = None,
    calibration: Annotated[Path | None, typer.Option(help="The calibration file, if the result has another.")] = None,
    weights: Annotated[Path | None, typer.Option(help="The network, if the result was made with --weights.")] = None,
) -> None:
    """Draw a figure of a result as PNG and SVG, from what is stored: nothing is fitted again."""
    prepare_jax()
    from logishape.cli.cochlea import read_calibration
    from logishape.report import write_figures

    for file in write_figures(results, kind, out, read_calibration(calibration, weights)):
        typer.echo(one_line(file))
