"""What the page is made of: sections with tables, pictures and notes."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class Table:
    """A title, the columns' names, and rows of words."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.header) for row in self.rows), self.title


@dataclasses.dataclass(frozen=True, eq=False)
class Picture:
    """A figure, the name of its file, and what it shows."""

    name: str
    figure: Figure
    caption: str


@dataclasses.dataclass(frozen=True, eq=False)
class Section:
    """One thing that the paper compared: what was done, tables, pictures, and what to bear in mind."""

    title: str
    text: str
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()


def mean_sd(values: Sequence[float | None], places: int = 3) -> str:
    """Mean and standard deviation in words; a dash for no value at all."""
    numbers = np.array([value for value in values if value is not None], float)
    if not numbers.size:
        return "-"
    sd = f" ± {np.std(numbers, ddof=1):.{places}f}" if numbers.size > 1 else ""
    return f"{numbers.mean():.{places}f}{sd}"


def mean_of(values: Sequence[float | None], places: int = 2) -> str:
    """The mean in words; a dash for no value at all."""
    numbers = [value for value in values if value is not None]
    return f"{np.mean(numbers):.{places}f}" if numbers else "-"


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
