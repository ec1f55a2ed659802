"""What a person is told about a result: flags, each a sentence, and one verdict from all of them."""

import dataclasses
from collections.abc import Iterable
from typing import Literal

Verdict = Literal["good", "check", "do not use"]
HEADLINES: dict[Verdict, str] = {
    "good": "Good: no quality check failed.",
    "check": "Check: look at the pictures before you use this result.",
    "do not use": "Do not use this result.",
}


@dataclasses.dataclass(frozen=True)
class Flag:
    """Something to know about a result; `is_serious` means that it should not be used."""

    name: str
    message: str
    is_serious: bool


def verdict_of(flags: Iterable[Flag]) -> Verdict:
    """Good without any flag, not to be used with a serious one, else to be checked."""
    serious = [flag.is_serious for flag in flags]
    return "do not use" if any(serious) else "check" if serious else "good"


def caveat_of(point_spread_mm: float | None) -> str:
    """What the intervals do not hold, in a sentence; `point_spread_mm` (SD) was taken off the sizes, if any."""
    if point_spread_mm is None:
        return (
            "Intervals count noise alone: blur makes sizes smaller than they are, in a clinical CT by more than "
            "intervals allow; see docs/coverage.md."
        )
    return (
        f"A point spread of {point_spread_mm:.2f} mm (SD) was taken off the sizes; docs/coverage.md says how often "
        "intervals then hold the truth."
    )
