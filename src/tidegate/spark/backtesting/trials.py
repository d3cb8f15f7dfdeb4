"""The trial of a backtest, as versions of the live table and versions of the changed one.

Only the subscriptions that differ between the two are kept, so a change of one subscription costs
the same in a table of ten and of a million.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidegate.errors import SubscriptionError
from tidegate.language.parsing.parser import parse_filter
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.versions import Version
from tidegate.matching.history.what_if import ALWAYS, differing, with_changes
from tidegate.spark.subscription_tables import (
    check_columns,
    collect_table,
    column_names,
    read_versions,
)


@dataclass(frozen=True, slots=True)
class Versions:
    """A whole table that the caller has read already."""

    all: Sequence[Version]


Table = DataFrame | pa.Table | Versions
"""Subscriptions: a table of them, a change log, or versions."""

OneChange = Change | Mapping[str, object]
"""A change, or a row of a change log, which needs no time here."""

Trial = str | OneChange | Sequence[OneChange] | Table
"""What a backtest tries out: a filter, one or more changes, or a whole table."""

PUSHED_IDS_MAX = 1_000
"""The number of ids up to which Spark filters the live table; a longer list is slow to plan."""


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """The fields, besides the filter, of a subscription that is tried out."""

    id: str = "new"
    params: Mapping[str, object] | None = None
    subscriber: str | None = None
    since: datetime | None = None

    def change(self, filter: str) -> Change:
        """The change that subscribes it."""
        # Parsed here, because this error shows the place in the filter, and does not name the
        # subscription, which the user has not named either.
        parse_filter(filter)
        row = {
            "time": self.since or ALWAYS,
            "op": Op.SUBSCRIBE.value,
            "id": self.id,
            "filter": filter,
            "params": self.params,
            "subscriber": self.subscriber,
        }
        return Change.of(row)


@dataclass(frozen=True, slots=True)
class DifferingVersions:
    """The versions of the subscriptions that differ between the live and the changed table."""

    live: list[Version]
    changed: list[Version]

    @property
    def subscriptions(self) -> int:
        """The number of these subscriptions."""
        return len({each.id for each in [*self.live, *self.changed]})


@dataclass(frozen=True, slots=True)
class TrialReader:
    """Reads a trial into versions. ``beginning`` is the time of the first event."""

    event_time: str | None
    beginning: datetime | None
    skip_bad: bool

    def differing_versions(
        self, trial: Trial, new: NewSubscription, live: Table | None
    ) -> DifferingVersions:
        """The versions that differ, if ``trial`` is applied to the live table.

        If the trial is a filter, ``new`` has the other fields of its subscription.
        """
        if isinstance(trial, (DataFrame, pa.Table, Versions)):
            before = [] if live is None else self._versions(live)
            return DifferingVersions(*differing(before, self._versions(trial)))
        changes = [new.change(trial)] if isinstance(trial, str) else _changes(trial)
        if self.event_time is None and any(each.time != ALWAYS for each in changes):
            raise SubscriptionError("a trial that holds from some time on needs `event_time`")
        ids = {each.id for each in changes}
        subscribed = {each.id for each in changes if each.op is Op.SUBSCRIBE}
        if live is None and ids - subscribed:
            raise SubscriptionError(
                f"a change of subscription {min(ids - subscribed)!r} needs the live table "
                "that has it"
            )
        before = [] if live is None else self._versions(live, ids)
        return DifferingVersions(*differing(before, with_changes(before, changes, self.beginning)))

    def _versions(self, table: Table, ids: set[str] | None = None) -> list[Version]:
        """The versions in a table; only those of ``ids``, if given."""
        timeless = self.event_time is None
        if isinstance(table, Versions):
            chosen = [each for each in table.all if ids is None or each.id in ids]
            return [replace(each, until=None) for each in chosen] if timeless else chosen
        check_columns(column_names(table), self.event_time)
        if ids is not None and isinstance(table, DataFrame) and len(ids) <= PUSHED_IDS_MAX:
            table = table.where(f.col("id").isin(*ids))
        rows = collect_table(table)
        if ids is not None:
            rows = _with_ids(rows, ids)
        return read_versions(rows, timeless=timeless, skip_bad=self.skip_bad)


def _with_ids(rows: pa.Table, ids: set[str]) -> pa.Table:
    column: Any = rows.column("id")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return rows  # `read_versions` reports that ids are not strings
    return rows.filter(pc.is_in(column, pa.array(sorted(ids), column.type)))


def _changes(trial: OneChange | Sequence[OneChange]) -> list[Change]:
    rows = [trial] if isinstance(trial, (Change, Mapping)) else list(trial)
    if not rows:
        raise SubscriptionError("there is no change to try out")
    return [
        each if isinstance(each, Change) else Change.of({"time": ALWAYS, **_without_nulls(each)})
        for each in rows
    ]


def _without_nulls(row: Mapping[str, object]) -> dict[str, object]:
    """A row without its nulls: a table has no other way to omit a field."""
    return {name: value for name, value in row.items() if value is not None}
