"""Patterns over DataFrames and streams: the same answers as the embedded matcher."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from tidegate import BadValueError, EventError, SubscriptionError, TidegateError
from tidegate.language.events import Event
from tidegate.language.patterns.pattern import parse_pattern
from tidegate.language.patterns.sequence_matcher import SequenceMatcher
from tidegate.spark import match_patterns
from tidegate.spark.patterns.match_patterns import OBSERVED

pytestmark = pytest.mark.xdist_group("spark")

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "number long, time timestamp, x long, alarm string, file string"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"

Record = dict[str, Any]


def event(number: int, second: float, **attributes: object) -> Record:
    return {"number": number, "time": START + timedelta(seconds=second), **attributes}


def xs(pairs: Iterable[tuple[float, int]]) -> list[Record]:
    return [event(index, second, x=x) for index, (second, x) in enumerate(pairs)]


def table(**patterns: str) -> pa.Table:
    return pa.table({"id": list(patterns), "pattern": list(patterns.values())})


def frame(spark: SparkSession, events: list[Record]) -> DataFrame:
    names = [each.split()[0] for each in SCHEMA.split(", ")]
    rows = [tuple(each.get(name) for name in names) for each in events]
    return spark.createDataFrame(rows, SCHEMA).repartition(3)


def numbers(matches: DataFrame) -> dict[str, list[list[int]]]:
    """The matches of each pattern by the numbers of their events, in the order of time."""
    return by_pattern(matches.sort("last_time", "first_time").collect())


def by_pattern(rows: Iterable[Any]) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {}
    for row in rows:
        found.setdefault(row.subscription, []).append([each.number for each in row.events])
    return found


def embedded(patterns: pa.Table, events: Iterable[Record]) -> dict[str, list[list[int]]]:
    """The matches of the embedded matcher, fed with events sorted by time and number."""
    found: dict[str, list[list[int]]] = {}
    ordered = sorted(events, key=lambda each: (each["time"], each["number"]))
    for row in patterns.to_pylist():
        params = json.loads(row.get("params") or "{}")
        matcher = SequenceMatcher(
            parse_pattern(row["pattern"]), parameters=params, since=row.get("since")
        )
        for each in ordered:
            for match in matcher.feed(Event.of(each, each["time"])):
                chosen = [int(str(one.attributes["number"])) for one in match]
                found.setdefault(row["id"], []).append(chosen)
    return found


# -- in batch ---------------------------------------------------------------------------------


def test_a_failed_login_and_then_a_file(spark: SparkSession) -> None:
    """Siena, 3.3: the example of the papers."""
    events = [
        event(0, 0, file="/etc/passwd"),
        event(1, 1, alarm="failed login"),
        event(2, 2, alarm="failed login"),
        event(3, 3, file="/etc/hosts"),
        event(4, 4, file="/etc/passwd"),
        event(5, 5, file="/etc/passwd"),
        event(6, 9, alarm="failed login"),
        event(7, 50, file="/etc/passwd"),
    ]
    text = "alarm = 'failed login' then file = '/etc/passwd'"
    patterns = table(any=text, soon=f"{text} within 30 s")
    found = match_patterns(frame(spark, events), patterns, "time")
    assert numbers(found) == {"any": [[1, 4], [6, 7]], "soon": [[1, 4]]}
    assert found.columns == ["subscription", "subscriber", "events", "first_time", "last_time"]
    row = found.where("subscription = 'soon'").collect()[0]
    assert (row.first_time, row.last_time) == (row.events[0].time, row.events[1].time)
    login = dict.fromkeys(["number", "time", "x", "alarm", "file"])
    login |= {"number": 1, "time": row.first_time, "alarm": "failed login"}
    assert row.events[0].asDict() == login


def test_the_rules_in_batch(spark: SparkSession) -> None:
    stream = [(0.0, 1), (0.0, 1), (1.0, 7), (2.0, 2), (2.0, 2), (2.5, 1), (5.0, 1), (7.0, 2)]
    events = xs(stream)
    patterns = table(
        plain="x = 1 then x = 2",
        quick="x = 1 then x = 2 within 2 s",
        too_quick="x = 1 then x = 2 within 1 s",
        twice="x > 0 then x > 0",
        one="x = 7",
    )
    found = numbers(match_patterns(frame(spark, events), patterns, "time"))
    assert found == embedded(patterns, events)
    assert found["plain"] == [[0, 3], [5, 7]]
    assert found["quick"] == [[0, 3], [6, 7]]


def test_values_come_back_as_they_were(spark: SparkSession) -> None:
    """Nested values, both kinds of timestamps, and the limits of floats and integers."""
    schema = (
        "time timestamp_ntz, inner struct<at: timestamp, plain: timestamp_ntz>, "
        "whole long, part double, small float, yes boolean, text string"
    )
    # in this hour clocks are set back
    ambiguous = datetime(2026, 10, 25, 2, 30, 0, 7, tzinfo=UTC).replace(tzinfo=None)
    rows = [
        (
            ambiguous,
            (START - timedelta(days=30000), ambiguous),
            2**63 - 1,
            float("nan"),
            0.1,
            True,
            'é"\n',
        ),
        (ambiguous, None, None, float("inf"), None, None, None),
        (ambiguous, (None, None), -(2**63), -0.0, None, False, ""),
    ]
    events = spark.createDataFrame(rows, schema)
    patterns = pa.table({"id": ["all"], "pattern": ["true then true then true"]})
    found = match_patterns(events, patterns, "time")
    assert dict(found.dtypes)["events"] == f"array<{events.select('*').schema.simpleString()}>"
    assert dict(found.dtypes)["first_time"] == "timestamp_ntz"
    # a tie of all three, in the order of the columns: null comes first
    wanted = [rows[1], rows[2], rows[0]]
    given = found.collect()[0]
    assert repr([tuple(each) for each in given.events]) == repr(
        [tuple(each) for each in spark.createDataFrame(wanted, schema).collect()]
    )
    assert given.first_time == ambiguous


def test_parameters_variables_times_and_subscribers(spark: SparkSession) -> None:
    events = xs([(0, 5), (1, 1), (2, 3), (3, 4), (4, 9)])
    patterns = pa.table(
        {
            "id": ["moving", "set", "later"],
            "pattern": ["x > t then x > 2 * t", "x = :a then x = :b", "x > 0 then x = @top"],
            "params": [None, '{"a": 1, "b": 4}', None],
            "since": [START, None, START + timedelta(seconds=2)],
            "subscriber": ["me", None, None],
        }
    )
    found = match_patterns(
        frame(spark, events), patterns, "time", key="number", variables={"top": 9}
    )
    assert numbers(found) == {"moving": [[0, 4]], "set": [[1, 3]], "later": [[2, 4]]}
    rows = {row.subscription: row for row in found.collect()}
    assert rows["moving"].subscriber == "me"
    assert rows["moving"].events[0].asDict() == {"number": 0}
    as_frame = match_patterns(
        frame(spark, events), spark.createDataFrame(patterns.drop_columns("since")), "time"
    )
    assert numbers(as_frame)["set"] == [[1, 3]]


# -- in streams -------------------------------------------------------------------------------


class Source:
    """A folder of files, each of which becomes a micro-batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()
        self.count = 0

    def add(self, events: Iterable[Record]) -> None:
        lines = [json.dumps(each, default=datetime.isoformat) + "\n" for each in events]
        hidden = self.folder / f"_{self.count}"
        hidden.write_text("".join(lines))
        os.utime(hidden, (self.count, self.count))  # the order in which Spark takes them
        hidden.rename(self.folder / f"{self.count}.json")
        self.count += 1

    def read(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder))


def run(matches: DataFrame, checkpoint: Path) -> tuple[list[Any], list[StreamingQueryProgress]]:
    """The rows of a stream that has read all files."""
    rows: list[Any] = []
    writer = matches.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows, query.recentProgress


def generated_patterns(rng: random.Random, count: int) -> pa.Table:
    steps = ["x = 1", "x = 2", "x >= 1", "x in (0, 2)", "x != 1", "x = :p", "x <= t", "true"]
    texts = [
        " then ".join(rng.choices(steps, k=rng.randint(1, 4)))
        + rng.choice(["", " within 0 s", " within 2 s", " within 5 s"])
        for _ in range(count)
    ]
    return pa.table(
        {
            "id": [f"p{index}" for index in range(count)],
            "pattern": texts,
            "params": ['{"p": 1}' if ":p" in text else None for text in texts],
            "since": [START] * count,
        }
    )


def test_a_stream_gives_what_the_embedded_matcher_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Generated events: out of order, of equal times, and late; split anywhere."""
    rng = random.Random(4)
    patterns = generated_patterns(rng, 40)
    lateness_s = 3
    events = [event(index, rng.randint(0, 40), x=rng.randint(0, 2)) for index in range(90)]
    events.sort(key=lambda each: each["time"].timestamp() + rng.uniform(0, 6))
    source = Source(tmp_path / "events")
    in_time: list[Record] = []
    late: list[Record] = []
    latest = START - timedelta(days=1)
    cuts = [0, *sorted(rng.sample(range(1, 90), 3)), 90]
    for begin, end in pairwise(cuts):
        source.add(events[begin:end])
        border = latest - timedelta(seconds=lateness_s)
        for each in events[begin:end]:
            (late if each["time"] < border else in_time).append(each)
        latest = max([latest, *(each["time"] for each in events[begin:end])])
    assert late
    source.add([event(1000, 1000)])  # which lets all before it go
    matches = match_patterns(
        source.read(spark), patterns, "time", lateness=timedelta(seconds=lateness_s), keep_late=True
    )
    rows, progress = run(matches, tmp_path / "checkpoint")
    wanted = embedded(patterns, in_time)
    assert sum(len(each) for each in wanted.values()) > 100
    assert by_pattern(row for row in rows if not row.late) == wanted
    given_late = {each.number for row in rows if row.late for each in row.events}
    assert given_late == {each["number"] for each in late}  # one pattern at least takes any event
    counts = [each.observedMetrics[OBSERVED] for each in progress]
    assert sum(each.late for each in counts) == sum(row.late for row in rows)
    assert sum(each.matches for each in counts) == sum(not row.late for row in rows)


def test_state_survives_from_one_run_to_the_next(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(tmp_path / "events")

    def run_with(**patterns: str) -> dict[str, list[list[int]]]:
        matches = match_patterns(
            source.read(spark), table(**patterns), "time", lateness="2 seconds"
        )
        rows, _ = run(matches, tmp_path / "checkpoint")
        return by_pattern(rows)

    kept = {"far": "x = 1 then x = 2", "near": "x = 1 then x = 2 within 5 s"}
    source.add(xs([(0, 1), (4, 1), (3, 7), (9, 7)]))  # the first ones are in the attempt
    source.add(xs([(10, 7)]))
    assert run_with(**kept, changed="x = 1 then x = 2", gone="x = 1 then x = 2") == {}
    source.add([event(10, 9, x=2), event(11, 30, x=7)])
    found = run_with(**kept, changed="x = 1 then x = 2 within 1 h", new="x = 2")
    assert found == {"far": [[0, 10]], "near": [[1, 10]], "new": [[10]]}


# -- what is wrong ----------------------------------------------------------------------------


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    return frame(spark, xs([(0, 1)]))


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ({"id": ["p"]}, "the patterns have no column 'pattern'; they have id"),
        ({"id": ["p"], "pattern": ["x = 1"], "filter": ["x"]}, "there is no field 'filter'"),
        (
            {"id": ["p"], "pattern": ["x = 1 then"]},
            "(?s)row 0: pattern 'p': expected an attribute here",
        ),
        ({"id": ["p"], "pattern": [None]}, "row 0: pattern 'p': pattern: is missing"),
        ({"id": ["p", "p"], "pattern": ["x = 1"] * 2}, "row 1: there already is a pattern 'p'"),
        (
            {"id": ["p"], "pattern": ["x = :a"], "params": ['{"b": 1}']},
            "pattern 'p': the filter has no parameter :b; it has :a",
        ),
        (
            {"id": ["p"], "pattern": ["x = 1"], "since": ["yesterday"]},
            "row 0: pattern 'p': since: ",
        ),
    ],
)
def test_bad_patterns_are_named(
    events: DataFrame, patterns: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(SubscriptionError, match=message):
        match_patterns(events, pa.table(patterns), "time")


@pytest.mark.parametrize("lateness", ["10 s", "5m", "10 seconds", "1 hour 30 minutes", "1 week"])
def test_lateness_is_a_duration_or_an_interval_of_spark(events: DataFrame, lateness: str) -> None:
    match_patterns(events, table(p="x = 1"), "time", lateness=lateness)


def test_bad_events_and_options_are_named(
    spark: SparkSession, events: DataFrame, tmp_path: Path
) -> None:
    good = table(p="x = 1")
    with pytest.raises(EventError, match="no column 'at' with their time"):
        match_patterns(events, good, "at")
    stream = Source(tmp_path / "events").read(spark)
    with pytest.raises(EventError, match=r"column 'time' holds .* cast it to timestamp"):
        match_patterns(stream.selectExpr("cast(time as timestamp_ntz)"), good, "time")
    with pytest.raises(EventError, match="column 'time' has a watermark already"):
        match_patterns(stream.withWatermark("time", "1 second"), good, "time")
    with pytest.raises(EventError, match="no column 'y' for the key"):
        match_patterns(events, good, "time", key=["y"])
    with pytest.raises(BadValueError, match="lateness must be a timedelta or a text like"):
        match_patterns(events, good, "time", lateness="soon")
    with pytest.raises(BadValueError, match="lateness must not be negative"):
        match_patterns(events, good, "time", lateness=timedelta(seconds=-1))
    with pytest.raises(BadValueError, match="pending_max must be 1 or more"):
        match_patterns(events, good, "time", pending_max=0)
    moving = stream.selectExpr("file as id", "alarm as pattern")
    with pytest.raises(SubscriptionError, match="the patterns are a stream"):
        match_patterns(events, moving, "time")


@pytest.fixture
def default_state_store(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(PROVIDER)
    default = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    spark.conf.set(PROVIDER, default)
    yield
    spark.conf.set(PROVIDER, before or "")


@pytest.mark.usefixtures("default_state_store")
def test_a_stream_needs_another_state_store(spark: SparkSession, tmp_path: Path) -> None:
    events = Source(tmp_path / "events").read(spark)
    with pytest.raises(TidegateError, match=f"set {PROVIDER} to .*RocksDBStateStoreProvider"):
        match_patterns(events, table(p="x = 1"), "time")
