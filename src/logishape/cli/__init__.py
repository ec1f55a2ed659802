"""The command line: `logishape cochlea`, `phantom`, `evaluate`, `demo`. Heavy imports wait inside the commands."""

import sys

import typer

from logishape.cli import cochlea, demo, evaluate, phantom

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Segments the cochlea in a CT with a shape you can write down, and says how sure it is.",
)
app.command("cochlea")(cochlea.command)
app.command("demo")(demo.command)
app.command("phantom")(phantom.command)
app.command("evaluate")(evaluate.command)


@app.callback(invoke_without_command=True)
def about(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """Bayesian segmentation with a shape you can write down. Research use only; not a medical device."""
    if version:
        import logishape

        typer.echo(logishape.__version__)
        raise typer.Exit


def main() -> None:
    """Runs the command; what was wrong with the input is one sentence on stderr and exit code 2."""
    try:
        app()
    except KeyboardInterrupt:
        sys.stderr.write("logishape: stopped; nothing was written.\n")
        sys.exit(130)
    except Exception as error:
        if not _is_ours(error):
            raise
        sys.stderr.write(f"logishape: {error}\n")
        sys.exit(2)


def _is_ours(error: Exception) -> bool:
    from logishape.core.errors import LogishapeError

    return isinstance(error, LogishapeError)
