"""A folder in an object store or in HDFS, as Arrow reaches it.

An object store has no rename, and needs none: an object appears as a whole when it was written. In
HDFS a file can be seen while it is written, so it is written under another name first.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from tidegate.errors import ConnectorError

_COPIED_BYTES = 4 * 2**20
_WITH_RENAME = ("hdfs",)

Options = tuple[tuple[str, Any], ...]
"""Arguments of the class of Arrow's file system, beside those of the URI."""


@dataclass(frozen=True, slots=True)
class RemoteFolder:
    """A folder behind a URI."""

    scheme: str
    root: str
    """What the URI begins with, as Spark takes it; the path follows."""
    arrow_root: str
    """What the path begins with in Arrow's file system."""
    path: str
    options: Options = field(default=(), repr=False)  # has secrets

    @property
    def location(self) -> str:
        return f"{self.root}{self.path}"

    @property
    def spark_path(self) -> str:
        return self.location

    def folder(self, name: str) -> RemoteFolder:
        return replace(self, path=f"{self.path}/{name}")

    def names(self) -> list[str]:
        selector = pafs.FileSelector(self.arrow_root + self.path, allow_not_found=True)
        return sorted(each.base_name for each in self._file_system.get_file_info(selector))

    def exists(self, name: str) -> bool:
        found = self._file_system.get_file_info(self._child(name))
        return bool(found.type != pafs.FileType.NotFound)

    def read(self, name: str) -> bytes:
        with self.open_input(name) as file:
            return bytes(file.read())

    def write(self, name: str, content: bytes) -> None:
        target, part = self._target(name)
        with self._file_system.open_output_stream(part) as file:
            file.write(content)
        self._finish(part, target)

    @property
    def has_rename(self) -> bool:
        return self.scheme in _WITH_RENAME

    def rename(self, name: str, target: str) -> None:
        self._file_system.move(self._child(name), self._child(target))

    def remove(self, name: str) -> None:
        path = self._child(name)
        found = self._file_system.get_file_info(path)
        if found.type == pafs.FileType.Directory:
            self._file_system.delete_dir(path)
        elif found.type == pafs.FileType.File:
            self._file_system.delete_file(path)

    def open_input(self, name: str) -> pa.NativeFile:
        return self._file_system.open_input_file(self._child(name))

    def open_output(self, name: str) -> pa.NativeFile:
        return self._file_system.open_output_stream(self._child(name))

    def download(self, name: str, path: Path) -> None:
        source = self._file_system.open_input_stream(self._child(name))
        with source, path.open("wb") as file:
            shutil.copyfileobj(source, file, _COPIED_BYTES)

    def upload(self, path: Path, name: str) -> None:
        target, part = self._target(name)
        with self._file_system.open_output_stream(part) as file, path.open("rb") as source:
            shutil.copyfileobj(source, file, _COPIED_BYTES)
        self._finish(part, target)

    def _child(self, name: str) -> str:
        return f"{self.arrow_root}{self.path}/{name}"

    def _target(self, name: str) -> tuple[str, str]:
        """The path of a file, and the one under which to write it."""
        target = self._child(name)
        if not self.has_rename:
            return target, target
        return target, f"{target}.{uuid.uuid4().hex}.part"

    def _finish(self, part: str, target: str) -> None:
        if part != target:
            self._file_system.move(part, target)

    @property
    def _file_system(self) -> pafs.FileSystem:
        return _file_system(self.scheme, self.root, self.options)


@lru_cache(maxsize=8)
def _file_system(scheme: str, root: str, options: Options) -> pafs.FileSystem:
    """The file system, which is kept because it keeps its connections."""
    given: Mapping[str, Any] = dict(options)
    try:
        match scheme:
            case "s3":
                return pafs.S3FileSystem(**given)
            case "gs":
                return pafs.GcsFileSystem(**given)
            case "abfss":
                return pafs.AzureFileSystem(**given)
            case _:
                return pafs.FileSystem.from_uri(f"{root}/")[0]
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise ConnectorError(f"{root} cannot be reached: {error}") from None
