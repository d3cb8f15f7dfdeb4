"""Bad lines of input files: reported with file, line and reason, or counted and skipped."""

from __future__ import annotations

from bisect import insort
from collections import Counter

import click

from tidegate.cli.files.input_file import InputFile
from tidegate.errors import TidegateError

SHOWN_MAX = 10
"""Number of bad lines that are printed; the others are only counted."""


class BadLines:
    """Collects the bad lines of all input files. With ``skip`` they are skipped, else errors.

    A command reads its files to the end even after a bad line, so that the user sees all mistakes
    at once and not one for each run.
    """

    def __init__(self, *, skip: bool) -> None:
        self._skip = skip
        self._counts: Counter[str] = Counter()
        self._first: list[tuple[int, int, str]] = []
        """The first bad lines, sorted: (number of the file, number of the line, message)."""

    def add(self, file: InputFile, number: int, error: TidegateError) -> None:
        """Collect a bad line; they come in any order, because a log is checked in that of time."""
        self._counts[file.name] += 1
        # Files are numbered by their first bad line; a Counter keeps the order of insertion.
        key = (list(self._counts).index(file.name), number)
        if len(self._first) < SHOWN_MAX or key < self._first[-1][:2]:
            insort(self._first, (*key, f"{file.location(number)}: {error}"))
            del self._first[SHOWN_MAX:]

    @property
    def has_errors(self) -> bool:
        """Whether there are bad lines that are not skipped."""
        return bool(self._counts) and not self._skip

    def raise_errors(self) -> None:
        """Raise a TidegateError with the first bad lines, if there are any that are not skipped."""
        if self.has_errors:
            more = self._counts.total() - len(self._first)
            lines = self._messages() + ([f"... and {_bad_lines(more, 'more ')}"] if more else [])
            # `main` prints "error: " before the message, so each later line needs its own.
            raise TidegateError("\nerror: ".join(lines))

    def print_skipped(self) -> None:
        """Print on stderr the first skipped lines, and the number of all."""
        if not self._counts:
            return
        for line in self._messages():
            click.echo(f"skipped: {line}", err=True)
        parts = ", ".join(f"{count} of {name}" for name, count in self._counts.items())
        click.echo(f"skipped {_bad_lines(self._counts.total())} in all: {parts}", err=True)

    def _messages(self) -> list[str]:
        return [message for _, _, message in self._first]


def _bad_lines(count: int, more: str = "") -> str:
    """The number of bad lines, as text."""
    return f"{count} {more}bad line{'' if count == 1 else 's'}"
