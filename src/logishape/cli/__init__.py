"""The command line: `logishape cochlea`, `demo`, `reproduce` and others. Heavy imports wait inside the commands."""

import atexit
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

import typer

from logishape.cli import cochlea, demo, evaluate, figure, phantom, report, reproduce, train_distance
from logishape.cli.terminal import sentence_of

_STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Segments the cochlea in a CT with a shape you can write down, and says how sure it is.",
)
app.command("cochlea")(cochlea.command)
app.command("demo")(demo.command)
app.command("phantom")(phantom.command)
app.command("evaluate")(evaluate.command)
app.command("figure")(figure.command)
app.command("report")(report.command)
app.command("train-distance")(train_distance.command)
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
    _listen()
    try:
        code = app(standalone_mode=False)
    except _Stopped as end:
        code = end.code
    except Exception as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        sys.stderr.write(f"logishape: {sentence}\n")
        sys.exit(2)
    finally:
        atexit.register(_let_go)
    if code in [128 + number for number in _STOPS]:
        sys.stderr.write("logishape: stopped; no result was left half-written.\n")
    sys.exit(code if isinstance(code, int) else 0)


def _listen() -> None:
    """A scheduler's or a closing terminal's wish to stop is heard as Ctrl-C is, so that temporary files go away."""
    if threading.current_thread() is threading.main_thread():
        for number in _STOPS:
            if signal.getsignal(number) is signal.SIG_DFL:  # under nohup SIGHUP is ignored, and stays so
                signal.signal(number, _stop)
        sys.unraisablehook = _ask_again


def _stop(number: int, _: FrameType | None) -> None:
    raise _Stopped(number)


class _Stopped(SystemExit):
    """The end that a signal asked for."""

    def __init__(self, number: int):
        super().__init__(128 + number)
        self.number = number


def _ask_again(lost: Any, otherwise: Any = sys.unraisablehook) -> None:
    """A wish to stop that fell into the clean-up of some object, where Python drops it, is sent once more."""
    if isinstance(lost.exc_value, _Stopped | KeyboardInterrupt):
        number = lost.exc_value.number if isinstance(lost.exc_value, _Stopped) else signal.SIGINT
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
    else:
        otherwise(lost)


def _let_go() -> None:
    """The work is done: a signal that comes now ends the process and tells nothing."""
    for number in _STOPS:
        if signal.getsignal(number) in (_stop, signal.default_int_handler):
            signal.signal(number, signal.SIG_DFL)
