"""A state has one driver; that of a dead one is taken over."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidegate import StateError
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.streaming import lease
from tidegate.spark.streaming.lease import LEASE_S, STOPPING_S, Lease
from tidegate.spark.streaming.state_files import Json, read_json, write_json


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    return LocalFolder(tmp_path / "state")


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of this machine."""
    code = "import sys; sys.stdin.read()"
    running = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    yield running
    running.kill()
    running.communicate()


def held_by(folder: LocalFolder, **changed: object) -> None:
    """Let another query hold the lease."""
    Lease(folder).take()
    document: Json = read_json(folder, "lease.json")
    write_json(folder, "lease.json", {**document, **changed})


class Clock:
    """A clock that goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.on_sleep: Callable[[], None] = lambda: None

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()


def test_it_is_kept_and_renewed(folder: LocalFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Lease(folder)
    mine.take()
    mine.take()
    mine.check()
    first = read_json(folder, "lease.json")
    clock = Clock()
    clock.now = time.time() + LEASE_S / 2
    monkeypatch.setattr(lease, "time", clock)
    mine.take()
    assert read_json(folder, "lease.json") == {**first, "renewed": clock.now}


def test_a_living_process_of_this_machine_keeps_it(
    folder: LocalFolder, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Path(f"/proc/{process.pid}/stat").read_text().split()[21]
    held_by(folder, pid=process.pid, started=started, renewed=0)
    clock = Clock()
    monkeypatch.setattr(lease, "time", clock)
    with pytest.raises(StateError, match=rf"is in use: process {process.pid} on .*; stop that, or"):
        Lease(folder).take()
    assert clock.now == 1_000 + STOPPING_S

    def kill() -> None:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays listed

    clock.on_sleep = kill  # while another one waits for it
    Lease(folder).take()
    assert clock.now < 1_000 + 2 * STOPPING_S


def test_a_number_that_was_given_to_another_process(
    folder: LocalFolder, process: subprocess.Popen[bytes]
) -> None:
    held_by(folder, pid=process.pid, started="0", renewed=time.time())
    Lease(folder).take()


def test_an_earlier_query_of_this_process_is_taken_over_and_notices(folder: LocalFolder) -> None:
    first, second = Lease(folder), Lease(folder)
    first.take()
    second.take()
    for use in (first.check, first.take):
        with pytest.raises(StateError, match=f"process {os.getpid()} on .* has taken it over"):
            use()
    second.check()


@pytest.mark.parametrize("seen_again", [False, True])
def test_a_driver_on_another_machine_loses_it_if_it_is_not_seen(
    folder: LocalFolder, monkeypatch: pytest.MonkeyPatch, seen_again: bool
) -> None:
    held_by(folder, machine="other pid:[1]", renewed=990.0)
    clock = Clock()
    monkeypatch.setattr(lease, "time", clock)

    def renew() -> None:
        if clock.now > 1_030:
            document = read_json(folder, "lease.json")
            write_json(folder, "lease.json", {**document, "renewed": clock.now})

    if seen_again:
        clock.on_sleep = renew
        with pytest.raises(StateError, match=r"is in use: process \d+ on other; stop that"):
            Lease(folder).take()
    else:
        Lease(folder).take()
        assert clock.now >= 990 + LEASE_S
