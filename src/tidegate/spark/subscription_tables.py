"""Tables of subscriptions and change logs, as DataFrames or Arrow tables, read into versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.spaces import Space
from tidegate.matching import records
from tidegate.matching.history import changes
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.changes import Change
from tidegate.matching.history.timelines import versions_of
from tidegate.matching.history.versions import Version
from tidegate.matching.records import SubscriptionRecord, decode_object, rows_of

ERRORS_SHOWN_MAX = 3

OnBadRow = Callable[[Mapping[str, object], str], None]
"""Called with a row that is not a subscription or change, and the reason."""


def is_change_log(columns: Iterable[str]) -> bool:
    """Whether a table with these columns is a change log."""
    return "op" in columns


def check_columns(columns: list[str], event_time: str | None) -> None:
    """Check that a table has the columns of subscriptions or of changes."""
    is_log = is_change_log(columns)
    noun, known = ("a change", changes.FIELDS) if is_log else ("a subscription", records.FIELDS)
    required = ("time", "op", "id") if is_log else ("id", "filter")
    missing = [name for name in required if name not in columns]
    if missing:
        raise SubscriptionError(
            f"the subscriptions have no column {missing[0]!r}; they have {', '.join(columns)}"
        )
    records.check_fields(dict.fromkeys(columns), known, noun)
    if is_log and event_time is None:
        raise SubscriptionError(
            "a change log needs `event_time`: events are judged as of their time"
        )


def column_names(table: DataFrame | pa.Table) -> list[str]:
    """The names of a table's columns."""
    return table.column_names if isinstance(table, pa.Table) else table.columns


def collect_table(table: DataFrame | pa.Table) -> pa.Table:
    """The table in the driver's memory."""
    check_not_streaming(table)
    return table if isinstance(table, pa.Table) else table.toArrow()


def check_not_streaming(table: DataFrame | pa.Table) -> None:
    """Check that a table of subscriptions is no stream."""
    if not isinstance(table, pa.Table) and table.isStreaming:
        raise SubscriptionError(
            "the subscriptions are a stream; tidegate.spark.deliver takes streams of changes"
        )


def as_data_frame(spark: SparkSession, table: DataFrame | pa.Table) -> DataFrame:
    """The table on Spark, with ids that are strings."""
    if not isinstance(table, pa.Table):
        return table.withColumn("id", f.col("id").cast("string")) if _has_integers(table) else table
    decoded = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return spark.createDataFrame(with_text_ids(pa.table(decoded, names=table.column_names)))


def _has_integers(table: DataFrame) -> bool:
    return isinstance(table.schema["id"].dataType, t.IntegralType)


def read_versions(
    table: pa.Table, *, timeless: bool, skip_bad: bool, space: Space | None = None
) -> list[Version]:
    """The versions in a table of subscriptions or a change log.

    If events have no times (``timeless``), subscriptions have no end. Bad rows, and those that do
    not fit the ``space``, raise an error that shows the first few of them, unless ``skip_bad``
    leaves them out.
    """
    versions, bad = good_and_bad(table, timeless=timeless, space=space)
    if bad and not skip_bad:
        raise error_of(bad, len(bad))
    return versions


def good_and_bad(
    table: pa.Table, *, timeless: bool, space: Space | None = None
) -> tuple[list[Version], list[str]]:
    """The versions in a table, as for ``read_versions``, and what is wrong with its bad rows."""
    bad: list[str] = []
    table = with_text_ids(table)

    def add_bad(row: Mapping[str, object], reason: str) -> None:
        prefix = f"subscription {row.get('id')!r}: "
        bad.append(prefix + reason.removeprefix(prefix))  # the reason may name it already

    if is_change_log(table.column_names):
        versions, refused = versions_of(read_changes(table, add_bad), space)
        for each in refused:
            add_bad({"id": each.change.id}, each.reason)
    else:
        versions = list(_read_records(table, add_bad, space))
        if timeless:
            versions = [
                each if each.until is None else replace(each, until=None) for each in versions
            ]
    return versions, bad


def _without_end(version: Version) -> Version:
    return version if version.until is None else replace(version, until=None)


def error_of(bad: Sequence[str], count: int) -> SubscriptionError:
    """The error that shows the first of ``count`` bad subscriptions."""
    hidden = count - min(len(bad), ERRORS_SHOWN_MAX)
    more = [f"and {hidden} more"] if hidden > 0 else []
    return SubscriptionError("\n".join([*bad[:ERRORS_SHOWN_MAX], *more]))


def read_changes(table: pa.Table, on_bad: OnBadRow, space: Space | None = None) -> Iterator[Change]:
    """The changes in a table, which may hold them as JSON in a single column `value`.

    Whether a change can be applied depends on other changes, which may come later. But a change
    whose filter cannot be parsed, or does not fit the ``space``, never can, so it is bad already
    here.
    """
    as_json = table.column_names == ["value"]
    table = with_text_ids(table)
    parser = BulkParser()
    for row in rows_of(table):
        try:
            change = Change.of(decode_object(str(row["value"])) if as_json else row)
            if change.filter is not None:
                change = _with_checked_filter(change, change.filter, parser, space)
        except TidegateError as error:
            on_bad(row, str(error))
        else:
            yield change


def with_text_ids(table: pa.Table) -> pa.Table:
    """The table with a column `id` of integers as strings, as ids are everywhere else."""
    index = table.schema.get_field_index("id")
    if index < 0 or not pa.types.is_integer(table.schema.field(index).type):
        return table
    return table.set_column(index, "id", table.column(index).cast(pa.string()))


def _with_checked_filter(
    change: Change, filter: str, parser: BulkParser, space: Space | None
) -> Change:
    """A change whose filter is good, with parameters as the space reads them."""
    if space is None:
        parser.read(filter)
        return change
    params = change.params or {}
    record = SubscriptionRecord(change.id, filter, params)
    fitting = records.subscription_of(record, parser, space).parameters
    return replace(change, params={**params, **fitting})  # null unsets a parameter


def _read_records(
    table: pa.Table, on_bad: OnBadRow, space: Space | None
) -> Iterator[SubscriptionRecord]:
    parser = BulkParser()
    for row in rows_of(table):
        try:
            record = SubscriptionRecord.of(row)
            if space is not None:
                fitting = records.subscription_of(record, parser, space)
                record = replace(record, params=fitting.parameters)
        except TidegateError as error:
            on_bad(row, str(error))
        else:
            yield record


def build_matcher(versions: list[Version], *, skip_bad: bool) -> AsOfMatcher:
    """An index of the versions; a bad one raises an error, or is left out with ``skip_bad``."""
    # All versions are indexed at once, which is fast. Only if that fails are they checked singly.
    try:
        return AsOfMatcher(versions)
    except TidegateError:
        if not skip_bad:
            raise
    return AsOfMatcher(indexable_versions(versions))


def indexable_versions(versions: Iterable[Version]) -> list[Version]:
    """The versions that can be indexed; of two current versions with the same id, the first."""
    parser = BulkParser()
    good: list[Version] = []
    current: set[str] = set()
    for each in versions:
        if (each.until is None and each.id in current) or _is_bad(each, parser):
            continue
        if each.until is None:
            current.add(each.id)
        good.append(each)
    return good


def _is_bad(version: Version, parser: BulkParser) -> bool:
    try:
        records.subscription_of(version, parser)
    except TidegateError:
        return True
    return False


def check_ids(versions: Iterable[Version]) -> None:
    """Check that no two current versions have the same id.

    An index checks that too, but only for the versions in it.
    """
    current: set[str] = set()
    for each in versions:
        if each.until is None and each.id in current:
            raise SubscriptionError(f"there already is a subscription {each.id!r}")
        if each.until is None:
            current.add(each.id)
