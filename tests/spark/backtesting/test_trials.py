"""The versions of a trial on both sides; only subscriptions that differ are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidegate import FilterError, SubscriptionError
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.what_if import ALWAYS
from tidegate.matching.records import SubscriptionRecord
from tidegate.spark.backtesting.trials import (
    DifferingVersions,
    NewSubscription,
    Trial,
    TrialReader,
    Versions,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LIVE = pa.table(
    {
        "id": ["low", "all"],
        "filter": ["x < :p", "true"],
        "params": ['{"p": 2}', None],
        "subscriber": ["ann", None],
    }
)
TIMED = TrialReader("time", NOON, skip_bad=False)
TIMELESS = TrialReader(None, None, skip_bad=False)
NEW = NewSubscription()


def low(**more: object) -> dict[str, object]:
    return {"op": "update", "id": "low", **more}


def texts(differing: DifferingVersions) -> tuple[list[str], list[str]]:
    live, changed = (
        [f"{each.id}: {each.filter} {dict(each.params)}" for each in some]
        for some in (differing.live, differing.changed)
    )
    return live, changed


# -- filters ----------------------------------------------------------------------------------


def test_a_filter_is_one_subscription_more() -> None:
    new = NewSubscription("mine", {"p": 3}, "eve")
    differing = TIMED.differing_versions("x > :p + t", new, LIVE)
    assert differing.live == []
    [made] = differing.changed
    assert (made.id, made.filter, made.params, made.subscriber) == (
        "mine", "x > :p + t", {"p": 3}, "eve",
    )  # fmt: skip
    assert (made.since, made.origin, made.until) == (NOON, NOON, None)  # from the first event on
    assert differing.subscriptions == 1


def test_a_filter_may_begin_later() -> None:
    differing = TIMED.differing_versions("x > t", NewSubscription(since=NOON + HOUR), None)
    assert [(each.since, each.origin) for each in differing.changed] == [(NOON + HOUR,) * 2]
    with pytest.raises(
        SubscriptionError, match="a trial that holds from some time on needs `event_time`"
    ):
        TIMELESS.differing_versions("x > t", NewSubscription(since=NOON), None)


def test_a_bad_filter_shows_the_place() -> None:
    with pytest.raises(FilterError, match=r"a value must follow '<'.*\n  x <\n     \^"):
        TIMED.differing_versions("x <", NEW, None)
    with pytest.raises(SubscriptionError, match="'new': the filter has no parameter :q; it has :p"):
        TIMED.differing_versions("x < :p", NewSubscription(params={"q": 1}), None)
    with pytest.raises(SubscriptionError, match="there already is a subscription 'low'"):
        TIMED.differing_versions("x < 1", NewSubscription("low"), LIVE)
    with pytest.raises(SubscriptionError, match="id: is empty"):
        TIMED.differing_versions("x < 1", NewSubscription(""), LIVE)


# -- changes ----------------------------------------------------------------------------------


def test_a_change_of_one_leaves_the_others_out() -> None:
    differing = TIMED.differing_versions(low(params={"p": 5}), NEW, LIVE)
    assert texts(differing) == (["low: x < :p {'p': 2}"], ["low: x < :p {'p': 5}"])
    same = TIMED.differing_versions(low(params={"p": 2}), NEW, LIVE)
    assert (same.live, same.changed, same.subscriptions) == ([], [], 0)


def test_one_and_true_are_not_the_same() -> None:
    live = pa.table({"id": ["s"], "filter": ["x = :p"], "params": ['{"p": 1}']})
    assert TIMED.differing_versions(low(id="s", params={"p": True}), NEW, live).subscriptions == 1


def test_changes_are_rows_or_changes_one_or_some() -> None:
    row = low(params={"p": 5}, time=None, filter=None)
    change = Change(ALWAYS, Op.UPDATE, "low", params={"p": 5})
    wanted = TIMED.differing_versions(row, NEW, LIVE)
    trials: list[Trial] = [change, [change], (row,)]
    for trial in trials:
        assert TIMED.differing_versions(trial, NEW, LIVE) == wanted
    both = TIMED.differing_versions([row, {"op": "unsubscribe", "id": "all"}], NEW, LIVE)
    assert both.subscriptions == 2
    assert texts(both)[1] == ["low: x < :p {'p': 5}"]


def test_a_change_from_a_time_on() -> None:
    differing = TIMED.differing_versions(low(params={"p": 5}, time=NOON + HOUR), NEW, LIVE)
    assert [(each.params["p"], each.until) for each in differing.changed] == [
        (2, NOON + HOUR),
        (5, None),
    ]
    with pytest.raises(SubscriptionError, match="needs `event_time`"):
        TIMELESS.differing_versions(low(params={"p": 5}, time=NOON + HOUR), NEW, LIVE)


@pytest.mark.parametrize(
    ("trial", "live", "reason"),
    [
        ([], LIVE, "there is no change to try out"),
        (low(), LIVE, "an update needs params, a filter, or both"),
        ({"op": "update", "params": {}}, LIVE, "id: is missing"),
        (low(params={"p": 1}, unit="s"), LIVE, "there is no field 'unit'"),
        (low(params={"p": 1}), None, "a change of subscription 'low' needs the live table"),
        (low(id="z", params={"p": 1}), LIVE, "there is no subscription 'z'"),
        (low(params={"q": 1}), LIVE, "'low': the filter has no parameter :q; it has :p"),
        (low(filter="x <"), LIVE, "subscription 'low': a value must follow"),
    ],
)
def test_changes_that_cannot_be_made(trial: Trial, live: pa.Table | None, reason: str) -> None:
    with pytest.raises(SubscriptionError, match=reason):
        TIMED.differing_versions(trial, NEW, live)


def test_only_the_rows_that_matter_are_read() -> None:
    live = pa.table({"id": ["low", "bad"], "filter": ["x < 1", ""]})
    dictionary: Any = live.column("id").dictionary_encode()
    encoded = live.set_column(0, "id", dictionary)
    for table in (live, encoded):
        differing = TIMED.differing_versions(low(filter="x < 2"), NEW, table)
        assert texts(differing) == (["low: x < 1 {}"], ["low: x < 2 {}"])
    with pytest.raises(SubscriptionError, match="subscription 'bad': filter: is empty"):
        TIMED.differing_versions(LIVE, NEW, live)
    skipping = TrialReader("time", NOON, skip_bad=True)
    assert texts(skipping.differing_versions(LIVE, NEW, live))[0] == ["low: x < 1 {}"]


def test_ids_that_are_no_strings_are_named() -> None:
    with pytest.raises(SubscriptionError, match=r"id: must be a string, not the number 3\.5"):
        TIMED.differing_versions(
            low(params={"p": 1}), NEW, pa.table({"id": [3.5], "filter": ["x < 1"]})
        )


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("pushed_max", [0, 1000])
def test_a_table_of_spark(
    spark: SparkSession, pushed_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.spark.backtesting.trials.PUSHED_IDS_MAX", pushed_max)
    trial = low(params={"p": 5})
    differing = TIMED.differing_versions(trial, NEW, spark.createDataFrame(LIVE))
    assert differing == TIMED.differing_versions(trial, NEW, LIVE)


# -- whole tables -----------------------------------------------------------------------------


def test_a_whole_table_in_place_of_another() -> None:
    other = pa.table({"id": ["low", "all"], "filter": ["x < 9", "true"]})
    differing = TIMED.differing_versions(other, NEW, LIVE)
    assert texts(differing) == (["low: x < :p {'p': 2}"], ["low: x < 9 {}"])
    alone = TIMED.differing_versions(other, NEW, None)
    assert (alone.live, alone.subscriptions) == ([], 2)


def test_a_log_needs_times() -> None:
    log = pa.table({"time": [NOON], "op": ["subscribe"], "id": ["low"], "filter": ["x < 1"]})
    assert [each.since for each in TIMED.differing_versions(log, NEW, None).changed] == [NOON]
    with pytest.raises(SubscriptionError, match="a change log needs `event_time`"):
        TIMELESS.differing_versions(log, NEW, None)
    with pytest.raises(SubscriptionError, match="no column 'filter'; they have id"):
        TIMED.differing_versions(low(filter="x < 1"), NEW, pa.table({"id": ["low"]}))


def test_versions_that_were_read_already() -> None:
    ended = SubscriptionRecord("low", "x < 1", until=NOON)
    versions = Versions([ended, SubscriptionRecord("all", "true")])
    differing = TIMED.differing_versions({"op": "unsubscribe", "id": "low"}, NEW, versions)
    assert (differing.live, differing.changed) == ([ended], [])
    timeless = TIMELESS.differing_versions({"op": "unsubscribe", "id": "low"}, NEW, versions)
    assert [each.until for each in timeless.live] == [None]
