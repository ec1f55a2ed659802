"""JSON files, read with care: plain files of a sensible size, each name once."""

import json
from pathlib import Path
from typing import Any

from logishape.core.errors import InputError

MOST_BYTES = 1 << 26


def read_json(path: Path, what: str) -> Any:
    """The content of a JSON file; `what` says in errors what it should be, as in "a calibration"."""
    text = read_text(path, what)
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _without_repeats(pairs, path.name))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # numbers may have too many digits, lists too many lists in them
        raise InputError(
            f"{path.name} should be {what} but cannot be parsed as JSON; export or make it again."
        ) from error


def read_text(path: Path, what: str) -> str:
    """The text of a plain file."""
    try:
        if not path.is_file():  # not a pipe or a device, which may never end
            found = "is no plain file" if path.exists() else "is not there"
            raise InputError(f"{path} should be {what} but {found}; check the path.")
        if (size := path.stat().st_size) > MOST_BYTES:
            raise InputError(
                f"{path.name} should be {what}, of {MOST_BYTES >> 20} MiB at most, but has {size >> 20}; check it."
            )
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        if isinstance(error, OSError):
            reason = error.strerror or "input error"
            raise InputError(f"{path} could not be read ({reason}); check that it may be opened.") from error
        raise InputError(f"{path.name} should be {what} but is not text; export or make it again.") from error


def _without_repeats(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    """A JSON object, whose names must differ; plain parsing would keep the last of two silently."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise InputError(f"{name} should have each name once but '{plain(twice, 40)}' is there twice; rename one.")
    return found


def plain(text: object, most: int) -> str:
    """A few letters of what a file says, fit for a sentence."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)[:most]).split())
