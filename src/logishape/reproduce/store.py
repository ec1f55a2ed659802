"""Results of a long study, kept part by part: what is finished is not done again."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from logishape.core.errors import InputError
from logishape.io import atomic_file

PathLike = str | os.PathLike[str]


class Store:
    """Values by name in a folder, each with the settings it was made with; other settings, another value.

    settings: what holds for all values. is_fresh: what was kept before is made again.
    """

    def __init__(self, folder: PathLike, settings: dict[str, Any], is_fresh: bool = False):
        self.folder, self.settings, self.is_fresh = Path(folder), settings, is_fresh

    def get(self, name: str, make: Callable[[], Any], settings: dict[str, Any] | None = None) -> Any:
        """The value of that name: read if it was made with these settings, made and written if not."""
        path = self.folder / f"{name}.json"
        wanted = json.loads(json.dumps(self.settings | (settings or {})))  # as they will be read back
        if path.is_file() and not self.is_fresh:
            kept = _read(path)
            if kept["settings"] == wanted:
                return kept["value"]
        value = json.loads(json.dumps(make()))
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as temporary:
            text = json.dumps({"settings": wanted, "value": value}, allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")
        return value


def _read(path: Path) -> dict[str, Any]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        kept = None
    if not isinstance(kept, dict) or not {"settings", "value"} <= set(kept):
        raise InputError(f"{path} should hold a finished part of the study but cannot be read; remove it.")
    return kept
