"""The README is true: its examples print what it shows, its commands and files exist.

The examples of docs/architecture.md are run here too.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from itertools import pairwise

import pytest

from support import pages
from support.pages import ROOT
from tidegate.cli import main
from tidegate.cli.command_group import COMMANDS

README = "README.md"
PIPELINE = "docs/pipeline.md"
TEXT = (ROOT / README).read_text(encoding="utf-8")
BLOCKS = [block for section in pages.read(README) for block in section.blocks]


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """Run a command; returns what it prints, and its exit code."""
    monkeypatch.setattr("sys.argv", shlex.split(command))
    with (
        contextlib.redirect_stdout(io.StringIO()) as printed,
        contextlib.redirect_stderr(printed),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    code = ended.value.code
    assert isinstance(code, int)
    return printed.getvalue(), code


def test_python_example_prints_what_is_said() -> None:
    examples = [
        (block.text, after.text)
        for block, after in pairwise(BLOCKS)
        if (block.language, after.language) == ("python", "text")
    ]
    assert len(examples) == sum(block.language == "python" for block in BLOCKS) >= 1
    for source, expected in examples:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(source, {})
        assert printed.getvalue() == expected


def test_ten_lines_are_ten_lines() -> None:
    example = next(block.text for block in BLOCKS if block.language == "python")
    assert len(example.splitlines()) <= 10


@pytest.mark.xdist_group("spark")  # one of them runs on Spark
@pytest.mark.usefixtures("spark")
def test_console_examples_print_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = [block.text for block in BLOCKS if block.language == "console"]
    assert sessions
    for session in sessions:
        code = 0
        for example in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            command, _, expected = example.partition("\n")
            if command == "echo $?":
                assert expected == f"{code}\n"
                continue
            printed, code = run(command, monkeypatch)
            assert printed == expected


def test_commands_are_those_of_the_program() -> None:
    assert set(re.findall(r"tidegate (\w+)(?:`| [\w\"-])", TEXT)) == set(COMMANDS)


def test_make_targets_are_those_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):.*##", makefile, re.MULTILINE))
    assert set(re.findall(r"`make (\w+)", TEXT)) == targets


@pytest.mark.parametrize(
    "page",
    [README, *(f"docs/{name}.md" for name in ("filters", "architecture", "performance")), PIPELINE],
)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        found = (ROOT / page).parent / path if path else ROOT / page
        assert found.exists(), target
        if anchor:
            titles = [each.title for each in pages.read(str(found.relative_to(ROOT)))]
            assert anchor in map(anchor_of, titles), target


def anchor_of(title: str) -> str:
    """The anchor that GitHub makes for a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_folders_exist() -> None:
    named = re.findall(r"^\| `([\w./]+)` \|", TEXT, re.MULTILINE)
    assert "docs/" in named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_examples_of_the_architecture_page() -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    page = "docs/architecture.md"
    blocks = [block for section in pages.read(page) for block in section.blocks]
    source = "\n".join(block.text for block in blocks if block.language == "python")
    report: list[str] = []
    runner.run(parser.get_doctest(source, {}, page, page, 0), out=report.append)
    assert not report, "".join(report)
