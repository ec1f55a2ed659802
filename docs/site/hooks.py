"""What the site does beyond Markdown: equations as MathML, pages of files that documents link to, whole API pages."""

import ast
import posixpath
import re
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^(```+)(\w*)[^\n]*\n(.*?)^\1[ \t]*$", flags=re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"\$`([^`]+)`\$")  # the way that GitHub reads as an equation too
WORD = re.compile(r"<mi>(?:log|cos|sin|exp)</mi>(?!<mo[^>]*>&#x00028;)")  # log x, but log(x)
ROOM = re.compile(r"^::: logishape\.(\w+)$", flags=re.MULTILINE)
DOOR = "\n\n::: {path}\n    options:\n      show_root_heading: true\n      show_root_toc_entry: true\n"
CELL = re.compile(r"<td>[^<]*</td>")  # in which a number keeps its sign of per cent and its error
TEST = re.compile(r"(?<=<code>)tests/[\w/.]+::\w+(?=</code>)")  # long names, which may break at their joints
KINDS = {".py": "python", ".toml": "toml", ".yml": "yaml", ".json": "json"}


def on_files(files: Any, config: Any) -> Any:
    """Files outside docs/ that a page links to become pages themselves; so does what these link to."""
    generated = import_module("mkdocs.structure.files").File.generated
    waiting = [f"docs/{file.src_uri}" for file in files if file.src_uri.endswith(".md")]
    known = set(waiting)
    while waiting:
        path = waiting.pop()
        if not path.endswith(".md"):
            continue
        for target in outside(path):
            if target not in known:
                known.add(target)
                waiting.append(target)
                files.append(generated(config, page_of(target), content=page_text(target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of the repository become links of the site; equations wait under a mark of letters and numbers."""
    path = source_of(page.file.src_uri)
    page.equations = []

    def keep(latex: str, display: str) -> str:
        equation = import_module("latex2mathml.converter").convert(latex, display=display)
        page.equations.append(WORD.sub(r'\g<0><mspace width="0.17em" />', equation))
        return f"EQUATION{len(page.equations) - 1}MARK"

    def change(text: str) -> str:
        text = LINK.sub(lambda found: found[1] + link(path, page.file.src_uri, found[2]) + found[3], text)
        return INLINE.sub(lambda found: keep(found[1].strip(), "inline"), text)

    pieces, end = [], 0
    for fence in FENCE.finditer(markdown):
        pieces.append(change(markdown[end : fence.start()]))
        pieces.append(keep(fence[3].strip(), "block") if fence[2] == "math" else fence[0])
        end = fence.end()
    text = "".join([*pieces, change(markdown[end:])])
    return ROOM.sub(lambda found: found[0] + "".join(DOOR.format(path=path) for path in hidden(found[1])), text)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Equations in place of their marks; wide ones scroll by themselves. Names of tests may break, numbers not."""

    def put(found: re.Match[str]) -> str:
        equation = page.equations[int(found["block"] or found["inline"])]
        return f'<div class="equation">{equation}</div>' if found["block"] else equation

    html = re.sub(r"<p>EQUATION(?P<block>\d+)MARK</p>|EQUATION(?P<inline>\d+)MARK", put, html)
    html = CELL.sub(lambda found: re.sub(r" (?=[%±])|(?<=±) ", "\u00a0", found[0]), html)
    return TEST.sub(lambda found: re.sub(r"(::|[/_])", r"\1<wbr>", found[0]), html)


def outside(path: str) -> list[str]:
    """Files of the repository outside docs/ that the document at `path` links to, as paths from the root."""
    found = []
    for _, target, _ in LINK.findall(FENCE.sub("", (ROOT / path).read_text(encoding="utf-8"))):
        whole = resolve(path, target.partition("#")[0])
        if whole is not None and not whole.startswith("docs/") and (ROOT / whole).is_file():
            found.append(whole)
    return found


def resolve(path: str, target: str) -> str | None:
    """The path from the root of what a document links to; None for addresses, mail and anchors of the same page."""
    if not target or ":" in target or target.startswith(("#", "/")):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def page_of(path: str) -> str:
    """Where the site shows a file of the repository."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"source/{path.removesuffix('.md')}.md"


def source_of(page: str) -> str:
    """The file of the repository that a page shows."""
    if not page.startswith("source/"):
        return f"docs/{page}"
    path = page.removeprefix("source/")
    return path if (ROOT / path).is_file() else path.removesuffix(".md")


def link(path: str, page: str, target: str) -> str:
    """A link of the document at `path` as the site's page needs it."""
    name, mark, anchor = target.partition("#")
    whole = resolve(path, name)
    if whole is None:
        return target
    return posixpath.relpath(page_of(whole), posixpath.dirname(page) or ".") + mark + anchor


def page_text(path: str) -> str:
    """A file of the repository as a page that the search leaves out."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if not path.endswith(".md"):
        text = f"# {path}\n\n````{KINDS.get(Path(path).suffix, 'text')}\n{text}\n````\n"
    return f"---\nsearch:\n  exclude: true\n---\n\n{text}"


def hidden(room: str) -> list[str]:
    """Where public names of a room are defined that bear their file's name, which hides them from griffe."""
    tree = ast.parse((ROOT / "src" / "logishape" / room / "__init__.py").read_text(encoding="utf-8"))
    imported = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module is not None]
    pairs = [(str(node.module), alias.name) for node in imported for alias in node.names]
    return sorted(f"{module}.{name}" for module, name in pairs if module == f"logishape.{room}.{name}")
