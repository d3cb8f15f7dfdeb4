"""The examples print what is stored beside them.

To store anew what one prints: `python examples/tides/tides.py > examples/tides/tides.txt`.
"""

from __future__ import annotations

import ast
import contextlib
import io
import runpy
from pathlib import Path

import pytest

from support.pages import ROOT

SCRIPTS = sorted(ROOT.glob("examples/*/*.py"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", SCRIPTS, ids=[each.stem for each in SCRIPTS])
def test_prints_what_is_stored(script: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(script), run_name="__main__")
    assert printed.getvalue() == script.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", SCRIPTS, ids=[each.stem for each in SCRIPTS])
def test_says_what_it_shows(script: Path) -> None:
    assert script.stem == script.parent.name
    assert len(ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "") > 200
    assert f"]({script.relative_to(ROOT)})" in README


def test_there_are_examples_and_all_are_run() -> None:
    assert len(SCRIPTS) >= 6
    stored = sorted(ROOT.glob("examples/*/*.txt"))
    assert stored == [script.with_suffix(".txt") for script in SCRIPTS]
