"""Says that something still goes on, so that nobody takes a slow start for a hang."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

SAID_EVERY_S = 5.0


@contextmanager
def still(text: str) -> Iterator[threading.Event]:
    """Say what is being done, and every few seconds that it goes on, until the event is set."""
    done, began = threading.Event(), time.monotonic()
    with _own_stderr() as stream:
        click.echo(f"{text} ...", file=stream)

        def say() -> None:
            while not done.wait(SAID_EVERY_S):
                seconds = time.monotonic() - began
                click.echo(f"  ... still, after {seconds:.0f} s", file=stream)

        thread = threading.Thread(target=say, daemon=True)
        thread.start()
        try:
            yield done
        finally:
            done.set()
            thread.join()


@contextmanager
def _own_stderr() -> Iterator[TextIO]:
    """Stderr as it is now: while Spark starts, its descriptor stands for a file."""
    try:
        descriptor = os.dup(sys.stderr.fileno())
    except (OSError, ValueError):  # stderr is no file, as in a test
        yield sys.stderr
        return
    with open(descriptor, "w", encoding=sys.stderr.encoding) as stream:
        yield stream
