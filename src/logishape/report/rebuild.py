"""Pages of stored results, written anew."""

import os
from pathlib import Path

from jinja2 import UndefinedError

from logishape.core.errors import InputError
from logishape.report.page import NAME, page, write_text
from logishape.report.stored import read_stored


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
