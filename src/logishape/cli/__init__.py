"""The command line: `logishape cochlea`, `demo`, `reproduce` and others. Heavy imports wait inside the commands."""

import sys

import typer

from logishape.cli import cochlea, demo, evaluate, phantom, reproduce

_INTERRUPTED = 130
app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Segments the cochlea in a CT with a shape you can write down, and says how sure it is.",
)
app.command("cochlea")(cochlea.command)
app.command("demo")(demo.command)
app.command("phantom")(phantom.command)
app.command("evaluate")(evaluate.command)
app.command("reproduce")(reproduce.command)


@app.callback(invoke_without_command=True)
def about(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and stop.")
) -> None:
    """Bayesian segmentation with a shape you can write down. Research use only; not a medical device."""
    if version:
        import logishape

        typer.echo(logishape.__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Runs the command; what was wrong with the input or the usage is one sentence on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        sys.stderr.write(f"logishape: {sentence}\n")
        sys.exit(2)
    if code == _INTERRUPTED:
        sys.stderr.write("logishape: stopped; nothing was written.\n")
    sys.exit(code if isinstance(code, int) else 0)


def _sentence(error: Exception) -> str | None:
    """What a person needs to know of an error they can mend; None for one that is ours to mend."""
    usage = getattr(error, "format_message", None)  # of the parser's own errors
    if usage is not None:
        return " ".join(str(usage()).split()).rstrip(".") + "; see --help."
    from logishape.core.errors import LogishapeError

    return str(error) if isinstance(error, LogishapeError) else None
