"""One Spark session for all tests, which carry one xdist group, so that one worker has it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tidegate.spark.session import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        # a session that lives for minutes spends most of its time compiling
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    session = local_session("tidegate-tests", master="local[2]", settings=settings)
    yield session
    session.stop()
