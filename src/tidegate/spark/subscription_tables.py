"""Subscriptions as Spark has them: tables of them, or logs of their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.parsing.bulk import BulkParser
from tidegate.matching import records
from tidegate.matching.history import changes
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.changes import Change
from tidegate.matching.history.versions import Version, versions_of
from tidegate.matching.records import SubscriptionRecord, decode_object, rows_of

SHOWN_MAX = 3


NoteBad = Callable[[Mapping[str, object], str], None]
"""Takes a row that is no subscription or no change, and why."""


def is_change_log(columns: Iterable[str]) -> bool:
    """Whether a table with such columns is a log of changes."""
    return "op" in columns


def check_columns(columns: list[str], event_time: str | None) -> None:
    """See that a table is one of subscriptions or of changes; the error names the column."""
    log = is_change_log(columns)
    what, known = ("a change", changes.FIELDS) if log else ("a subscription", records.FIELDS)
    required = ("time", "op", "id") if log else ("id", "filter")
    missing = [name for name in required if name not in columns]
    if missing:
        raise SubscriptionError(
            f"the subscriptions have no column {missing[0]!r}; they have {', '.join(columns)}"
        )
    records.check_fields(dict.fromkeys(columns), known, what)
    if log and event_time is None:
        raise SubscriptionError(
            "a log of changes needs `event_time`: events are judged as of their time"
        )


def column_names(table: DataFrame | pa.Table) -> list[str]:
    """The names of a table's columns."""
    return table.column_names if isinstance(table, pa.Table) else table.columns


def collected(table: DataFrame | pa.Table) -> pa.Table:
    """A table in the driver's memory."""
    if isinstance(table, pa.Table):
        return table
    if table.isStreaming:
        raise SubscriptionError(
            "the subscriptions are a stream; tidegate.spark.deliver takes streams of changes"
        )
    return table.toArrow()


def read_versions(table: pa.Table, *, timeless: bool, skip_bad: bool) -> list[Version]:
    """The versions of a table of subscriptions or of changes.

    Where events have no times, subscriptions have no end.
    """
    bad: list[str] = []

    def note(row: Mapping[str, object], reason: str) -> None:
        bad.append(f"subscription {row.get('id')!r}: {reason}")

    if is_change_log(table.column_names):
        versions, refused = versions_of(read_changes(table, note))
        for each in refused:
            note({"id": each.change.id}, each.reason)
    else:
        versions = list(_read_records(table, note))
        if timeless:
            versions = [replace(each, until=None) for each in versions]
    if bad and not skip_bad:
        more = [f"and {len(bad) - SHOWN_MAX} more"] if len(bad) > SHOWN_MAX else []
        raise SubscriptionError("\n".join(bad[:SHOWN_MAX] + more))
    return versions


def read_changes(table: pa.Table, bad: NoteBad) -> Iterator[Change]:
    """The changes of a table, or of JSON in its one column `value`; bad ones are noted.

    One whose filter cannot be read is bad whatever else comes, so that is seen here already.
    """
    as_json = table.column_names == ["value"]
    parser = BulkParser()
    for row in rows_of(table):
        try:
            change = Change.of(decode_object(str(row["value"])) if as_json else row)
            if change.filter is not None:
                parser.read(change.filter)
        except TidegateError as error:
            bad(row, str(error))
        else:
            yield change


def _read_records(table: pa.Table, bad: NoteBad) -> Iterator[SubscriptionRecord]:
    for row in rows_of(table):
        try:
            yield SubscriptionRecord.of(row)
        except TidegateError as error:
            bad(row, str(error))


def matcher_of(versions: list[Version], *, skip_bad: bool) -> AsOfMatcher:
    """An index of versions; bad ones are an error, or left out."""
    try:
        return AsOfMatcher(versions)
    except TidegateError:
        if not skip_bad:
            raise
    return AsOfMatcher(without_bad(versions))


def without_bad(versions: Iterable[Version]) -> list[Version]:
    """The versions that can be indexed; of two of now with one id, the first."""
    parser = BulkParser()
    good: list[Version] = []
    current: set[str] = set()
    for each in versions:
        if (each.until is None and each.id in current) or _fails(each, parser):
            continue
        if each.until is None:
            current.add(each.id)
        good.append(each)
    return good


def _fails(version: Version, parser: BulkParser) -> bool:
    try:
        records.subscription_of(version, parser)
    except TidegateError:
        return True
    return False


def check_ids(versions: Iterable[Version]) -> None:
    """See that no two versions of now have one id; an index sees that of its own versions only."""
    current: set[str] = set()
    for each in versions:
        if each.until is None and each.id in current:
            raise SubscriptionError(f"there already is a subscription {each.id!r}")
        if each.until is None:
            current.add(each.id)
