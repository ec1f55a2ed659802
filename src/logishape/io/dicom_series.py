"""Series of slices: which of them are CT volumes, and which one is meant."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from logishape.core.errors import InputError
from logishape.io.dicom_headers import Slice

FEWEST_SLICES = 8
_SAME_DIRECTION = 1e-4  # of a cosine: the rounding of headers, a hundredth of a degree
_MOST_LISTED = 12


@dataclasses.dataclass(frozen=True)
class Stack:
    """Slices of one series that share size, direction and pixel spacing."""

    slices: tuple[Slice, ...]

    @property
    def uid(self) -> str:
        """The SeriesInstanceUID."""
        return self.slices[0].series_uid

    @property
    def num_voxels(self) -> int:
        """Pixels of all slices."""
        return len(self.slices) * self.slices[0].rows * self.slices[0].columns

    @property
    def problem(self) -> str:
        """Why this cannot be a CT volume; empty where it can."""
        first = self.slices[0]
        if first.modality != "CT":
            return f"its modality is {first.modality or 'not given'} instead of CT"
        if first.is_capture:
            return "it is a secondary capture, a picture of an image"
        if "LOCALIZER" in first.image_type:
            return "it is a localiser"
        if first.samples != 1:
            return f"it has {first.samples} colours a pixel"
        if first.missing:
            return f"its slices give no {' and no '.join(first.missing)}"
        if len(self.slices) < FEWEST_SLICES:
            return f"it has fewer than {FEWEST_SLICES} slices"
        return ""

    @property
    def summary(self) -> str:
        """UID, description, size and, where there is one, the problem; nothing that identifies a person."""
        first = self.slices[0]
        size = f"{first.columns} x {first.rows} x {len(self.slices)}"
        words = [f"UID {self.uid}", f"'{first.description}'" if first.description else "no description", size]
        return ", ".join([*words, self.problem] if self.problem else words)


def make_stacks(slices: Sequence[Slice]) -> list[Stack]:
    """Slices put together by series, size and direction: usable volumes first, then the larger ones."""
    groups: dict[tuple, list[list[Slice]]] = {}
    for piece in slices:
        candidates = groups.setdefault(_key(piece), [])
        for group in candidates:
            if _is_parallel(group[0], piece):
                group.append(piece)
                break
        else:
            candidates.append([piece])
    stacks = [Stack(tuple(group)) for candidates in groups.values() for group in candidates]
    return sorted(stacks, key=lambda stack: (bool(stack.problem), -stack.num_voxels, stack.uid))


def choose(stacks: list[Stack], series: str | None) -> tuple[Stack, tuple[str, ...], tuple[str, ...]]:
    """The stack that is meant, the largest usable one unless `series` names another; notes; and a listing of all.

    Descriptions are free text and may name a person: they are in the listing, never in the notes.
    """
    named = stacks if series is None else _find(stacks, series.strip())
    chosen = named[0]
    if chosen.problem:
        if len(stacks) == 1:
            raise InputError(f"the series cannot be read as a CT volume ({chosen.summary}); give a CT series.")
        what = "none of the series" if series is None else "the chosen series cannot be used: none of its images"
        raise InputError(
            f"{what} can be read as a CT volume; there are: {_list(stacks)}; give a CT series of "
            f"{FEWEST_SLICES} slices or more."
        )
    others = [stack for stack in stacks if stack is not chosen]
    if not others:
        return chosen, (), ()
    how = "the largest CT volume" if series is None else "as asked for"
    notes = [f"Of {len(stacks)} stacks of slices one was read, {how}."]
    num_split = sum(len(stack.slices) for stack in others if stack.uid == chosen.uid)
    if num_split:
        notes.append(
            f"Slices of the same series split off because they differ in kind, size or direction: {num_split}."
        )
    listing = (f"Read: {chosen.summary}.", f"Not read: {_list(others, stacks)}.")
    return chosen, tuple(notes), listing


def _find(stacks: list[Stack], series: str) -> list[Stack]:
    """The stacks meant by a number in the list, a UID, or the beginning or end of one UID alone."""
    if series.isascii() and series.isdigit() and 1 <= int(series) <= len(stacks):
        return [stacks[int(series) - 1]]
    uids = {stack.uid for stack in stacks}
    if series in uids:
        matches = {series}
    else:
        matches = {uid for uid in uids if series and (uid.startswith(series) or uid.endswith(series))}
    if len(matches) != 1:
        found = "no series is" if not matches else f"{len(matches)} series are"
        raise InputError(f"one series should be called '{series[:70]}' but {found}; there are: {_list(stacks)}.")
    return [stack for stack in stacks if stack.uid in matches]


def _list(stacks: list[Stack], numbering: list[Stack] | None = None) -> str:
    """Stacks with their numbers, in one line."""
    numbers = {id(stack): i for i, stack in enumerate(numbering or stacks, start=1)}
    texts = [f"({numbers[id(stack)]}) {stack.summary}" for stack in stacks[:_MOST_LISTED]]
    if len(stacks) > _MOST_LISTED:
        texts.append(f"and {len(stacks) - _MOST_LISTED} more")
    return "; ".join(texts)


def _key(piece: Slice) -> tuple:
    is_localiser = "LOCALIZER" in piece.image_type
    size = (piece.rows, piece.columns, piece.samples)
    return (piece.series_uid, piece.modality, piece.is_capture, is_localiser, piece.missing, size)


def _is_parallel(first: Slice, second: Slice) -> bool:
    if first.missing:
        return True  # both lack the same; neither can be used
    turn = np.subtract(first.orientation, second.orientation)
    stretch = np.subtract(first.spacing, second.spacing) / np.maximum(np.abs(first.spacing), 1e-12)
    return bool(np.all(np.abs(turn) < _SAME_DIRECTION) and np.all(np.abs(stretch) < _SAME_DIRECTION))
