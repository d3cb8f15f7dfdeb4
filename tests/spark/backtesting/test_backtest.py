"""Backtests: the differences between two tables are those that the oracle finds."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from support.what_if_oracle import Delivery, deliveries, ids_of, live_at, tried_at
from tidegate import BadValueError, EventError, FilterError, SubscriptionError
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.timelines import versions_of
from tidegate.matching.history.versions import Version
from tidegate.matching.history.what_if import ALWAYS
from tidegate.spark import Backtest, backtest
from tidegate.spark.backtesting.result import Counts

pytestmark = pytest.mark.xdist_group("spark")

START = datetime(2026, 1, 2, 9, tzinfo=UTC)
SCHEMA = pa.schema([("n", pa.int64()), ("x", pa.int64()), ("time", pa.timestamp("us", "UTC"))])
Event = tuple[int, int, datetime]


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def table_of(events: Iterable[Event]) -> pa.Table:
    rows = [dict(zip(SCHEMA.names, each, strict=True)) for each in events]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.fixture(scope="module")
def few(spark: SparkSession) -> DataFrame:
    """Five events, a second apart, with x = 0, 1, 2, 3, 4."""
    return spark.createDataFrame(table_of((n, n, at(n)) for n in range(5)))


LIVE = pa.table(
    {
        "id": ["low", "high", "all"],
        "filter": ["x < :p", "x >= 3", "x >= 0"],
        "params": ['{"p": 2}', None, None],
        "subscriber": ["ann", "bob", None],
    }
)


def low(time: datetime | None = None, **params: object) -> dict[str, object]:
    return {"op": "update", "id": "low", "params": params, "time": time}


def found(result: Backtest, *effects: str) -> set[tuple[Any, ...]]:
    rows = result.deliveries.toArrow().to_pylist()
    return {
        (each["n"], each["subscription"], each["subscriber"])
        for each in rows
        if each["effect"] in effects
    }


# -- against the oracle -----------------------------------------------------------------------


class History:
    """Events and changes of many subscriptions, many of them at the same times."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.events = [(n, self.random.randrange(6), self.time()) for n in range(80)]
        self.log = self.some_log(range(12))
        self.versions, _ = versions_of(self.log)

    def time(self) -> datetime:
        return at(self.random.randrange(20))

    def filter(self) -> str:
        return self.random.choice(["x < :p", "x > :p", "x between :p and :p + t / 5"])

    def params(self) -> dict[str, object]:
        return {"p": self.random.choice([0, 1, 2.5, 4, None])}

    def some_log(self, numbers: Iterable[int]) -> list[Change]:
        found: list[Change] = []
        for number in numbers:
            id, subscriber = f"s{number}", self.random.choice([None, "ann", "bob"])
            begun = at(self.random.randrange(-5, 10))
            found.append(Change(begun, Op.SUBSCRIBE, id, self.filter(), self.params(), subscriber))
            later = sorted(begun + timedelta(seconds=self.random.randrange(15)) for _ in range(3))
            found += [Change(time, Op.UPDATE, id, params=self.params()) for time in later[:2]]
            if self.random.random() < 0.5:
                found.append(Change(later[2], Op.UNSUBSCRIBE, id))
        return found

    def some_changes(self) -> list[Change]:
        found = [Change(ALWAYS, Op.SUBSCRIBE, "new", self.filter(), self.params(), "ann")]
        for number in range(8):
            id, time = f"s{number}", self.random.choice([ALWAYS, at(3), at(8)])
            if number < 2:
                found.append(Change(ALWAYS, Op.UNSUBSCRIBE, id))
            elif number < 4:
                found.append(Change(ALWAYS, Op.UPDATE, id, self.filter()))
            elif live_at(self.versions, id, at(8)) is not None:
                found.append(Change(time, Op.UPDATE, id, params=self.params()))
        return found

    @property
    def beginning(self) -> datetime:
        return min(time for _, _, time in self.events)

    def live(self) -> set[Delivery]:
        return self._delivered(self.versions, [])

    def tried(self, changes: list[Change]) -> set[Delivery]:
        return self._delivered(self.versions, changes)

    def of_log(self, log: list[Change]) -> set[Delivery]:
        return self._delivered(versions_of(log)[0], [])

    def _delivered(self, versions: list[Version], changes: list[Change]) -> set[Delivery]:
        return set(
            deliveries(
                (n, {"x": x}, time, tried_at(versions, changes, id, time, self.beginning))
                for n, x, time in self.events
                for id in ids_of(versions, changes)
            )
        )


def log_table(log: list[Change]) -> pa.Table:
    rows = [
        {
            "time": each.time,
            "op": each.op.value,
            "id": each.id,
            "filter": each.filter,
            "params": None if each.params is None else json.dumps(each.params),
            "subscriber": each.subscriber,
        }
        for each in log
    ]
    return pa.Table.from_pylist(rows)


def check(result: Backtest, live: set[Delivery], changed: set[Delivery]) -> None:
    """Check that a result has the differences of two sets, one by one and in its counts."""
    entering, leaving = changed - live, live - changed
    assert found(result, "entering") == entering
    assert found(result, "leaving") == leaving
    staying = found(result, "staying")
    assert staying <= live & changed
    assert result.counts.entering == len(entering)
    assert result.counts.leaving == len(leaving)
    assert result.counts.staying == len(staying)
    assert result.counts.changed == len(entering) + len(staying)
    assert sum((each.counts for each in result.buckets), Counts()) == result.counts
    assert sum((each.counts for each in result.subscribers), Counts()) == result.counts
    assert sum(each.events for each in result.buckets) == result.events


@pytest.mark.parametrize("seed", [1, 2])
def test_changes_give_what_the_oracle_says(spark: SparkSession, seed: int) -> None:
    history = History(seed)
    changes = history.some_changes()
    events = spark.createDataFrame(table_of(history.events)).repartition(3)
    live = log_table(history.log)
    result = backtest(events, changes, live, event_time="time", key="n", top=99)
    check(result, history.live(), history.tried(changes))
    assert min(result.counts.entering, result.counts.leaving, result.counts.staying) > 0


def test_another_log_gives_what_the_oracle_says(spark: SparkSession) -> None:
    history = History(3)
    same = {"s0", "s1", "s2"}
    other = history.some_log(range(3, 15)) + [each for each in history.log if each.id in same]
    events = spark.createDataFrame(table_of(history.events))
    live = spark.createDataFrame(log_table(history.log))
    result = backtest(events, log_table(other), live, event_time="time", key="n", top=99)
    check(result, history.live(), history.of_log(other))
    assert result.subscriptions == 12
    assert min(result.counts.entering, result.counts.leaving, result.counts.staying) > 0


# -- what is counted --------------------------------------------------------------------------


def test_a_new_filter(few: DataFrame) -> None:
    result = backtest(
        few, "x < :p + t", LIVE, params={"p": 1}, subscriber="eve", event_time="time", key="n"
    )
    # `t` counts from the first event, so it is x
    assert result.counts == Counts(0, 5, 5, 0)
    assert found(result, "entering") == {(n, "new", "eve") for n in range(5)}
    later = backtest(
        few, "x < :p + t", params={"p": 1}, id="mine", since=at(3), event_time="time", key="n"
    )
    assert found(later, "entering") == set()
    at_once = backtest(few, "x >= 3 + t", since=at(3), event_time="time", key="n")
    assert found(at_once, "entering") == {(3, "new", None), (4, "new", None)}


def test_a_change_holds_at_its_time(few: DataFrame) -> None:
    result = backtest(few, low(at(3), p=9), LIVE, event_time="time", key="n")
    assert found(result, "entering") == {(3, "low", "ann"), (4, "low", "ann")}
    assert (result.counts, result.subscriptions) == (Counts(2, 4, 2, 0), 1)
    gone = {"op": "unsubscribe", "id": "all", "time": at(3).isoformat()}
    result = backtest(few, gone, LIVE, event_time="time", key="n")
    assert found(result, "leaving") == {(3, "all", None), (4, "all", None)}


def test_a_parameter_taken_away(few: DataFrame) -> None:
    result = backtest(few, low(p=None), LIVE, event_time="time")
    assert result.counts == Counts(2, 0, 0, 2)


def test_equal_events_are_kept_apart(spark: SparkSession) -> None:
    events = spark.createDataFrame(table_of([(1, 1, at(0))] * 4 + [(1, 2, at(0))] * 3))
    result = backtest(events, low(p=3), LIVE, event_time="time")
    assert result.counts == Counts(4, 7, 3, 0)
    rows = result.deliveries.toArrow().to_pylist()
    assert sorted(each["effect"] for each in rows) == ["entering"] * 3 + ["staying"] * 4
    assert list(rows[0]) == [*SCHEMA.names, "subscription", "subscriber", "version", "effect"]


def test_another_subscriber_is_another_delivery(few: DataFrame) -> None:
    other = pa.table({"id": ["s"], "filter": ["x < 2"], "subscriber": ["bob"]})
    live = pa.table({"id": ["s"], "filter": ["x < 3"], "subscriber": ["ann"]})
    result = backtest(few, other, live)
    assert result.counts == Counts(3, 2, 2, 3)
    assert [(each.name, each.counts) for each in result.subscribers] == [
        ("ann", Counts(3, 0, 0, 3)),
        ("bob", Counts(0, 2, 2, 0)),
    ]


def test_a_table_that_is_the_same(few: DataFrame) -> None:
    result = backtest(few, LIVE, LIVE, event_time="time")
    assert (result.events, result.subscriptions, result.counts) == (5, 0, Counts())


def test_counts_over_time(few: DataFrame) -> None:
    gone = {"op": "unsubscribe", "id": "high"}
    result = backtest(few, [low(p=1), gone], LIVE, event_time="time", every="2s", top=1)
    assert [(each.begin, each.events, each.counts) for each in result.buckets] == [
        (at(0), 2, Counts(2, 1, 0, 1)),
        (at(2), 2, Counts(1, 0, 0, 1)),
        (at(4), 1, Counts(1, 0, 0, 1)),
    ]
    assert (result.first, result.last) == (at(0), at(4))
    assert [each.name for each in result.subscribers] == ["bob"]
    assert result.subscribers_in_all == 2
    assert result.summary().splitlines() == [
        "5 events from 2026-01-02 09:00:00 to 09:00:04 UTC; 2 subscriptions differ",
        "",
        "            deliveries   over time, a mark for 2 s, the highest for 2",
        "live                 4   █▄▄",
        "changed              1   ▄",
        "entering             0",
        "leaving              3   ▄▄▄",
        "",
        "subscriber        live   changed  entering   leaving",
        "bob                  2         0         0         2",
        "and 1 more",
    ]


def test_times_without_a_zone_are_utc(few: DataFrame) -> None:
    few.sparkSession.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        local = few.selectExpr("x", "to_timestamp_ntz('2026-01-02 09:00:07') as time")
        result = backtest(local, low(at(7), p=9), LIVE, event_time="time")
    finally:
        few.sparkSession.conf.set("spark.sql.session.timeZone", "UTC")
    assert (result.first, result.counts.entering) == (at(7), 3)
    assert [each.begin for each in result.buckets] == [at(7)]


def test_no_times(few: DataFrame) -> None:
    result = backtest(few.drop("time"), low(p=3), LIVE)
    assert (result.events, result.counts) == (5, Counts(2, 3, 1, 0))
    assert (result.buckets, result.first, result.every) == ((), None, None)
    assert result.summary().startswith("5 events without times; 1 subscription differs\n")


def test_no_events(few: DataFrame) -> None:
    result = backtest(few.where("x > 9"), low(p=3), LIVE, event_time="time")
    assert (result.events, result.counts, result.buckets) == (0, Counts(), ())
    assert result.deliveries.count() == 0
    assert result.summary().startswith("0 events; 1 subscription differs\n")


def test_no_matches(few: DataFrame) -> None:
    result = backtest(few, "x > 99", event_time="time", every=timedelta(seconds=5))
    assert (result.events, result.counts, result.subscribers) == (5, Counts(), ())
    assert [each.events for each in result.buckets] == [5]


def test_variables_and_attributes(few: DataFrame) -> None:
    result = backtest(
        few, "size < @most", variables={"most": 2}, attributes={"x": "size"}, event_time="time"
    )
    assert result.counts.changed == 2


def test_as_json(few: DataFrame) -> None:
    written = backtest(few, low(p=1), LIVE, event_time="time", every="1m").to_json()
    counts = {"live": 2, "changed": 1, "entering": 0, "leaving": 1}
    assert json.loads(json.dumps(written)) == {
        "events": 5,
        "subscriptions": 1,
        **counts,
        "first": "2026-01-02T09:00:00Z",
        "last": "2026-01-02T09:00:04Z",
        "every_s": 60.0,
        "buckets": [{"begin": "2026-01-02T09:00:00Z", "events": 5, **counts}],
        "subscribers": [{"subscriber": "ann", "subscription": None, **counts}],
        "subscribers_in_all": 1,
    }


# -- what is read -----------------------------------------------------------------------------


def test_only_the_concerned_subscriptions_are_read(few: DataFrame) -> None:
    bad = pa.table(
        {"id": ["low", "bad"], "filter": ["x < :p", "x <"], "params": ['{"p": 2}', None]}
    )
    for live in (bad, few.sparkSession.createDataFrame(bad)):
        assert backtest(few, low(p=3), live, event_time="time").counts.entering == 1
    with pytest.raises(SubscriptionError, match="subscription 'bad'"):
        backtest(few, bad, LIVE, event_time="time")
    skipped = backtest(few, bad, LIVE, event_time="time", skip_bad=True)
    assert skipped.counts == Counts(9, 2, 2, 9)  # `low` is there, without its subscriber


def test_ids_in_a_dictionary(few: DataFrame) -> None:
    live = LIVE.set_column(0, "id", LIVE.column("id").dictionary_encode())
    assert backtest(few, low(p=3), live).counts.entering == 1


Asked = dict[str, Any]


@pytest.mark.parametrize(
    ("trial", "options", "error", "reason"),
    [
        ("x <", {}, FilterError, r"\n  x <\n     \^"),
        ("x < :p", {"params": {"q": 1}}, SubscriptionError, "no parameter :q; it has :p"),
        ("x < 1", {"id": "low", "live": LIVE}, SubscriptionError, "already is a subscription"),
        (low(p=1), {}, SubscriptionError, "a change of subscription 'low' needs the live table"),
        ([], {"live": LIVE}, SubscriptionError, "no change to try out"),
        ({**low(p=1), "id": "z"}, {"live": LIVE}, SubscriptionError, "there is no subscription"),
        (low(q=1), {"live": LIVE}, SubscriptionError, "'low': the filter has no parameter :q"),
        (low(at(1), p=1), {"live": LIVE, "event_time": None}, SubscriptionError, "`event_time`"),
        ({"id": "low"}, {"live": LIVE}, SubscriptionError, "op: is missing"),
        (LIVE.drop(["filter"]), {}, SubscriptionError, "no column 'filter'"),
        ("x < 1", {"every": "5 weeks"}, BadValueError, "is not a duration"),
        ("x < 1", {"every": "0.1ms"}, BadValueError, "buckets of 0.1 ms, and at most 10,000"),
        ("x < 1", {"every": "1s", "event_time": None}, BadValueError, "needs `event_time`"),
        ("x < 1", {"event_time": "when"}, EventError, "no column 'when'"),
        ("x < 1", {"key": "m"}, EventError, "no column 'm' for the key"),
    ],
)
def test_what_is_refused(
    few: DataFrame, trial: Any, options: Asked, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        backtest(few, trial, **{"event_time": "time", **options})


def test_events_that_cannot_be_taken(spark: SparkSession, few: DataFrame) -> None:
    timeless = few.selectExpr("x", "if(x < 2, time, null) as time")
    with pytest.raises(EventError, match="column 'time' holds the time of events; 3 of them have"):
        backtest(timeless, "x < 1", event_time="time")
    with pytest.raises(EventError, match="column 'effect', which the result adds"):
        backtest(few.selectExpr("x as effect"), "effect < 1")
    stream = spark.readStream.format("rate").load()
    with pytest.raises(EventError, match="a stream"):
        backtest(stream, "value < 1")
