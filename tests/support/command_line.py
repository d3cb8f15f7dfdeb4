"""Runs commands in this process as the installed program would, on files of a folder."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.cli import main

Row = Mapping[str, object]


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Folder:
    """A folder with input files, in which commands run."""

    path: Path

    def write(self, name: str, rows: Iterable[Row | str | bytes]) -> str:
        """Write JSON Lines; a string or bytes stands in the file as it is."""
        with (self.path / name).open("wb") as file:
            for row in rows:
                line = json.dumps(row, ensure_ascii=False) if isinstance(row, Mapping) else row
                file.write((line.encode() if isinstance(line, str) else line) + b"\n")
        return name

    def write_parquet(self, name: str, table: Any, **options: Any) -> str:
        pq.write_table(table, self.path / name, **options)
        return name

    def read(self, name: str) -> str:
        return (self.path / name).read_bytes().decode()

    def read_parquet(self, name: str) -> pa.Table:
        return pq.read_table(self.path / name)

    def files(self) -> list[str]:
        return sorted(each.name for each in self.path.iterdir())

    def run(self, *arguments: str, stdin: bytes = b"") -> Ran:
        """Run `tidegate ARGUMENTS` here."""
        out, err, code = io.TextIOWrapper(io.BytesIO()), io.StringIO(), 0
        with (
            _inside(self.path),
            mock.patch.object(sys, "argv", ["tidegate", *arguments]),
            mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as ended:
                code = int(ended.code or 0)
        out.seek(0)
        return Ran(code, out.read(), err.getvalue())

    def match(self, *arguments: str) -> list[tuple[int, str]]:
        """The matches that `tidegate match` prints, where all is well."""
        ran = self.run("match", *arguments, "--no-hints")
        assert (ran.code, ran.err) == (0, "")
        return pairs(ran.out)

    def refused(self, *arguments: str) -> str:
        """What a command says that is refused, and writes nothing."""
        before = self.files()
        ran = self.run(*arguments)
        assert (ran.code, ran.out, self.files()) == (2, "", before)
        return ran.err


def pairs(lines: str) -> list[tuple[int, str]]:
    """The matches in JSON Lines."""
    found = [json.loads(line) for line in lines.splitlines()]
    assert all(list(each) == ["event", "subscription"] for each in found)
    return [(each["event"], each["subscription"]) for each in found]


@contextmanager
def _inside(path: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)
