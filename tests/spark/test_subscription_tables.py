"""Versions read from tables of subscriptions and from change logs, and errors for bad rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidegate import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.spaces import Space
from tidegate.language.values import to_us
from tidegate.matching.batches import EventBatch
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.records import SubscriptionRecord
from tidegate.spark.subscription_tables import (
    build_matcher,
    check_columns,
    collect_table,
    column_names,
    is_change_log,
    read_changes,
    read_versions,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LOG = pa.table(
    {
        "time": pa.array([NOON, NOON + HOUR, NOON], pa.timestamp("us", "UTC")),
        "op": ["subscribe", "update", "update"],
        "id": ["s", "s", "gone"],
        "filter": ["a < :p", None, None],
        "params": ['{"p": 1}', '{"p": 2}', '{"p": 3}'],
    }
)


def found_at(matcher: AsOfMatcher, time: datetime, **attributes: Any) -> list[str]:
    """The subscriptions that match an event at a time."""
    batch = EventBatch.of_events([Event.of(attributes)])
    found = matcher.match(batch.judged_at(np.array([to_us(time)], np.int64)))
    return [str(found.columns.subscription[number]) for number in found.numbers.tolist()]


# -- columns ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "event_time", "reason"),
    [
        (["id"], None, "the subscriptions have no column 'filter'; they have id"),
        (["filter", "params"], None, "no column 'id'; they have filter, params"),
        (["id", "filter", "Params"], None, "there is no field 'Params'; a subscription has id,"),
        (["op", "id"], "time", "no column 'time'; they have op, id"),
        (["time", "op", "id", "until"], "time", "there is no field 'until'; a change has time"),
        (["time", "op", "id"], None, "a change log needs `event_time`"),
        ([], None, "no column 'id'"),
    ],
)
def test_columns_that_are_wrong(columns: list[str], event_time: str | None, reason: str) -> None:
    with pytest.raises(SubscriptionError, match=reason):
        check_columns(columns, event_time)


def test_columns_that_will_do() -> None:
    check_columns(["filter", "id", "since", "until", "subscriber", "params"], None)
    check_columns(LOG.column_names, "time")
    assert is_change_log(LOG.column_names)
    assert not is_change_log(["id", "filter"])


@pytest.mark.xdist_group("spark")
def test_tables_of_spark_and_of_arrow(spark: SparkSession) -> None:
    table = pa.table({"id": ["s"], "filter": ["a < 1"]})
    frame = spark.createDataFrame(table)
    assert column_names(frame) == column_names(table) == ["id", "filter"]
    assert collect_table(frame).to_pylist() == collect_table(table).to_pylist() == table.to_pylist()
    stream = spark.readStream.format("rate").load()
    with pytest.raises(SubscriptionError, match=r"the subscriptions are a stream; .*deliver"):
        collect_table(stream)


# -- versions ---------------------------------------------------------------------------------


def test_a_table_gives_its_rows() -> None:
    table = pa.table(
        {
            "id": ["a", "b"],
            "filter": ["x < :p", "true"],
            "params": [{"p": 1}, None],
            "until": pa.array([NOON, None], pa.timestamp("us", "UTC")),
        }
    )
    wanted = [
        SubscriptionRecord("a", "x < :p", {"p": 1}, until=NOON),
        SubscriptionRecord("b", "true"),
    ]
    assert read_versions(table, timeless=False, skip_bad=False) == wanted
    timeless = read_versions(table, timeless=True, skip_bad=False)
    assert [each.until for each in timeless] == [None, None]  # without times nothing ends
    assert read_versions(table.slice(0, 0), timeless=False, skip_bad=False) == []


def test_a_log_gives_versions() -> None:
    with pytest.raises(SubscriptionError, match="'gone': there is no subscription 'gone' at 2026"):
        read_versions(LOG, timeless=False, skip_bad=False)
    first, second = read_versions(LOG, timeless=False, skip_bad=True)
    assert (first.params, first.since, first.until) == ({"p": 1}, NOON, NOON + HOUR)
    assert (second.params, second.since, second.until) == ({"p": 2}, NOON + HOUR, None)
    assert first.origin == second.origin == NOON


@pytest.mark.parametrize(("count", "more"), [(3, []), (4, ["and 1 more"]), (9, ["and 6 more"])])
def test_the_first_bad_rows_are_named(count: int, more: list[str]) -> None:
    ids = [f"s{number}" for number in range(count)]
    table = pa.table({"id": ids, "filter": [""] * count})
    with pytest.raises(SubscriptionError) as refused:
        read_versions(table, timeless=False, skip_bad=False)
    shown = [f"subscription 's{number}': filter: is empty" for number in range(3)]
    assert str(refused.value).splitlines() == shown + more
    assert read_versions(table, timeless=False, skip_bad=True) == []


def test_changes_come_as_rows_or_as_json() -> None:
    rows: list[dict[str, Any]] = [
        {"time": NOON.isoformat(), "op": "unsubscribe", "id": "s"},
        {"time": NOON.isoformat(), "op": "begin", "id": "s"},
        {"time": NOON.isoformat(), "op": "update", "id": "s", "filter": "a <"},
    ]
    texts = [*map(json.dumps, rows), "{", "[1]", None]
    bad: list[tuple[Mapping[str, object], str]] = []
    found = read_changes(pa.table({"value": texts}), lambda row, reason: bad.append((row, reason)))
    assert list(found) == [Change(NOON, Op.UNSUBSCRIBE, "s")]
    assert [row["value"] for row, _ in bad] == texts[1:]
    reasons = [reason for _, reason in bad]
    assert reasons[0].startswith("op: there is no 'begin'")
    assert reasons[1].startswith("a value must follow '<'")
    assert reasons[3] == "must be a JSON object, not a list"
    bad.clear()
    plain = read_changes(pa.Table.from_pylist(rows), lambda row, reason: bad.append((row, reason)))
    assert list(plain) == [Change(NOON, Op.UNSUBSCRIBE, "s")]
    assert [row["op"] for row, _ in bad] == ["begin", "update"]


# -- indexes ----------------------------------------------------------------------------------

BAD = [
    SubscriptionRecord("bad", "a <"),
    SubscriptionRecord("bad", "a < 1", {"p": 1}),
    SubscriptionRecord("bad", "a < :p", {"p": [1]}),
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_version_is_an_error_or_left_out(bad: SubscriptionRecord) -> None:
    good = [SubscriptionRecord("s", "a < 2"), SubscriptionRecord("u", "a < 1")]
    versions = [good[0], bad, good[1]]
    with pytest.raises(SubscriptionError, match="subscription 'bad': "):
        build_matcher(versions, skip_bad=False)
    matcher = build_matcher(versions, skip_bad=True)
    assert found_at(matcher, NOON, a=0) == ["s", "u"]


def test_of_two_with_one_id_the_first_stays() -> None:
    versions = [SubscriptionRecord("s", "a = 1"), SubscriptionRecord("s", "a = 2")]
    with pytest.raises(SubscriptionError, match="there already is a subscription 's'"):
        build_matcher(versions, skip_bad=False)
    matcher = build_matcher(versions, skip_bad=True)
    assert [found_at(matcher, NOON, a=value) for value in (1, 2)] == [["s"], []]


@pytest.mark.parametrize("bad", [[], BAD[:1]])
def test_a_subscription_keeps_its_versions_beside_a_bad_one(
    bad: Sequence[SubscriptionRecord],
) -> None:
    past = SubscriptionRecord("s", "a = 1", since=NOON, until=NOON + HOUR)
    now = SubscriptionRecord("s", "a = 2", since=NOON + HOUR)
    matcher = build_matcher([past, now, *bad], skip_bad=True)
    assert found_at(matcher, NOON, a=1) == ["s"]
    assert found_at(matcher, NOON + HOUR, a=2) == ["s"]


# -- in a space -----------------------------------------------------------------------------------


SPACE = Space("trades", {"price": float, "at": datetime})
DAY = datetime(2026, 1, 2, tzinfo=UTC)


def test_a_table_in_a_space() -> None:
    wanted = pa.table({
        "id": ["a", "b", "c"],
        "filter": ["at > :p", "true or prize < 1", "price < :p"],
        "params": ['{"p": "2026-01-02"}', None, '{"p": "low"}'],
    })  # fmt: skip
    (version,) = read_versions(wanted, timeless=True, skip_bad=True, space=SPACE)
    assert (version.id, version.params) == ("a", {"p": DAY})
    with pytest.raises(SubscriptionError) as raised:
        read_versions(wanted, timeless=True, skip_bad=False, space=SPACE)
    told = str(raised.value)
    assert told.startswith("subscription 'b': space 'trades' has no attribute 'prize'")
    assert "\nsubscription 'c': price is a float in space 'trades'" in told


def test_changes_in_a_space() -> None:
    rows: list[dict[str, Any]] = [
        {"op": "subscribe", "filter": "at > :p", "params": {"p": "2026-01-02"}},
        {"op": "update", "filter": "price < 1 and not prize is not null"},
        {"op": "update", "filter": "price < :p", "params": {"p": None}},
        {"op": "update", "params": {"p": "2026-01-02"}},
    ]
    bad: list[str] = []
    table = pa.table({
        "value": [json.dumps({"time": "2026-01-01", "id": "a", **row}) for row in rows]
    })  # fmt: skip
    changes = list(read_changes(table, lambda _row, reason: bad.append(reason), SPACE))
    assert [each.params for each in changes] == [{"p": DAY}, {"p": None}, {"p": "2026-01-02"}]
    (reason,) = bad
    assert reason.startswith("subscription 'a': space 'trades' has no attribute 'prize'")


@pytest.mark.parametrize("kind", [pa.int64(), pa.int8(), pa.uint32()])
def test_integers_as_ids_are_their_digits(kind: pa.DataType) -> None:
    ids = pa.array([7, 10], kind)
    table = pa.table({"id": ids, "filter": ["a < 1", "a < 2"]})
    assert [each.id for each in read_versions(table, timeless=True, skip_bad=False)] == ["7", "10"]
    log = pa.table({"time": ["2026-01-01T00:00:00Z"] * 2, "op": ["subscribe"] * 2, "id": ids,
                    "filter": ["a < 1", "a < 2"]})  # fmt: skip
    changes = read_changes(log, lambda row, reason: pytest.fail(f"{row}: {reason}"))
    assert [each.id for each in changes] == ["7", "10"]
    assert [each.id for each in read_versions(log, timeless=False, skip_bad=False)] == ["7", "10"]


def test_other_numbers_are_no_ids() -> None:
    table = pa.table({"id": [1.5], "filter": ["a < 1"]})
    with pytest.raises(SubscriptionError, match="id: must be a string"):
        read_versions(table, timeless=True, skip_bad=False)
