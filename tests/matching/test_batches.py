"""Arrow tables and events as batches: which values their columns have, and which are refused."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import NAMES, values
from tidegate.errors import EventError
from tidegate.language.events import Event
from tidegate.language.spaces import Space
from tidegate.language.values import Value, to_us
from tidegate.language.variables import VariableState
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.batches import EventBatch, Matches, misfits, times_us_of
from tidegate.matching.subscription import Moment

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def events_of(**columns: Any) -> list[dict[str, Value]]:
    """The events of a table with these columns, as mappings."""
    table = pa.table(columns)
    found = EventBatch.of(table)
    assert found.length == table.num_rows
    return [dict(found.event(index).attributes) for index in range(found.length)]


def values_of(column: Any) -> list[Value | None]:
    """What the events have that one column makes."""
    return [event.get("x") for event in events_of(x=column)]


# -- columns of values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (pa.bool_(), [True, None, False], [True, None, False]),
        (pa.int8(), [-128, None, 127], [-128, None, 127]),
        (pa.int64(), [-(2**63), None, 2**63 - 1], [-(2**63), None, 2**63 - 1]),
        (pa.uint8(), [0, None, 255], [0, None, 255]),
        (pa.uint64(), [0, None, 2**63 - 1], [0, None, 2**63 - 1]),
        (pa.float32(), [0.5, None, math.nan, math.inf], [0.5, None, None, math.inf]),
        (pa.float64(), [-0.5, None, math.nan, -math.inf], [-0.5, None, None, -math.inf]),
        (pa.string(), ["", None, "é\U0010ffff"], ["", None, "é\U0010ffff"]),
        (pa.large_string(), ["", None, "é\U0010ffff"], ["", None, "é\U0010ffff"]),
        (pa.string_view(), ["", None, "é\U0010ffff"], ["", None, "é\U0010ffff"]),
        (pa.null(), [None, None], [None, None]),
    ],
)
def test_values_of_each_type(kind: pa.DataType, given: list[Any], expected: list[Any]) -> None:
    found = values_of(pa.array(given, kind))
    assert found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]


def test_half_floats() -> None:
    assert values_of(pa.array(np.array([1.5, math.nan], np.float16))) == [1.5, None]


def test_a_value_is_of_the_kind_of_its_column() -> None:
    columns: list[Any] = [pa.array([1]), pa.array([1.0]), pa.array([True]), pa.array(["1"])]
    assert [type(values_of(column)[0]) for column in columns] == [int, float, bool, str]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_a_date_is_its_midnight_in_utc(kind: pa.DataType) -> None:
    given = [date(1, 1, 1), None, date(9999, 12, 31)]
    expected = [
        None if each is None else datetime(each.year, each.month, each.day, tzinfo=UTC)
        for each in given
    ]
    assert values_of(pa.array(given, kind)) == expected


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (pa.decimal128(5, 2), ["0.10", None, "-999.99"], [0.1, None, -999.99]),
        (pa.decimal128(38, 2), ["0.3", "1234567.89"], [0.3, 1234567.89]),
        (pa.decimal128(38, 0), ["12345678901234567890123"], [1.2345678901234568e22]),
        (pa.decimal128(18, 0), ["999999999999999999", "-9007199254740993"],
         [999_999_999_999_999_999, -9_007_199_254_740_993]),
        (pa.decimal256(76, 3), ["0.123"], [0.123]),
    ],
)  # fmt: skip
def test_a_decimal_is_an_integer_or_the_nearest_float(
    kind: pa.DataType, given: list[str | None], expected: list[Any]
) -> None:
    decimals = [None if each is None else Decimal(each) for each in given]
    found = values_of(pa.array(decimals, kind))
    assert found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]


def test_only_the_attributes_that_are_asked_for_must_hold_values() -> None:
    table = pa.table({"a": [1], "b": [[1]], "c": [{"x": [1], "y": 2}]})
    assert [name for name, _ in EventBatch.of(table, {"a", "c.y", "d"}).columns] == ["a", "c.y"]
    assert EventBatch.of(table, set()).length == 1
    with pytest.raises(EventError, match=r"column 'c\.x': a list"):
        EventBatch.of(table, {"c.x"})


def test_an_integer_that_does_not_fit_is_refused() -> None:
    with pytest.raises(EventError, match="column 'x': a value does not fit in 64 bits"):
        values_of(pa.array([1, 2**63], pa.uint64()))


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2)]
)
def test_a_list_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(EventError, match="column 'x': a list is not a value"):
        values_of(pa.array([[1, 2]], kind))


def test_a_list_inside_is_refused_by_its_full_name() -> None:
    with pytest.raises(EventError, match=r"column 'x\.a\.b': a list is not a value"):
        values_of(pa.array([{"a": {"b": [1]}}]))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"a"]),
        pa.array([1], pa.time64("us")),
        pa.array([1], pa.duration("s")),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda column: str(column.type),
)
def test_what_is_no_value_is_refused(column: Any) -> None:
    with pytest.raises(EventError, match=r"column 'x': .* is not a value type; take booleans"):
        values_of(column)


# -- dictionaries ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "b", "a"]),
        pa.array(["a", None, "b", "a"], pa.large_string()),
        pa.array([1, None, 2, 1]),
        pa.array([1, None, 2, 1], pa.uint8()),
        pa.array([0.5, None, 2.5, 0.5]),
        pa.array([True, None, False, True]),
        pa.array([NOON, None, NOON + timedelta(seconds=1), NOON], pa.timestamp("us", "UTC")),
    ],
    ids=lambda column: str(column.type),
)
def test_a_dictionary_has_the_values_that_it_encodes(column: Any) -> None:
    assert values_of(column.dictionary_encode()) == values_of(column)


def test_a_dictionary_with_a_null_in_it() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array(["a", None]))
    assert values_of(column) == ["a", None, None, "a"]


def test_chunks_with_dictionaries_of_their_own() -> None:
    chunks = [pa.array(texts).dictionary_encode() for texts in (["a", "b"], ["b"], ["a"])]
    assert values_of(pa.chunked_array(chunks)) == ["a", "b", "b", "a"]


def test_a_list_in_a_dictionary_is_refused() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([[1]]))
    with pytest.raises(EventError, match="column 'x': a list is not a value"):
        values_of(column)


# -- timestamps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Paris", "+05:30"])
def test_timestamps_of_each_unit_and_zone(unit: Any, zone: str | None) -> None:
    """Without a zone they are UTC; a zone says how to show them, not what they are."""
    moment = NOON if zone else NOON.replace(tzinfo=None)
    column = pa.array([moment, None], pa.timestamp(unit, zone))
    assert values_of(column) == [NOON, None]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("moment", [-1, 0, 1, 1_767_355_200])
def test_timestamps_are_held_in_microseconds(unit: Any, moment: int) -> None:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    column = pa.array([moment * per_second], pa.timestamp(unit))
    (_, held), *_ = EventBatch.of(pa.table({"x": column})).columns
    assert held.type == pa.timestamp("us", "UTC")
    assert held.cast(pa.int64()).to_pylist() == [moment * 10**6]


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_timestamps_in_a_dictionary_are_held_in_microseconds(unit: Any) -> None:
    column = pa.array([NOON], pa.timestamp(unit, "UTC")).dictionary_encode()
    (_, held), *_ = EventBatch.of(pa.table({"x": column})).columns
    assert held.type == pa.timestamp("us", "UTC")


def test_nanoseconds_are_cut_off() -> None:
    column = pa.array([1999], pa.timestamp("ns"))
    assert values_of(column) == [datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)]


def test_nanoseconds_before_1970_are_cut_off_as_in_an_event() -> None:
    moment = np.datetime64(-1, "ns")
    expected = Event.of({"x": moment}).attributes["x"]
    assert values_of(pa.array([moment])) == [expected]


@pytest.mark.parametrize(
    ("unit", "moment"),
    [("s", 2**62), ("ms", 2**62), ("us", 2**62), ("us", -(2**62)), ("s", 253_402_300_800)],
)
def test_a_timestamp_beyond_the_year_9999_is_refused(unit: Any, moment: int) -> None:
    with pytest.raises(EventError, match="column 'x': a timestamp must lie in the years 1 to 9999"):
        values_of(pa.array([moment], pa.timestamp(unit)))


def test_the_first_and_the_last_timestamp() -> None:
    ends = [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
    assert values_of(pa.array(ends, pa.timestamp("us", "UTC"))) == ends


# -- structs --------------------------------------------------------------------------------------


def test_structs_flatten_to_dotted_names() -> None:
    quote = pa.array([{"price": 9.5, "at": {"venue": "X"}}, None, {"price": None, "at": None}])
    assert events_of(quote=quote, n=[1, 2, 3]) == [
        {"quote.price": 9.5, "quote.at.venue": "X", "n": 1},
        {"n": 2},
        {"n": 3},
    ]


def test_a_null_struct_hides_what_is_below_it() -> None:
    fields = pa.array([1, 2])
    column = pa.StructArray.from_arrays([fields], ["a"], mask=pa.array([False, True]))
    assert events_of(x=column) == [{"x.a": 1}, {}]


def test_a_struct_that_is_sliced() -> None:
    column = pa.array([{"a": 1}, {"a": 2}, None, {"a": 4}]).slice(1, 2)
    assert events_of(x=column) == [{"x.a": 2}, {}]


def test_a_struct_without_fields_is_no_attribute() -> None:
    assert events_of(x=pa.array([{}, {}])) == [{}, {}]


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["x", "x"], [pa.array([1]), pa.array([2])]),
        (["a.b", "a"], [pa.array([1]), pa.array([{"b": 2}])]),
    ],
)
def test_two_columns_of_one_name_are_refused(names: list[str], columns: list[Any]) -> None:
    with pytest.raises(EventError, match="the table has two columns"):
        EventBatch.of(pa.Table.from_arrays(columns, names))


# -- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "shown"), [("", "''"), ("a", "a.''")])
def test_a_name_is_not_empty(name: str, shown: str) -> None:
    column = pa.array([1]) if not name else pa.array([{"": 1}])
    with pytest.raises(EventError, match=rf"^{shown}: the name of an attribute is a string, not"):
        EventBatch.of(pa.table({name: column}))


def strings(content: bytes) -> Any:
    """An array of one string with these bytes, which are not checked."""
    ends = pa.py_buffer(np.array([0, len(content)], np.int32).tobytes())
    return pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(content)])


def test_strings_that_are_no_unicode_are_refused() -> None:
    bad = strings(b"\xff\xfe")
    for column in (bad, pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), bad)):
        with pytest.raises(EventError, match=r"column 'x': .*Invalid UTF8"):
            events_of(x=column)


def test_an_index_outside_of_its_dictionary_is_refused() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([5]), pa.array(["a"]), safe=False)
    with pytest.raises(EventError, match="column 'x': Dictionary indices invalid"):
        events_of(x=column)


@pytest.mark.parametrize("time_ns", [-(2**63), 2**63 - 1])
def test_nanoseconds_at_both_ends(time_ns: int) -> None:
    expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_ns // 1000)
    assert values_of(pa.array([time_ns, None], pa.timestamp("ns"))) == [expected, None]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_zone_that_nobody_knows_does_not_matter(unit: Any) -> None:
    """Timestamps with a zone are in UTC; the zone only says how to show them."""
    assert values_of(pa.array([0], pa.timestamp(unit, "Mars/Base"))) == [
        datetime(1970, 1, 1, tzinfo=UTC)
    ]


def test_a_record_batch_is_taken_as_well() -> None:
    batch = pa.RecordBatch.from_pylist([{"x": 1, "y": "a"}, {"x": None, "y": "b"}])
    found = EventBatch.of(batch)
    assert [found.event(index).attributes for index in range(2)] == [{"x": 1, "y": "a"}, {"y": "b"}]


def test_chunks_are_put_together() -> None:
    column = pa.chunked_array([[1, 2], [], [None, 4]], pa.int32())
    assert values_of(column) == [1, 2, None, 4]


def test_a_slice_of_a_table() -> None:
    table = pa.table({"x": ["a", "b", "c", "d"], "y": [{"z": n} for n in range(4)]}).slice(1, 2)
    found = EventBatch.of(table)
    assert [found.event(index).attributes for index in range(2)] == [
        {"x": "b", "y.z": 1},
        {"x": "c", "y.z": 2},
    ]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.struct([("a", pa.int64())])])
def test_a_table_without_rows(kind: pa.DataType) -> None:
    assert EventBatch.of(pa.schema([("x", kind)]).empty_table()).length == 0


def test_a_table_without_columns() -> None:
    assert EventBatch.of(pa.table({})).length == 0


# -- events one by one ----------------------------------------------------------------------------


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), values), max_size=6))
def test_events_come_back_as_they_were(attributes: list[dict[str, Value]]) -> None:
    batch = EventBatch.of_events([Event(each) for each in attributes])
    assert batch.length == len(attributes)
    found = [batch.event(index).attributes for index in range(batch.length)]
    assert found == attributes
    assert [{n: type(v) for n, v in each.items()} for each in found] == [
        {name: type(value) for name, value in each.items()} for each in attributes
    ]


def test_an_attribute_has_a_column_for_each_type_that_it_takes() -> None:
    batch = EventBatch.of_events([Event({"x": value}) for value in (1, "a", 2, 1.5)])
    assert [(name, column.to_pylist()) for name, column in batch.columns] == [
        ("x", [1, None, 2, None]),
        ("x", [None, "a", None, None]),
        ("x", [None, None, None, 1.5]),
    ]
    assert batch.column("x") is None
    assert batch.column("y") is None


def test_a_column_by_its_name() -> None:
    batch = EventBatch.of(pa.table({"x": [1], "y": ["a"]}))
    found = batch.column("y")
    assert found is not None
    assert found.to_pylist() == ["a"]


# -- moments --------------------------------------------------------------------------------------


def test_by_default_events_have_no_time() -> None:
    batch = EventBatch.of(pa.table({"x": [1, 2]}))
    assert batch.moment(1) == Moment()
    assert batch.at(None).moment(1) == Moment()


def test_all_events_are_judged_at_one_time() -> None:
    batch = EventBatch.of(pa.table({"x": [1, 2]})).at(NOON)
    assert [batch.moment(index).time_us for index in range(2)] == [to_us(NOON)] * 2


def test_each_event_is_judged_at_its_time() -> None:
    batch = EventBatch.of(pa.table({"x": [1, 2]})).judged_at(np.array([5, 7]))
    assert [batch.moment(index).time_us for index in range(2)] == [5, 7]


def test_events_know_the_variables() -> None:
    batch = EventBatch.of(pa.table({"x": [1]})).with_variables({"load": 0.5}).at(NOON)
    assert batch.moment(0) == Moment(to_us(NOON), {"load": 0.5, "time_of_day": 43_200.0})


def test_an_event_may_have_no_time_among_others_that_have_one() -> None:
    batch = EventBatch.of(pa.table({"x": [1, 2]})).judged_at(np.array([NO_TIME, 7]))
    assert [batch.moment(index).time_us for index in range(2)] == [None, 7]
    assert "time_of_day" not in batch.moment(0).variables


def test_a_chunk_of_a_batch() -> None:
    table = pa.table({"x": [1, 2, 3], "y": [None, "a", "b"]})
    batch = EventBatch.of(table).judged_at(np.array([5, 6, 7])).with_variables({"load": 0.5})
    some = batch.chunk(1, 3)
    assert [some.event(index).attributes for index in range(some.length)] == [
        {"x": 2, "y": "a"},
        {"x": 3, "y": "b"},
    ]
    assert [some.time(index) for index in range(2)] == [6, 7]
    assert some.variables is batch.variables
    assert EventBatch.of(table).chunk(0, 1).times_us is None


def test_the_times_of_a_column() -> None:
    column = pa.array([NOON, NOON + timedelta(microseconds=1)], pa.timestamp("us", "UTC"))
    assert times_us_of(column, "time").tolist() == [to_us(NOON), to_us(NOON) + 1]


def test_a_column_of_times_must_have_times() -> None:
    with pytest.raises(EventError, match=r"column 'time' .* must be of timestamps"):
        times_us_of(pa.array([1]), "time")
    with pytest.raises(EventError, match=r"column 'time' .* event 1 has none"):
        times_us_of(pa.array([NOON, None], pa.timestamp("us", "UTC")), "time")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, 0]), [True, False, True]),
        (pa.array([0.5, math.nan, None]), [True, False, False]),
        (pa.array(["", None, "a"]).dictionary_encode(), [True, False, True]),
        (pa.nulls(3), [False, False, False]),
    ],
)
def test_which_events_have_an_attribute(column: Any, expected: list[bool]) -> None:
    batch = EventBatch.of(pa.table({"x": column}))
    assert batch.present("x").tolist() == expected
    assert batch.present("y").tolist() == [False, False, False]


def test_an_attribute_of_several_types_is_present_in_any() -> None:
    batch = EventBatch.of_events([Event.of({"x": x}) for x in (1, "a", None, 1.5)])
    assert batch.present("x").tolist() == [True, True, False, True]


def test_a_provider_is_called_once_for_all_events_of_a_time() -> None:
    calls: list[int | None] = []

    def load(time_us: int | None) -> Value:
        calls.append(time_us)
        return len(calls)

    state = VariableState({}, {"load": load})
    batch = EventBatch.of(pa.table({"x": [1, 2, 3]})).judged_at(np.array([5, 5, 7]))
    batch = batch.with_variables(state)
    assert [batch.moment(index).variables["load"] for index in range(3)] == [1, 1, 2]
    assert calls == [5, 7]
    assert batch.with_variables(state).moment(0).variables["load"] == 3


# -- matches --------------------------------------------------------------------------------------


def test_the_matches_of_chunks_are_put_together() -> None:
    """Chunks may have dictionaries of their own."""
    chunks = [
        Matches(np.array([0, 1]), pa.array(["a", "b"]).dictionary_encode()),
        Matches(np.array([0]), pa.array(["b"]).dictionary_encode()).shifted(2),
        Matches(np.array([1]), pa.array(["c"]).dictionary_encode()).shifted(2),
    ]
    found = Matches.concatenated(chunks)
    assert found.events.tolist() == [0, 1, 2, 3]
    assert found.subscriptions.to_pylist() == ["a", "b", "b", "c"]
    assert Matches.concatenated(chunks[:1]) is chunks[0]


def test_the_matches_of_no_chunks() -> None:
    assert Matches.concatenated([]).to_table().to_pylist() == []


def test_matches_as_a_table() -> None:
    matches = Matches(np.array([0, 2]), pa.array(["a", "b"]).dictionary_encode())
    assert matches.to_table().to_pylist() == [
        {"event": 0, "subscription": "a"},
        {"event": 2, "subscription": "b"},
    ]


# -- in a space -----------------------------------------------------------------------------------


def test_events_that_do_not_fit_a_space_are_found_in_columns() -> None:
    space = Space("s", {"n": int, "x": float, "s": str})
    table = pa.table(
        {
            "n": [1.0, 1.5, None, math.nan, math.inf],
            "x": pa.array([1, 2, 3, None, 5], pa.int8()),
            "s": pa.array(["a", None, "b", "a", "b"]).dictionary_encode(),
            "y": [None, None, True, None, None],
        }
    )
    assert list(misfits(EventBatch.of(table), space)) == [
        (1, "attribute 'n' is an integer in space 's', not the float 1.5"),
        (4, "attribute 'n' is an integer in space 's', not the float inf"),
        (2, "space 's' has no attribute 'y'; it has n, x, s"),
    ]
    assert not list(misfits(EventBatch.of(table.select(["x", "s"])), space))


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), values), max_size=5))
def test_a_batch_fits_a_space_if_each_of_its_events_does(events: list[dict[str, Value]]) -> None:
    space = Space("s", dict(zip(NAMES, (int, float, str), strict=True)))
    wrong = {
        (row, reason)
        for row, event in enumerate(events)
        for name, value in event.items()
        if (reason := space.misfit(name, value)) is not None
    }
    batch = EventBatch.of_events([Event(each) for each in events])
    assert set(misfits(batch, space)) == wrong
