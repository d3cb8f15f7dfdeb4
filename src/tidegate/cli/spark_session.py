"""Spark sessions for commands; the JVM's stderr goes to a file, not to the user's terminal.

Spark prints warnings while it starts and stops that mean nothing to a user. They are shown only if
it does not start.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.errors import TidegateError

SHOWN_LINES = 20
"""Number of the JVM's last lines that are shown if Spark does not start."""


@contextmanager
def spark_session(start: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    """A session that is stopped at the end. Errors of Spark are raised as TidegateError.

    An active session, of a notebook or a test, is used as it is and not stopped.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with tempfile.NamedTemporaryFile(prefix="tidegate-spark-", suffix=".log") as log:
        try:
            with _stderr_to(log.fileno()):
                session = start()
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
    """Redirect stderr of this process and of the processes that it starts.

    The file descriptor itself is replaced, because the JVM is a child process and does not see
    `sys.stderr`. The JVM keeps the redirected descriptor for its whole life.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def _cause(error: PySparkException) -> str:
    """The message of the cause of a Java error, without stack traces.

    If an error of Tidegate was raised in a worker or in a micro-batch, its message is the last line
    of the Python traceback inside the Java error.
    """
    lines = str(error).splitlines()
    for line in reversed(lines):
        name, _, text = line.strip().partition(": ")
        if name.startswith("tidegate.errors.") and text:
            return text
    return lines[0] if lines else type(error).__name__
