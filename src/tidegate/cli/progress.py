"""Progress bars on stderr, shown only on a terminal and only for work that takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import click

from tidegate.cli.files.input_file import Advance, InputFile

SHOWN_AFTER_S = 1.0
"""Work that takes less shows no bar: one that flashes by is only noise."""


class ProgressBars:
    """Makes progress bars, if they are wanted and stderr is a terminal."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr.isatty()

    def say(self, text: str) -> None:
        """Print a status line, under the same conditions as a bar."""
        if self._wanted:
            click.echo(text, err=True)

    @contextmanager
    def reading(self, file: InputFile) -> Iterator[Advance]:
        """A bar for reading a file."""
        with self.steps(file.name, file.size if self._wanted else 0) as advance:
            yield advance

    @contextmanager
    def steps(self, label: str, length: int) -> Iterator[Advance]:
        """A bar of ``length`` steps; none if the length is 0, which means that it is not known."""
        if not self._wanted or not length:
            yield lambda _: None
            return
        with ExitStack() as stack:
            yield _Bar(label, length, stack).advance


class _Bar:
    """A bar that appears after `SHOWN_AFTER_S`.

    click draws a bar when its context is entered, so it is entered only then, on a stack that the
    caller closes.
    """

    def __init__(self, label: str, length: int, stack: ExitStack) -> None:
        # Advance is called for each line; drawing each time would take longer than reading.
        steps = max(1, length // 500)
        self._bar = click.progressbar(
            length=length, label=label, file=sys.stderr, update_min_steps=steps
        )
        self._stack = stack
        self._is_shown = False
        self._start_s = time.monotonic()
        self._steps_done = 0

    def advance(self, steps: int) -> None:
        self._steps_done += steps
        if self._is_shown:
            self._bar.update(steps)
        elif time.monotonic() - self._start_s > SHOWN_AFTER_S:
            self._is_shown = True
            self._stack.enter_context(self._bar)
            self._bar.update(self._steps_done)
