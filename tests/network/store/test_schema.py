"""Only a database of a store, in a known format, is opened."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from support.stores import write_sql
from tidegate.errors import StoreDamagedError, StoreError, StoreFullError
from tidegate.network.store.schema import DATABASE, store_error
from tidegate.network.store.store import Store


def test_another_program_s_database(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / DATABASE)
    connection.execute("PRAGMA application_id=1")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="database of another program"):
        Store(tmp_path, "a")
    (tmp_path / DATABASE).write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreDamagedError):
        Store(tmp_path, "a")


def test_format_of_another_version(sound: Path, tmp_path: Path) -> None:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    write_sql(tmp_path, "PRAGMA user_version=2")
    with pytest.raises(StoreError, match="format 2, and this version of Tidegate reads format 1"):
        Store(tmp_path, "a")


def test_commits_are_synchronized(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    read = store._connection.execute
    assert read("PRAGMA journal_mode").fetchone() == ("wal",)
    assert read("PRAGMA synchronous").fetchone() == (2,)
    store.close()


def test_full_disk_is_told_from_other_failures() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA max_page_count=2")
    with pytest.raises(sqlite3.Error) as full:
        connection.executescript("CREATE TABLE a (b); CREATE TABLE c (d); CREATE TABLE e (f)")
    assert type(store_error(full.value, "x")) is StoreFullError
    with pytest.raises(sqlite3.Error) as other:
        connection.execute("SELECT nothing")
    assert type(store_error(other.value, "x")) is StoreError
    connection.close()
