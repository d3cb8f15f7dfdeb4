"""The interface of folders, in which a pipeline keeps its state and writes its files.

A folder need not exist; it does as soon as there is a file in it. Names of files may lead through
subfolders, as in ``delta/7.json``. What fails is an OSError, which the functions here turn into one
of Tidegate. A folder can be pickled, and is the same folder in the workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from tidegate.errors import ConnectorError, StateError


class Folder(Protocol):
    """A folder in some file system."""

    @property
    def location(self) -> str:
        """The path or URI, for messages."""
        ...

    @property
    def spark_path(self) -> str:
        """The URI by which Spark finds the same folder, whatever its default file system is."""
        ...

    def folder(self, name: str) -> Folder:
        """A subfolder."""
        ...

    def names(self) -> list[str]:
        """The names of the files and subfolders; empty if the folder does not exist."""
        ...

    def exists(self, name: str) -> bool:
        """Whether there is a file or subfolder."""
        ...

    def read(self, name: str) -> bytes:
        """The content of a file."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a file durably; after a crash it has the old content or the new one."""
        ...

    @property
    def has_rename(self) -> bool:
        """Whether a folder can be renamed, so that all its files appear at once."""
        ...

    def rename(self, name: str, target: str) -> None:
        """Rename a subfolder; there must be no target. Only where ``has_rename``."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file or a subfolder with all that is in it, if it exists."""
        ...

    def open_input(self, name: str) -> pa.NativeFile:
        """Open a file, to read parts of it."""
        ...

    def open_output(self, name: str) -> pa.NativeFile:
        """Open a new file, which others may rely on once it was closed."""
        ...

    def download(self, name: str, path: Path) -> None:
        """Copy a file to a path of this machine."""
        ...

    def upload(self, path: Path, name: str) -> None:
        """Copy a file of this machine; it appears as a whole or not at all."""
        ...


@contextmanager
def as_state_error(folder: Folder, name: str) -> Iterator[None]:
    """Raise the failure to read or write a file as a StateError that names the file."""
    try:
        yield
    except OSError as error:
        raise StateError(f"{folder.location}/{name}: {error.strerror or error}") from None


@contextmanager
def as_connector_error(folder: Folder) -> Iterator[None]:
    """Raise the failure to read or write in a folder of a source or sink as a ConnectorError."""
    try:
        yield
    except OSError as error:
        raise ConnectorError(f"{folder.location}: {error.strerror or error}") from None
