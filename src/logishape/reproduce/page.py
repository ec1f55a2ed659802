"""The study as one page that opens offline, and its tables as plain text."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment
from matplotlib.figure import Figure

from logishape.io import atomic_file
from logishape.reproduce.blocks import Section, Table

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>What the paper compared, measured anew</title><style>
:root { color-scheme: light dark; --line: #8884; }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .2rem 0; } h2 { font-size: 1.2rem; margin: 2rem 0 .4rem; }
.wide { overflow-x: auto; } caption { text-align: left; font-weight: 600; padding: .5rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .5rem; vertical-align: top; }
th { border-bottom: 1px solid; vertical-align: bottom; } tr + tr td { border-top: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; background: white; }
figcaption, li, .small { font-size: .87rem; opacity: .85; } ul { padding-left: 1.2rem; }
@media print { body { font-size: 11px; } }
</style></head><body>
<h1>What the paper compared, measured anew</h1>
<p>{{ intro }}</p>
<p class="small">{% for section in sections %}<a href="#s{{ loop.index }}">{{ section.title }}</a>
{%- if not loop.last %} · {% endif %}{% endfor %}</p>
{% for section in sections %}
<h2 id="s{{ loop.index }}">{{ section.title }}</h2>
<p>{{ section.text }}</p>
{% for table in section.tables %}<div class="wide"><table><caption>{{ table.title }}</caption>
<tr>{% for name in table.header %}<th>{{ name }}</th>{% endfor %}</tr>
{% for row in table.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</table></div>
{% endfor %}{% for picture in section.pictures %}<figure><img alt="{{ picture.caption }}"
 src="data:image/png;base64,{{ images[picture.name] }}"><figcaption>{{ picture.caption }}</figcaption></figure>
{% endfor %}{% if section.notes %}<ul>{% for note in section.notes %}<li>{{ note }}</li>
{% endfor %}</ul>{% endif %}
{% endfor %}
<p class="small">{{ provenance }}</p>
</body></html>
"""


def write(folder: Path, sections: Sequence[Section], intro: str, provenance: str) -> None:
    """Writes `reproduce.html`, the same in plain text as `reproduce.md`, and a PNG for each picture."""
    images = {picture.name: as_png(picture.figure) for section in sections for picture in section.pictures}
    encoded = {name: base64.b64encode(image).decode("ascii") for name, image in images.items()}
    template = Environment(autoescape=True, trim_blocks=True).from_string(_PAGE)
    html = template.render(sections=sections, intro=intro, provenance=provenance, images=encoded)
    contents = {f"{name}.png": image for name, image in images.items()}
    contents |= {"reproduce.md": as_text(sections, intro, provenance).encode(), "reproduce.html": html.encode()}
    for name, content in contents.items():
        with atomic_file(folder / name) as temporary:
            temporary.write_bytes(content)


def as_text(sections: Sequence[Section], intro: str, provenance: str) -> str:
    """The page as Markdown."""
    parts = ["# What the paper compared, measured anew", intro]
    for section in sections:
        parts += [f"## {section.title}", section.text]
        parts += [f"**{table.title}**\n\n{_rows(table)}" for table in section.tables]
        parts += [f"![{picture.caption}]({picture.name}.png)" for picture in section.pictures]
        parts += ["\n".join(f"- {note}" for note in section.notes)] if section.notes else []
    return "\n\n".join([*parts, provenance]) + "\n"


def _rows(table: Table) -> str:
    lines = [table.header, ("---",) * len(table.header), *table.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def as_png(figure: Figure) -> bytes:
    """A figure as PNG, the same bytes for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return buffer.getvalue()
