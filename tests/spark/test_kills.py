"""A stream that is killed in the middle of a batch loses no delivery and writes none twice."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from support import killed_query
from support.killed_query import Plan
from tidegate.language.events import Event
from tidegate.language.patterns.pattern import parse_pattern
from tidegate.language.patterns.sequence_matcher import SequenceMatcher

EVENTS = 40
FILES = 2
START = datetime(2026, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.xdist_group("connectors")

Delivery = tuple[object, ...]


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of events, and two of changes; the last change comes late."""
    changes = [
        {"time": at(0), "op": "subscribe", "id": "s", "filter": "a < :p", "params": {"p": 5}},
        {"time": at(8), "op": "update", "id": "s", "params": {"p": 3}},
    ]
    for name in ("events", "changes"):
        (tmp_path / name).mkdir()
    for file in range(FILES):
        events = [
            {"id": number, "a": number % 10, "time": at(number)}
            for number in range(EVENTS * file // FILES, EVENTS * (file + 1) // FILES)
        ]
        texts = {"events": "\n".join(map(json.dumps, events)), "changes": json.dumps(changes[file])}
        for name, text in texts.items():
            path = tmp_path / name / f"{file}.jsonl"
            path.write_text(text)
            os.utime(path, (1_000 + file, 1_000 + file))  # Spark takes the oldest first
    return tmp_path


def run_killed(plan: Plan) -> None:
    """Run the streams to the points where they are killed."""
    paths = [str(Path(killed_query.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, killed_query.__file__, plan.to_argument()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,  # its own process group, to be killed as a whole
        timeout=900,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-3000:]


class Collecting:
    """A sink in memory, for a query that is never killed."""

    def __init__(self) -> None:
        self.deliveries: Counter[Delivery] = Counter()

    def write(self, deliveries: DataFrame, batch_id: int) -> None:  # noqa: ARG002
        self.deliveries += counted(deliveries.toArrow().to_pylist())


def counted(rows: Iterable[dict[str, object]]) -> Counter[Delivery]:
    return Counter(
        (row["id"], row["subscription"], row["version"], row["operation"]) for row in rows
    )


def in_parquet(spark: SparkSession, path: Path) -> Counter[Delivery]:
    return counted(spark.read.parquet(str(path)).toArrow().to_pylist())


def in_kafka(spark: SparkSession, servers: str, topic: str) -> Counter[Delivery]:
    """The deliveries as a consumer sees them that deduplicates by key."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", topic).load().selectExpr("string(key)", "string(value)")
    found = [(row.key, row.value) for row in rows.collect()]
    assert len(found) > len(dict(found))  # at least once on the wire
    assert len(dict(found)) == len(set(found))  # no key with two values
    records = [json.loads(value) for value in dict(found).values()]
    for record in records:
        record["version"] = datetime.fromisoformat(record["version"])
    return counted(records)


def sequences(spark: SparkSession, path: Path) -> Counter[tuple[str, tuple[int, ...]]]:
    """The matches of patterns: the pattern, and its events."""
    rows = spark.read.parquet(str(path)).collect()
    return Counter((row.subscription, tuple(each.id for each in row.events)) for row in rows)


def embedded_sequences() -> Counter[tuple[str, tuple[int, ...]]]:
    """The matches of the embedded matcher.

    Without the last event: no watermark passes it before the stream ends.
    """
    found: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for id, text in killed_query.PATTERNS.items():
        matcher = SequenceMatcher(parse_pattern(text))
        for number in range(EVENTS - 1):
            time = START + timedelta(seconds=number)
            event = Event.of({"id": number, "a": number % 10}, time)
            for match in matcher.feed(event):
                found[id, tuple(int(str(each.attributes["id"])) for each in match)] += 1
    return found


def test_every_sink_has_every_delivery_once(folder: Path, spark: SparkSession, kafka: str) -> None:
    wanted = Collecting()
    unkilled = Plan(str(folder), kafka, {})
    killed_query.start(spark, unkilled, wanted, "unkilled").awaitTermination()
    operations = Counter(delivery[-1] for delivery in wanted.deliveries.elements())
    assert operations["retract"] > 0  # the late change takes something back
    for points in (
        {"patterns": 1, "parquet": 0}, {"patterns written": 2, "delta": 0},
        {"kafka": 1}, {"reported": 1},
    ):  # fmt: skip
        run_killed(Plan(str(folder), kafka, points))
    killed_query.run(spark, unkilled, patterns=True)
    assert sequences(spark, folder / "patterns") == embedded_sequences()
    assert in_parquet(spark, folder / "parquet") == wanted.deliveries
    delta = DeltaTable(folder / "delta").to_pyarrow_table().to_pylist()
    assert counted(delta) == wanted.deliveries
    assert in_kafka(spark, kafka, folder.name) == wanted.deliveries
