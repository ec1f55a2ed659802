"""The pages on files and coordinates: their examples run, and what they name exists."""

import doctest
import re
from pathlib import Path

import pytest

from logishape import io
from logishape.cochlea.exports import FORMATS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "files.md"


@pytest.mark.parametrize("name", ["files.md", "formats.md", "coordinates.md"])
def test_examples_run(tmp_path, monkeypatch, name):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = "".join(re.findall(r"^```pycon\n(.*?)^```", (DOCS / name).read_text(), flags=re.MULTILINE | re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.REPORT_NDIFF).run(examples)
    assert found.attempted > 10
    assert found.failed == 0


@pytest.mark.parametrize("name", io.__all__)
def test_page_names_every_door(name):
    assert name in PAGE.read_text()


def test_the_page_of_formats_names_them_all():
    text = (DOCS / "formats.md").read_text()
    for name in FORMATS:
        assert f"`{name}`" in text
