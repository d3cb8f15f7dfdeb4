"""Appends to logs in processes that are killed at every step that touches the disk.

Run as ``python dying_append.py <folder>``. The log ``<folder>/<n>`` is that of a process that was
killed right before its n-th such step; the last one was not killed. Prints the number of processes
that were killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from tidegate.spark.log.event_log import EventLog

EVENTS = [{"n": n, "text": "x" * n} for n in range(7)]
STEPS = ["fsync", "listdir", "mkdir", "open", "rename", "scandir"]


def append(log: Path) -> range:
    # In four parts, so that there are steps between them.
    with mock.patch("tidegate.spark.log.event_columns.CHUNK_EVENTS_MAX", 2):
        return EventLog(log).append(EVENTS, producer="mortal", batch=0)


def _append_and_die_at(log: Path, step: int) -> None:
    taken = 0

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            nonlocal taken
            taken += 1
            if taken == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **options)

        return called

    for name in STEPS:
        setattr(os, name, dying(getattr(os, name)))
    append(log)


def main(folder: Path) -> None:
    step = 0
    while True:
        step += 1
        child = os.fork()
        if not child:
            _append_and_die_at(folder / str(step), step)
            os._exit(0)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            break
    sys.stdout.write(str(step - 1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
