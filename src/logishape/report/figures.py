"""Figures for papers, of a stored result and by name; written as PNG and SVG."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from logishape.cochlea import Calibration
from logishape.core.errors import InputError
from logishape.io import atomic_file
from logishape.report.densities import densities
from logishape.report.effects import effects
from logishape.report.evolution import evolution
from logishape.report.montage import montage
from logishape.report.stored import Stored, read_stored, results_in
from logishape.report.uncertainty import uncertainty

OF_MAPS: dict[str, Callable[[Stored], Figure]] = {
    "overlay": montage,
    "uncertainty": uncertainty,
    "densities": densities,
}
OF_SHAPE: dict[str, Callable[[Stored, Calibration | None], Figure]] = {"evolution": evolution, "effects": effects}
KINDS = (*OF_MAPS, *OF_SHAPE)
DPI = 200
_OTHER_ENDINGS = (".pdf", ".eps", ".ps", ".jpg", ".jpeg", ".tif", ".tiff")
_UNTOLD: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Creator": None, "Date": None}}


def figure(stored: Stored, kind: str, calibration: Calibration | None = None) -> Figure:
    """A figure of a result, one of `KINDS`; `calibration` is that of the result where it is not logishape's own."""
    if kind in OF_MAPS:
        return OF_MAPS[kind](stored)
    if kind in OF_SHAPE:
        return OF_SHAPE[kind](stored, calibration)
    raise InputError(f"the kind of figure must be one of {', '.join(KINDS)} but is {kind!r}; choose one of them.")


def save(drawn: Figure, path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Writes `path` with .png and .svg after it; the same figure gives the same bytes, without a time or a name.

    Returns both files.
    """
    files = {ending: Path(f"{os.fspath(path)}.{ending}") for ending in _UNTOLD}
    look = {"dpi": DPI, "facecolor": drawn.get_facecolor()}
    contents = {ending: io.BytesIO() for ending in files}
    with matplotlib.rc_context({"svg.hashsalt": "logishape"}):
        for ending, content in contents.items():  # both are drawn before one is written
            drawn.savefig(content, format=ending, metadata=_UNTOLD[ending], **look)
    for ending, file in files.items():
        with atomic_file(file) as temporary:
            temporary.write_bytes(contents[ending].getvalue())
    return tuple(files.values())


def write_figures(
    folder: str | os.PathLike[str],
    kind: str,
    out: str | os.PathLike[str] | None = None,
    calibration: Calibration | None = None,
) -> tuple[Path, ...]:
    """Draws one kind of figure of each ear in a folder of results; returns the files.

    They go to `figures` in each ear's folder; `out` is another folder, or a file that ends in .png or .svg: both are
    written. There several results have a folder each, or their name, such as left, after the file's.
    """
    if kind not in KINDS:
        raise InputError(f"the kind of figure must be one of {', '.join(KINDS)} but is {kind!r}; choose one of them.")
    results = results_in(folder)
    names = ["-".join(result.relative_to(folder).parts) if len(results) > 1 else "" for result in results]
    places = [_place(result, kind, out, name) for result, name in zip(results, names, strict=True)]
    drawn = [figure(read_stored(result), kind, calibration) for result in results]  # all, before one is written
    return tuple(file for one, place in zip(drawn, places, strict=True) for file in save(one, place))


def _place(result: Path, kind: str, out: str | os.PathLike[str] | None, name: str) -> Path:
    """Where a figure goes, without an ending; several results have names, that they can be told apart by."""
    if out is None:
        return result / "figures" / kind
    place = Path(out)
    if place.suffix.lower() in _OTHER_ENDINGS:
        raise InputError(f"figures are written as .png and .svg but {place.name} was asked for; name one of these.")
    if place.suffix.lower() not in (".png", ".svg"):
        return (place / name if name else place) / kind
    place = place.with_suffix("")
    return place.with_name(f"{place.name}-{name}") if name else place
