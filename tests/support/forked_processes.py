"""Brokers and clients in processes that start within milliseconds, to be killed again and again."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]


class ForkServer:
    """The process from which the others are forked (see `fork_program`)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _ask(self, **command: Any) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        assert answer, "the process that forks has ended"
        return answer.strip()

    def start(self, program: str, arguments: dict[str, Any], log: Path) -> int:
        """Start a program; returns the id of its process."""
        return int(self._ask(program=program, arguments=arguments, log=str(log)))

    def wait(self, pid: int, *, until_it_ends: bool = True) -> int | None:
        """Wait until a process has ended; returns its exit code, None while it runs."""
        answer = self._ask(wait=pid, until_it_ends=until_it_ends)
        return None if answer == "runs" else int(answer)


@contextmanager
def fork_server() -> Iterator[ForkServer]:
    with subprocess.Popen(
        [sys.executable, "-m", "support.fork_program"],
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    ) as process:  # fmt: skip
        server = ForkServer(process)
        server.answer()
        yield server  # it ends when its stdin is closed


class ForkedProcess:
    """A program that is started, killed and started again with the same arguments."""

    def __init__(
        self, server: ForkServer, program: str, log: Path, arguments: dict[str, Any]
    ) -> None:
        self._server, self._program, self._arguments = server, program, arguments
        self.log = log
        self._pid: int | None = None

    def start(self) -> None:
        self._pid = self._server.start(self._program, self._arguments, self.log)

    def kill(self) -> None:
        """Kill it, if it has not ended by itself."""
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)  # also of a zombie, which is there until the wait
            self._server.wait(self._pid)
            self._pid = None

    def limit(self, kind: int, value: int) -> None:
        """Set a limit of the process that runs, such as `resource.RLIMIT_FSIZE`."""
        assert self._pid is not None
        _, most = resource.prlimit(self._pid, kind)
        resource.prlimit(self._pid, kind, (value, most))

    def exit_code(self) -> int | None:
        """The exit code of a program that was started; None while it runs."""
        assert self._pid is not None
        code = self._server.wait(self._pid, until_it_ends=False)
        if code is not None:
            self._pid = None
        return code
