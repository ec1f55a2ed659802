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


def caveat_of(kind: str | None, point_spread_mm: float | None, has_map: bool) -> str:
    """What the intervals do not hold, in a sentence.

    `kind` of posterior, None without one; `point_spread_mm` (SD) was taken off the sizes, if any; whether a map of
    probabilities took the place of intensities.
    """
    if kind is None:
        return "There are no intervals: no posterior could be computed."
    if has_map:
        return "Intervals count what the probability map leaves open; errors of the map itself are not in them."
    if kind == "complete":
        return (
            "Intervals are the paper's, which are too narrow: they count labels nobody saw, and nothing of blur; see "
            "docs/coverage.md."
        )
    if point_spread_mm is None:
        return (
            "Intervals count noise alone: blur makes sizes smaller than they are, in a clinical CT by more than "
            "intervals allow; see docs/coverage.md."
        )
    return (
        f"A point spread of {point_spread_mm:.2f} mm (SD) was taken off the sizes; docs/coverage.md says how often "
        "intervals then hold the truth."
    )
