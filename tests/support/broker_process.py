"""A broker in a process of its own, and the commands of users at it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TIDEGATE = (sys.executable, "-c", "from tidegate.cli import main; main()")


class BrokerProcess(NamedTuple):
    """A broker that runs."""

    url: str

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `tidegate ARGUMENTS` at this broker."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*TIDEGATE, *arguments],
            text=True, stdin=pipe, stdout=pipe, stderr=pipe,
            env={**os.environ, "TIDEGATE_BROKER": self.url},
        )  # fmt: skip

    def run(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Run `tidegate ARGUMENTS`: the exit code, stdout and stderr."""
        process = self.start(*arguments)
        out, err = process.communicate(stdin, timeout=120)
        return process.returncode, out, err


@contextmanager
def broker_process(folder: Path) -> Iterator[BrokerProcess]:
    """Run a broker with its data in a folder."""
    process = subprocess.Popen(
        [*TIDEGATE, "broker", "--name", "a", "--listen", "127.0.0.1:0", "--data", str(folder)],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.search(r"listens at (\S+)", process.stdout.readline())
        assert found is not None
        yield BrokerProcess(f"tidegate://{found[1]}")
    finally:
        process.terminate()
        process.communicate(timeout=60)
