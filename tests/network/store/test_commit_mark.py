"""The commit mark tells a database that has lost commits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.stores import fill
from tidegate.errors import StoreDamagedError
from tidegate.network.store.commit_mark import CommitMark
from tidegate.network.store.schema import DATABASE
from tidegate.network.store.store import Store


def test_mark_is_read_again(tmp_path: Path) -> None:
    mark = CommitMark(tmp_path)
    assert mark.read() == 0
    mark.write(2**40)
    mark.close()
    assert CommitMark(tmp_path).read() == 2**40


def test_mark_behind_the_database_is_no_error(sound: Path, tmp_path: Path) -> None:
    """As after a failure of the machine: the mark is not synchronized."""
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    (tmp_path / "commits").unlink()
    Store(tmp_path, "a").close()


def test_missing_database_is_no_empty_store(sound: Path, tmp_path: Path) -> None:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    (tmp_path / DATABASE).unlink()
    with pytest.raises(StoreDamagedError, match="has lost transactions: its files have 0"):
        Store(tmp_path, "a")


@pytest.mark.parametrize("damage", ["truncate", "flip", "remove"])
def test_damaged_write_ahead_log_is_recognized(tmp_path: Path, damage: str) -> None:
    """SQLite takes a damaged log for one that ends early, and says nothing."""
    store = fill(tmp_path / "running")
    killed = tmp_path / "killed"
    shutil.copytree(tmp_path / "running", killed)  # as the files are when the process is killed
    store.close()
    log = killed / f"{DATABASE}-wal"
    content = bytearray(log.read_bytes())
    assert len(content) > 100_000
    content[len(content) // 2] ^= 1
    if damage == "remove":
        log.unlink()
    else:
        log.write_bytes(content if damage == "flip" else content[: len(content) // 2])
    (killed / f"{DATABASE}-shm").unlink()
    with pytest.raises(StoreDamagedError):
        Store(killed, "a")
