"""Folders as Spark sees them: on the local disk or on any file system that Hadoop knows."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


class Folder:
    """A folder, which need not exist, seen through the session that writes to it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        # Spark has no Python interface to file systems; this is the one of its Java side.
        java: Any = spark.sparkContext._jvm
        self._hadoop = java.org.apache.hadoop
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._path = self._hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(configuration)

    def remove(self, name: str) -> None:
        """Remove a file or folder in this one, if it is there."""
        self._files.delete(self._child(name), True)

    def read(self, name: str) -> str | None:
        """The text of a small file, or None if it is not there."""
        if not self._files.exists(self._child(name)):
            return None
        stream = self._files.open(self._child(name))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a small file, over the one that may be there."""
        stream = self._files.create(self._child(name), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _child(self, name: str) -> Any:
        return self._hadoop.fs.Path(self._path, name)
