"""Pages of stored results, written anew."""

import os
from pathlib import Path

from jinja2 import UndefinedError

from logishape.core.errors import InputError
from logishape.io import is_result
from logishape.report.page import NAME, page, write_text
from logishape.report.stored import read_stored

_EARS = ("left", "right")


def rebuild_page(folder: str | os.PathLike[str]) -> Path:
    """Writes `report.html` of the result in a folder anew, from what is stored there; returns the file."""
    stored = read_stored(folder)
    try:
        text = page(stored)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, UndefinedError) as error:
        raise InputError(
            f"the record in {folder} should be as logishape writes it but {error!r} is not, so it is damaged; "
            "segment the scan again."
        ) from error
    write_text(Path(folder), text)
    return Path(folder) / NAME


def every_result(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The folders of results that are meant: this one, those of its ears, or those of the ears of each input."""
    place = Path(folder)
    if not place.is_dir():
        found = "is a file" if place.exists() else "is not there"
        raise InputError(f"{place} should be a folder that logishape cochlea wrote but {found}; check the path.")
    if is_result(place):
        return (place,)
    inside = sorted(one for one in place.iterdir() if one.is_dir() and not one.name.startswith("."))
    results = tuple(one for name in inside for one in (name, *(name / ear for ear in _EARS)) if is_result(one))
    if not results:
        raise InputError(
            f"{place} should hold results, in itself, in left and right or in a folder for each input, but no "
            "result.json is there; give a folder that logishape cochlea wrote."
        )
    return results
