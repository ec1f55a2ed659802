"""`report.html`: one file that opens offline, with the verdict, the measurements and the pictures."""

import base64
import io
from pathlib import Path
from typing import Any

from jinja2 import Environment

from logishape.cochlea.measurements import QUANTITIES
from logishape.cochlea.pipeline import Outcome
from logishape.cochlea.verdict import HEADLINES
from logishape.io import atomic_file
from logishape.report.montage import montage
from logishape.report.stored import read_stored

UNITS = {"mm": "mm", "mm3": "mm³", "1": "", "degree": "°", "Hz": "Hz"}
_PAGE = """{% macro rows(is_main) %}{% for name, m in r.measurements.items() %}
{% if quantities[name].is_main == is_main %}<tr><td>{{ quantities[name].words }}</td>
<td>{{ '%.2f' % m.value }} {{ units[m.unit] }}</td>
<td>{% if m.lower is not none %}{{ '%.2f' % m.lower }} to {{ '%.2f' % m.upper }}{% endif %}</td></tr>
{% endif %}{% endfor %}{% endmacro %}<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cochlea, {{ r.side }} ear</title><style>
:root { color-scheme: light dark; --line: #8884; --bad: #c62828; --check: #e69100; --good: #2e7d32; }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .2rem 0; } h2 { font-size: 1.1rem; margin: 1.4rem 0 .4rem; }
.verdict { border-left: .4rem solid var(--good); padding: .3rem .8rem; }
.check { border-color: var(--check); } .bad { border-color: var(--bad); }
table { border-collapse: collapse; width: 100%; } th, td { text-align: right; padding: .25rem .5rem; }
th:first-child, td:first-child { text-align: left; } tr + tr { border-top: 1px solid var(--line); }
img { width: 100%; height: auto; background: black; }
.small { font-size: .85rem; opacity: .8; word-break: break-word; }
@media print { body { font-size: 11px; } }
</style></head><body>
<h1>Cochlea, {{ r.side }} ear</h1>
<div class="verdict{{ {'good': '', 'check': ' check'}.get(r.verdict, ' bad') }}"><strong>{{ headline }}</strong>
{% for flag in r.flags %}<br>{{ flag.message }}{% endfor %}{% for note in r.notes %}<br>{{ note }}{% endfor %}</div>
<h2>Pictures</h2>
<img alt="Six planes of the CT with contours of the segmentation, the fitted shape and its uncertainty"
 src="data:image/png;base64,{{ picture }}">
<h2>Measurements</h2>
<table><tr><th></th><th>value</th><th>90 % interval</th></tr>
<tr><td>Segmented volume</td><td>{{ '%.1f' % r.segmented_volume_mm3 }} mm³</td><td></td></tr>
{{ rows(true) }}</table>
<details><summary>Lengths, insertion angles, frequencies and the axis</summary>
<table><tr><th></th><th>value</th><th>90 % interval</th></tr>{{ rows(false) }}</table></details>
<p class="small">{{ caveat }}</p>
<h2>Parameters of the shape</h2>
<table><tr><th></th><th>value</th><th>SD</th></tr>
{% for name, p in r.parameters.items() %}<tr><td>{{ name }}</td><td>{{ '%.3f' % p.value }}</td>
<td>{{ '%.3f' % p.sd if p.sd is not none else '' }}</td></tr>{% endfor %}</table>
<h2>Provenance</h2>
<p class="small">{{ r.appearance.lumen }}-filled lumen at {{ '%.0f' % r.appearance.lumen_value }}, dense bone at
{{ '%.0f' % r.appearance.bone_value }}. Fit: {{ r.status }}, {{ r.fit.steps }} steps; reference lengths
{{ r.reference_lengths_mm.fit }} mm (shape) and {{ r.reference_lengths_mm.labels }} mm (labels).
{% for note in r.provenance.input.notes %}{{ note }} {% endfor %}
Input {{ r.provenance.input.format }}, SHA-256 {{ r.provenance.input.sha256 }}; seed {{ r.options.seed }};
{{ r.provenance.software }} {{ r.provenance.version }}; {{ r.provenance.time }}.
<strong>{{ r.provenance.statement }}</strong></p>
</body></html>
"""


def write_page(folder: Path, outcome: Outcome) -> None:
    """Writes `report.html` into a folder of results."""
    with atomic_file(folder / "report.html") as temporary:
        temporary.write_text(page(folder, outcome), encoding="utf-8")


def page(folder: Path, outcome: Outcome) -> str:
    """The page of one ear, pictures included."""
    figure = montage(read_stored(folder, outcome.result.labels))
    template = Environment(autoescape=True, trim_blocks=True).from_string(_PAGE)
    words = {"headline": HEADLINES[outcome.result.verdict], "quantities": QUANTITIES, "units": UNITS}
    return template.render(r=outcome.record, caveat=outcome.result.caveat, picture=_as_png(figure), **words)


def _as_png(figure: Any) -> str:
    """A figure as base64 PNG, the same bytes for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, facecolor=figure.get_facecolor(), metadata={"Software": None})
    return base64.b64encode(buffer.getvalue()).decode("ascii")
