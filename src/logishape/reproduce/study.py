"""What the sections of the study share: where cases come from, what is finished already, and who is told."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from logishape.cochlea import SegmentOptions
from logishape.core.errors import InputError, LogishapeError
from logishape.reproduce.cases import Case, Source
from logishape.reproduce.segmented import Scene, scene, segment_case, summarise
from logishape.reproduce.store import Store

Tell = Callable[[str], None]
_MOST_QUICK = 2


class _RefusedError(Exception):
    """A part that could not be made, with the reason."""


@dataclasses.dataclass(frozen=True, eq=False)
class Study:
    """Cases, finished parts, and options.

    tell: called with a sentence whenever a part begins. is_quick: few cases, starts and turns, for a first look.
    """

    source: Source
    store: Store
    tell: Tell
    is_quick: bool = False
    _loaded: dict[str, Any] = dataclasses.field(default_factory=dict)
    _refused: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The cases."""
        return self.source.names[:_MOST_QUICK] if self.is_quick else self.source.names

    def some(self, most: int) -> tuple[str, ...]:
        """At most so many cases, from all over the list: of every fold, if there are as many."""
        count = min(most, len(self.names))
        return tuple(self.names[k] for k in np.arange(count) * len(self.names) // count)

    def part(self, name: str, make: Callable[[], Any], **settings: Any) -> Any:
        """A finished part of the study, made if it is not there; a case that is refused is a part with the reason."""

        def attempt() -> Any:
            self.tell(name)
            try:
                return make()
            except LogishapeError as error:
                raise _RefusedError(str(error)) from error

        if name not in self._refused:
            try:
                return self.store.get(name, attempt, settings)
            except _RefusedError as error:  # not kept: what was wrong may be mended before the next run
                self._refused[name] = str(error)
        return {"refused": self._refused[name]}

    def case(self, name: str) -> Case:
        """One case; the last one stays in memory."""
        return self._keep("case", name, lambda: self.source.load(name))

    def record(self, name: str, preset: str = "default") -> dict[str, Any]:
        """The segmentation of one case from its CT alone, as plain numbers."""
        options = SegmentOptions(preset=preset)  # pyright: ignore[reportArgumentType]

        def make() -> dict[str, Any]:
            case = self.case(name)
            return summarise(case, *segment_case(case, options))

        return self.part(f"segmentation-{name}-{preset}", make, options=dataclasses.asdict(options))

    def records(self, preset: str = "default") -> dict[str, dict[str, Any]]:
        """Those of all cases that were not refused."""
        found = {name: self.record(name, preset) for name in self.names}
        return {name: record for name, record in found.items() if "refused" not in record}

    def refusals(self, preset: str = "default") -> tuple[str, ...]:
        """A sentence for each case that was refused."""
        found = {name: self.record(name, preset) for name in self.names}
        return tuple(f"{name}: {record['refused']}" for name, record in found.items() if "refused" in record)

    def found(self, most: int) -> tuple[str, ...]:
        """Some of the cases that were not refused; at least one, if there is one."""
        found = tuple(name for name in self.some(most) if "refused" not in self.record(name))
        return found or tuple(itertools.islice(self.records(), 1))

    def first(self) -> str:
        """A case that was not refused."""
        found = self.found(1)
        if not found:
            raise InputError("no case could be segmented; see the reasons under Segmentation.")
        return found[0]

    def scene(self, name: str) -> Scene:
        """One case in the frame in which its segmentation found it."""
        record = self.record(name)
        return self._keep("scene", name, lambda: scene(self.case(name), record))

    def _keep(self, kind: str, name: str, make: Callable[[], Any]) -> Any:
        if self._loaded.get(kind, ("", None))[0] != name:
            self._loaded[kind] = (name, make())
        return self._loaded[kind][1]
