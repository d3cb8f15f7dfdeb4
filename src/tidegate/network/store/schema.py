"""The tables of a store, and how its database is opened.

SQLite does what a store needs most: a transaction is on disk as a whole or not at all. With a
write-ahead log and `synchronous=FULL` a commit returns after an fsync of the log. Foreign keys and
secondary indexes are left out on purpose: each would cost a write for each row.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tidegate.errors import StoreDamagedError, StoreError, StoreFullError

DATABASE = "store.db"
APPLICATION_ID = 0x54494445  # "TIDE"
FORMAT = 1

TABLES = {
    "meta": "key TEXT PRIMARY KEY, value",
    "shapes": "number INTEGER PRIMARY KEY, description BLOB, checksum INTEGER",
    "events": (
        "position INTEGER PRIMARY KEY, shape INTEGER, time_us INTEGER, header BLOB, body BLOB, "
        "checksum INTEGER"
    ),
    "queues": (
        "number INTEGER PRIMARY KEY, kind TEXT, name TEXT, missed INTEGER, UNIQUE (kind, name)"
    ),
    "queue_rows": (
        "queue INTEGER, position INTEGER, detail BLOB, checksum INTEGER, "
        "PRIMARY KEY (queue, position)"
    ),
    "positions": (
        "kind TEXT, name TEXT, epoch INTEGER, number INTEGER, checksum INTEGER, "
        "PRIMARY KEY (kind, name)"
    ),
    "state": (
        "kind TEXT, owner TEXT, key BLOB, value BLOB, checksum INTEGER, "
        "PRIMARY KEY (kind, owner, key)"
    ),
    "rejected": "number INTEGER PRIMARY KEY, found_us INTEGER, source TEXT, content BLOB",
}
"""The columns of each table. A position is the time at which an event was stored, in microseconds,
made unique: so a replay from a time and the end of retention are ranges of the primary key."""

_CLUSTERED = ("queue_rows", "positions", "state")
"""Tables whose rows are kept in the order of their primary key, without a row number."""

# The log is written back when it has this many pages of 4 KiB. Fewer would write back a page that
# changes often many times; more would make starting after a crash slower.
_LOG_PAGES = 4096


def open_writer(folder: Path) -> sqlite3.Connection:
    """Open the database of a folder for writing; makes its tables if it is new."""
    connection = _connect(folder, "rwc")
    try:
        is_new = not connection.execute("PRAGMA application_id").fetchone()[0]
        if is_new:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA fullfsync=ON")  # macOS: fsync alone leaves data in the drive
        connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        if is_new:
            _make_tables(connection)
        _check_format(connection, folder)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _opening_error(error, folder) from None
    except StoreError:
        connection.close()
        raise
    return connection


def open_reader(folder: Path) -> sqlite3.Connection:
    """Open the database of a folder for reading."""
    connection = _connect(folder, "ro")
    connection.execute("PRAGMA query_only=ON")
    # A damaged text is found by its checksum; it must not end the reading of a table.
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    return connection


def _connect(folder: Path, mode: str) -> sqlite3.Connection:
    path = folder / DATABASE
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
    except sqlite3.Error as error:
        raise _opening_error(error, folder) from None
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for name, columns in TABLES.items():
        clustered = " WITHOUT ROWID" if name in _CLUSTERED else ""
        connection.execute(f"CREATE TABLE {name} ({columns}){clustered}")
    connection.execute("INSERT INTO meta VALUES ('commits', 0), ('position', 0)")
    connection.execute(f"PRAGMA user_version={FORMAT}")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute("COMMIT")


def _check_format(connection: sqlite3.Connection, folder: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    format = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise StoreError(f"{folder / DATABASE} is a database of another program; name a folder "
                         "of its own for each broker")  # fmt: skip
    if format != FORMAT:
        raise StoreError(
            f"{folder / DATABASE} has format {format}, and this version of Tidegate reads format "
            f"{FORMAT}"
        )


def check_pages(connection: sqlite3.Connection, folder: Path) -> None:
    """Raise unless the pages of the database hang together.

    Not `quick_check`: it does not see keys out of order, which hide rows from searches, and is no
    faster where there are no indexes (a million rows in 0.1 s).
    """
    try:
        faults = [row[0] for row in connection.execute("PRAGMA integrity_check(10)")]
    except sqlite3.DatabaseError as error:
        faults = [str(error)]
    if faults != ["ok"]:
        raise StoreDamagedError(
            f"{folder / DATABASE} is damaged: {faults[0]}; `tidegate broker repair --data "
            f"{folder}` saves what can be read"
        )


def _opening_error(error: sqlite3.Error, folder: Path) -> StoreError:
    if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamagedError(
            f"{folder / DATABASE} is damaged: {error}; `tidegate broker repair --data {folder}` "
            "saves what can be read"
        )
    return store_error(error, f"{folder / DATABASE} cannot be opened")


def store_error(error: sqlite3.Error, what: str) -> StoreError:
    """The error of a store for one of SQLite; tells a full disk from other failures."""

    # A file that may not grow any more is a failed write to SQLite, not a full disk.
    if _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE):
        return StoreFullError(f"{what}: the disk is full")
    return StoreError(f"{what}: {error}")


def _code(error: sqlite3.Error) -> int | None:
    """The code of SQLite; errors of the module itself have none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code
