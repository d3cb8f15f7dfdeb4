"""Fixtures: one Spark session, one Kafka broker and one S3 server for all tests of a process.

Tests that use them are in one of two xdist groups, so that two workers run all of them, each with a
session of its own: `connectors` for tests that need Kafka or a data source, `spark` for the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from support.kafka_broker import running_broker
from support.s3_server import S3Server, running_s3
from support.spark_sessions import start_session
from tidegate.errors import ConnectorError
from tidegate.spark.connectors import kafka_jars, s3_jars


def _skip_or_fail(error: ConnectorError) -> NoReturn:
    """Skip the test; in CI fail, because it must not pass by skipping."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"needed in CI: {error}")
    pytest.skip(f"not here: {error}")


@pytest.fixture(scope="session")
def connector_jars() -> list[Path] | ConnectorError:
    """The jars of the Kafka connector, or the error if they cannot be fetched."""
    try:
        return kafka_jars()
    except ConnectorError as error:
        return error


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, connector_jars: list[Path] | ConnectorError
) -> Iterator[SparkSession]:
    """The session that all tests of this process share."""
    jars = [] if isinstance(connector_jars, ConnectorError) else connector_jars
    session = start_session(tmp_path_factory.mktemp("spark"), jars)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka(
    tmp_path_factory: pytest.TempPathFactory, connector_jars: list[Path] | ConnectorError
) -> Iterator[str]:
    """The address of a running Kafka broker."""
    if isinstance(connector_jars, ConnectorError):
        _skip_or_fail(connector_jars)
    try:
        with running_broker(tmp_path_factory.mktemp("kafka")) as address:
            yield address
    except ConnectorError as error:
        _skip_or_fail(error)


@pytest.fixture(scope="session")
def s3_connector() -> list[Path]:
    """The jars of Spark's connector for S3."""
    try:
        return s3_jars()
    except ConnectorError as error:
        _skip_or_fail(error)


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running S3 server."""
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server
