"""Rows of a change log, checked field by field."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import SubscriptionError
from tidegate.matching.history.changes import FIELDS, Change, Op

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
AT_NOON = {"time": "2026-01-02T12:00:00Z", "id": "s"}


def test_the_three_kinds_of_changes() -> None:
    params = {"k": 1}
    assert Change.of(
        {**AT_NOON, "op": "subscribe", "filter": "x = :k", "params": params, "subscriber": "me"}
    ) == Change(NOON, Op.SUBSCRIBE, "s", "x = :k", params, "me")
    assert Change.of({**AT_NOON, "op": "update", "params": params}) == Change(
        NOON, Op.UPDATE, "s", None, params
    )
    assert Change.of({**AT_NOON, "op": "update", "filter": "y = 1"}) == Change(
        NOON, Op.UPDATE, "s", "y = 1"
    )
    assert Change.of({**AT_NOON, "op": "unsubscribe"}) == Change(NOON, Op.UNSUBSCRIBE, "s")


@pytest.mark.parametrize(
    "time",
    [
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(timezone(timedelta(hours=5))),
        "2026-01-02T13:00:00+01:00",
    ],
)
def test_times_are_moments(time: object) -> None:
    made = Change.of({"time": time, "op": "unsubscribe", "id": "s"})
    assert (made.time, made.time.tzinfo) == (NOON, UTC)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_times_at_the_ends_of_the_calendar(time: str) -> None:
    made = Change.of({"time": time, "op": "unsubscribe", "id": "s"})
    assert made.time == datetime.fromisoformat(time)


@pytest.mark.parametrize("empty", [None, {}, []])
@pytest.mark.parametrize("op", ["update", "unsubscribe"])
def test_fields_that_are_empty_have_a_place_everywhere(op: str, empty: object) -> None:
    """A table has all columns in all rows."""
    row: dict[str, object] = {**AT_NOON, "op": op, "subscriber": None, "evolve": empty}
    filter = "x = 1" if op == "update" else None
    assert Change.of({**row, "filter": filter, "params": empty}).op is Op(op)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (None, None),
        ({}, {}),
        ([], {}),
        ([("k", 1), ("l", None)], {"k": 1, "l": None}),
        ('{"k": null}', {"k": None}),
        ("{}", {}),
    ],
)
def test_params_as_objects_maps_and_json(params: object, expected: dict[str, object]) -> None:
    row = {**AT_NOON, "op": "update", "filter": "x = :k", "params": params}
    assert Change.of(row).params == expected


def test_an_update_may_set_nothing_if_it_says_so() -> None:
    assert Change.of({**AT_NOON, "op": "update", "params": {}}).params == {}


SUBSCRIBE: dict[str, object] = {**AT_NOON, "op": "subscribe", "filter": "true"}
UPDATE: dict[str, object] = {**AT_NOON, "op": "update", "params": {"k": 1}}
UNSUBSCRIBE: dict[str, object] = {**AT_NOON, "op": "unsubscribe"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "time: is missing"),
        ({**SUBSCRIBE, "time": None}, "time: is missing"),
        ({**SUBSCRIBE, "time": 5}, "time: must be a timestamp, as 2026-01-02T03:04:05Z"),
        ({**SUBSCRIBE, "time": "today"}, "time: 'today' is not a timestamp"),
        ({**SUBSCRIBE, "op": None}, "op: is missing"),
        ({**SUBSCRIBE, "op": 1}, "op: must be a string, not the number 1"),
        ({**SUBSCRIBE, "op": "Subscribe"}, "op: there is no 'Subscribe'; there are subscribe"),
        ({**SUBSCRIBE, "id": None}, "id: is missing"),
        ({**SUBSCRIBE, "id": ""}, "id: is empty"),
        ({**SUBSCRIBE, "id": 7}, "id: must be a string, not the number 7"),
        ({**SUBSCRIBE, "id": "\ud800"}, "id: "),
        ({**SUBSCRIBE, "filter": None}, "filter: is missing"),
        ({**SUBSCRIBE, "subscriber": True}, "subscriber: must be a string, not a boolean"),
        ({**SUBSCRIBE, "params": 3}, "params: must be an object of names and values"),
        ({**SUBSCRIBE, "params": "{"}, "params: not valid JSON"),
        ({**SUBSCRIBE, "params": [("k", 1), ("k", 2)]}, "params: a name occurs twice"),
        ({**SUBSCRIBE, "since": "2026"}, "there is no field 'since'; a change has time, op, id"),
        ({**UPDATE, "params": None}, "an update needs params, a filter, or both"),
        ({**UPDATE, "subscriber": "me"}, "subscriber: has no place in a row of op update"),
        ({**UPDATE, "evolve": "lazy"}, "evolve: has no place in a row of op update"),
        ({**UNSUBSCRIBE, "filter": "true"}, "filter: has no place in a row of op unsubscribe"),
        ({**UNSUBSCRIBE, "params": {"k": 1}}, "params: has no place in a row of op unsubscribe"),
    ],
)
def test_a_bad_row_is_refused_with_the_name_of_the_field(
    row: dict[str, object], reason: str
) -> None:
    with pytest.raises(SubscriptionError) as raised:
        Change.of(row)
    assert str(raised.value).startswith(reason)


anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]),
    st.lists(st.tuples(st.text(max_size=1), st.integers()), max_size=2),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=2),
    st.sampled_from([NOON, "2026-01-02", "{}", *(op.value for op in Op)]),
)  # fmt: skip


PARAMS = st.sampled_from([{}, {"k": 1}, [("k", "a")], '{"k": null}'])
GOOD: dict[Op, dict[str, st.SearchStrategy[object]]] = {
    Op.SUBSCRIBE: {
        "params": PARAMS,
        "subscriber": st.sampled_from([None, "me"]),
        "evolve": st.sampled_from([None, "lazy", "periodic 1 s"]),
    },
    Op.UPDATE: {"filter": st.sampled_from([None, "x = 1"]), "params": PARAMS},
    Op.UNSUBSCRIBE: dict.fromkeys(["params", "evolve"], st.sampled_from([None, {}])),
}


@st.composite
def good_rows(draw: st.DrawFn) -> dict[str, object]:
    base = draw(st.sampled_from([SUBSCRIBE, UPDATE, UNSUBSCRIBE]))
    time = draw(st.datetimes(timezones=st.just(UTC)))
    id = draw(st.text(st.characters(codec="utf-8"), min_size=1, max_size=5))
    more = draw(st.fixed_dictionaries({}, optional=GOOD[Op(base["op"])]))
    return {**base, "time": draw(st.sampled_from([time, time.isoformat()])), "id": id, **more}


@given(good_rows())
def test_a_good_row_is_a_change(row: dict[str, object]) -> None:
    made = Change.of(row)
    assert (made.id, made.op.value, made.filter) == (row["id"], row["op"], row.get("filter"))
    assert row["time"] in (made.time, made.time.isoformat())
    assert made.op is Op.UNSUBSCRIBE or made.filter is not None or made.params is not None


@given(good_rows(), st.sampled_from([*FIELDS, "other"]), anything)
def test_a_row_with_anything_in_a_field_is_a_change_or_refused(
    row: dict[str, object], name: str, value: object
) -> None:
    """Whatever is wrong, there is no other error than SubscriptionError."""
    with suppress(SubscriptionError):
        Change.of({**row, name: value})
