"""What a person at a terminal sees: stages with their seconds, tables, and what went wrong in one sentence."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STAGE_WORDS = {
    "read": "reading the CT",
    "locate": "looking for cochleae",
    "register": "laying the reference on the CT",
    "fit": "fitting the shape (the first run on a machine compiles for about a minute)",
    "posterior": "computing its uncertainty",
    "labels": "labelling the CT's voxels",
    "measurements": "measuring",
    "write": "writing results",
    "report": "drawing the report",
}


def prepare_jax() -> None:
    """Keeps compiled programs between runs and the compiler's messages off the terminal; call it before jax comes."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "logishape" / "jax"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # nowhere to write, or a user without a home
        return  # no cache, no harm: every run compiles
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


class Stages:
    """Tells each stage on stderr as it begins, with a spinner where there is a terminal, and its seconds after."""

    def __init__(self, is_quiet: bool):
        from rich.console import Console

        self.console = Console(stderr=True, quiet=is_quiet, highlight=False, markup=False)
        self.seconds: dict[str, float] = {}
        self._now: tuple[str, float] | None = None
        self._status: Any = None

    def __call__(self, stage: str) -> None:
        """A stage begins and the one before has ended; or, as in "locate 40%", it goes on."""
        name, _, share = stage.partition(" ")
        if self._now is not None and share and name == self._now[0]:
            if self._status is not None:
                self._status.update(f"{STAGE_WORDS.get(name, name)}: {share}")
            return
        self.end()
        self._now = stage, time.perf_counter()
        words = STAGE_WORDS.get(stage, stage)
        if self.console.is_terminal:
            self._status = self.console.status(words)
            self._status.start()

    def stop(self) -> None:
        """No spinner any more."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def end(self) -> None:
        """The last stage has ended."""
        self.stop()
        if self._now is not None:
            stage, began = self._now
            took = time.perf_counter() - began
            self.seconds[stage] = self.seconds.get(stage, 0.0) + took
            words = STAGE_WORDS.get(stage, stage).split(" (")[0]
            self.console.print(f"  {words}: {took:.1f} s")
            self._now = None


@contextlib.contextmanager
def stages(is_quiet: bool) -> Iterator[Stages]:
    """Stages that end with the block; one that fails is not told as done."""
    told = Stages(is_quiet)
    try:
        yield told
    except BaseException:
        told.stop()
        raise
    told.end()


def show_table(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """A table on stdout."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for k, name in enumerate(header):
        table.add_column(name, justify="left" if k == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)


def sentence_of(error: Exception) -> str | None:
    """What a person needs to know of an error they can mend, on one line; None for one that is ours to mend."""
    usage = getattr(error, "format_message", None)  # of the parser's own errors
    if usage is not None:
        return one_line(usage()).rstrip(".") + "; see --help."
    if isinstance(error, OSError) and error.strerror:
        place = "a file" if error.filename is None else f"'{os.fsdecode(error.filename)}'"
        return one_line(f"{place} could not be used ({error.strerror}); check its name, permissions and space left.")
    if isinstance(error, MemoryError):
        return "there should be room for the CT in memory but there is not; crop it to the temporal bones."
    from logishape.core.errors import LogishapeError

    return one_line(error) if isinstance(error, LogishapeError) else None


def one_line(text: object) -> str:
    """Text without what a terminal would obey: names of files may hold line breaks and worse."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in str(text)).split())
