import io
import json
from collections import Counter
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tidegate.errors import ConnectorError
from tidegate.spark.sinks.sink import ConsoleSink, KafkaSink, ParquetSink, Sink

pytestmark = pytest.mark.xdist_group("connectors")


def deliveries(spark: SparkSession, *ids: int) -> DataFrame:
    rows = spark.createDataFrame([(each,) for each in ids], "id bigint")
    return rows.selectExpr(
        "id",
        "concat('s', id % 2) as subscription",
        "'ann' as subscriber",
        "timestamp '2026-01-02T03:04:05.000006Z' as version",
    )


def ids_in(spark: SparkSession, path: Path) -> list[tuple[int, int]]:
    rows = spark.read.parquet(str(path)).collect()
    return sorted((row.batch, row.id) for row in rows)


def run(spark: SparkSession, sink: Sink, folder: Path, checkpoint: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "a.jsonl").write_text('{"id": 1}\n')
    rows = spark.readStream.schema("id bigint").json(str(folder))
    writer = rows.writeStream.foreachBatch(sink.write).trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()


def test_parquet_has_a_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink: Sink = ParquetSink(str(path))
    sink.write(deliveries(spark, 1, 2), 0)
    sink.write(deliveries(spark, 3, 4, 5), 1)
    sink.write(deliveries(spark, 3, 4, 5), 1)
    assert ids_in(spark, path) == [(0, 1), (0, 2), (1, 3), (1, 4), (1, 5)]


def test_parquet_removes_what_a_killed_try_left(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = ParquetSink(str(path))
    sink.write(deliveries(spark, 1), 0)
    for batch in (1, 2):  # what a try leaves that was killed while it moved its files into place
        deliveries(spark, 98, 99).write.parquet(str(path / f"batch={batch}"))
        (path / f"batch={batch}" / "_SUCCESS").unlink()
        (path / f"batch={batch}" / "_temporary").mkdir()
    sink.write(deliveries(spark, 2), 1)
    sink.write(deliveries(spark).where("id > 5"), 2)
    assert ids_in(spark, path) == [(0, 1), (1, 2)]
    assert not (path / "batch=2").exists()


def test_a_folder_belongs_to_one_query(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "out"
    run(spark, ParquetSink(str(path)), tmp_path / "in", tmp_path / "first")
    run(spark, ParquetSink(str(path)), tmp_path / "in", tmp_path / "first")  # started again
    with pytest.raises(StreamingQueryException, match="has the batches of another query"):
        run(spark, ParquetSink(str(path)), tmp_path / "in", tmp_path / "second")
    assert ids_in(spark, path) == [(0, 1)]


def test_parquet_needs_the_name_batch(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="have a column 'batch'"):
        ParquetSink(str(tmp_path)).write(spark.range(1).withColumnRenamed("id", "batch"), 0)


def records(spark: SparkSession, servers: str, topic: str) -> list[tuple[str, str]]:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", topic).load()
    return [tuple(row) for row in rows.selectExpr("string(key)", "string(value)").collect()]


def test_kafka_has_a_delivery_under_one_key(spark: SparkSession, kafka: str) -> None:
    topic = f"deliveries-{uuid4()}"
    sink: Sink = KafkaSink(kafka, topic, key=["id"])
    sink.write(deliveries(spark, 1, 2, 3), 0)
    sink.write(deliveries(spark, 1, 2, 3), 0)
    sink.write(deliveries(spark, 1), 1)  # the same event once more, hence another delivery
    found = records(spark, kafka, topic)
    assert len(found) == 7
    assert sorted(Counter(key for key, _ in found).values()) == [1, 2, 2, 2]
    assert len(set(found)) == 4
    version = "2026-01-02T03:04:05.000006Z"
    expected = {"id": 2, "subscription": "s0", "subscriber": "ann", "version": version}
    assert expected in [json.loads(value) for _, value in found]


def test_the_key_is_made_of_what_makes_a_delivery(spark: SparkSession, kafka: str) -> None:
    topic = f"deliveries-{uuid4()}"
    rows = spark.sql("""select * from values
        (1, 'x', 's', timestamp '2026-01-01', 'assert', 0.5D),
        (1, 'x', 's', timestamp '2026-01-01', 'retract', 0.5D),
        (1, 'x', 's', timestamp '2026-01-02', 'assert', 0.5D),
        (1, 'x', 't', timestamp '2026-01-01', 'assert', 0.5D),
        (1, 'y', 's', timestamp '2026-01-01', 'assert', 0.5D),
        (1, 'x', 's', timestamp '2026-01-01', 'assert', 1.5D)
        as deliveries (id, `a.b`, subscription, version, operation, price)""")
    KafkaSink(kafka, topic, key=["id", "a.b"]).write(rows, 0)
    found = records(spark, kafka, topic)
    assert len(found) == 6
    assert len({key for key, _ in found}) == 5  # the price is not in the key


def test_kafka_key_columns_must_be_there(spark: SparkSession) -> None:
    message = "no column 'event' for the key of their records; they have id, subscription, sub"
    with pytest.raises(ConnectorError, match=message):
        KafkaSink("localhost:1", "deliveries", key=["event"]).write(deliveries(spark, 1), 0)
    with pytest.raises(ConnectorError, match="needs key="):
        KafkaSink("localhost:1", "deliveries", key=[])
    with pytest.raises(ConnectorError, match="needs key="):
        KafkaSink("localhost:1", "deliveries", key="id")


def test_console(spark: SparkSession) -> None:
    out = io.StringIO()
    sink: Sink = ConsoleSink(rows_max=2, out=out)
    rows = deliveries(spark, 1, 2, 3).coalesce(1).selectExpr("id", "repeat('x', id * 20) as note")
    sink.write(rows, 7)
    sink.write(rows.where("id = 1"), 8)
    sink.write(rows.where("id = 4"), 9)
    assert out.getvalue().splitlines() == [
        "batch 7: 3 deliveries, the first 2 of them",
        "  id  note",
        "  1   " + "x" * 20,
        "  2   " + "x" * 27 + "...",
        "batch 8: 1 delivery",
        "  id  note",
        "  1   " + "x" * 20,
        "batch 9: no deliveries",
    ]


def test_console_prints(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleSink().write(spark.range(0), 0)
    assert capsys.readouterr().out == "batch 0: no deliveries\n"
