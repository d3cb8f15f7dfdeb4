"""Spark sessions for commands: what Java has to say goes to a file, not to the user's terminal."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.errors import TidegateError

SHOWN_LINES = 20


@contextmanager
def spark_session(make: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    """A session that is stopped at the end; if Java cannot start, its last words are shown.

    Where a session is there already, it is taken, and stays.
    """
    there = SparkSession.getActiveSession()
    if there is not None:
        yield there
        return
    with tempfile.NamedTemporaryFile(prefix="tidegate-spark-", suffix=".log") as log:
        try:
            with _stderr_to(log.fileno()):
                session = make()
        except (PySparkException, RuntimeError, OSError) as error:
            last = Path(log.name).read_text(errors="replace").splitlines()[-SHOWN_LINES:]
            raise TidegateError("\n".join([f"Spark does not start: {error}", *last])) from None
        try:
            yield session
        except PySparkException as error:
            raise TidegateError(_cause(error)) from None
        finally:
            with _stderr_to(log.fileno()):
                session.stop()


@contextmanager
def _stderr_to(descriptor: int) -> Iterator[None]:
    """Let this process and the ones it starts write their errors elsewhere."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _cause(error: PySparkException) -> str:
    """What went wrong, without the stack of Java.

    An error of ours that was raised in a worker or in a micro-batch stands at the end of what
    Python printed there.
    """
    lines = str(error).splitlines()
    for line in reversed(lines):
        name, _, text = line.strip().partition(": ")
        if name.startswith("tidegate.errors.") and text:
            return text
    return lines[0] if lines else type(error).__name__


def tell(text: str) -> None:
    """Say on stderr what is going on."""
    click.echo(text, err=True)
