"""Files copied to this machine once, for all Python workers of an application to map into memory.

The rules:

1. A file appears under its name when it is complete, by a rename; one process copies it, the others
   wait.
2. Who uses a file holds a shared lock on it. The system releases the lock when the process ends,
   however it ends.
3. A file that nobody holds and that was not asked for lately is removed when the next one is
   copied. A process that has it mapped all the same keeps its content, as always with files.

The folder is one that Spark removes when the application ends. A file of a shared folder is not
mapped itself: if it is removed on another machine, reading the mapping kills the process.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

UNUSED_S_MAX = 60
"""A file that was not asked for in this time is removed, unless it is held."""

_FOLDER, _LOCK, _PART = "tidegate", "lock", ".part"

_FOLDERS = (("SPARK_EXECUTOR_DIRS", os.pathsep), ("LOCAL_DIRS", ","), ("SPARK_LOCAL_DIRS", ","))
"""Variables that list local folders of an application, with their separators: that of a standalone
worker and that of YARN, which all its executors on a machine share, then that of one executor."""


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file on this machine that is not removed as long as this object lives."""

    path: Path
    lock: IO[bytes] | None = None
    """None if nobody removes the file while it may be used."""

    def release(self) -> None:
        """Allow the file to be removed."""
        if self.lock is not None:
            self.lock.close()


def hold(name: str, fetch: Callable[[Path], None]) -> HeldFile:
    """The copy of a file, which ``fetch`` writes to a path if this machine has none.

    A name stands for one content for ever.
    """
    folder = cache_folder()
    path = folder / name
    with _locked(folder):
        if not path.exists():
            _remove_unused(folder)
            part = folder / f"{name}{_PART}"
            fetch(part)
            part.replace(path)
        file = path.open("rb")
        fcntl.flock(file, fcntl.LOCK_SH)
        os.utime(path)
    return HeldFile(path, file)


def cache_folder() -> Path:
    """The folder of the copies, which exists afterwards."""
    lists = (os.environ.get(name, "").split(separator) for name, separator in _FOLDERS)
    roots = [each for folders in lists for each in folders if each]
    folder = Path(roots[0] if roots else tempfile.gettempdir()) / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / _LOCK).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_unused(folder: Path) -> None:
    """Remove files that nobody holds, and those of a process that died while it copied."""
    oldest = time.time() - UNUSED_S_MAX
    for path in folder.iterdir():
        if path.name.endswith(_PART):
            path.unlink()  # nobody else copies now
        elif path.name != _LOCK and path.stat().st_mtime < oldest and not _is_held(path):
            path.unlink()


def _is_held(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
