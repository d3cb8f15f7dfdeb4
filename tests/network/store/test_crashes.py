"""A store whose process is killed, or gets no more room, keeps what it has confirmed."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from support import dying_store
from tidegate.network.store.store import Store

PROGRAM = [sys.executable, str(Path(dying_store.__file__))]


def check(folder: Path, confirmed: int) -> int:
    """Check that transactions are there as a whole, in order; returns the number of the last."""
    store = Store(folder, "a")
    last = store.positions("publisher").get("p", (1, 0))[1]
    assert last >= confirmed
    assert [value for *_, value in store.state()] == ([b"%d" % last] if last else [])
    for name in ("one", "two"):
        queue = store.queue("client", name)
        numbers, after = [], 0
        while (read := store.read_queue(queue, after)).events:
            after = read.last
            for event, detail in read.events:
                assert event.body == detail + b"." * (int(detail) % 2000)
                assert store.description(event.shape) == b"shape %d" % (int(detail) % 5)
                numbers.append(int(detail))
        assert numbers == list(range(1, last + 1))
        assert store.length(queue) == last
    assert store.damaged == 0
    store.close()
    return last


def test_killed_process_loses_nothing_that_was_confirmed(tmp_path: Path) -> None:
    chance = random.Random(3)
    confirmed = 0
    for _ in range(6):
        with subprocess.Popen([*PROGRAM, str(tmp_path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 150)):
                confirmed = int(process.stdout.readline())
            process.kill()
            rest = process.stdout.read().split()
            confirmed = int(rest[-1]) if rest and rest[-1].isdigit() else confirmed
        # What was committed and not printed any more may be there: at most what is under way.
        assert check(tmp_path, confirmed) <= confirmed + dying_store.TOGETHER


def test_disk_that_is_full_refuses_and_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, str(tmp_path), "300000"], stdout=subprocess.PIPE, text=True, check=True
    )
    *numbers, full, end = done.stdout.splitlines()
    assert full == "full: the store cannot be written: the disk is full"
    assert end in ("acknowledged", "still full")
    store = Store(tmp_path, "a")
    last = store.positions("publisher")["p"][1]
    assert last == len(numbers) == store.length(store.queue("client", "two")) > 10
    assert store.length(store.queue("client", "one")) == (0 if end == "acknowledged" else last)
    store.close()


@pytest.mark.parametrize("limit", [20_000, 45_000])
def test_disk_without_room_for_the_tables(tmp_path: Path, limit: int) -> None:
    """Even a store that never had room is sound when there is some."""
    subprocess.run(
        [*PROGRAM, str(tmp_path), str(limit)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    check(tmp_path, 0)
