"""Says that something still goes on, so that nobody takes a slow start for a hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tidegate.cli.status import print_status

SAID_EVERY_S = 5.0


@contextmanager
def still(text: str) -> Iterator[threading.Event]:
    """Say what is being done, and every few seconds that it goes on, until the event is set."""
    print_status(f"{text} ...")
    done, began = threading.Event(), time.monotonic()

    def say() -> None:
        while not done.wait(SAID_EVERY_S):
            print_status(f"  ... still, after {time.monotonic() - began:.0f} s")

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        done.set()
        thread.join()
