"""Progress callback of a benchmark."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], object]
"""Takes a line of text that names what is being measured now.

Benchmarks pass it to the processes that they spawn, so it has to be picklable.
"""


def silent(_text: str) -> None:
    """A progress callback that prints nothing."""
