"""The pages name only modules that exist."""

from __future__ import annotations

import re

import pytest

from support.pages import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_a_page_names_exist(page: object) -> None:
    text = (ROOT / str(page)).read_text(encoding="utf-8")
    modules = {
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "tests", "tools", "examples")
        for path in (ROOT / folder).rglob("*.py")
    }
    named = set(re.findall(r"`([\w./]+\.py)`", text))
    missing = {each for each in named if not any(f"/{m}".endswith(f"/{each}") for m in modules)}
    assert missing == set()


def test_the_architecture_page_describes_every_folder() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "tidegate"
    folders = {
        path.parent.relative_to(package).as_posix() for path in package.rglob("*/__init__.py")
    }
    table = text[text.index("## The folders") : text.index("## Four walks")]
    missing = {each for each in folders if f"{each.split('/')[-1]}/`" not in table}
    assert missing == set()
