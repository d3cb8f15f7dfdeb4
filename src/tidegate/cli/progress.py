"""Progress bars on stderr, for work that takes long while someone watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import click

from tidegate.cli.files.input_file import Advance, InputFile

SHOWN_AFTER_S = 1.0


class ProgressBars:
    """Makes progress bars, if they are wanted and stderr is a terminal."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr.isatty()

    def say(self, text: str) -> None:
        """Say what is going on."""
        if self._wanted:
            click.echo(text, err=True)

    @contextmanager
    def of(self, file: InputFile) -> Iterator[Advance]:
        """A bar for the reading of a file."""
        with self.steps(file.name, file.extent if self._wanted else 0) as advance:
            yield advance

    @contextmanager
    def steps(self, label: str, length: int) -> Iterator[Advance]:
        """A bar of so many steps; it appears after a second, so that short work shows none."""
        if not self._wanted or not length:
            yield lambda _: None
            return
        with ExitStack() as shown:
            yield _Bar(label, length, shown).advance


class _Bar:
    def __init__(self, label: str, length: int, shown: ExitStack) -> None:
        steps = max(1, length // 500)
        self._bar = click.progressbar(
            length=length, label=label, file=sys.stderr, update_min_steps=steps
        )
        self._shown: ExitStack = shown
        self._is_shown = False
        self._begun = time.monotonic()
        self._done = 0

    def advance(self, steps: int) -> None:
        self._done += steps
        if self._is_shown:
            self._bar.update(steps)
        elif time.monotonic() - self._begun > SHOWN_AFTER_S:
            self._is_shown = True
            self._shown.enter_context(self._bar)
            self._bar.update(self._done)
