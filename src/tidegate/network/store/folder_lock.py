"""The lock of a folder: two brokers must not write to the same store."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tidegate.errors import StoreError, StoreLockedError

_FILE = "lock"


class FolderLock:
    """A lock that the operating system releases when its process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        """Take the lock; raises StoreLockedError if another process has it."""
        path = folder / _FILE
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror or error}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._file, 100, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            raise StoreLockedError(
                f"{folder} is in use by process {owner or 'unknown'}; each broker needs a folder "
                "of its own"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode("ascii"), 0)

    def release(self) -> None:
        """Release the lock. The file stays: removing it could break the lock of the next owner."""
        os.close(self._file)
