"""What the page draws of a record and its CT: curves along the duct, correlation, intensities, the fit's trace."""

from typing import Any

import numpy as np
from jaxtyping import Float
from markupsafe import Markup, escape

from logishape.report.densities import learnt
from logishape.report.drawing import Chart, linear, logarithmic, short, signed
from logishape.report.facts import Record, has_mixtures, regions_of
from logishape.report.stored import Stored

_FREQUENCIES = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000)  # Hz, of the axis
_NUM_BINS = 80
_STRIP, _DOT = (150, 16), 3.5


def charts_of(stored: Stored) -> dict[str, Markup | None]:
    """All charts by name; the correlation is None without a posterior, the histogram where a map was read instead."""
    record = stored.record
    return {
        "frequency": frequency_chart(record["curves"]),
        "length": length_chart(record["curves"]),
        "correlation": None if record["covariance"] is None else correlation_chart(record),
        "histogram": histogram_chart(stored) if has_mixtures(record) else None,
        "trace": trace_chart(record["fit"]["log_joint"]),
    }


def frequency_chart(curves: dict[str, Any]) -> Markup:
    """Frequency by angle with its band."""
    angle, curve = np.array(curves["angle_degrees"]), curves["frequency_hz"]
    scale = logarithmic(_all(curve), _FREQUENCIES)
    chart = Chart(linear(angle, 90), scale, ("angle, degrees", "frequency, Hz"), "Frequency by angle")
    _draw_curve(chart, angle, curve, "one")
    return chart.svg()


def length_chart(curves: dict[str, Any]) -> Markup:
    """Length by angle along the organ of Corti and the lateral wall, with bands."""
    angle = np.array(curves["angle_degrees"])
    corti, wall = curves["length_organ_of_corti_mm"], curves["length_lateral_wall_mm"]
    scale = linear(np.r_[_all(corti), _all(wall)])
    chart = Chart(linear(angle, 90), scale, ("angle, degrees", "length, mm"), "Length by angle")
    _draw_curve(chart, angle, corti, "one")
    _draw_curve(chart, angle, wall, "two")
    chart.key([("one", "organ of Corti"), ("two", "lateral wall")])
    return chart.svg()


def trace_chart(log_joint: list[float]) -> Markup:
    """The log joint along the fit, measured from its end."""
    rise = np.array(log_joint) - log_joint[-1]
    steps = np.arange(len(rise))
    upward = linear(np.r_[rise, 0.0])
    chart = Chart(
        linear(steps, max(1, len(rise) // 8)),
        upward,
        ("steps", "log joint from its end, nats"),
        "Log joint along the fit",
    )
    chart.line(steps, rise, "one")
    chart.dots(steps, rise, "one")
    return chart.svg()


def histogram_chart(stored: Stored) -> Markup:
    """The intensities that were learnt from, inside and outside by probability, and the fitted densities."""
    values, inside = learnt(stored)
    darkest, brightest = np.percentile(values, [0.2, 99.8])
    edges = np.linspace(darkest, brightest, _NUM_BINS + 1)
    middles, regions = (edges[1:] + edges[:-1]) / 2, regions_of(stored.record)
    found = []
    for weight, region in ((inside, regions.inside), (1 - inside, regions.outside)):
        count = np.histogram(values, edges, weights=weight)[0]
        height = count / (max(weight.sum(), 1e-9) * np.diff(edges))
        found.append((height, np.exp(np.asarray(region.log_prob(middles), float))))
    # One bar of values that a scanner cut off must not flatten all others.
    most = 1.15 * max(max(np.sort(height)[-2], density.max()) for height, density in found)
    labels = ("intensity, HU", "density, 1/HU") if stored.is_hu else ("intensity", "density")
    chart = Chart(linear(edges), linear([0.0, most]), labels, "Intensities inside and outside")
    for (height, density), kind in zip(found, ("one", "two"), strict=True):
        chart.steps(edges, np.minimum(height, most), kind)
        chart.line(middles, density, kind)
        for k in np.flatnonzero(height > most):
            chart.beyond(edges[k + 1], f"\u2191 to {height[k]:.2g}")
    chart.key([("one", "inside"), ("two", "outside")])
    return chart.svg()


def correlation_chart(record: Record) -> Markup:
    """The posterior's correlation between each two parameters, as numbers on colours."""
    covariance = np.array(record["covariance"], float)
    names, correlation = list(record["parameters"]), correlations(covariance)
    size, left, top = 34, 96, 84
    width, height = left + size * len(names) + 34, top + size * len(names) + 4
    parts = []
    for k, name in enumerate(names):
        middle = size * (k + 0.5)
        parts.append(f'<text x="{left - 6}" y="{top + middle + 4}" text-anchor="end">{escape(name)}</text>')
        place = f"translate({left + middle + 4} {top - 6}) rotate(-55)"
        parts.append(f'<text transform="{place}">{escape(name)}</text>')
        for other in range(len(names)):
            parts.append(_cell(correlation[k, other], left + size * other, top + size * k, size))
    inner = "".join(parts)
    label = "Correlation of the parameters"
    return Markup(f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{inner}</svg>')


def correlations(covariance: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """Correlations; a parameter that was not free has none with others."""
    sd = np.sqrt(np.clip(np.diag(covariance), 0, None))
    product = np.outer(sd, sd)
    return np.divide(covariance, product, out=np.eye(len(sd)), where=product > 0)


def _cell(value: float, left: float, top: float, size: int) -> str:
    kind = "fill-one" if value > 0 else "fill-two"
    text = signed(f"{value:.2f}").replace("0.", ".")
    return (
        f'<rect class="{kind}" x="{left}" y="{top}" width="{size - 1}" height="{size - 1}" '
        f'opacity="{0.75 * abs(value):.2f}"/>'
        f'<text x="{left + size / 2}" y="{top + size / 2 + 4}" text-anchor="middle" font-size="10">{text}</text>'
    )


def strip(median: float, ends: tuple[float, float] | None, mean: float, sd: float) -> Markup:
    """A median and interval on the scale of a population: mean in the middle, at most three SDs to either side."""
    if not sd > 0:
        return Markup()
    width, height = _STRIP

    def place(value: float) -> float:
        return width / 2 + (width / 2 - _DOT) * float(np.clip((value - mean) / sd, -3, 3)) / 3

    middle = height / 2
    parts = [
        f'<path class="usual" d="M{place(mean - 2 * sd):.1f} {middle}H{place(mean + 2 * sd):.1f}"/>',
        f'<path class="mean" d="M{width / 2} 1V{height - 1}"/>',
    ]
    if ends is not None:
        parts.append(f'<path class="interval" d="M{place(ends[0]):.1f} {middle}H{place(ends[1]):.1f}"/>')
    parts.append(f'<circle class="median" cx="{place(median):.1f}" cy="{middle}" r="{_DOT}"/>')
    words = f"{short(round((median - mean) / sd, 1))} SD from the population's mean"
    return Markup(
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{words}">'
        f"{''.join(parts)}</svg>"
    )


def _draw_curve(chart: Chart, angle: np.ndarray, curve: dict[str, Any], kind: str) -> None:
    if curve["lower"] is not None:
        chart.band(angle, np.array(curve["lower"]), np.array(curve["upper"]), kind)
    chart.line(angle, curve["value"] if curve["median"] is None else curve["median"], kind)


def _all(curve: dict[str, Any]) -> np.ndarray:
    return np.concatenate([one for one in curve.values() if one is not None])
