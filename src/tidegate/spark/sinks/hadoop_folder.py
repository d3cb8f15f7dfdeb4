"""A folder on the local disk or on any other file system that Hadoop, and so Spark, can reach."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


class HadoopFolder:
    """A folder, which need not exist, accessed through the Spark session that writes to it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        # PySpark has no interface to file systems, so this calls Hadoop's Java classes.
        java: Any = spark.sparkContext._jvm
        self._hadoop = java.org.apache.hadoop
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._path = self._hadoop.fs.Path(path)
        self._file_system = self._path.getFileSystem(configuration)

    def remove(self, name: str) -> None:
        """Remove a file or a subfolder, if it exists."""
        self._file_system.delete(self._child(name), True)

    def read(self, name: str) -> str | None:
        """The text of a small file; None if it does not exist."""
        if not self._file_system.exists(self._child(name)):
            return None
        stream = self._file_system.open(self._child(name))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a small file, replacing an existing one."""
        stream = self._file_system.create(self._child(name), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _child(self, name: str) -> Any:
        return self._hadoop.fs.Path(self._path, name)
