"""The parts of a Markdown page that tests can run: sections, tables and fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what it holds, and the line where that starts."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Row:
    """A row of a table: its cells by the names of the columns."""

    header: tuple[str, ...]
    cells: dict[str, str]
    line: int


@dataclass
class Section:
    """A heading and all that stands below it, up to the next heading of any level."""

    title: str
    line: int
    prose: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def read(path: str) -> list[Section]:
    """The sections of a page; the first one is what stands above all headings."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    sections = [Section("", 1)]
    numbered = iter(enumerate(lines, 1))
    header: tuple[str, ...] | None = None
    for number, line in numbered:
        section = sections[-1]
        if line.startswith("```"):
            section.blocks.append(_block(line.removeprefix("```").strip(), numbered))
        elif line.startswith("#"):
            sections.append(Section(line.lstrip("# "), number))
        elif line.startswith("|"):
            cells = _cells(line)
            if header is None:
                header = tuple(cells)
            elif not set("".join(cells)) <= set("-: "):
                assert len(cells) == len(header), f"{path}:{number} has {len(cells)} cells"
                section.rows.append(Row(header, dict(zip(header, cells, strict=True)), number))
            continue
        elif line.strip():
            section.prose.append(line)
        header = None
    return sections


def _block(language: str, numbered: Iterator[tuple[int, str]]) -> Block:
    """The fenced block whose opening line has just been read."""
    start = 0
    held: list[str] = []
    for number, line in numbered:
        start = start or number
        if line.startswith("```"):
            return Block(language, "\n".join(held) + "\n", start)
        held.append(line)
    raise AssertionError("a fenced block is not closed")


def _cells(line: str) -> list[str]:
    parts = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [part.strip().replace(r"\|", "|") for part in parts]


def code(cell: str) -> str:
    """What a cell says, without the backticks of a code span around all of it.

    >>> print(code("`x = 1`"), code("`` `a b` = 1 ``"), code("plain"))
    x = 1 `a b` = 1 plain
    """
    found = re.fullmatch(r"(`+)(.+?)(?<!`)\1", cell, re.DOTALL)
    if found is None:
        return cell
    inner = found[2]
    return inner[1:-1] if inner.startswith(" `") or inner.endswith("` ") else inner


def said(cell: str, message: str) -> bool:
    """Whether a message has the pieces of a cell, in their order; `…` stands between them.

    >>> said("not closed … another", "this string is not closed; it needs another '")
    True
    """
    pieces = [re.escape(piece.strip()) for piece in cell.replace("`", "").split("…")]
    return re.search(".*".join(pieces), message.replace("`", ""), re.DOTALL) is not None
