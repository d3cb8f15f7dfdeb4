"""Brokers as processes of their own, in a line, which end with the demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.errors import TidegateError

NAMES = ("a", "b", "c")
START_S_MAX = 60.0
END_S_MAX = 10.0


@contextmanager
def broker_line(folder: Path) -> Iterator[dict[str, str]]:
    """Run the brokers, each linked with the one before; yields their URLs by name."""
    processes: list[subprocess.Popen[bytes]] = []
    urls: dict[str, str] = {}
    try:
        for name in NAMES:
            log = folder / f"{name}.log"
            processes.append(_start(name, folder / name, log, list(urls.values())[-1:]))
            address = _wait_for(r"listens at (\S+)", log, processes[-1])
            if urls:
                _wait_for("linked with", log, processes[-1])
            urls[name] = f"tidegate://{address}"
        yield urls
    finally:
        _end(processes)


def _start(name: str, data: Path, log: Path, peers: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from tidegate.cli import main; main()", "broker"]
    command += ["--name", name, "--listen", "127.0.0.1:0", "--data", str(data)]
    for peer in peers:
        command += ["--peer", peer]
    with log.open("wb") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,  # Ctrl-C is for the demo, which ends its brokers itself
        )  # fmt: skip


def _wait_for(pattern: str, log: Path, process: subprocess.Popen[bytes]) -> str:
    """Wait until a log has a line of a pattern; returns its group, or all of what matched."""
    deadline = time.monotonic() + START_S_MAX
    while True:
        has_ended = process.poll() is not None
        text = log.read_text(errors="replace")
        found = re.search(pattern, text)
        if found is not None:
            return found[found.lastindex or 0]
        if has_ended or time.monotonic() > deadline:
            last = "\n".join(text.splitlines()[-10:])
            raise TidegateError(f"a broker of the demo does not start:\n{last}")
        time.sleep(0.02)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Let the brokers drain, and kill those that take too long."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + END_S_MAX
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
