"""Pipelines from TOML files, run as commands."""

from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from support.broker_thread import broker
from tidegate.cli import cli, main
from tidegate.errors import ConnectorError
from tidegate.network.client.sync import connect_sync
from tidegate.spark.log import datasource
from tidegate.spark.pipeline import read_table

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

EVENTS = [
    '{"symbol": "A", "price": 5, "time": "2026-01-01T00:00:01Z"}',
    '{"symbol": "A", "price": "high", "time": "2026-01-01T00:00:02Z"}',
    '{"symbol": "B", "price": 9.5, "time": "2026-01-01T00:00:03Z"}',
    "no event",
]
CHANGES = [
    '{"time": "2026-01-01T00:00:00Z", "op": "subscribe", "id": "cheap", "filter": "price < :p",'
    ' "params": {"p": 7}, "subscriber": "ann"}',
    '{"time": "2026-01-01T00:00:03Z", "op": "update", "id": "cheap", "params": {"p": 10}}',
    '{"time": "2026-01-01T00:00:03Z", "op": "update"}',
]
SETTINGS = """
[source]
format = "json"
path = "events"
schema = "symbol string, price double, time timestamp"
event_time = "time"
[subscriptions]
changes = "changes"
[sink]
format = "{sink}"
path = "deliveries"
[checkpoint]
path = "checkpoint"
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["pipeline", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows in (("events", EVENTS), ("changes", CHANGES)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.jsonl").write_text("\n".join(rows))
    (tmp_path / "pipeline.toml").write_text(SETTINGS.format(sink="parquet"))
    return tmp_path


def test_a_run_delivers_and_rejects(folder: Path, spark: SparkSession) -> None:
    done = run("run", folder / "pipeline.toml", "--once", "--json")
    assert done.exit_code == 0, done.output
    [told] = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert (told["events"], told["changes"], told["matches"], told["bad"]) == (2, 3, 2, 3)
    found = spark.read.parquet(str(folder / "deliveries")).toArrow().to_pylist()
    told_rows = sorted((r["symbol"], r["subscription"], r["version"].second) for r in found)
    assert told_rows == [("A", "cheap", 0), ("B", "cheap", 3)]
    rejected = spark.read.parquet(str(folder / "checkpoint" / "rejected")).toArrow().to_pylist()
    assert sorted(row["kind"] for row in rejected) == ["change", "event", "event"]
    reasons = " ".join(row["reason"] for row in rejected)
    assert "column 'price' is a string" in reasons


def test_a_second_run_goes_on(folder: Path, spark: SparkSession) -> None:
    assert run("run", folder / "pipeline.toml", "--once").exit_code == 0
    assert run("run", folder / "pipeline.toml", "--once").exit_code == 0
    (folder / "events" / "1.jsonl").write_text(EVENTS[0])
    done = run("run", folder / "pipeline.toml", "--once")
    assert "batch 1: 1 event in" in done.stderr
    assert spark.read.parquet(str(folder / "deliveries")).count() == 3


def test_a_pipeline_in_a_space(folder: Path, spark: SparkSession) -> None:
    types = {"symbol": "string", "price": "float", "time": "timestamp"}
    file, settings = folder / "pipeline.toml", SETTINGS.format(sink="parquet")
    file.write_text(settings.replace("[subscriptions]", 'space = "space.json"\n[subscriptions]'))
    write_space(folder, {**types, "price": "integer"})
    done = run("check", file)
    assert str(done.exception) == (
        "[source] schema: column 'price' is double here and integer in space 'trades'"
    )
    write_space(folder, types)
    late = '{"time": "2026-01-01T00:00:00Z", "op": "subscribe", "id": "late", "filter": "time > :p"'
    wrong = late.replace("late", "wrong").replace("time > :p", "prize > :p")
    params = ', "params": {"p": "2026-01-01T00:00:02Z"}}'
    changes = [*CHANGES, late + params, wrong + params]
    (folder / "changes" / "0.jsonl").write_text("\n".join(changes))
    assert run("check", file).exit_code == 0
    assert run("run", file, "--once").exit_code == 0
    found = spark.read.parquet(str(folder / "deliveries")).toArrow().to_pylist()
    told_rows = sorted((r["symbol"], r["subscription"]) for r in found)
    assert told_rows == [("A", "cheap"), ("B", "cheap"), ("B", "late")]
    rejected = spark.read.parquet(str(folder / "checkpoint" / "rejected")).toArrow().to_pylist()
    reasons = [row["reason"] for row in rejected if "prize" in row["reason"]]
    assert reasons[0].startswith("subscription 'wrong': space 'trades' has no attribute 'prize'")


def test_a_table_of_subscriptions_in_a_space(folder: Path) -> None:
    settings = SETTINGS.format(sink="parquet").replace('changes = "changes"', 'table = "s.jsonl"')
    file = folder / "pipeline.toml"
    file.write_text(settings.replace("[subscriptions]", 'space = "space.json"\n[subscriptions]'))
    (folder / "s.jsonl").write_text('{"id": "a", "filter": "time > :p", "params": {"p": "soon"}}')
    assert "space.json: cannot be read" in str(run("check", file).exception)
    write_space(folder, {"symbol": "string", "price": "float", "time": "timestamp"})
    told = str(run("check", file).exception)
    assert "parameter :p: 'soon' is not a timestamp" in told
    (folder / "s.jsonl").write_text('{"id": "a", "filter": "true or prize < 5"}')
    assert "space 'trades' has no attribute 'prize'" in str(run("check", file).exception)
    (folder / "s.jsonl").write_text(
        '{"id": "a", "filter": "time > :p", "params": {"p": "2026-01-01T00:00:02Z"}}'
    )
    assert run("check", file).exit_code == 0
    done = run("run", file, "--once")
    assert done.exit_code == 0
    assert "1 match," in done.stderr


def write_space(folder: Path, types: dict[str, str]) -> None:
    (folder / "space.json").write_text(json.dumps({"name": "trades", "attributes": types}))


def test_an_event_log_as_sink_and_source(folder: Path, spark: SparkSession) -> None:
    datasource.register(spark)
    file = folder / "pipeline.toml"
    file.write_text(SETTINGS.format(sink="tidegate"))
    assert run("run", file, "--once").exit_code == 0
    found = spark.read.format("tidegate").load(str(folder / "deliveries"))
    assert found.select("symbol", "subscription", "operation").count() == 2
    (folder / "deliveries").rename(folder / "log")  # which another pipeline reads
    text = SETTINGS.format(sink="parquet").replace('"json"', '"tidegate"')
    text = text.replace('path = "events"', 'path = "log"')
    file.write_text(text.replace('path = "checkpoint"', 'path = "second"'))
    asked = {"time": "2026-01-01T00:00:00Z", "op": "subscribe", "id": "b", "filter": "symbol > 'A'"}
    (folder / "changes" / "1.jsonl").write_text(json.dumps(asked))
    done = run("run", file, "--once")
    assert done.exit_code == 0, done.output
    rows = spark.read.parquet(str(folder / "deliveries")).collect()
    assert sorted((row.symbol, row.subscription) for row in rows) == [
        ("A", "cheap"), ("B", "b"), ("B", "cheap"),
    ]  # fmt: skip


def test_a_broker_as_source_and_sink(folder: Path) -> None:
    """The pipeline reads its place in the broker's queue, and publishes deliveries there."""
    with broker(folder / "broker") as url, connect_sync(url, identity="pub") as publisher:
        source = f'format = "broker"\nbroker = "{url}"\nidentity = "pipe"\nfilter = "symbol > \'\'"'
        text = SETTINGS.replace('format = "json"\npath = "events"', source)
        text = text.replace('path = "deliveries"', f'broker = "{url}"')
        file = folder / "pipeline.toml"
        file.write_text(text.format(sink="broker"))
        checked = run("check", file)
        assert f"source         broker, {url}\n" in checked.output, checked.output
        reader = publisher.subscribe("subscription = 'cheap'")
        assert run("run", file, "--once").exit_code == 0  # from now on events wait for it
        events = [(5.0, 1), (9.5, 3)]
        publisher.publish_many(
            [
                {"symbol": "A", "price": price, "time": datetime(2026, 1, 1, 0, 0, s, tzinfo=UTC)}
                for price, s in events
            ],
            confirm=True,
        )
        done = run("run", file, "--once", "--json")
        assert done.exit_code == 0, done.output
        came = [reader.next(30), reader.next(30)]
        assert sorted((each["price"], each["operation"]) for each in came if each is not None) == [
            (5.0, "assert"), (9.5, "assert"),
        ]  # fmt: skip


def test_a_table_of_subscriptions_and_metrics(folder: Path) -> None:
    text = SETTINGS.format(sink="console") + "[metrics]\nport = 0\n"
    (folder / "pipeline.toml").write_text(text.replace('changes = "changes"', 'table = "s.jsonl"'))
    (folder / "s.jsonl").write_text('{"id": "all", "filter": "price > 0"}\n')
    checked = run("check", folder / "pipeline.toml")
    assert f"subscriptions  1 in {folder}/s.jsonl" in checked.output
    done = run("run", folder / "pipeline.toml", "--once")
    assert "batch 0: 2 deliveries" in done.stdout
    address = done.stderr.split("metrics at ")[1].split()[0]
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    assert "tidegate_events_total 2.0" in lines
    assert "tidegate_matches_total 2.0" in lines
    assert "tidegate_bad_total 2.0" in lines


def test_init_writes_a_file_that_reads_back(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    assert run("init", file).exit_code == 0
    again = run("init", file)
    assert "exists already" in str(again.exception)
    assert "there is no" in str(run("check", file).exception)
    for name in ("events", "changes"):
        (tmp_path / name).mkdir()
    assert run("check", file).exit_code == 0


def test_a_table_of_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(
        b'\xef\xbb\xbf{"id": "a", "filter": "x > :p", "params": {"p": 1}}\n\n{"id": "b"}\n'
    )
    assert read_table(str(file), {}).to_pylist() == [
        {"id": "a", "filter": "x > :p", "params": '{"p": 1}'},
        {"id": "b", "filter": None, "params": None},
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"id": "a"}\n\n{\n', r"s\.jsonl:3: not valid JSON"),
        (b'{"id": "\xe9"}\n', r"s\.jsonl:1: is not UTF-8"),
        (b'{"id": "a"}\n{"id": 1}\n', r"s\.jsonl: "),
    ],
)
def test_a_table_that_cannot_be_read(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(content)
    with pytest.raises(ConnectorError, match=reason):
        read_table(str(file), {})


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("[sink]", "[snk]", "there is no table [snk]; there are source, subscriptions, sink"),
        ('format = "json"', 'format = "jsn"', "[source] format: there is no 'jsn'; there are json"),
        ('path = "events"', "", "[source] path is missing; the format json needs it"),
        ('path = "events"', "path = 3", "[source] path must be a string, not 3"),
        ('changes = "changes"', "", "[subscriptions] needs one of table (a file), changes"),
        (
            'changes = "changes"',
            'changes = "c"\nlateness = "soon"',
            "[subscriptions] lateness: 'soon' is not a duration; "
            "write a number and one of ms, s, min",
        ),
        (
            'changes = "changes"',
            'changes = "c"\nlateness = 3',
            "[subscriptions] lateness must be a duration in a string such as '10 s', not 3",
        ),
        ('event_time = "time"', "", "[source] event_time is missing; with changes"),
        ('event_time = "time"', 'event_time = "tme"', "no column 'tme' with their time"),
        (
            'path = "deliveries"',
            'path = "ftp://a/b"',
            "[sink] ftp://a/b: there is no storage 'ftp'",
        ),
        ('path = "checkpoint"', 'path = "dbfs:/b"', "[checkpoint] dbfs:/b: there is no storage"),
        (
            'format = "parquet"\npath = "deliveries"',
            'format = "delta"\npath = "s3://b/t"',
            "[sink] a Delta table must be in a local or mounted folder, which 's3://b/t' is not",
        ),
        (
            'format = "json"\npath = "events"',
            'format = "tidegate"\npath = "s3://b/t"',
            "[source] an event log must be in a local or mounted folder, which 's3://b/t' is not",
        ),
        (
            'format = "json"\npath = "events"',
            'format = "broker"\nbroker = "localhost"\nidentity = "i"',
            "[source] option 'broker': 'localhost' is not the URL of a broker",
        ),
        (
            'format = "json"\npath = "events"',
            'format = "broker"\nbroker = "tidegate://localhost"',
            "[source] identity is missing; the format broker needs it",
        ),
        (
            'format = "parquet"\npath = "deliveries"',
            'format = "broker"\nbroker = "tidegate://127.0.0.1:1"\noptions.timeout = 0.2',
            "[sink] tidegate://127.0.0.1:1 cannot be reached",
        ),
        (
            'path = "checkpoint"',
            'path = "hdfs://nowhere/c"',
            "[checkpoint] hdfs://nowhere cannot be reached",
        ),
        ("price double", "price array<int>", "column 'price' is array<int>; a list is not a value"),
        ("price double", "price dubble", "is not DDL"),
        ("[checkpoint]", "[checkpoint", "is not valid TOML"),
        (
            'path = "checkpoint"',
            'path = "c"\nmode = 1',
            "[checkpoint] has no key mode; it has path",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    folder: Path, before: str, after: str, reason: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    file = folder / "pipeline.toml"
    file.write_text(SETTINGS.format(sink="parquet").replace(before, after, 1))
    monkeypatch.setattr("sys.argv", ["tidegate", "pipeline", "check", str(file)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert reason in capsys.readouterr().err
