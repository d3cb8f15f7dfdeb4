"""What a backtest tries out, as versions: those of the live table, and those there would have been.

Of both only the subscriptions that differ are kept, so a change of one subscription costs the same
in a table of ten and of a million.
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
from tidegate.spark.subscriptions import check_columns, collected, column_names, read_versions


@dataclass(frozen=True, slots=True)
class Versions:
    """A whole table, for those who have read it already."""

    all: Sequence[Version]


Table = DataFrame | pa.Table | Versions
"""Subscriptions: a table of them, a log of their changes, or versions."""

OneChange = Change | Mapping[str, object]
"""A change, or a row as a log of changes has it; such a row needs no time here."""

Trial = str | OneChange | Sequence[OneChange] | Table
"""What is tried out: a filter, one change or some, or a whole table."""

PUSHED_IDS_MAX = 1_000
"""At most so many ids are given to Spark to look for; a longer list is slow to plan."""


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """What is known of the subscription that a filter would be."""

    id: str = "new"
    params: Mapping[str, object] | None = None
    subscriber: str | None = None
    since: datetime | None = None

    def change(self, filter: str) -> Change:
        """The change that makes it."""
        parse_filter(filter)  # its error shows the place, without the name of a subscription
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
class Sides:
    """The versions of the subscriptions that differ."""

    live: list[Version]
    changed: list[Version]

    @property
    def subscriptions(self) -> int:
        """How many differ."""
        return len({each.id for each in [*self.live, *self.changed]})


@dataclass(frozen=True, slots=True)
class TrialReader:
    """Makes versions of what is tried out. ``beginning`` is the time of the first event."""

    event_time: str | None
    beginning: datetime | None
    skip_bad: bool

    def sides(self, trial: Trial, new: NewSubscription, live: Table | None) -> Sides:
        """Both sides of a trial."""
        if isinstance(trial, (DataFrame, pa.Table, Versions)):
            before = [] if live is None else self._versions(live)
            return Sides(*differing(before, self._versions(trial)))
        changes = [new.change(trial)] if isinstance(trial, str) else _changes(trial)
        if self.event_time is None and any(each.time != ALWAYS for each in changes):
            raise SubscriptionError("what holds from some time on needs `event_time`")
        ids = {each.id for each in changes}
        known = {each.id for each in changes if each.op is Op.SUBSCRIBE}
        if live is None and ids - known:
            raise SubscriptionError(
                f"a change of subscription {min(ids - known)!r} needs the live table that has it"
            )
        before = [] if live is None else self._versions(live, ids)
        return Sides(*differing(before, with_changes(before, changes, self.beginning)))

    def _versions(self, table: Table, ids: set[str] | None = None) -> list[Version]:
        """The versions of a table, or those of some ids."""
        timeless = self.event_time is None
        if isinstance(table, Versions):
            chosen = [each for each in table.all if ids is None or each.id in ids]
            return [replace(each, until=None) for each in chosen] if timeless else chosen
        check_columns(column_names(table), self.event_time)
        if ids is not None and isinstance(table, DataFrame) and len(ids) <= PUSHED_IDS_MAX:
            table = table.where(f.col("id").isin(*ids))
        rows = collected(table)
        if ids is not None:
            rows = _of_ids(rows, ids)
        return read_versions(rows, timeless=timeless, skip_bad=self.skip_bad)


def _of_ids(rows: pa.Table, ids: set[str]) -> pa.Table:
    column: Any = rows.column("id")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return rows  # reading them says what is wrong
    return rows.filter(pc.is_in(column, pa.array(sorted(ids), column.type)))


def _changes(trial: OneChange | Sequence[OneChange]) -> list[Change]:
    some = [trial] if isinstance(trial, (Change, Mapping)) else list(trial)
    if not some:
        raise SubscriptionError("there is no change to try out")
    return [
        each if isinstance(each, Change) else Change.of({"time": ALWAYS, **_set(each)})
        for each in some
    ]


def _set(row: Mapping[str, object]) -> dict[str, object]:
    """A row without its nulls: a table has no other way to leave a field out."""
    return {name: value for name, value in row.items() if value is not None}
