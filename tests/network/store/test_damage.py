"""Damage is recognized and reported; what is damaged is never delivered, the rest is saved."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from support.stores import EVENTS, delivered, write_sql
from tidegate.errors import StoreDamagedError, StoreError
from tidegate.network.store.schema import DATABASE
from tidegate.network.store.store import Store


@pytest.mark.parametrize(
    ("statement", "one", "two"),
    [
        ("UPDATE events SET body = body || 'x' WHERE time_us = 7", [7], [7]),
        ("UPDATE events SET time_us = 1000 WHERE time_us = 7", [7], [7]),
        ("UPDATE events SET header = NULL WHERE time_us = 7", [7], [7]),
        ("UPDATE events SET shape = 'text' WHERE time_us = 7", [7], [7]),
        ("DELETE FROM events WHERE time_us = 7", [7], [7]),
        ("UPDATE events SET position = -position WHERE time_us = 399", [399], [399]),
        ("UPDATE queue_rows SET detail = '000008' WHERE detail = x'303030303037' "
         "AND queue = (SELECT number FROM queues WHERE name = 'one')", [7], []),
    ],
)  # fmt: skip
def test_damaged_row_is_set_aside(
    sound: Path, tmp_path: Path, statement: str, one: list[int], two: list[int]
) -> None:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    write_sql(tmp_path, statement)
    store = Store(tmp_path, "a")
    for name, lost in (("one", one), ("two", two)):
        assert delivered(store, name) == [each for each in range(EVENTS) if each not in lost]
    assert store.damaged > 0
    store.close()
    store = Store(tmp_path, "a")
    assert delivered(store, "one") == [each for each in range(EVENTS) if each not in one]
    assert store.damaged == 0  # it was set aside for good
    assert store.rejected()
    store.close()


@pytest.mark.parametrize("table", ["positions", "state", "shapes"])
def test_damaged_state_is_set_aside(sound: Path, tmp_path: Path, table: str) -> None:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    write_sql(tmp_path, f"UPDATE {table} SET checksum = checksum + 1")
    store = Store(tmp_path, "a")
    assert store.positions("publisher") == ({} if table == "positions" else {"p": (1, 380)})
    assert len(list(store.state())) == (0 if table == "state" else 20)
    assert store.damaged > 0
    store.close()


def test_flipped_bits_never_reach_a_receiver(sound: Path, tmp_path: Path) -> None:
    """Wherever bits flip: the store says so, or delivers what was stored."""
    content = (sound / DATABASE).read_bytes()
    refused = partly = whole = 0
    for seed in range(60):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        shutil.copytree(sound, folder)
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 1, 3])):
            damaged[chance.randrange(100, len(damaged))] ^= 1 << chance.randrange(8)
        (folder / DATABASE).write_bytes(damaged)
        try:
            store = Store(folder, "a")
        except StoreError:
            refused += 1
            continue
        try:
            lost = 0
            for name in ("one", "two"):
                numbers = delivered(store, name)
                assert numbers == sorted(set(numbers))
                lost += EVENTS - len(numbers)
            assert not lost or store.damaged
            partly, whole = partly + bool(lost), whole + (not lost)
        except StoreDamagedError:
            refused += 1
        store.close()
    assert refused > 5
    assert partly > 5
    assert whole > 5


@pytest.mark.parametrize("share", [0.001, 0.3, 0.9])
def test_truncated_database_is_refused(sound: Path, tmp_path: Path, share: float) -> None:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    path = tmp_path / DATABASE
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(StoreDamagedError, match="tidegate broker repair --data"):
        Store(tmp_path, "a")
