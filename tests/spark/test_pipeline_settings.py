"""The TOML file of a pipeline: defaults, paths, and the errors for wrong files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tidegate import ConnectorError
from tidegate.spark.pipeline_settings import PipelineSettings, read_settings

LEAST = """
[source]
format = "json"
path = "in/events"
schema = "a int, time timestamp"
event_time = "time"
[subscriptions]
changes = "changes"
[sink]
format = "parquet"
path = "out"
[checkpoint]
path = "checkpoint"
"""


def read(folder: Path, text: str) -> PipelineSettings:
    file = folder / "pipeline.toml"
    file.write_text(text, encoding="utf-8")
    return read_settings(file)


def changed(before: str, after: str) -> str:
    assert before in LEAST
    return LEAST.replace(before, after, 1)


def test_what_need_not_be_said(tmp_path: Path) -> None:
    found = read(tmp_path, LEAST)
    assert found.subscriptions.lateness == timedelta(seconds=10)
    assert (found.source.starting, found.source.drift, found.source.headers) == (
        "earliest", "bad", [],
    )  # fmt: skip
    assert (found.trigger.every, found.trigger.once) == (None, False)
    assert (found.sink.columns, found.sink.grouped, found.sink.key) == (None, False, [])
    assert (found.metrics, found.variables, found.spark) == (None, {}, {})
    assert not found.needs_kafka
    assert not found.needs_s3


def test_paths_are_those_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(tmp_path, LEAST)
    assert found.source.path == str(tmp_path / "in/events")
    assert found.subscriptions.changes == str(tmp_path / "changes")
    assert found.checkpoint.path == str(tmp_path / "checkpoint")
    away = read(tmp_path, changed('path = "out"', 'path = "s3a://bucket/out"'))
    assert away.sink.path == "s3a://bucket/out"
    assert not away.needs_s3  # workers write without Spark's connector
    for location in ("s3://bucket/c", "s3a://bucket/c"):
        there = read(tmp_path, changed('path = "checkpoint"', f'path = "{location}"'))
        assert (there.checkpoint.path, there.needs_s3) == (location, True)
    local = read(tmp_path, changed('path = "out"', 'path = "file:/data/out"'))
    assert local.sink.path == "file:/data/out"
    whole = read(tmp_path, changed('path = "out"', 'path = "/data/out"'))
    assert whole.sink.path == "/data/out"
    monkeypatch.chdir(tmp_path)
    assert read_settings("pipeline.toml").source.path == str(tmp_path / "in/events")


def test_all_that_can_be_said(tmp_path: Path) -> None:
    text = changed('changes = "changes"', 'topic = "changes"\nservers = "s:1"\nlateness = "2 min"')
    text = text.replace('format = "json"', 'format = "json"\noptions = {multiLine = true}')
    text += 'rejected = "rejected"\n[trigger]\nevery = "500 ms"\n[metrics]\nport = 0\n'
    text = text.replace('event_time = "time"', 'event_time = "time"\nahead = "1 d"')
    text += '[variables]\nload = 0.5\n[spark]\n"spark.master" = "local[2]"\n'
    found = read(tmp_path, text)
    assert found.needs_kafka
    assert found.subscriptions.lateness == timedelta(minutes=2)
    assert found.source.options == {"multiLine": True}
    assert found.checkpoint.rejected == str(tmp_path / "rejected")
    assert found.trigger.every == timedelta(milliseconds=500)
    assert found.source.ahead == timedelta(days=1)
    assert found.metrics is not None
    assert (found.metrics.port, found.metrics.address) == (0, "127.0.0.1")
    assert (found.variables, found.spark) == ({"load": 0.5}, {"spark.master": "local[2]"})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0 s", timedelta(0)),
        ("1.5h", timedelta(minutes=90)),
        (" 7 d ", timedelta(days=7)),
        ("250ms", timedelta(milliseconds=250)),
    ],
)
def test_durations(tmp_path: Path, text: str, wanted: timedelta) -> None:
    given = changed('changes = "changes"', f'changes = "changes"\nlateness = "{text}"')
    assert read(tmp_path, given).subscriptions.lateness == wanted


@pytest.mark.parametrize("value", ['"10"', '"-1 s"', '"1e3 s"', '"1 week"', '""'])
def test_what_is_no_duration(tmp_path: Path, value: str) -> None:
    given = changed('changes = "changes"', f'changes = "changes"\nlateness = {value}')
    with pytest.raises(
        ConnectorError, match=r"\[subscriptions\] lateness: '.*' is not a duration; "
    ):
        read(tmp_path, given)


@pytest.mark.parametrize("value", ["10", "true"])
def test_a_duration_is_a_string(tmp_path: Path, value: str) -> None:
    given = changed('changes = "changes"', f'changes = "changes"\nlateness = {value}')
    with pytest.raises(
        ConnectorError, match="lateness must be a duration in a string such as '10 s'"
    ):
        read(tmp_path, given)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ('path = "out"', "path = 3", "[sink] path must be a string, not 3"),
        ('path = "out"', 'path = ""', "[sink] path is empty"),
        ('path = "out"', 'path = "o"\ngrouped = 1', "[sink] grouped must be true or false, not 1"),
        (
            'path = "out"',
            'path = "o"\ncolumns = "a"',
            "[sink] columns must be a list of strings, not 'a'",
        ),
        ('path = "out"', 'path = "o"\nkey = ["a", 1]', "[sink] key must be a list of strings"),
        ('path = "out"', "", "[sink] path is missing; the format parquet needs it"),
        ('format = "parquet"', 'format = "kafka"', "[sink] servers is missing; the format kafka"),
        (
            'format = "parquet"',
            'format = "kafka"\nservers = "s:1"\ntopic = "t"',
            "[sink] key is missing; the format kafka needs it",
        ),
        (
            'format = "parquet"',
            'format = "csv"',
            "[sink] format: there is no 'csv'; there are parquet, delta, kafka, tidegate, broker",
        ),
        (
            'format = "parquet"',
            'format = "tidegate"\ngrouped = true',
            "[sink] grouped makes lists, which an event cannot have",
        ),
        (
            'format = "parquet"',
            'format = "parquet"\ncompact_every = 3',
            "[sink] compact_every is for delta",
        ),
        (
            'format = "parquet"',
            'format = "parquet"\nmode = "upsert"',
            "[sink] mode is for kafka",
        ),
        (
            'format = "parquet"',
            'format = "parquet"\nmode = "replace"',
            "[sink] mode: there is no 'replace'; there are append, fold, upsert",
        ),
        (
            'changes = "changes"',
            'table = "t"\ninitial = "i"',
            "[subscriptions] initial goes with changes or a topic, not with table",
        ),
        ('format = "json"', "", "[source] format is missing"),
        ('format = "json"', 'format = "json"\ndrift = "x"', "[source] drift: there is no 'x'"),
        ('format = "json"', 'format = "json"\noptions = 1', "[source] options must be a table"),
        (
            'format = "json"',
            'format = "json"\nsheme = "a"',
            "[source] has no key sheme; it has format",
        ),
        ('path = "checkpoint"', "", "[checkpoint] path is missing"),
        (
            'path = "checkpoint"',
            'path = "c"\naside = "a"',
            "[checkpoint] aside is now called rejected",
        ),
        ("[checkpoint]", "[metrics]", "the table [checkpoint] is missing"),
        ("[source]", "checkpoint = 1\n[source]", "is not valid TOML"),
        ("[source]", "metrics = 1\n[source]", "metrics must be a table: write [metrics]"),
        ("[source]", "[sources]", "there is no table [sources]; there are source, subscriptions"),
        (
            'changes = "changes"',
            'changes = "c"\ntable = "t"',
            "[subscriptions] needs one of table (a file), changes (a folder) and topic (in Kafka), "
            "not table and changes",
        ),
        ('changes = "changes"', 'topic = "t"', "[subscriptions] servers is missing; a topic needs"),
        (
            'changes = "changes"',
            'changes = "c"\nlateness = "99999999999 d"',
            "[subscriptions] lateness: '99999999999 d' is longer than the range of timestamps",
        ),
        ('event_time = "time"', "", "[source] event_time is missing; with changes"),
        (
            "[checkpoint]",
            '[trigger]\nevery = "1 s"\nonce = true\n[checkpoint]',
            "[trigger] has both every and once; give one of them",
        ),
        (
            "[checkpoint]",
            "[metrics]\nport = true\n[checkpoint]",
            "[metrics] port must be an integer",
        ),
        ("[checkpoint]", "[metrics]\n[checkpoint]", "[metrics] port is missing"),
    ],
)
def test_what_is_refused(tmp_path: Path, before: str, after: str, reason: str) -> None:
    with pytest.raises(ConnectorError) as refused:
        read(tmp_path, changed(before, after))
    assert str(refused.value).startswith(f"{tmp_path}/pipeline.toml: {reason}")


def test_times_need_not_be_known_for_a_table(tmp_path: Path) -> None:
    text = changed('changes = "changes"', 'table = "s.jsonl"').replace('event_time = "time"', "")
    found = read(tmp_path, text)
    assert (found.source.event_time, found.subscriptions.table) == (None, str(tmp_path / "s.jsonl"))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match=r"none\.toml: No such file or directory"):
        read_settings(tmp_path / "none.toml")
    with pytest.raises(ConnectorError, match="Is a directory"):
        read_settings(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'[source]\nformat = "\xe4"\n')
    with pytest.raises(ConnectorError, match=r"latin\.toml: is not valid TOML"):
        read_settings(tmp_path / "latin.toml")
