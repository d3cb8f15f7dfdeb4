"""Two brokers cannot share a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.errors import StoreError, StoreLockedError
from tidegate.network.store.folder_lock import FolderLock
from tidegate.network.store.store import Store


def test_second_broker_cannot_open_the_folder(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    with pytest.raises(StoreLockedError, match="in use by process"):
        Store(tmp_path, "a")
    store.close()
    with pytest.raises(StoreError, match="store of the broker 'a', not of 'b'"):
        Store(tmp_path, "b")
    Store(tmp_path, "a").close()


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; "
        "from tidegate.network.store.folder_lock import FolderLock; "
        "lock = FolderLock(Path(sys.argv[1])); print(os.getpid(), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        pid = process.stdout.readline().strip()
        with pytest.raises(StoreLockedError, match=f"in use by process {pid};"):
            FolderLock(tmp_path)
        process.kill()
        process.wait()
    FolderLock(tmp_path).release()
