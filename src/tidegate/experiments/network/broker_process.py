"""A broker in a process of its own, for benchmarks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tidegate.errors import NetworkError

_READY_S = 60.0
_COMMAND = [sys.executable, "-c", "from tidegate.cli import main; main()"]


class BrokerProcess:
    """Starts `tidegate broker`, and stops it on leaving.

    What it logs is read all the time, so that a test can wait for a line.
    """

    def __init__(
        self,
        name: str = "a",
        *,
        data: Path | None = None,
        peers: Sequence[BrokerProcess] = (),
        port: int | None = None,
    ) -> None:
        self.name = name
        self.port = free_port() if port is None else port
        command = [*_COMMAND, "broker", "--name", name, "--listen", f"127.0.0.1:{self.port}"]
        if data is not None:
            command += ["--data", str(data)]
        for peer in peers:
            command += ["--peer", f"tidegate://127.0.0.1:{peer.port}"]
        self._command = command
        self._lines: list[str] = []
        self._came = threading.Condition()
        self._has_ended = False

    def __enter__(self) -> BrokerProcess:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.wait_for(" listens at ")
        except NetworkError:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def wait_for(self, text: str) -> None:
        """Wait until the broker has logged a line with a text."""
        with self._came:
            self._came.wait_for(lambda: self._has_ended or self._has(text), _READY_S)
            if not self._has(text):
                said = "".join(self._lines[-5:]).strip()
                raise NetworkError(
                    f"the broker {self.name!r} did not say {text!r}; it said: {said}"
                )

    def _has(self, text: str) -> bool:
        return any(text in line for line in self._lines)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._came:
                self._lines.append(line)
                self._came.notify_all()
        with self._came:
            self._has_ended = True
            self._came.notify_all()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def processor_s(self) -> float:
        """The processor time that the broker has taken so far, in seconds."""
        stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii")
        after_name = stat.rpartition(")")[2].split()
        user, system = after_name[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_bytes(self) -> int:
        """The memory of the broker that is resident now."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")


def free_port() -> int:
    """A port at which nobody listens now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
