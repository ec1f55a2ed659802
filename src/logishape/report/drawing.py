"""Charts as SVG text that stands in the page: they print, scale, and follow the page's colours."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator

WIDTH, HEIGHT = 520, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 12, 30, 46


@dataclasses.dataclass(frozen=True)
class Scale:
    """Numbers from `least` to `most` on a line of the chart; by their logarithm where `is_log`."""

    least: float
    most: float
    ticks: tuple[float, ...]
    is_log: bool = False

    def share(self, values: Any) -> np.ndarray:
        """0 at the least, 1 at the most."""
        values = np.asarray(values, float)
        if self.is_log:
            return np.log(values / self.least) / math.log(self.most / self.least)
        return (values - self.least) / (self.most - self.least)


def linear(values: Any, step: float | None = None) -> Scale:
    """A scale that holds all values, with round ticks."""
    values = np.asarray(values, float)
    least, most = float(values.min()), float(values.max())
    if least == most:
        least, most = least - 0.5, most + 0.5
    if step is not None:
        ticks = np.arange(math.ceil(least / step) * step, most + step / 1e6, step)
        return Scale(least, most, tuple(ticks.tolist()))
    ticks = np.asarray(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(least, most))
    ticks = ticks[(ticks >= least - 1e-9 * (most - least)) & (ticks <= most + 1e-9 * (most - least))]
    return Scale(least, most, tuple(ticks.tolist()))


def logarithmic(values: Any, ticks: Sequence[float]) -> Scale:
    """A scale by logarithm, with those of some ticks that lie on it."""
    least, most = float(np.min(values)), float(np.max(values))
    return Scale(least, most, tuple(one for one in ticks if least <= one <= most), is_log=True)


class Chart:
    """A chart between two scales, drawn part after part."""

    def __init__(self, across: Scale, upward: Scale, labels: tuple[str, str], title: str):
        self.across, self.upward, self.title = across, upward, title
        self._parts = [self._grid(), *self._labels(*labels)]

    def line(self, x: Any, y: Any, kind: str) -> None:
        """A line through points."""
        self._parts.append(f'<polyline class="line {kind}" points="{self._places(x, y)}"/>')

    def dots(self, x: Any, y: Any, kind: str) -> None:
        """A dot at each point."""
        for pair in self._places(x, y).split():
            left, top = pair.split(",")
            self._parts.append(f'<circle class="fill-{kind}" cx="{left}" cy="{top}" r="3"/>')

    def band(self, x: Any, lower: Any, upper: Any, kind: str) -> None:
        """What lies between two lines."""
        self._parts.append(self._area(np.r_[x, x[::-1]], np.r_[lower, upper[::-1]], f"band fill-{kind}"))

    def steps(self, edges: Any, heights: Any, kind: str) -> None:
        """A histogram: heights between edges, from the bottom."""
        x, y = np.repeat(edges, 2), np.r_[self.upward.least, np.repeat(heights, 2), self.upward.least]
        self._parts.append(self._area(x, y, f"bar fill-{kind}"))

    def beyond(self, x: float, words: str) -> None:
        """Words beside a bar that goes on above the chart."""
        left = float(self._places([x], [self.upward.most]).split(",")[0])
        is_right = left > 0.8 * WIDTH
        place = f'x="{left - 12 if is_right else left + 4:.1f}" text-anchor="{"end" if is_right else "start"}"'
        self._parts.append(f'<text {place} y="{_TOP + 14}">{escape(words)}</text>')

    def key(self, names: Sequence[tuple[str, str]]) -> None:
        """What the colours mean, above the chart."""
        left = float(_LEFT)
        for kind, words in names:
            self._parts.append(f'<rect class="fill-{kind}" x="{left:.0f}" y="{_TOP - 18}" width="18" height="8"/>')
            self._parts.append(f'<text x="{left + 24:.0f}" y="{_TOP - 9}">{escape(words)}</text>')
            left += 46 + 8.5 * len(words)  # wide enough for the larger letters of a small screen

    def svg(self) -> Markup:
        """The chart as text of the page."""
        inner = "".join(self._parts)
        return Markup(  # its numbers are ours and its words are escaped
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.title)}">{inner}'
            "</svg>"
        )

    def _area(self, x: Any, y: Any, kind: str) -> str:
        return f'<polygon class="{kind}" points="{self._places(x, y)}"/>'

    def _places(self, x: Any, y: Any) -> str:
        left = _LEFT + (WIDTH - _LEFT - _RIGHT) * self.across.share(x)
        top = HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * self.upward.share(y)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(left, top, strict=True))

    def _grid(self) -> str:
        right, bottom, parts = WIDTH - _RIGHT, HEIGHT - _BOTTOM, []
        for tick, share in zip(self.across.ticks, self.across.share(self.across.ticks), strict=True):
            x = _LEFT + (right - _LEFT) * share
            parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/>')
            parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{short(tick)}</text>')
        for tick, share in zip(self.upward.ticks, self.upward.share(self.upward.ticks), strict=True):
            y = bottom - (bottom - _TOP) * share
            parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(tick)}</text>')
        frame = f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{right - _LEFT}" height="{bottom - _TOP}"/>'
        return "".join([*parts, frame])

    def _labels(self, below: str, beside: str) -> tuple[str, str]:
        centre, middle = (_LEFT + WIDTH - _RIGHT) / 2, (_TOP + HEIGHT - _BOTTOM) / 2
        return (
            f'<text x="{centre:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(below)}</text>',
            f'<text transform="translate(13 {middle:.1f}) rotate(-90)" text-anchor="middle">{escape(beside)}</text>',
        )


def short(value: float) -> str:
    """A tick's number without more digits than it needs."""
    return signed(f"{value:g}")


def signed(number: str) -> str:
    """A number with a proper minus sign, and none before a zero."""
    return number.replace("-", "\u2212") if float(number) else number.lstrip("-")
