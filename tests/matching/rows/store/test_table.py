from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import strategies
from tidegate.errors import SubscriptionError, UnresolvedError
from tidegate.language.filters import Filter, shape_of
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.syntax import Node
from tidegate.language.values import Value, to_us
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, INTEGER, STRING
from tidegate.matching.rows.store.ids import Numbers
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.subscription import Subscription


def subscription(id: str, text: str = "price < 10", **parameters: Value) -> Subscription:
    return Subscription(id, Filter(parse_filter(text)), parameters)


def add(table: SubscriptionTable, *new: Subscription) -> Numbers:
    numbers = table.stage(new)
    table.publish(numbers)
    return numbers


def got(table: SubscriptionTable, number: int) -> tuple[str, str, dict[str, Value]]:
    found = table.get(number)
    return found.id, str(found.filter), dict(found.parameters)


def saved_and_loaded(table: SubscriptionTable, folder: Path) -> SubscriptionTable:
    into = SectionWriter()
    table.save(into)
    into.write(folder / "table")
    return SubscriptionTable.load(SectionReader(folder / "table"))


# -- coming and going -------------------------------------------------------------------------


def test_an_empty_table() -> None:
    table = SubscriptionTable()
    assert len(table) == 0
    assert "a" not in table
    assert table.ids().to_pylist() == []
    assert add(table).tolist() == []
    with pytest.raises(KeyError):
        table.number("a")


def test_subscriptions_by_number_and_by_id() -> None:
    table = SubscriptionTable()
    first = add(table, subscription("a"), subscription("b", "x = 'y' and z is not null"))
    second = add(table, subscription("c", "price < :limit or t2 > t", limit=3))
    assert (first.tolist(), second.tolist(), len(table)) == ([0, 1], [2], 3)
    assert [table.number(id) for id in "cab"] == [2, 0, 1]
    assert "b" in table
    assert table.ids_of(np.array([2, 0], np.int32)) == ["c", "a"]
    assert got(table, 0) == ("a", "price < 10", {})
    assert got(table, 1) == ("b", "x = 'y' and z is not null", {})
    assert got(table, 2) == ("c", "price < :limit or t2 > t", {"limit": 3})


def test_all_that_a_subscription_has_comes_back() -> None:
    table = SubscriptionTable()
    whole = Subscription("a", Filter(parse_filter("x < :k")), {"k": 1.5}, -5, "me", 2**62)
    bare = Subscription("b", Filter(parse_filter("x < :k")))
    add(table, whole, bare)
    assert [table.get(0), table.get(1)] == [whole, bare]


def test_what_is_staged_is_not_known_until_it_is_published() -> None:
    table = SubscriptionTable()
    numbers = table.stage([subscription("a")])
    assert "a" not in table
    assert len(table) == 0
    table.publish(numbers)
    assert "a" in table


@pytest.mark.parametrize("ids", ["ca", "cc"])
def test_an_id_that_is_taken_leaves_all_as_it_was(ids: str) -> None:
    table = SubscriptionTable()
    add(table, subscription("a"), subscription("b"))
    staged = table.stage([subscription(id) for id in ids])
    with pytest.raises(SubscriptionError, match=f"there already is a subscription '{ids[1]}'"):
        table.publish(staged)
    table.unstage(staged)
    assert (len(table), "a" in table, "b" in table, "c" in table) == (2, True, True, False)
    assert sorted(add(table, subscription("c"), subscription("d")).tolist()) == [2, 3]


@pytest.mark.parametrize("id", [7, "\ud800"])
def test_a_bad_id_takes_no_number(id: str) -> None:
    table = SubscriptionTable()
    with pytest.raises(SubscriptionError, match=r"an id is a string|valid Unicode"):
        table.stage([subscription("a"), subscription(id)])
    assert add(table, subscription("b")).tolist() == [0]


def test_the_number_and_the_cells_of_a_removed_one_are_used_again() -> None:
    table = SubscriptionTable()
    me = Subscription("b", Filter(parse_filter("x < 2 and y < 3")), {}, None, "me")
    add(table, subscription("a", "x < 1 and y < 2"), me, subscription("c", "x < 3 and y < 4"))
    row = table.columns.row.item(1)
    table.remove(1)
    assert ("b" in table, len(table)) == (False, 2)
    assert add(table, subscription("d", "x = 5")).tolist() == [1]
    assert got(table, 1) == ("d", "x = 5", {})
    assert table.get(1).subscriber is None
    assert add(table, subscription("b", "x < 7 and y < 8")).tolist() == [3]
    assert table.columns.row.item(3) == row
    assert table.ids().to_pylist() == ["a", "d", "c", "b"]


def test_ids_as_an_arrow_array() -> None:
    table = SubscriptionTable()
    add(table, *(subscription(f"s{index}") for index in range(7)))
    ids = table.ids()
    assert ids.to_pylist() == [f"s{index}" for index in range(7)]
    assert table.ids() is ids
    add(table, subscription("x"))
    assert table.ids().to_pylist() == [*ids.to_pylist(), "x"]


def test_a_table_grows() -> None:
    table = SubscriptionTable()
    for index in range(100):
        add(table, subscription(f"a{index}", f"x < {index}"))
    add(table, *(subscription(f"b{index}", f"x < {index}") for index in range(1000)))
    assert len(table) == 1100
    assert table.columns.capacity >= 1100
    for index in range(100):
        assert got(table, table.number(f"a{index}"))[1] == f"x < {index}"
        assert got(table, table.number(f"b{index}"))[1] == f"x < {index}"


# -- shapes and rows --------------------------------------------------------------------------


def test_subscriptions_by_shape() -> None:
    table = SubscriptionTable()
    texts = ["a < 1", "b = 2", "a < 3", "true", "a < 4 and b = 5", "b = 6"]
    numbers = add(table, *(subscription(text, text) for text in texts))
    found = {
        str(table.shapes[shape]): table.ids_of(members)
        for shape, members in table.by_shape(numbers)
    }
    assert found == {
        "a < ?": ["a < 1", "a < 3"],
        "b = ?": ["b = 2", "b = 6"],
        "true": ["true"],
        "a < ? and b = ?": ["a < 4 and b = 5"],
    }
    assert [table.width(shape) for shape, _ in table.by_shape(numbers)] == [1, 1, 0, 2]
    assert list(table.by_shape(numbers[:0])) == []


def test_equal_shapes_are_one_whoever_made_them() -> None:
    table = SubscriptionTable()
    add(table, subscription("a", "x < 1 and y = 2"))
    add(table, subscription("b", "y = :p and x < 2.5", p="z"))
    assert [str(shape) for shape in table.shapes] == ["x < ? and y = ?"]


def test_subscriptions_of_a_shape_by_the_kinds_of_their_values() -> None:
    table = SubscriptionTable()
    texts = ["x = 1", "x = 'a'", "x = 2.5", "x = 3", "x = 'b'"]
    numbers = add(table, *(subscription(text, text) for text in texts))
    found = {
        kinds: (cells.ravel().tolist(), table.ids_of(chosen))
        for kinds, cells, chosen in table.by_kinds(0, numbers)
    }
    assert found[INTEGER,] == ([1, 3], ["x = 1", "x = 3"])
    assert found[STRING,] == ([0, 1], ["x = 'a'", "x = 'b'"])
    assert found[FLOAT,][1] == ["x = 2.5"]
    rows = table.columns.row[numbers]
    assert table.rows.cells[rows[[0, 3]]].tolist() == [1, 3]


@given(st.lists(strategies.nodes(), min_size=1, max_size=4))
def test_any_filter_comes_back(nodes: list[Node]) -> None:
    table = SubscriptionTable()
    filters = [Filter(node) for node in nodes]
    add(table, *(Subscription(f"s{index}", each) for index, each in enumerate(filters)))
    for number, each in enumerate(filters):
        shape, row = shape_of(table.get(number).filter)
        assert shape == shape_of(each)[0]
        assert [(type(value), value) for value in row] == [
            (type(value), value) for value in shape_of(each)[1]
        ]


# -- parameters -------------------------------------------------------------------------------


def test_an_update_writes_all_places_of_a_parameter() -> None:
    table = SubscriptionTable()
    text = "x > :p and y < 5 and z between :p and :q"
    add(table, subscription("a", text, p=1, q=2), subscription("b", text, p=1, q=2))
    assert str(table.shapes[0]) == "x > ? and y < ? and z <= ? and z >= ?"
    assert table.update(0, {"p": 3.5}) == (0, 3)
    assert got(table, 0)[2] == {"p": 3.5, "q": 2}
    assert got(table, 1)[2] == {"p": 1, "q": 2}
    assert table.update(0, {"q": 7, "p": 8}) == (2, 0, 3)
    assert table.update(0, {}) == ()


def test_an_update_to_another_kind_says_so() -> None:
    table = SubscriptionTable()
    add(table, subscription("a", "x = :p", p=1))
    assert table.update(0, {"p": "text"}) is None
    assert got(table, 0)[2] == {"p": "text"}
    assert table.update(0, {"p": None}) is None
    assert got(table, 0)[2] == {}
    assert table.update(0, {"p": None}) == (0,)


@pytest.mark.parametrize(
    ("text", "there"), [("x = :p and y < :q", ":p, :q"), ("x = 5", "none"), ("true", "none")]
)
def test_a_parameter_that_is_not_there(text: str, there: str) -> None:
    table = SubscriptionTable()
    add(table, subscription("a", text))
    with pytest.raises(UnresolvedError, match=f"'a' has no parameter :z; it has {there}"):
        table.update(0, {"z": 1})


# -- times ------------------------------------------------------------------------------------


def timed(id: str, since: int | None, until: int | None = None) -> Subscription:
    return Subscription(id, Filter(parse_filter("x < 1")), {}, since, None, until)


def living(table: SubscriptionTable, times: Iterable[int]) -> list[str]:
    """At each time, the ids that live, joined."""
    numbers = np.arange(len(table), dtype=np.int32)
    return [
        "".join(table.ids_of(numbers[table.columns.alive_at(numbers, np.full(len(table), time))]))
        for time in times
    ]


def test_who_lives_when() -> None:
    table = SubscriptionTable()
    assert table.columns.all_alive(-5, 5)
    add(table, timed("a", None), timed("b", 10), timed("c", 20, 30), timed("d", None, 25))
    assert living(table, [0, 9, 10, 19, 20, 24, 25, 29, 30]) == [
        *["ad", "ad", "abd", "abd", "abcd", "abcd", "abc", "abc", "ab"]
    ]
    assert living(table, [int(NO_TIME)]) == ["abcd"]
    assert table.columns.since_us[np.array([1, 0], np.int32)].tolist() == [10, NO_TIME]
    assert table.columns.all_alive(20, 24)
    assert not table.columns.all_alive(19, 24)
    assert not table.columns.all_alive(20, 25)


# -- versions of the past ---------------------------------------------------------------------


def some_versions() -> SubscriptionTable:
    """Two of now, and three of the past that have their ids or one of their own."""
    table = SubscriptionTable()
    now = [replace(timed("a", 30), origin=5, subscriber="me"), timed("b", None)]
    add(table, *now)
    past = [timed("a", 5, 20), replace(timed("a", 20, 30), origin=5), timed("c", 1, 2)]
    table.publish(table.stage(past), past=True)
    return table


def test_versions_of_the_past_are_not_known_by_their_ids() -> None:
    table = some_versions()
    assert (len(table), "c" in table, table.number("a")) == (2, False, 0)
    assert table.columns.past().tolist() == [2, 3, 4]
    assert table.ids_of(table.columns.past()) == ["a", "a", "c"]
    assert table.columns.since_us[table.columns.past()].tolist() == [5, 20, 1]
    assert table.columns.until_us[table.columns.past()].tolist() == [20, 30, 2]
    assert table.get(3) == replace(timed("a", 20, 30), origin=5)
    assert not table.columns.all_alive(30, 40)


def test_a_version_of_the_past_goes_and_its_number_is_used_for_one_of_now() -> None:
    table = some_versions()
    table.remove(3)
    assert (len(table), table.number("a"), table.columns.past().tolist()) == (2, 0, [2, 4])
    assert add(table, timed("d", 7)).tolist() == [3]
    assert (len(table), table.number("d"), table.columns.past().tolist()) == (3, 3, [2, 4])
    table.remove(3)
    table.publish(table.stage([timed("a", 1, 3)]), past=True)
    assert (len(table), "d" in table, table.columns.past().tolist()) == (2, False, [2, 3, 4])


def test_origins() -> None:
    table = some_versions()
    assert table.columns.origin_us[np.arange(5, dtype=np.int32)].tolist() == [5, NO_TIME, 5, 5, 1]
    assert [table.get(number).origin for number in range(5)] == [5, None, None, 5, None]


def begin(table: SubscriptionTable, number: int, since: int) -> None:
    table.columns.begin(np.array([number], np.int32), np.array([since], np.int64))


def test_a_subscription_that_begins_later_keeps_its_origin() -> None:
    table = SubscriptionTable()
    add(table, timed("a", 10))
    begin(table, 0, 50)
    assert (table.get(0).since, table.get(0).origin, table.columns.latest_since) == (50, 10, 50)
    assert not table.columns.all_alive(49, 60)
    assert table.columns.all_alive(50, 60)
    begin(table, 0, 40)
    assert (table.get(0).since, table.get(0).origin) == (40, 10)
    assert living(table, [39, 40]) == ["", "a"]


def test_copies_are_versions_of_the_past_with_rows_of_their_own(tmp_path: Path) -> None:
    table = SubscriptionTable()
    text = "x < :k and y = 'a'"
    add(
        table,
        Subscription("a", Filter(parse_filter(text)), {"k": 1.5}, 5, "me", origin=1),
        Subscription("b", Filter(parse_filter("x < :k")), {"k": 2}, 6, "you"),
    )
    copies = table.copy_past(np.array([1, 0], np.int32), np.array([20, 10], np.int64))
    assert copies.tolist() == [2, 3]
    table.columns.begin(np.array([0], np.int32), np.array([10], np.int64))
    parameters: list[dict[str, Value | None]] = [{"k": 9}]
    numbers = np.array([0], np.int32)
    assert table.slots(numbers, parameters) == [(0,)]
    assert table.write(numbers, [(0,)], parameters).tolist() == [True]
    for each in (table, saved_and_loaded(table, tmp_path)):
        assert each.get(0).parameters == {"k": 9}
        assert each.get(3) == replace(
            Subscription("a", Filter(parse_filter(text)), {"k": 1.5}, 5, "me", 10), origin=1
        )
        assert each.get(2) == Subscription(
            "b", Filter(parse_filter("x < :k")), {"k": 2}, 6, "you", 20
        )
        assert (each.columns.past().tolist(), len(each), each.number("a")) == ([2, 3], 2, 0)
        assert not each.columns.all_alive(10, 10)
        assert each.ids().to_pylist() == ["a", "b", "b", "a"]
        assert each.version_columns().subscriber.to_pylist() == ["me", "you", "you", "me"]


def test_a_parameter_in_two_slots_is_written_to_both() -> None:
    table = SubscriptionTable()
    add(table, subscription("a", "x between :k and :k + :m", k=1, m=2), subscription("b"))
    numbers = table.numbers(["a", "b"])
    parameters: list[dict[str, Value | None]] = [{"m": "n", "k": 3}, {}]
    slots = table.slots(numbers, parameters)
    assert [len(each) for each in slots] == [3, 0]
    assert table.write(numbers, slots, parameters).tolist() == [False, True]
    assert got(table, 0)[2] == {"k": 3, "m": "n"}


def test_the_columns_of_versions(tmp_path: Path) -> None:
    table = some_versions()
    for each in (table, saved_and_loaded(table, tmp_path)):
        columns = each.version_columns()
        assert columns.subscription.to_pylist() == ["a", "b", "a", "a", "c"]
        assert columns.subscriber.to_pylist() == ["me", None, None, None, None]
        seconds = [None if time is None else to_us(time) for time in columns.since.to_pylist()]
        assert seconds == [30, None, 5, 20, 1]
        each.remove(2)
        each.publish(each.stage([replace(timed("d", 8, 9), subscriber="you")]), past=True)
        assert each.version_columns().subscriber.to_pylist() == ["me", None, "you", None, None]
        assert each.version_columns().subscription.to_pylist() == ["a", "b", "d", "a", "c"]


def test_a_loaded_table_has_its_past(tmp_path: Path) -> None:
    table = some_versions()
    table.remove(2)
    loaded = saved_and_loaded(table, tmp_path)
    assert (len(loaded), loaded.columns.past().tolist(), "c" in loaded) == (2, [3, 4], False)
    assert [loaded.number(id) for id in "ab"] == [0, 1]
    for number in (0, 1, 3, 4):
        assert loaded.get(number) == table.get(number)
    loaded.remove(4)
    assert loaded.columns.past().tolist() == [3]
    assert sorted(add(loaded, timed("c", 1), timed("d", 1)).tolist()) == [2, 4]
    assert len(loaded) == 4


# -- snapshots --------------------------------------------------------------------------------


def some_subscriptions() -> SubscriptionTable:
    table = SubscriptionTable()
    me = Subscription("c", Filter(parse_filter("x < :p and s = 'it''s'")), {"p": 5}, 7, "me", 9)
    add(table, subscription("a", "x < 1"), subscription("é" * 30, "s like 'a%' or x = 2.5"), me)
    add(table, subscription("d", "when > timestamp '2026-01-02' and ok = true and z = 2"))
    table.remove(0)
    table.update(2, {"p": 6})
    return table


def test_a_loaded_table_is_as_the_saved_one(tmp_path: Path) -> None:
    table = some_subscriptions()
    loaded = saved_and_loaded(table, tmp_path)
    assert len(loaded) == 3
    used = set(table.columns.shape[table.columns.used()].tolist())
    assert dict(loaded.numbered_shapes()) == {each: table.shapes[each] for each in used}
    assert loaded.pool.texts() == table.pool.texts()
    assert loaded.ids().to_pylist() == table.ids().to_pylist()
    assert "a" not in loaded
    for id in ("é" * 30, "c", "d"):
        assert loaded.number(id) == table.number(id)
        assert loaded.get(loaded.number(id)) == table.get(table.number(id))
    columns = loaded.columns
    assert (columns.all_alive(7, 8), columns.all_alive(6, 8), columns.all_alive(7, 9)) == (
        *(True, False, False),
    )


def test_a_loaded_table_can_be_changed(tmp_path: Path) -> None:
    table = some_subscriptions()
    loaded = saved_and_loaded(table, tmp_path)
    for each in (loaded, table):
        new = [subscription(f"n{index}", "x < :p and s = 'b'", p=index) for index in range(100)]
        add(each, *new)
        each.remove(each.number("d"))
        each.update(each.number("c"), {"p": "text"})
        add(each, subscription("a", "y = 3"))
    assert len(loaded) == len(table) == 103
    assert loaded.ids().to_pylist() == table.ids().to_pylist()
    for number in range(len(table)):
        assert loaded.get(number) == table.get(number)


def test_staging_is_the_first_thing_a_loaded_table_does(tmp_path: Path) -> None:
    loaded = saved_and_loaded(some_subscriptions(), tmp_path)
    assert add(loaded, subscription("x"), subscription("y")).tolist() == [0, 4]
    assert [loaded.number(id) for id in ("x", "é" * 30, "c", "d", "y")] == [0, 1, 2, 3, 4]


def test_an_empty_table_in_a_snapshot(tmp_path: Path) -> None:
    loaded = saved_and_loaded(SubscriptionTable(), tmp_path)
    assert len(loaded) == 0
    assert loaded.ids().to_pylist() == []
    assert add(loaded, subscription("a")).tolist() == [0]


def test_many_threads_may_be_the_first_to_ask_for_ids(tmp_path: Path) -> None:
    loaded = saved_and_loaded(some_subscriptions(), tmp_path)
    start = threading.Barrier(4, timeout=20)

    def look_up(id: str) -> Subscription:
        start.wait()
        return loaded.get(loaded.number(id))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(look_up, ["c", "d", "c", "d"]))
    assert [each.id for each in found] == ["c", "d", "c", "d"]
    assert [each.subscriber for each in found] == ["me", None, "me", None]
