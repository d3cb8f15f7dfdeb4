from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import strategies
from tidegate.language.values import Value, format_value, to_us
from tidegate.matching.rows.kernels.cell_kinds import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    STRING,
    TIME,
    UNDEFINED,
)
from tidegate.matching.rows.store.cells import RowHeap, StringPool, decode, encode, encode_all
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter

values = st.none() | strategies.values


# -- strings ----------------------------------------------------------------------------------


def test_strings_by_number() -> None:
    pool = StringPool()
    assert [pool.number(text) for text in ("b", "", "b", "a")] == [0, 1, 0, 2]
    assert (pool.find("a"), pool.find("c")) == (2, -1)
    assert pool.text(1) == ""
    assert pool.texts() == ["b", "", "a"]


def test_a_pool_made_of_strings_keeps_their_numbers() -> None:
    pool = StringPool(["x", "y"])
    assert (pool.find("y"), pool.number("z"), pool.number("x")) == (1, 2, 0)


# -- values and cells -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "cell"),
    [
        (None, UNDEFINED, 0),
        (True, BOOLEAN, 1),
        (-(2**63), INTEGER, -(2**63)),
        (2**53 + 1, INTEGER, 2**53 + 1),
        (0.0, FLOAT, 0),
        (-0.0, FLOAT, -(2**63)),
        (1.0, FLOAT, 0x3FF0000000000000),
        ("a", STRING, 0),
        (strategies.EDGE_TIMES[0], TIME, to_us(strategies.EDGE_TIMES[0])),
    ],
)
def test_a_value_as_a_cell(value: Value | None, kind: int, cell: int) -> None:
    assert encode(value, StringPool()) == (kind, cell)


@given(strategies.values)
def test_a_cell_gives_its_value_back(value: Value) -> None:
    pool = StringPool(["other"])
    found = decode(*encode(value, pool), pool)
    assert found is not None
    assert (type(found), format_value(found)) == (type(value), format_value(value))


def test_a_cell_without_a_value_gives_none_back() -> None:
    assert decode(*encode(None, StringPool()), StringPool()) is None


@given(st.lists(values, max_size=20))
def test_many_values_are_encoded_as_one_by_one(some: list[Value | None]) -> None:
    pool, other = StringPool(), StringPool()
    kinds, cells = encode_all(some, pool)
    assert list(zip(kinds.tolist(), cells.tolist(), strict=True)) == [
        encode(value, other) for value in some
    ]
    assert pool.texts() == other.texts()


# -- rows -------------------------------------------------------------------------------------


def append(heap: RowHeap, *rows: tuple[int, ...]) -> list[int]:
    cells = np.array(rows, np.int64)
    places: list[int] = heap.append(np.full(cells.shape, INTEGER, np.uint8), cells).tolist()
    return places


def read(heap: RowHeap, place: int, width: int) -> list[int]:
    cells: list[int] = heap.cells[place : place + width].tolist()
    return cells


def test_rows_stand_one_behind_the_other() -> None:
    heap = RowHeap(StringPool())
    assert append(heap, (1, 2), (3, 4)) == [0, 2]
    assert append(heap, (5, 6, 7)) == [4]
    assert (read(heap, 2, 2), read(heap, 4, 3)) == ([3, 4], [5, 6, 7])
    assert heap.kinds[:7].tolist() == [INTEGER] * 7


def test_rows_without_cells() -> None:
    heap = RowHeap(StringPool())
    none = heap.append(np.zeros((3, 0), np.uint8), np.zeros((3, 0), np.int64))
    assert none.tolist() == [0, 0, 0]
    heap.remove(0, 0)
    assert append(heap, (1,)) == [0]


def test_the_cells_of_a_removed_row_are_used_for_one_of_its_width() -> None:
    heap = RowHeap(StringPool())
    append(heap, (1, 2), (3, 4), (5, 6))
    heap.remove(2, 2)
    assert append(heap, (7, 8, 9)) == [6]
    assert append(heap, (10, 11), (12, 13)) == [2, 9]
    assert read(heap, 0, 11) == [1, 2, 10, 11, 5, 6, 7, 8, 9, 12, 13]


def test_a_heap_grows() -> None:
    heap = RowHeap(StringPool())
    rows = [(index, -index, 0) for index in range(1000)]
    places = [append(heap, row)[0] for row in rows[:500]] + append(heap, *rows[500:])
    assert [tuple(read(heap, place, 3)) for place in places] == rows


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (INTEGER, INTEGER, True),
        (INTEGER, FLOAT, True),
        (FLOAT, INTEGER, True),
        (STRING, STRING, True),
        (STRING, INTEGER, False),
        (UNDEFINED, FLOAT, False),
        (FLOAT, UNDEFINED, False),
        (BOOLEAN, INTEGER, False),
    ],
)
def test_writing_a_cell_says_whether_its_kind_stays(before: int, after: int, same: bool) -> None:
    heap = RowHeap(StringPool(list("abcdefgh")))
    append(heap, (1, 2, 3))
    heap.write(1, before, 5)
    assert heap.write(1, after, 6) is same
    assert read(heap, 0, 3) == [1, 6, 3]
    assert heap.kinds[:3].tolist() == [INTEGER, after, INTEGER]
    heap.write(1, before, 5)
    many = heap.write_all(
        np.array([2, 1]), np.array([INTEGER, after], np.uint8), np.array([7, 6], np.int64)
    )
    assert many.tolist() == [True, same]
    assert read(heap, 0, 3) == [1, 6, 7]
    assert heap.kinds[:3].tolist() == [INTEGER, after, INTEGER]


def test_a_heap_in_a_snapshot(tmp_path: Path) -> None:
    heap = RowHeap(StringPool())
    append(heap, (1, 2), (3, 4))
    append(heap, (5,), (6,))
    heap.remove(2, 2)
    heap.remove(4, 1)
    into = SectionWriter()
    heap.save(into)
    into.write(tmp_path / "heap")
    for each in (heap, RowHeap.load(SectionReader(tmp_path / "heap"))):
        assert read(each, 0, 6) == [1, 2, 3, 4, 5, 6]
        assert append(each, (7,), (8,)) == [4, 6]
        assert append(each, (9, 10)) == [2]
        assert read(each, 0, 7) == [1, 2, 9, 10, 7, 6, 8]


# -- strings that come and go -----------------------------------------------------------------


def test_a_string_is_forgotten_with_its_last_cell() -> None:
    pool = StringPool()
    heap = RowHeap(pool)
    numbers = [pool.number(text) for text in "abc"]
    cells = np.array([[0, 1], [1, 7]])
    first, second = heap.append(np.array([[STRING, STRING], [STRING, INTEGER]]), cells).tolist()
    assert pool.forget() == ["c"]  # it was never written
    heap.remove(first, 2)
    assert pool.forget() == ["a"]
    heap.write(second, STRING, pool.number("d"))
    assert (pool.forget(), pool.find("b"), pool.find("d")) == (["b"], -1, 0)
    heap.write_all(np.array([second]), np.array([INTEGER], np.uint8), np.array([5]))
    assert (pool.forget(), len(pool), len(numbers)) == (["d"], 0, 3)


def test_rows_are_moved_together() -> None:
    heap = RowHeap(StringPool())
    starts = np.array([append(heap, (index,) * (index % 3))[0] for index in range(10_000)])
    widths = np.arange(10_000) % 3
    for index in range(8_000):
        heap.remove(int(starts[index]), int(widths[index]))
    assert heap.is_sparse()
    moved = heap.compact(starts[8_000:], widths[8_000:])
    assert not heap.is_sparse()
    assert [read(heap, int(at), int(w)) for at, w in zip(moved, widths[8_000:], strict=True)] == [
        [index] * (index % 3) for index in range(8_000, 10_000)
    ]
    assert append(heap, (1, 2)) == [int(widths[8_000:].sum())]


def test_a_snapshot_has_the_strings_that_are_used(tmp_path: Path) -> None:
    pool = StringPool()
    heap = RowHeap(pool)
    cells = np.array([[pool.number(text)] for text in ("a", "b", "a", "c")])
    starts = heap.append(np.full((4, 1), STRING, np.uint8), cells).tolist()
    into = SectionWriter()
    heap.save(into, [(starts[3], 1)])  # as if the last row had been removed
    into.write(tmp_path / "snapshot")
    loaded = RowHeap.load(SectionReader(tmp_path / "snapshot"))
    assert loaded.pool.uses.counts()[:2] == [2, 1]
    assert (loaded.pool.find("c"), loaded.pool.number("d"), loaded.pool.number("a")) == (-1, 2, 0)
    loaded.remove(starts[1], 1)
    assert loaded.pool.forget() == ["d", "b"]
    assert append(loaded, (1,), (2,)) == [1, 3]
    assert pool.find("c") == 2
