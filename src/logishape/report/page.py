"""`report.html`: one file that opens offline, with the verdict, slices to scroll, the surface and all numbers."""

import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure
from plotly.offline import get_plotlyjs

from logishape.cochlea.pipeline import Outcome
from logishape.cochlea.verdict import HEADLINES, caveat_of
from logishape.io import atomic_file
from logishape.report.charts import charts_of
from logishape.report.facts import has_mixtures
from logishape.report.montage import draw_contours, montage
from logishape.report.rows import measurement_rows, parameter_rows
from logishape.report.scene import scene_of
from logishape.report.still import still
from logishape.report.stored import Stored, read_stored
from logishape.report.views import HALF_MM, views_of

NAME = "report.html"
_FOLDER = Path(__file__).parent / "template"
_SCRIPTS = (
    "arrays",
    "volume",
    "contours",
    "paint",
    "view",
    "controls",
    "viewer",
    "marks",
    "turns",
    "surface",
    "main",
)


def write_page(folder: Path, outcome: Outcome) -> None:
    """Writes `report.html` into a folder of results that was just written."""
    write_text(folder, page(read_stored(folder, outcome.result.labels)))


def write_text(folder: Path, text: str) -> None:
    """Puts a page into a folder as `report.html`, whole or not at all."""
    with atomic_file(folder / NAME) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def page(stored: Stored) -> str:
    """The page of one ear; the same text for the same stored result."""
    record, blur = stored.record, stored.record["posterior"]["blur"]
    style, script = (_joined(("page",), "css"), _joined(_SCRIPTS, "js"))
    plotly = get_plotlyjs().replace("</script", "<\\/script")
    has_intervals = record["posterior"]["kind"] is not None
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, undefined=StrictUndefined
    )
    return (
        environment.get_template("page.html")
        .render(
            record=record,
            headline=HEADLINES[record["verdict"]],
            caveat=caveat_of(
                record["posterior"]["kind"], blur["point_spread_mm"] if blur else None, not has_mixtures(record)
            ),
            key=measurement_rows(record, is_main=True),
            others=measurement_rows(record, is_main=False),
            parameters=parameter_rows(record),
            has_intervals=has_intervals,
            has_population=record["population"] is not None,
            band_words=", with 90\u00a0% bands." if has_intervals else ".",
            charts=charts_of(stored),
            pictures=pictures_of(stored),
            policy=_policy(plotly, script),
            style=Markup(style),
            script=Markup(script),
            plotly=Markup(plotly),
            scene=Markup(
                json.dumps(scene_of(stored), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
            ),
        )
        .lstrip()
    )


def pictures_of(stored: Stored) -> dict[str, str]:
    """The pictures that need no script, as addresses that hold them."""
    small = Figure(figsize=(3, 3 * HALF_MM[1] / HALF_MM[0]), facecolor="black")
    panel: Any = small.add_axes((0, 0, 1, 1))
    draw_contours(panel, next(view for view in views_of(stored) if view.name == "basal"), stored)
    return {
        "montage": as_address(montage(stored)),
        "surface": as_address(still(stored), dpi=150),
        "thumbnail": as_address(small, dpi=200),
    }


def as_address(figure: Figure, dpi: int = 120) -> str:
    """A figure as a `data:` address, the same for the same figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="webp", dpi=dpi, facecolor=figure.get_facecolor(), pil_kwargs={"quality": 85})
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _joined(names: tuple[str, ...], ending: str) -> str:
    return "\n".join((_FOLDER / f"{name}.{ending}").read_text(encoding="utf-8") for name in names)


def _policy(*scripts: str) -> str:
    """What the browser may do: run these scripts and show what the page holds; no request to anywhere."""
    digests = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode("ascii") for one in scripts)
    allowed = " ".join(f"'sha256-{one}'" for one in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
