"""The data source: options, readers and writers alone, then batches and streams through Spark."""

from __future__ import annotations

import math
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import ArrayType, LongType, StructType

from support import dying_stream
from tidegate import ConnectorError, Event, LogError
from tidegate.language.values import to_us
from tidegate.spark.log.datasource import (
    PARTITION_EVENTS_MAX,
    OffsetRange,
    SourceOptions,
    StagedMessage,
    TidegateDataSource,
    register,
)
from tidegate.spark.log.event_log import EventLog, StagedFolder
from tidegate.spark.log.log_streams import LogStreamReader

THEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
TIME_US = to_us(THEN)
YEAR_1 = to_us(datetime(1, 1, 1, tzinfo=UTC))
NUMBERS = StructType().add("n", LongType())


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(tmp_path / "log", clock=lambda: THEN)


@pytest.fixture
def tide(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def source(**options: str) -> TidegateDataSource:
    return TidegateDataSource(CaseInsensitiveDict(options))


def numbers_in(log: EventLog) -> list[object]:
    return [record.event.attributes["n"] for record in log.read()]


def staged_in(log: EventLog) -> list[str]:
    return os.listdir(log.path / "staging")


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({}, "option 'path' is missing, and so is 'broker'"),
            ({"path": ""}, "option 'path' is missing, and so is 'broker'"),
            ({"url": "tidegate://localhost"}, "no option 'url'; the URL of a broker goes in"),
            ({"path": "p", "broker": "tidegate://b"}, "'broker' and 'path' are both set"),
            ({"broker": "b", "identity": "i"}, "option 'broker': 'b' is not the URL of a broker"),
            ({"path": "p", "startingOffset": "first"}, "'startingOffset' is 'first'; take"),
            ({"path": "p", "startingOffset": "-1"}, "'startingOffset' is '-1'; take"),
            ({"path": "p", "startingOffset": "1.0"}, "'startingOffset' is '1.0'; take"),
            ({"path": "p", "startingOffset": "9" * 20}, "'startingOffset' is '999.*; take"),
            ({"path": "p", "maxEventsPerBatch": "0"}, "'maxEventsPerBatch' is '0'; take"),
            ({"path": "p", "maxEventsPerBatch": "many"}, "'maxEventsPerBatch' is 'many'; take"),
            ({"path": "p", "onMismatch": "ignore"}, "'onMismatch' is 'ignore'; take 'error'"),
            ({"path": "p", "batch": "x"}, "'batch' is 'x'; take"),
        ],
    )
    def test_bad_ones(self, options: dict[str, str], reason: str) -> None:
        uses = (TidegateDataSource.reader, TidegateDataSource.streamReader)
        for use in uses[1:] if "broker" in options and "path" not in options else uses:
            with pytest.raises((LogError, ConnectorError), match=reason):
                use(source(**options), NUMBERS)
        for write in (TidegateDataSource.writer, TidegateDataSource.streamWriter):
            with pytest.raises((LogError, ConnectorError), match=reason):
                write(source(**options), NUMBERS, False)
        if "broker" not in options or "path" in options:
            with pytest.raises((LogError, ConnectorError), match=reason):
                source(**options).schema()

    def test_what_a_broker_cannot_do(self) -> None:
        given = source(broker="tidegate://localhost", identity="i")
        with pytest.raises(ConnectorError, match=r"say with .schema\(...\) which to read"):
            given.schema()
        with pytest.raises(ConnectorError, match="a broker is read as a stream"):
            given.reader(NUMBERS)
        with pytest.raises(LogError, match="append-only"):
            given.streamWriter(NUMBERS, True)

    def test_their_values(self) -> None:
        given = SourceOptions.of({"path": "p"})
        assert given == SourceOptions(str(Path("p").absolute()), 0, None, False, None, None)
        given = SourceOptions.of(
            CaseInsensitiveDict(
                path="p", startingoffset="Latest", MAXEVENTSPERBATCH="7", onMismatch="NULL",
                producer="a", batch="3",
            )
        )  # fmt: skip
        assert given == SourceOptions(str(Path("p").absolute()), None, 7, True, "a", 3)
        assert SourceOptions.of({"path": "p", "startingOffset": "12"}).starting_offset == 12

    def test_a_log_only_grows(self) -> None:
        for write in (TidegateDataSource.writer, TidegateDataSource.streamWriter):
            with pytest.raises(LogError, match="append-only"):
                write(source(path="p"), NUMBERS, True)

    def test_columns_are_checked_before_anything_runs(self, tmp_path: Path) -> None:
        bad = StructType().add("n", ArrayType(LongType()))
        given = source(path=str(tmp_path / "log"))
        uses: list[Callable[[], object]] = [
            lambda: given.reader(bad),
            lambda: given.streamReader(bad),
            lambda: given.writer(bad, False),
            lambda: given.streamWriter(bad, False),
        ]
        for use in uses:
            with pytest.raises(LogError, match="'n' is of array<bigint>"):
                use()
        assert not (tmp_path / "log").exists()


class TestReaders:
    """Readers and writers called directly, without Spark."""

    def reader(self, log: EventLog, **options: str) -> LogStreamReader:
        return LogStreamReader(SourceOptions.of({"path": str(log.path), **options}), NUMBERS)

    def test_they_can_be_sent_to_workers(self, log: EventLog) -> None:
        log.append([{"n": 1}, {"n": 2}])
        for given in (
            source(path=str(log.path)).reader(NUMBERS),
            source(path=str(log.path)).streamReader(NUMBERS),
        ):
            copy = pickle.loads(pickle.dumps(given))
            part = pickle.loads(pickle.dumps(OffsetRange(1, 2)))
            assert [batch.to_pylist() for batch in copy.read(part)] == [[{"n": 2}]]
        written = StagedMessage(StagedFolder("folder", 1), "query")
        assert pickle.loads(pickle.dumps(written)) == written

    def test_partitions(self, log: EventLog) -> None:
        end = 2 * PARTITION_EVENTS_MAX + 1
        ranges = [
            OffsetRange(5, PARTITION_EVENTS_MAX + 5),
            OffsetRange(PARTITION_EVENTS_MAX + 5, end),
        ]
        reader = self.reader(log)
        assert reader.partitions({"offset": 5}, {"offset": end}) == ranges
        assert reader.partitions({"offset": 5}, {"offset": 5}) == []
        log.create()
        assert source(path=str(log.path)).reader(NUMBERS).partitions() == [OffsetRange(0, 0)]

    def test_starts(self, log: EventLog) -> None:
        log.append({"n": n} for n in range(3))
        assert self.reader(log).initialOffset() == {"offset": 0}
        assert self.reader(log, startingOffset="latest").initialOffset() == {"offset": 3}
        assert self.reader(log, startingOffset="3").initialOffset() == {"offset": 3}
        late = source(path=str(log.path), startingOffset="4")
        for use in (late.streamReader(NUMBERS).initialOffset, late.reader(NUMBERS).partitions):
            with pytest.raises(LogError, match=r"startingOffset is 4, but .* ends at 3"):
                use()
        latest = source(path=str(log.path), startingOffset="latest").reader(NUMBERS)
        with pytest.raises(LogError, match="latest is for streams"):
            latest.partitions()
        with pytest.raises(LogError, match="not the log that the checkpoint was made with"):
            self.reader(log).latestOffset({"offset": 4}, ReadAllAvailable())


class TestWriters:
    """Readers and writers called directly, without Spark."""

    def batches(self, *values: object) -> Any:
        return iter([pa.record_batch({"_0": pa.array(values, pa.int64())})])

    def test_a_write_that_is_given_up_leaves_nothing(self, log: EventLog) -> None:
        batch = source(path=str(log.path)).writer(NUMBERS, False)
        batch.abort([batch.write(self.batches(1)), None])
        stream = source(path=str(log.path)).streamWriter(NUMBERS, False)
        stream.abort([stream.write(self.batches(1)), None], 0)
        assert not staged_in(log)
        stream.commit([], 0)
        batch.commit([])
        assert log.end_offset() == 0

    def test_producers_are_for_batches(self, log: EventLog) -> None:
        with pytest.raises(LogError, match="are for batch writes"):
            source(path=str(log.path), producer="p").streamWriter(NUMBERS, False)
        alone = source(path=str(log.path), producer="p").writer(NUMBERS, False)
        with pytest.raises(LogError, match="or neither"):
            alone.commit([alone.write(self.batches(1))])


@pytest.mark.xdist_group("connectors")
class TestBatch:
    def read(
        self, tide: SparkSession, log: EventLog, schema: str = "", **options: str
    ) -> DataFrame:
        reader = tide.read.format("tidegate").options(**options)
        return (reader.schema(schema) if schema else reader).load(str(log.path))

    def write(self, frame: DataFrame, log: EventLog, **options: str) -> None:
        frame.write.format("tidegate").mode("append").options(**options).save(str(log.path))

    def test_all_kinds_go_there_and_back(self, tide: SparkSession, log: EventLog) -> None:
        schema = (
            "_time timestamp, flag boolean, count bigint, price double, symbol string, "
            "at timestamp, quote struct<bid: double, venue: struct<name: string>>, `a.b` int"
        )
        rows = [
            (THEN, True, 2**63 - 1, 5.0, "IBM", THEN, (1.5, ("NYSE",)), 7),
            (THEN, None, None, math.nan, None, None, (None, None), None),
            (THEN, False, -(2**63), -math.inf, "", datetime(1, 1, 1, tzinfo=UTC), None, -1),
        ]
        self.write(tide.createDataFrame(rows, schema).coalesce(1), log)
        assert [record.event for record in log.read()] == [
            Event(
                {"flag": True, "count": 2**63 - 1, "price": 5.0, "symbol": "IBM", "at": THEN,
                 "quote.bid": 1.5, "quote.venue.name": "NYSE", "a.b": 7},
                THEN,
            ),
            Event({}, THEN),
            Event(
                {"flag": False, "count": -(2**63), "price": -math.inf, "symbol": "",
                 "at": datetime(1, 1, 1, tzinfo=UTC), "a.b": -1},
                THEN,
            ),
        ]  # fmt: skip
        # as microseconds, because what Spark makes of timestamps depends on the machine's zone
        back = self.read(tide, log, schema).withColumns(
            {name: F.unix_micros(name) for name in ("_time", "at")}
        )
        assert [tuple(row) for row in back.collect()] == [
            (TIME_US, True, 2**63 - 1, 5.0, "IBM", TIME_US, (1.5, ("NYSE",)), 7),
            (TIME_US, None, None, None, None, None, None, None),
            (TIME_US, False, -(2**63), -math.inf, "", YEAR_1, None, -1),
        ]

    def test_without_a_schema(self, tide: SparkSession, log: EventLog) -> None:
        log.append([{"a": 1, "q": {"x": "s"}}, {"a": 2.5}])
        log.append([{"b": True}])
        found = self.read(tide, log)
        assert found.dtypes == [
            ("_offset", "bigint"), ("_time", "timestamp"), ("a", "double"), ("b", "boolean"),
            ("q.x", "string"),
        ]  # fmt: skip
        rows = found.select("_offset", F.unix_micros("_time"), "a", "b", "`q.x`").collect()
        assert [tuple(row) for row in rows] == [
            (0, TIME_US, 1.0, None, "s"),
            (1, TIME_US, 2.5, None, None),
            (2, TIME_US, None, True, None),
        ]

    def test_a_log_is_copied_with_its_times(
        self, tide: SparkSession, log: EventLog, tmp_path: Path
    ) -> None:
        log.append({"n": n, "even": n % 2 == 0} for n in range(10))
        copy = EventLog(tmp_path / "copy")
        self.write(self.read(tide, log, startingOffset="2").where("even"), copy)
        assert [(r.event.attributes["n"], r.event.time) for r in copy.read()] == [
            (n, THEN) for n in (2, 4, 6, 8)
        ]

    def test_many_partitions_and_small_appends(self, tide: SparkSession, log: EventLog) -> None:
        for n in range(30):
            log.append([{"n": n}])
        log.append({"n": n} for n in range(30, 120_000))
        found = self.read(tide, log, "n bigint, _offset bigint")
        assert found.rdd.getNumPartitions() == 3
        row = found.select(
            F.count("*"), F.sum("n"), F.sum(F.abs(F.col("n") - F.col("_offset")))
        ).first()
        assert row is not None
        assert tuple(row) == (120_000, sum(range(120_000)), 0)

    def test_an_empty_log(self, tide: SparkSession, log: EventLog) -> None:
        log.create()
        assert self.read(tide, log, "n int").collect() == []
        with pytest.raises(AnalysisException, match="no events to infer columns from"):
            self.read(tide, log)

    def test_mismatches(self, tide: SparkSession, log: EventLog) -> None:
        log.append([{"n": 1}, {"n": "many"}, {"n": 2}])
        with pytest.raises(
            PythonException, match=r"'n' is of int, .* offset 1 has the string 'many'"
        ):
            self.read(tide, log, "n int").collect()
        found = self.read(tide, log, "n int", onMismatch="null").collect()
        assert [row.n for row in found] == [1, None, 2]
        with pytest.raises(AnalysisException, match="'n' is bigint in some events and string in"):
            self.read(tide, log)

    def test_a_batch_is_taken_once(self, tide: SparkSession, log: EventLog) -> None:
        for batch in (0, 0, 1):
            frame = tide.range(batch, batch + 4).withColumnRenamed("id", "n")
            self.write(frame, log, producer="p", batch=str(batch))
        assert numbers_in(log) == [0, 1, 2, 3, 1, 2, 3, 4]

    def test_a_write_that_fails_leaves_nothing(self, tide: SparkSession, log: EventLog) -> None:
        self.write(tide.range(3).withColumnRenamed("id", "n"), log)
        failing = F.when(F.col("id") == 99, F.raise_error(F.lit("bad row"))).otherwise(F.col("id"))
        with pytest.raises(Exception, match="bad row"):
            self.write(tide.range(0, 100, 1, 2).select(failing.cast("bigint").alias("n")), log)
        assert numbers_in(log) == [0, 1, 2]

    def test_wrong_uses(self, tide: SparkSession, tmp_path: Path) -> None:
        with pytest.raises(AnalysisException, match="option 'path' is missing"):
            tide.read.format("tidegate").load()
        with pytest.raises(AnalysisException, match="the URL of a broker goes in 'broker'"):
            tide.read.format("tidegate").option("url", "tidegate://here").load()
        with pytest.raises(AnalysisException, match="is not an event log"):
            tide.read.format("tidegate").load(str(tmp_path / "none"))
        with pytest.raises(AnalysisException, match="append-only"):
            tide.range(1).write.format("tidegate").mode("overwrite").save(str(tmp_path / "none"))


@pytest.mark.xdist_group("connectors")
class TestStream:
    def test_it_is_read_in_micro_batches_and_again_after_a_restart(
        self, tide: SparkSession, log: EventLog, tmp_path: Path
    ) -> None:
        log.append({"n": n} for n in range(15))
        into = EventLog(tmp_path / "into")
        paths = str(log.path), str(into.path), str(tmp_path / "checkpoint")
        for more in range(2):
            query = dying_stream.start(tide, *paths)
            assert query.awaitTermination(300)
            sizes = [progress.numInputRows for progress in query.recentProgress]
            assert [size for size in sizes if size] == [[10, 5], [3]][more]
            log.append({"n": n} for n in range(15, 18))
        assert sorted(numbers_in(into)) == list(range(18))  # type: ignore[type-var]
        assert {record.event.time for record in into.read()} == {THEN}

    def test_the_latest_are_those_to_come(self, tide: SparkSession, log: EventLog) -> None:
        log.append([{"n": 0}])
        events = tide.readStream.format("tidegate").option("startingOffset", "latest")
        query = (
            events.load(str(log.path))  # its columns are inferred
            .writeStream.format("memory")
            .queryName("latest_events")
            .start()
        )
        try:
            query.processAllAvailable()
            log.append([{"n": 1}, {"n": 2}])
            query.processAllAvailable()
        finally:
            query.stop()
        assert [(row.n, row["_offset"]) for row in tide.table("latest_events").collect()] == [
            (1, 1), (2, 2),
        ]  # fmt: skip

    def test_another_log_than_that_of_the_checkpoint(
        self, tide: SparkSession, log: EventLog, tmp_path: Path
    ) -> None:
        log.append({"n": n} for n in range(5))
        other = EventLog(tmp_path / "other")
        other.append([{"n": 0}])
        into, checkpoint = str(tmp_path / "into"), str(tmp_path / "checkpoint")
        dying_stream.start(tide, str(log.path), into, checkpoint).awaitTermination(300)
        query = dying_stream.start(tide, str(other.path), into, checkpoint)
        with pytest.raises(StreamingQueryException, match="not the log that the checkpoint was"):
            query.awaitTermination(300)

    @pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.soak), "after"])
    def test_a_kill_loses_nothing_and_doubles_nothing(
        self, tide: SparkSession, log: EventLog, tmp_path: Path, moment: str
    ) -> None:
        log.append({"n": n} for n in range(25))
        into, checkpoint = EventLog(tmp_path / "into"), tmp_path / "checkpoint"
        paths = str(log.path), str(into.path), str(checkpoint)
        command = [sys.executable, dying_stream.__file__, *paths, moment]
        ended = subprocess.run(command, capture_output=True, check=False)
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
        # Spark has not noted the second batch as done, whether or not the log has it.
        assert (checkpoint / "offsets" / "1").exists()
        assert not (checkpoint / "commits" / "1").exists()
        assert into.end_offset() == (10 if moment == "before" else 20)
        assert dying_stream.start(tide, *paths).awaitTermination(300)
        assert sorted(numbers_in(into)) == list(range(25))  # type: ignore[type-var]
