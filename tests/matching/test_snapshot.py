from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate.errors import SnapshotError
from tidegate.matching.engine import Engine

FILTERS = [
    "symbol = 'IBM' and price < :limit",
    "price between 3 and :limit or volume > 5",
    "x >= -3 + t and x <= 3 + t",
    "note like 'a%' and price > @load",
    "when > timestamp '2026-01-02T03:04:05Z' and urgent = true",
    "symbol in ('IBM', 'SUN') and price != 3.5",
]


def filled_engine() -> Engine:
    engine = Engine(clock=lambda: None)
    rng = random.Random(3)
    for number in range(700):
        text = rng.choice(FILTERS)
        parameters = {"limit": rng.random() * 10} if ":limit" in text else {}
        subscriber = rng.choice([None, "desk-7"])
        engine.subscribe(text, id=f"n{number}", subscriber=subscriber, parameters=parameters)
    for number in range(0, 700, 7):
        engine.cancel(f"n{number}")
    engine.set_variables(load=0.5)
    return engine


EVENTS = [
    {"symbol": "IBM", "price": 2.5, "x": 1},
    {"symbol": "SUN", "price": 4, "note": "abc", "volume": 9},
    {"note": "abc", "price": 7.25, "urgent": True},
]


def test_variables_that_were_set_are_restored(tmp_path: Path) -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    values = {"text": "é", "big": 2**62 + 1, "flag": True, "real": -0.5, "time": noon}
    engine = Engine()
    for name in values:
        engine.subscribe(f"{name} = @{name}", id=name)
    engine.set_variables(**values)
    engine.snapshot(tmp_path / "engine.arrow")
    restored = Engine.restore(tmp_path / "engine.arrow")
    assert sorted(restored.match(values)) == sorted(values)
    restored.provide("provided", lambda _: 1)
    assert restored.moment().variables["big"] == 2**62 + 1


both_ways = pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "read"])


def damaged(content: bytes, chance: random.Random) -> bytes:
    """A snapshot with a flipped bit, a wrong end, zeros in it, or some other bytes."""
    changed = bytearray(content)
    place, length = chance.randrange(len(content)), chance.randrange(1, 3000)
    match chance.randrange(6):
        case 0:
            return content[:place]
        case 1:
            changed[place : place + length] = bytes(len(changed[place : place + length]))
        case 2:
            changed[place : place + length] = chance.randbytes(len(changed[place : place + length]))
        case _:
            changed[place] ^= 1 << chance.randrange(8)
    return bytes(changed)


@both_ways
def test_a_damaged_snapshot_is_refused(tmp_path: Path, mapped: bool) -> None:
    path = tmp_path / "engine.arrow"
    filled_engine().snapshot(path)
    content, chance = path.read_bytes(), random.Random(5)
    for _ in range(200):
        changed = damaged(content, chance)
        if changed != content:  # zeros may have been there already
            path.write_bytes(changed)
            with pytest.raises(SnapshotError):
                Engine.restore(path, mapped=mapped)


def test_a_snapshot_that_was_read_outlives_its_file(tmp_path: Path) -> None:
    """A process that has mapped the file would be killed."""
    path = tmp_path / "engine.arrow"
    engine = filled_engine()
    engine.snapshot(path)
    restored = Engine.restore(path, clock=lambda: None, mapped=False)
    os.truncate(path, 0)
    for event in EVENTS:
        assert sorted(restored.match(event)) == sorted(engine.match(event))
    restored.subscribe("price > 100", id="one more")
    assert "one more" in restored.match({"price": 200})


def test_a_restored_engine_gives_the_same_answers(tmp_path: Path) -> None:
    engine = filled_engine()
    engine.snapshot(tmp_path / "engine.arrow")
    restored = Engine.restore(tmp_path / "engine.arrow", clock=lambda: None)
    assert len(restored) == len(engine)
    for event in EVENTS:
        assert sorted(restored.match(event)) == sorted(engine.match(event)) != []
    batch = pa.Table.from_pylist(EVENTS)
    assert restored.match_batch(batch).to_pylist() == engine.match_batch(batch).to_pylist()
    assert restored.get("n1") == engine.get("n1")


def test_a_restored_engine_can_be_changed_and_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "engine.arrow"
    engine = filled_engine()
    engine.snapshot(path)
    before = path.read_bytes()
    restored = Engine.restore(path, clock=lambda: None)
    restored.set_variables(load=0.5)
    for changed in (engine, restored):
        for number in range(1, 700, 7):
            if "limit" in changed.get(f"n{number}").parameters:
                changed.update(f"n{number}", limit=number / 100)
            if number % 2:
                changed.cancel(f"n{number}")
        for number in range(300):
            changed.subscribe("symbol = 'IBM' and price < :limit", id=f"m{number}", limit=number)
    for event in EVENTS:
        assert sorted(restored.match(event)) == sorted(engine.match(event))
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"hello", b"ARROW1\0\0 and then nothing"])
def test_a_file_that_is_no_snapshot_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(SnapshotError, match="no snapshot"):
        Engine.restore(tmp_path / "bad")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="No such file"):
        Engine.restore(tmp_path / "none")


def test_another_arrow_file_is_refused(tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    with (
        pa.OSFile(str(tmp_path / "other"), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)
    with pytest.raises(SnapshotError, match="no snapshot"):
        Engine.restore(tmp_path / "other")


def test_the_oracle_has_no_snapshots(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError):
        Engine(matcher="naive").snapshot(tmp_path / "engine.arrow")
