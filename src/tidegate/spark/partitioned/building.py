"""Workers read subscriptions and build the indexes of a plan; the driver holds none of them.

Theory of operation. Two shuffles.

1. *By id* (`ReadTask`). A task has all rows of a subscription, in the order of the table, so it can
   fold a change log into versions and find ids that come twice. It sends each version to the
   indexes that the plan says, many in one row.
2. *By index* (`BuildTask`). A task makes an index and writes it to a folder that all workers
   reach. The driver gets its name and some numbers.

Where there is no such folder, a task returns the content of the file in pieces, which the driver
takes one index after the other and passes on as it does with an index of its own. It needs the
memory for one.

What is wrong with subscriptions comes back in rows too: an exception of a worker would be shown
with a stack trace of Java.
"""

from __future__ import annotations

import pickle
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidegate.errors import StateError, TidegateError
from tidegate.matching.event_kinds import EventKinds
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.versions import Version
from tidegate.spark.index_files import (
    IndexFile,
    driver_folder,
    index_in,
    new_name,
    ship_file,
)
from tidegate.spark.misfits import Misfits
from tidegate.spark.partitioned.equality_keys import EqualityKeys
from tidegate.spark.partitioned.plan import SUBSCRIPTIONS_PER_INDEX, PartitionPlan
from tidegate.spark.storage.folder import Folder, as_state_error
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.subscription_tables import (
    ERRORS_SHOWN_MAX,
    check_ids,
    error_of,
    good_and_bad,
    indexable_versions,
)

VERSIONS_PER_ROW = 2_000
PIECE_BYTES = 16 * 2**20
"""The content of an index goes through the driver in pieces of this size."""

_POSITION = "_position"
_INDEX, _CONTENT = "index", "content"
_NOTES = -1
"""In place of the number of an index: the content is for the driver."""

_READ_SCHEMA = f"{_INDEX} int, {_CONTENT} binary"
_BUILT_SCHEMA = f"{_READ_SCHEMA}, name string, versions long, past long"
_READ_FIELDS: list[pa.Field[Any]] = [
    pa.field(_INDEX, pa.int32()),
    pa.field(_CONTENT, pa.binary()),
]
_BUILT_FIELDS: list[pa.Field[Any]] = [
    *_READ_FIELDS,
    pa.field("name", pa.string()),
    pa.field("versions", pa.int64()),
    pa.field("past", pa.int64()),
]
_READ_ARROW, _BUILT_ARROW = pa.schema(_READ_FIELDS), pa.schema(_BUILT_FIELDS)


@dataclass(slots=True)
class Notes:
    """What tasks tell the driver about the subscriptions that they have read."""

    attributes: set[str] = field(default_factory=set)
    """The attributes that filters name."""
    bad: list[str] = field(default_factory=list)
    """What is wrong with the first bad subscriptions."""
    bad_count: int = 0
    misfits: Misfits = field(default_factory=Misfits)

    def add(self, other: Notes) -> None:
        """Add the notes of another task."""
        self.attributes |= other.attributes
        # Tasks end in any order; sorted, the same ones are shown each time.
        self.bad = sorted([*self.bad, *other.bad])[:ERRORS_SHOWN_MAX]
        self.bad_count += other.bad_count
        self.misfits.add(other.misfits)

    def add_bad(self, bad: Iterable[str]) -> None:
        """Note bad subscriptions."""
        reasons = list(bad)
        self.add(Notes(bad=reasons[:ERRORS_SHOWN_MAX], bad_count=len(reasons)))


@dataclass(slots=True)
class BuiltIndexes:
    """The indexes of a plan, by number."""

    files: dict[int, IndexFile] = field(default_factory=dict)
    """There is none where no subscription belongs to an index."""
    versions: int = 0
    """The number of versions in all indexes; one that is in several counts for each."""
    past: int = 0
    """The number of those that have an end."""
    notes: Notes = field(default_factory=Notes)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Reads the subscriptions of a partition, and sends them to the indexes of a plan.

    For `mapInArrow`, on partitions that have all rows of an id.
    """

    plan: PartitionPlan
    timeless: bool
    skip_bad: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        some = list(batches)
        if not some:
            return
        table = pa.Table.from_batches(some).sort_by(_POSITION).drop_columns([_POSITION])
        notes = Notes()
        versions = self._checked(table, notes)
        keys = EqualityKeys()
        of_index: defaultdict[int, list[Version]] = defaultdict(list)
        for version in versions:
            notes.attributes |= keys.constrained(version)
            for index in self.plan.indexes_of(version, keys):
                of_index[index].append(version)
        yield _read_rows(_NOTES, [notes])
        for index, of_this in of_index.items():
            remaining = iter(of_this)
            while chunk := list(islice(remaining, VERSIONS_PER_ROW)):
                yield _read_rows(index, chunk)

    def _checked(self, table: pa.Table, notes: Notes) -> list[Version]:
        versions, bad = good_and_bad(table, timeless=self.timeless)
        if self.skip_bad:
            return indexable_versions(versions)
        notes.add_bad(bad)
        try:
            check_ids(versions)
        except TidegateError as error:
            notes.add_bad([str(error)])
        return [] if notes.bad else versions


def _read_rows(index: int, content: object) -> pa.RecordBatch:
    columns: list[Any] = [pa.array([index], pa.int32()), pa.array([pickle.dumps(content)])]
    return pa.RecordBatch.from_arrays(columns, schema=_READ_ARROW)


@dataclass(frozen=True, slots=True)
class BuildTask:
    """Makes indexes of versions and writes them to a folder; without one it returns their content.

    For `mapInArrow` on rows of `ReadTask`, in partitions that have all rows of an index, sorted by
    index.
    """

    folder: Folder | None
    events: EventKinds

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for index, some in groupby(rows, itemgetter(_INDEX)):
            contents = [pickle.loads(row[_CONTENT]) for row in some]
            if index == _NOTES:
                notes = Notes()
                for [each] in contents:
                    notes.add(each)
                yield _built_row(_NOTES, content=pickle.dumps(notes))
            else:
                yield from self._build(index, [each for chunk in contents for each in chunk])

    def _build(self, index: int, versions: list[Version]) -> Iterator[pa.RecordBatch]:
        try:
            matcher = AsOfMatcher(versions)
        except TidegateError as error:
            notes = Notes(bad=[str(error)], bad_count=1)
            yield _built_row(_NOTES, content=pickle.dumps(notes))
            return
        notes = Notes()
        notes.misfits.add_all(matcher, self.events)
        yield _built_row(_NOTES, content=pickle.dumps(notes))
        name = new_name()
        if self.folder is None:
            yield from _pieces(index, matcher)
        else:
            _write(self.folder, name, matcher)
        past = sum(each.until is not None for each in versions)
        yield _built_row(index, name=name, versions=len(versions), past=past)


def _write(folder: Folder, name: str, matcher: AsOfMatcher) -> None:
    with as_state_error(folder, name):
        if isinstance(folder, LocalFolder):
            folder.path.mkdir(parents=True, exist_ok=True)
            matcher.save(folder.path / name)
            return
        with tempfile.TemporaryDirectory() as own:
            path = Path(own) / name
            matcher.save(path)
            folder.upload(path, name)


def _pieces(index: int, matcher: AsOfMatcher) -> Iterator[pa.RecordBatch]:
    with tempfile.TemporaryDirectory() as own:
        path = Path(own) / "index.arrow"
        matcher.save(path)
        with path.open("rb") as file:
            for piece in iter(lambda: file.read(PIECE_BYTES), b""):
                yield _built_row(index, content=piece)


def _built_row(
    index: int,
    *,
    content: bytes | None = None,
    name: str | None = None,
    versions: int | None = None,
    past: int | None = None,
) -> pa.RecordBatch:
    row = {_INDEX: index, _CONTENT: content, "name": name, "versions": versions, "past": past}
    return pa.RecordBatch.from_pylist([row], schema=_BUILT_ARROW)


def build_indexes(
    subscriptions: DataFrame,
    plan: PartitionPlan,
    count: int,
    folder: Folder | None,
    events: EventKinds,
    *,
    copied: bool,
    timeless: bool,
    skip_bad: bool,
) -> BuiltIndexes:
    """Build the indexes of a plan for about ``count`` subscriptions to ``events``.

    They are written to a ``folder``; if there is none, they go through the driver. Workers map the
    files in the folder themselves, or with ``copied`` copies on their machines. Raises an error for
    bad subscriptions, unless ``skip_bad`` leaves them out.
    """
    read = ReadTask(plan, timeless, skip_bad)
    numbered = subscriptions.withColumn(_POSITION, f.monotonically_increasing_id())
    by_id = numbered.repartition(_tasks(count), "id").mapInArrow(read, _READ_SCHEMA)
    by_index = by_id.repartition(plan.indexes + 1, _INDEX).sortWithinPartitions(_INDEX)
    built = by_index.mapInArrow(BuildTask(folder, events), _BUILT_SCHEMA)
    rows = built.toLocalIterator() if folder is None else iter(built.collect())
    result = BuiltIndexes()
    pieces: Path | None = None
    for row in rows:
        if row[_INDEX] == _NOTES:
            result.notes.add(pickle.loads(row[_CONTENT]))
        elif row[_CONTENT] is not None:
            pieces = pieces or driver_folder() / new_name()
            with pieces.open("ab") as file:
                file.write(row[_CONTENT])
        else:
            result.versions += row["versions"]
            result.past += row["past"]
            if folder is not None:
                file_of = index_in(folder, row["name"], copied=copied)
            elif pieces is not None:
                file_of = ship_file(subscriptions.sparkSession, pieces, pieces.name)
                pieces = None
            else:
                raise StateError(f"the content of index {row[_INDEX]} has not come")
            result.files[row[_INDEX]] = file_of
    if result.notes.bad:
        raise error_of(result.notes.bad, result.notes.bad_count)
    return result


def _tasks(count: int) -> int:
    return max(1, -(-count // SUBSCRIPTIONS_PER_INDEX))
