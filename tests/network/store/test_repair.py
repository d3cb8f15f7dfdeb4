"""Repair saves the rows that can be read, and says what is lost."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from support.stores import EVENTS, body, delivered, write_sql
from tidegate.errors import StoreDamagedError, StoreError
from tidegate.network.store.repair import repair
from tidegate.network.store.schema import DATABASE
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction


def test_repair_saves_what_can_be_read(sound: Path, tmp_path: Path) -> None:
    """Pages full of zeros or noise: the rows of all others are delivered again."""
    content = (sound / DATABASE).read_bytes()
    with_names = 0
    for seed in range(8):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        shutil.copytree(sound, folder)
        damaged = bytearray(content)
        pages = len(content) // 4096
        page = chance.randrange(2, pages) * 4096
        damaged[page : page + 4096] = bytes(4096) if seed % 2 else chance.randbytes(4096)
        (folder / DATABASE).write_bytes(damaged)
        report = repair(folder)
        assert (report.kept_in / DATABASE).read_bytes() == damaged
        store = Store(folder, "a")
        numbers = {name: delivered(store, name) for name in ("one", "two")}
        for name, found in numbers.items():
            assert found == sorted(set(found))
            missed = store.missed(store.queue("client", name))
            assert len(found) + missed <= EVENTS
        # One page holds few rows of the large tables. The names of all queues are on one, too.
        has_names = not any(each.startswith("queues") for each in report.unreadable)
        assert sum(map(len, numbers.values())) > (EVENTS if has_names else -1)
        with_names += has_names
        position = store.next_position()
        transaction = Transaction()
        transaction.add_event(position, store.shape(b"shape"), EVENTS, b"header", body(EVENTS))
        transaction.enqueue(store.queue("client", "one"), position, b"%06d" % EVENTS)
        store.commit(transaction).result()
        assert delivered(store, "one")[-1] == EVENTS
        store.close()
    assert with_names > 4


def test_repair_accepts_lost_transactions(sound: Path, tmp_path: Path) -> None:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    (tmp_path / "commits").write_bytes((10**6).to_bytes(8, "little"))
    with pytest.raises(StoreDamagedError, match="20 of at least 1000000"):
        Store(tmp_path, "a")
    report = repair(tmp_path)
    assert report.saved["events"] == EVENTS
    assert not report.unreadable
    store = Store(tmp_path, "a")
    assert store.commits == 10**6
    assert delivered(store, "two") == list(range(EVENTS))
    store.close()


def test_repair_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no store\.db"):
        repair(tmp_path)
    (tmp_path / DATABASE).write_bytes(b"noise" * 10_000)
    with pytest.raises(StoreDamagedError, match=r"nothing in .* can be read"):
        repair(tmp_path)


def test_repair_counts_what_queues_have_lost(sound: Path, tmp_path: Path) -> None:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    write_sql(tmp_path, "UPDATE events SET body = x'00' WHERE time_us IN (3, 5)")
    report = repair(tmp_path)
    assert report.damaged == {"events": 2}
    assert report.lost == 4
    store = Store(tmp_path, "a")
    assert [store.missed(store.queue("client", name)) for name in ("one", "two")] == [2, 2]
    assert delivered(store, "one") == [n for n in range(EVENTS) if n not in (3, 5)]
    store.close()
