"""On Spark Connect and on older versions of Spark, what users call gives the same answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyspark
import pytest

from support import calls_program, cluster_program
from support.replayed_engine import embedded, time_of, without_versions
from support.spark_streams import Row, net
from support.spark_versions import installed_spark
from tidegate.language.events import Event
from tidegate.language.patterns.pattern import parse_pattern
from tidegate.language.patterns.sequence_matcher import SequenceMatcher

pytestmark = pytest.mark.xdist_group("cluster")


def embedded_sequences(events: list[Row]) -> list[list[object]]:
    [text] = calls_program.PATTERNS.column("pattern").to_pylist()
    matcher = SequenceMatcher(parse_pattern(str(text)))
    found: list[tuple[Event, ...]] = []
    for row in sorted(events, key=time_of):
        attributes = {name: row[name] for name in ("number", "a") if row[name] is not None}
        found += matcher.feed(Event.of(attributes, time_of(row)))
    found += matcher.flush()
    return sorted([each.attributes["number"] for each in match] for match in found)


def run(kind: str, folder: Path, *more_paths: Path) -> dict[str, Any]:
    """Run the program; returns what it found."""
    tests = Path(calls_program.__file__).parents[1]
    paths = [*map(str, more_paths), str(tests), os.environ.get("PYTHONPATH", "")]
    environment = {name: text for name, text in os.environ.items() if name != "SPARK_HOME"}
    done = subprocess.run(
        [sys.executable, calls_program.__file__, kind, str(folder)],
        env={
            **environment, "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
            "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx1g",
        },
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return found


def check(found: dict[str, Any], folder: Path, events: list[Row], changes: list[Row]) -> None:
    """Compare what the program found in tables and in the files of a stream with the engine."""
    history, log = cluster_program.drawn(1)
    wanted = embedded(history, log)
    for table in found["tables"]:
        assert Counter(map(tuple, table)) == wanted
    assert found["entering"] == wanted.total()
    assert found["sequences"] == embedded_sequences(history) != []
    streamed = embedded(events, changes)
    files = ds.dataset(folder / "parquet", ignore_prefixes=["_", "."])
    assert without_versions(net(files.to_table().to_pylist())) == streamed
    assert Counter(map(tuple, found["json"])) == streamed
    reports = [
        [json.loads(line) for line in (folder / f"reports-{name}").read_text().splitlines()]
        for name in ("parquet", "json")
    ]
    assert reports[0] == reports[1]
    assert [late for _, late in reports[0]] == [0] * cluster_program.BATCHES


def test_spark_connect_whose_client_has_no_jvm(tmp_path: Path) -> None:
    events, changes = cluster_program.write_stream(tmp_path)
    found = run("connect", tmp_path)
    assert (found["spark"], found["connect"]) == (pyspark.__version__, True)
    check(found, tmp_path, events, changes)


@pytest.mark.parametrize(
    "version",
    ["4.0", *(pytest.param(each, marks=pytest.mark.soak) for each in ("4.1", "4.2"))],
)
def test_an_older_spark(tmp_path: Path, version: str) -> None:
    try:
        installed = installed_spark(version, tmp_path)
    except subprocess.CalledProcessError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"needed in CI: {error.stderr.decode()[-500:]}")
        pytest.skip(f"Spark {version} is not here, and cannot be fetched")
    events, changes = cluster_program.write_stream(tmp_path)
    found = run("classic", tmp_path, installed)
    assert (found["spark"][:4], found["connect"]) == (f"{version}.", False)
    check(found, tmp_path, events, changes)
