"""A broker in a process of its own that is killed, and starts again with its store."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.broker_process import TIDEGATE


class KilledBroker:
    """A broker at a port, with its data in a folder."""

    def __init__(self, port: int, folder: Path) -> None:
        self.url = f"tidegate://127.0.0.1:{port}"
        self._command = [*TIDEGATE, "broker", "--name", "a", "--listen", f"127.0.0.1:{port}"]
        self._command += ["--data", str(folder / "broker")]
        self._log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
