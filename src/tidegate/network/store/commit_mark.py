"""The commit mark: a file with the number of commits, by which a shortened database is recognized.

SQLite cannot tell a write-ahead log that was cut off, or damaged in its middle, from one whose last
transaction was not finished: it takes what comes before, in silence. So each transaction counts the
commits in the database, and after it the same number is written to a small file. A database with
fewer commits than its mark has lost some.

The mark is not synchronized with the disk. A process that is killed loses nothing of it; when the
machine fails, the mark may be behind the database, which is no error.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from tidegate.errors import StoreError

_FILE = "commits"
_MARK = struct.Struct("<Q")


class CommitMark:
    """The mark of one store."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror or error}") from None

    def read(self) -> int:
        """The number of commits that the database has at least; 0 if the file is new."""
        content = os.pread(self._file, _MARK.size, 0)
        return _MARK.unpack(content)[0] if len(content) == _MARK.size else 0

    def write(self, commits: int) -> None:
        """Note a commit. On a full disk this overwrites bytes that exist already."""
        os.pwrite(self._file, _MARK.pack(commits), 0)

    def close(self) -> None:
        os.close(self._file)
