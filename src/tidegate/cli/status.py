"""Status lines of commands, on stderr."""

from __future__ import annotations

import click


def print_status(text: str) -> None:
    """Print a line on stderr, because stdout is for results that a program may read.

    A function of a module and not a lambda: benchmarks pass it to the processes that they spawn, so
    it has to be picklable.
    """
    click.echo(text, err=True)
