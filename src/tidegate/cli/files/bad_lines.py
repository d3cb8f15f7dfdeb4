"""Bad lines of input files: reported with file, line and reason, or counted and skipped."""

from __future__ import annotations

from bisect import insort
from collections import Counter

import click

from tidegate.cli.files.input_file import InputFile
from tidegate.errors import TidegateError

SHOWN_MAX = 10


class BadLines:
    """What could not be used. With ``skip`` the work goes on without it."""

    def __init__(self, *, skip: bool) -> None:
        self._skip = skip
        self._counts: Counter[str] = Counter()
        self._first: list[tuple[int, int, str]] = []
        """The first ones: the number of the file and of the line, and what is said of it."""

    def add(self, file: InputFile, number: int, error: TidegateError) -> None:
        """Note a bad line by its number; they need not come in order."""
        self._counts[file.name] += 1
        key = (list(self._counts).index(file.name), number)
        if len(self._first) < SHOWN_MAX or key < self._first[-1][:2]:
            insort(self._first, (*key, f"{file.place(number)}: {error}"))
            del self._first[SHOWN_MAX:]

    @property
    def stops(self) -> bool:
        """Whether there is one that ends the work."""
        return bool(self._counts) and not self._skip

    def refuse(self) -> None:
        """Raise an error that shows the first of them, if there are any and none is skipped."""
        if self.stops:
            more = self._counts.total() - len(self._first)
            lines = self._shown() + ([f"... and {_bad_lines(more, 'more ')}"] if more else [])
            raise TidegateError("\nerror: ".join(lines))

    def tell_skipped(self) -> None:
        """Say on stderr what was skipped: the first of them, and how many."""
        if not self._counts:
            return
        for line in self._shown():
            click.echo(f"skipped: {line}", err=True)
        parts = ", ".join(f"{count} of {name}" for name, count in self._counts.items())
        click.echo(f"skipped {_bad_lines(self._counts.total())} in all: {parts}", err=True)

    def _shown(self) -> list[str]:
        return [text for _, _, text in self._first]


def _bad_lines(count: int, more: str = "") -> str:
    return f"{count} {more}bad line{'' if count == 1 else 's'}"
