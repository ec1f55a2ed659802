"""The page on files: its examples run, and what it names exists."""

import doctest
import re
from pathlib import Path

import pytest

from logishape import io

PAGE = Path(__file__).parents[3] / "docs" / "files.md"


def test_examples_run(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = "".join(re.findall(r"^```pycon\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.REPORT_NDIFF).run(examples)
    assert found.attempted > 10
    assert found.failed == 0


@pytest.mark.parametrize("name", io.__all__)
def test_page_names_every_door(name):
    assert name in PAGE.read_text()
