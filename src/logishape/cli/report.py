"""`logishape report`: the page of a stored result, written anew."""

from pathlib import Path
from typing import Annotated

import typer

from logishape.cli.terminal import one_line, prepare_jax, sentence_of


def command(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="A folder that logishape cochlea wrote: of one ear, of both, or of several inputs."
        ),
    ],
) -> None:
    """Write report.html of each result anew, from what is stored: nothing is fitted again.

    Exit code 2 means that a page could not be written; the others are.
    """
    prepare_jax()
    from logishape.report import rebuild_page, results_in

    failed = False
    folders = results_in(results)
    for folder in folders:
        try:
            typer.echo(one_line(rebuild_page(folder)))
        except Exception as error:
            sentence = sentence_of(error)
            if sentence is None or len(folders) == 1:
                raise
            typer.echo(f"logishape: {one_line(folder)}: {sentence}", err=True)
            failed = True
    if failed:
        raise typer.Exit(2)
