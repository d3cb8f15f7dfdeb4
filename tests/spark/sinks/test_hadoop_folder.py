"""Small files through the file system of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidegate.spark.sinks.hadoop_folder import HadoopFolder


@pytest.mark.xdist_group("connectors")
def test_files_in_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    folder = HadoopFolder(spark, str(tmp_path / "not there yet"))
    folder.remove("a")
    assert folder.read("a") is None
    folder.write("a", "größe")
    folder.write("a", "länge")
    assert folder.read("a") == "länge"
    assert (tmp_path / "not there yet" / "a").read_text(encoding="utf-8") == "länge"
    folder.remove("a")
    assert folder.read("a") is None
