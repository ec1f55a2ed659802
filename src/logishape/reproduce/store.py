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
    """Values by name in a folder, each with the settings it was made with; other settings, another value."""

    def __init__(self, folder: PathLike, settings: dict[str, Any]):
        self.folder = Path(folder)
        self.settings = json.loads(json.dumps(settings))  # as they will be read back

    def get(self, name: str, make: Callable[[], Any]) -> Any:
        """The value of that name: read if it was made with these settings, made and written if not."""
        path = self.folder / f"{name}.json"
        if path.is_file():
            kept = _read(path)
            if kept.get("settings") == self.settings:
                return kept["value"]
        value = json.loads(json.dumps(make()))
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as temporary:
            text = json.dumps({"settings": self.settings, "value": value}, allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")
        return value


def _read(path: Path) -> dict[str, Any]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        assert "value" in kept
    except (OSError, ValueError, RecursionError, AssertionError, TypeError) as error:
        raise InputError(f"{path} should hold a finished part of the study but cannot be read; remove it.") from error
    return kept
