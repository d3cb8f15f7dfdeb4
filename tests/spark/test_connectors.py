"""Jars are fetched once, by one process, and errors say what would help."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidegate.errors import ConnectorError
from tidegate.spark import connectors
from tidegate.spark.connectors import JarSet, cache_folder, fetch_jars, kafka_jars, s3_jars

SOME = JarSet("some-1.0", ("org.example:some:1.0",), ("org.example:other:0.9",))

FetchAs = Callable[[str], Path]


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FetchAs:
    """Replaces Maven by a script, and the cache by an empty one.

    In the script $TARGET is the folder for the jars. Each run adds a line to a file, whose path is
    returned.
    """
    runs = tmp_path / "runs"

    def install(script: str) -> Path:
        program = tmp_path / "bin" / "mvn"
        program.parent.mkdir()
        program.write_text(
            "#!/bin/sh\n"
            'for each in "$@"; do case $each in -DoutputDirectory=*)\n'
            'TARGET="${each#*=}";; esac; done\n'
            f'echo "$@" >> "{runs}"\n{script}\n',
            encoding="utf-8",
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return runs

    monkeypatch.setenv("TIDEGATE_JARS", str(tmp_path / "jars"))
    return install


def test_the_cache_is_in_the_home_folder_unless_another_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TIDEGATE_JARS", raising=False)
    assert cache_folder() == Path.home() / ".cache/tidegate/jars"
    monkeypatch.setenv("TIDEGATE_JARS", "/somewhere")
    assert cache_folder() == Path("/somewhere")


def test_jars_are_fetched_once(maven: FetchAs) -> None:
    runs = maven('touch "$TARGET/some-1.0.jar" "$TARGET/other-0.9.jar"')
    names = [jar.name for jar in fetch_jars(SOME)]
    assert names == ["other-0.9.jar", "some-1.0.jar"]
    assert fetch_jars(SOME) == [cache_folder() / "some-1.0" / name for name in names]
    assert len(runs.read_text().splitlines()) == 1


def test_the_project_names_the_artifacts_and_the_versions_to_take_instead(maven: FetchAs) -> None:
    runs = maven('cp pom.xml "$TARGET/pom.jar"')
    (project,) = fetch_jars(SOME)
    text = project.read_text()
    assert "<artifactId>some</artifactId><version>1.0</version>" in text
    managed = text.partition("<dependencyManagement>")[2].partition("</dependencyManagement>")[0]
    assert "<artifactId>other</artifactId><version>0.9</version>" in managed
    assert "copy-dependencies" in runs.read_text()


def test_concurrent_calls_share_one_fetch(maven: FetchAs) -> None:
    runs = maven('sleep 0.2; touch "$TARGET/some-1.0.jar"')
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fetch_jars, [SOME] * 4))
    assert [[jar.name for jar in each] for each in found] == [["some-1.0.jar"]] * 4
    assert len(runs.read_text().splitlines()) == 1


def test_what_spark_has_itself_is_left_out(maven: FetchAs) -> None:
    maven('touch "$TARGET/scala-library-2.13.1.jar" "$TARGET/kafka-clients-3.9.2.jar"')
    assert [jar.name for jar in kafka_jars()] == ["kafka-clients-3.9.2.jar"]


def test_of_amazons_sdk_only_some_modules_are_fetched(maven: FetchAs) -> None:
    maven('cp pom.xml "$TARGET/pom.jar"; touch "$TARGET/slf4j-api-1.7.36.jar"')
    (project,) = s3_jars()
    text = project.read_text()
    excluded = "<groupId>software.amazon.awssdk</groupId><artifactId>bundle</artifactId>"
    assert text.count(f"<exclusion>{excluded}</exclusion>") == text.count("</exclusions>") == 4
    assert "<artifactId>hadoop-aws</artifactId>" in text
    assert "<artifactId>s3-transfer-manager</artifactId>" in text


def test_an_older_connector_is_taken_where_that_of_this_spark_is_not_there(
    maven: FetchAs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.3.0")
    runs = maven('grep -q ">4.2.0<" pom.xml || exit 1\ntouch "$TARGET/kafka-clients-3.9.2.jar"')
    assert [jar.parent.name for jar in kafka_jars()] == ["spark-kafka-4.2.0"]
    kafka_jars()
    assert len(runs.read_text().splitlines()) == 2  # and not 3


def test_a_failure_says_what_is_missing_and_what_would_help(maven: FetchAs) -> None:
    maven('printf "\\033[1m[ERROR] Could not find it -> [Help 1]\\n[ERROR] more\\n"; exit 1')
    with pytest.raises(ConnectorError) as caught:
        fetch_jars(SOME)
    assert str(caught.value) == (
        "Maven cannot fetch org.example:some:1.0: Could not find it; check that the Maven "
        "repository is reachable and has it, or copy the jar and its dependencies to "
        f"{cache_folder()}/some-1.0"
    )
    assert list(cache_folder().glob("[!.]*")) == []


def test_no_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_JARS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConnectorError, match=r"no Maven .* install Maven, or copy the jar"):
        kafka_jars()


def test_jars_put_there_by_hand_need_no_maven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_JARS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "some-1.0").mkdir()
    with pytest.raises(ConnectorError, match="has no jars"):
        fetch_jars(SOME)
    (tmp_path / "some-1.0" / "a.jar").touch()
    assert [jar.name for jar in fetch_jars(SOME)] == ["a.jar"]


def test_maven_that_hangs_is_given_up(maven: FetchAs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connectors, "MAVEN_SECONDS_MAX", 0.1)
    maven("exec sleep 30")
    with pytest.raises(ConnectorError, match="did not fetch"):
        fetch_jars(SOME)


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TIDEGATE_JARS", str(tmp_path / "file" / "jars"))
    with pytest.raises(ConnectorError, match="cannot be stored"):
        fetch_jars(SOME)
