"""Brokers as processes of their own, in a line, which end with the demo."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
        for name, port in zip(NAMES, _free_ports(len(NAMES)), strict=True):
            processes.append(_start(name, port, folder, list(urls.values())[-1:]))
            urls[name] = f"tidegate://127.0.0.1:{port}"
        for name, process in zip(NAMES, processes, strict=True):
            is_first = name == NAMES[0]
            _wait_for("listens at" if is_first else "linked with", folder / f"{name}.log", process)
        yield urls
    finally:
        _end(processes)


def _free_ports(count: int) -> list[int]:
    """Ports that are free now; all brokers start at once, and each must know where the other is."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in listeners:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in listeners]


def _start(name: str, port: int, folder: Path, peers: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from tidegate.cli import main; main()", "broker"]
    command += ["--name", name, "--listen", f"127.0.0.1:{port}", "--data", str(folder / name)]
    for peer in peers:
        command += ["--peer", peer]
    with (folder / f"{name}.log").open("wb") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,  # Ctrl-C is for the demo, which ends its brokers itself
        )  # fmt: skip


def _wait_for(text: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the log of a broker has a text."""
    deadline = time.monotonic() + START_S_MAX
    while True:
        has_ended = process.poll() is not None
        said = log.read_text(errors="replace")
        if text in said:
            return
        if has_ended or time.monotonic() > deadline:
            last = "\n".join(said.splitlines()[-10:])
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
