"""The documentation: every page is reachable, every link leads somewhere, and what is named exists."""

import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer.main

import logishape as ls
from logishape import cli
from logishape.cli.terminal import sentence_of

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
ROOMS = sorted(path.stem for path in (DOCS / "api").glob("*.md") if path.stem != "index")
each_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def load_hooks():
    spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "site" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOKS = load_hooks()


def prose(path: Path) -> str:
    return HOOKS.FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings that GitHub and the site make alike."""
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *$", prose(path), flags=re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)).strip().lower()
        if (of_github := re.sub(r"\s", "-", plain)) == re.sub(r"[-\s]+", "-", plain):
            found.add(of_github)
    return found


def exists(dotted: str) -> bool:
    """Whether such a name can be had: a module, or what a module holds."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for name in parts[count:]:
            found = getattr(found, name, None)
        return found is not None
    return False


def test_the_navigation_has_every_page_and_no_other():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"([\w/.-]+\.md)$", navigation, flags=re.MULTILINE)
    assert sorted(listed) == [path.relative_to(DOCS).as_posix() for path in PAGES]


@each_document
def test_links_lead_somewhere(path):
    for _, target, _ in HOOKS.LINK.findall(prose(path)):
        name, _, anchor = target.partition("#")
        if ":" in name:
            continue
        aim = (path.parent / name).resolve() if name else path
        assert aim.is_file(), target
        assert aim.is_relative_to(ROOT), target
        if anchor.startswith("logishape."):
            assert exists(anchor), target
        elif anchor:
            assert anchor in anchors(aim), target


@each_document
def test_what_is_named_exists(path):
    text = path.read_text(encoding="utf-8")
    for name, test in re.findall(r"\b(tests/[\w/]+(?:\.py)?)(?:::(\w+))?", text):
        assert (ROOT / name).exists(), name
        if test:
            assert re.search(rf"^def {test}\(", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE), test
    for name in re.findall(r"\b(?:benchmarks|examples)/[\w/]+\.(?:py|md|json)", text):
        assert (ROOT / name).is_file(), name
    for target in re.findall(r"(?:^|`)make ([\w-]+)", text, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), target


@each_document
def test_commands_are_real(path):
    """Lines of `logishape ...` parse as typed ones would; in running text, command and options are known ones."""
    text = path.read_text(encoding="utf-8")
    for line in re.findall(r"^ {0,4}(?:\.venv/bin/)?logishape (.+)$", text, flags=re.MULTILINE):
        assert complaint(line, is_whole=True) == "", line
    for line in re.findall(r"`logishape ([^`]+)`", prose(path)):
        assert complaint(line, is_whole=False) == "", line


def test_commands_that_are_not_real_are_noticed():
    for line in (
        "cochleas CT -o OUT",
        "cochlea CT -o OUT --blur",
        "cochlea CT",
        "phantom -o OUT -n many",
        "figure OUT",
    ):
        assert complaint(line, is_whole=True), line
    assert complaint("cochlea --blur", is_whole=False)
    assert complaint("--blur", is_whole=False)


def complaint(line: str, is_whole: bool) -> str:
    """What the command line has against such words; of words that are no whole command only names are looked at."""
    app = typer.main.get_command(cli.app)
    name, *rest = shlex.split(line, comments=True)
    command = app if name.startswith("-") else app.commands.get(name)
    if command is None:
        return f"no command {name}"
    if not is_whole or command is app:
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        return " ".join(word for word in (name, *rest) if word.startswith("-") and word not in known)
    try:
        command.make_context(name, rest).close()
    except Exception as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        return sentence
    return ""


@pytest.mark.parametrize("room", ROOMS)
def test_the_reference_of_a_room_names_all_of_it(room):
    text = (DOCS / "api" / f"{room}.md").read_text(encoding="utf-8")
    assert text.endswith(f"::: logishape.{room}\n")
    named = re.findall(r"`(\w+)`", text.split("\n\n")[-2])
    assert sorted(named) == sorted(importlib.import_module(f"logishape.{room}").__all__)


def test_the_reference_names_all_of_logishape():
    text = (DOCS / "api" / "index.md").read_text(encoding="utf-8")
    assert {name for name in ls.__all__ if f"`{name}`" not in text and f"`ls.{name}`" not in text} == set()


@pytest.mark.parametrize(
    ("path", "target", "there"),
    [
        ("docs/cochlea.md", "shapes.md#meshes", "shapes.md#meshes"),
        ("docs/api/shapes.md", "../shapes.md", "../shapes.md"),
        ("docs/shapes.md", "../README.md", "source/README.md"),
        ("docs/shapes.md", "../examples/coins.py", "source/examples/coins.py.md"),
        ("README.md", "docs/images/coins.png", "../images/coins.png"),
        ("README.md", "examples/coins.py", "examples/coins.py.md"),
        ("docs/shapes.md", "#here", "#here"),
        ("docs/shapes.md", "mailto:a@b", "mailto:a@b"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(path, target, there):
    page = HOOKS.page_of(path)
    assert HOOKS.source_of(page) == path
    assert HOOKS.link(path, page, target) == there


class Resources(HTMLParser):
    """What a page loads, where its links lead, and the anchors that it has."""

    def __init__(self, text: str):
        super().__init__()
        self.loads: set[str] = set()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag == "link" and values.get("rel") not in ("canonical", "prev", "next"):
            self.loads.add(values["href"])
        elif tag not in ("a", "link"):
            self.loads |= {values[name] for name in ("src", "data", "poster") if name in values}
            self.loads |= {part.split()[0] for part in values.get("srcset", "").split(",") if part.strip()}
        self.loads |= set(re.findall(r"url\(['\"]?([^)'\"]+)", values.get("style", "")))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed; `make docs` installs it")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Resources(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


@pytest.mark.slow  # the site is built: ten seconds and more
def test_nothing_is_loaded_from_elsewhere(site, pages):
    assert len(pages) > len(PAGES)
    for path, page in pages.items():
        base = site if path.name == "404.html" else path.parent
        for address in page.loads:
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            assert not parts.scheme, (path.name, address)
            assert not parts.netloc, (path.name, address)
            place = (
                site / unquote(parts.path).lstrip("/") if parts.path.startswith("/") else base / unquote(parts.path)
            )
            assert place.is_file(), (path.name, address)
        assert not re.search(r"<style[^>]*>[^<]*(?:url\(['\"]?|@import ['\"]?)(?:https?:)?//", path.read_text())
    for path in site.rglob("*.css"):
        assert not re.search(r"(?:url\(['\"]?|@import ['\"]?)(?:https?:)?//", path.read_text(encoding="utf-8")), path


@pytest.mark.slow
def test_links_of_the_site_lead_somewhere(site, pages):
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            aim = aim / "index.html" if aim.is_dir() else aim
            assert aim.is_file(), (path.name, address)
            if parts.fragment and aim in pages:
                assert unquote(parts.fragment) in pages[aim].anchors, (path.name, address)


@pytest.mark.slow
def test_equations_and_references_are_there(site, pages):
    assert "math" in pages[site / "method.html"].tags
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"EQUATION\d+MARK|\$`|^::: ", text, flags=re.MULTILINE), path.name
    for room in ROOMS:
        module = importlib.import_module(f"logishape.{room}")
        found = pages[site / "api" / f"{room}.html"].anchors
        public = {name for name in module.__all__ if callable(getattr(module, name))}
        assert {name for name in public if not _anchors_of(room, name) & found} == set()


def _anchors_of(room: str, name: str) -> set[str]:
    return {f"logishape.{room}.{name}", f"logishape.{room}.{name}.{name}"}
