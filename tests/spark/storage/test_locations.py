"""A location means one place, however it is written, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidegate import ConnectorError
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.storage.locations import (
    credentials_of,
    folder_at,
    is_uri,
    local_path,
    scheme_of,
    spark_location,
)
from tidegate.spark.storage.remote_folder import RemoteFolder


@pytest.mark.parametrize("written", ["/a/b", "file:/a/b", "file:///a/b", "file://localhost/a/b"])
def test_paths_of_the_system(written: str) -> None:
    assert folder_at(written, {}) == LocalFolder(Path("/a/b"))
    assert local_path(written, "a log") == Path("/a/b")
    assert spark_location(written) == "file:///a/b"


def test_a_relative_path_is_one_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for written in ("out/x", "./out/x", "out/../out/x"):
        assert folder_at(written, {}) == LocalFolder(tmp_path / "out" / "x")
        assert spark_location(written) == f"file://{tmp_path}/out/x"
    assert spark_location("in/*.json") == f"file://{tmp_path}/in/*.json"


def test_the_two_names_of_s3_are_one() -> None:
    for written in ("s3://bucket/a", "s3a://bucket/a", "s3a://bucket/a/"):
        assert folder_at(written, {}) == folder_at("s3a://bucket/a", {})
        assert folder_at(written, {}).spark_path == "s3a://bucket/a"
    assert spark_location("s3://bucket/a*") == "s3a://bucket/a*"
    assert spark_location("dbfs:/a") == "dbfs:/a"  # known to Spark alone


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("ftp://host/a", "there is no storage 'ftp'; there are paths and file://, s3://"),
        ("dbfs:/a", "there is no storage 'dbfs'"),
        ("file://host/a", "the path of another machine, host; write file:///path"),
        ("s3a:///a", "the name of the bucket is missing"),
        ("hdfs:///a", "the name of the server is missing"),
        ("abfss://account/a", "write abfss://<container>@<account>"),
    ],
)
def test_what_is_no_location_is_refused_by_name(written: str, reason: str) -> None:
    with pytest.raises(ConnectorError, match=f"^{written}: {reason}"):
        folder_at(written, {})


def test_what_must_be_a_path_of_the_system() -> None:
    reason = "an event log must be in a local or mounted folder, which 's3a://b/a' is not"
    with pytest.raises(ConnectorError, match=reason):
        local_path("s3a://b/a", "an event log")


def test_schemes() -> None:
    assert [scheme_of(each) for each in ("S3A://b", "a:b/c", "c", "gs://b")] == [
        "s3a", "file", "file", "gs",
    ]  # fmt: skip
    assert [is_uri(each) for each in ("s3a://b", "file:/a", "/a", "a/b:c")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_settings_of_spark_for_s3_are_those_of_arrow() -> None:
    folder = folder_at(
        "s3a://b/a",
        {
            "fs.s3a.endpoint": "host:9000",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.access.key": "k",
            "fs.s3a.secret.key": "s",
            "fs.s3a.session.token": "t",
        },
    )
    assert isinstance(folder, RemoteFolder)
    assert dict(folder.options) == {
        "endpoint_override": "host:9000", "scheme": "http", "access_key": "k", "secret_key": "s",
        "session_token": "t", "region": "us-east-1", "force_virtual_addressing": False,
    }  # fmt: skip


@pytest.mark.xdist_group("spark")
def test_credentials_come_from_the_session(spark: SparkSession) -> None:
    assert credentials_of(spark) == {}
    spark.conf.set("spark.hadoop.fs.s3a.access.key", "k")
    spark.conf.set("fs.s3a.endpoint.region", "eu-north-1")
    try:
        assert credentials_of(spark) == {
            "fs.s3a.access.key": "k",
            "fs.s3a.endpoint.region": "eu-north-1",
        }
    finally:
        spark.conf.unset("spark.hadoop.fs.s3a.access.key")
        spark.conf.unset("fs.s3a.endpoint.region")
