"""Reading tells sound rows from damaged ones, whatever SQLite has in a column."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.stores import put
from tidegate.network.store.reading import DamagedRow, is_sound, read_events, read_queue, read_table
from tidegate.network.store.rows import EventRow, PositionRow, StateRow, event_checksum
from tidegate.network.store.schema import DATABASE, open_reader
from tidegate.network.store.store import Store


@pytest.mark.parametrize("junk", [None, "text", 1.5, 2**62, b"blob", "\udcff"])
@pytest.mark.parametrize("column", range(5))
def test_no_type_in_a_column_breaks_the_check(junk: object, column: int) -> None:
    values: list[Any] = [1, 2, 3, b"h", b"b"]
    checksum = event_checksum(1, 2, 3, b"h", b"b")
    assert is_sound(EventRow._make([*values, checksum]))
    values[column] = junk
    assert not is_sound(EventRow._make([*values, checksum]))


def test_damaged_rows_are_returned_apart(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    queue = store.queue("client", "desk")
    positions = put(store, queue, b"1", b"2", b"3")
    store._connection.execute("UPDATE events SET body = x'FF' WHERE position = ?", (positions[1],))
    store._connection.execute("INSERT INTO positions VALUES ('p', CAST(x'FF' AS TEXT), 1, 2, 3)")
    with closing(open_reader(tmp_path)) as reader:
        read = read_queue(reader, queue, 0, positions[2], 10)
        assert [each.event.body for each in read.events] == [b"1", b"3"]
        assert (read.lost, read.last) == (1, positions[2])
        assert [each.table for each in read.damaged] == ["events", "queue_rows"]
        events, damaged = read_events(reader, 0, positions[2], 10)
        assert [each.position for each in events] == [positions[0], positions[2]]
        assert len(damaged) == 1
        rest: list[DamagedRow] = []
        assert list(read_table(reader, "positions", PositionRow, rest)) == []
        assert list(read_table(reader, "state", StateRow, rest)) == []
        assert len(rest) == 1
    store.close()


def test_reader_cannot_write(tmp_path: Path) -> None:
    Store(tmp_path, "a").close()
    with closing(open_reader(tmp_path)) as reader, pytest.raises(sqlite3.OperationalError):
        reader.execute("DELETE FROM events")
    assert (tmp_path / DATABASE).exists()
