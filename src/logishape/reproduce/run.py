"""The whole study: every section by its name, in the order of the page."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import jax

import logishape
from logishape.core.errors import InputError, LogishapeError
from logishape.io import check_writable
from logishape.reproduce.blocks import Section
from logishape.reproduce.cases import find_source
from logishape.reproduce.efficiency_table import efficiency
from logishape.reproduce.page import write
from logishape.reproduce.pictures import ellipse, evolution, uncertainty
from logishape.reproduce.store import Store
from logishape.reproduce.study import Study, Tell
from logishape.reproduce.tables import atlas, lengths, robustness, segmentation

SECTIONS: dict[str, Callable[[Study], Section]] = {
    "efficiency": efficiency,
    "segmentation": segmentation,
    "lengths": lengths,
    "robustness": robustness,
    "atlas": atlas,
    "ellipse": ellipse,
    "uncertainty": uncertainty,
    "evolution": evolution,
}
PARTS = "parts"


def run(
    out: Path,
    data: str | os.PathLike[str] | None = None,
    only: Sequence[str] = (),
    *,
    most: int | None = None,
    is_quick: bool = False,
    is_fresh: bool = False,
    tell: Tell | None = None,
) -> list[Section]:
    """The sections named (all, if none is), measured, and written to `out` as one page with its pictures.

    Finished parts are kept in `out`/parts and used again; `is_fresh` makes them anew. `most` limits the cases.
    """
    unknown = [name for name in only if name not in SECTIONS]
    if unknown:
        raise InputError(
            f"a section must be among {', '.join(SECTIONS)} but is {unknown[0]!r}; choose one or several."
        )
    check_writable(out / "reproduce.html")
    source = find_source(data, most)
    settings = {"version": logishape.__version__, "cases": "phantoms" if source.folder is None else "specimens"}
    study = Study(source, Store(out / PARTS, settings, is_fresh), tell or (lambda _: None), is_quick)
    chosen = [name for name in SECTIONS if name in only or not only]
    sections = [_section(name, study) for name in chosen]
    intro = (
        "Wang et al., Bayesian Logistic Shape Model Inference: application to cochlea image segmentation, against "
        f"this software. Cases: {len(study.names)} {source.kind}. Columns named paper are what it prints."
    )
    quick = " A quick run: few cases, starts and turns." if is_quick else ""
    provenance = (
        f"logishape {logishape.__version__}, jax {jax.__version__}, "
        f"logishape reproduce{''.join(f' --only {name}' for name in only)}.{quick} Research use only; not a medical "
        "device."
    )
    write(out, sections, intro, provenance)
    return sections


def _section(name: str, study: Study) -> Section:
    """A section, or why there is none: one that cannot be made does not stop the others."""
    try:
        return SECTIONS[name](study)
    except LogishapeError as error:
        return Section(name.capitalize(), f"Not measured: {error}")
