"""Events judged as of their own time, by a log of changes.

Theory of operation. Changes and events are each put in the order of their times. Then the log is
played: all changes up to the time of the next event, inclusive, are made in the engine; then all
events before the next change are matched together. A subscription begins at the time of its
`subscribe`, so `t` counts on through its updates.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.files.subscriptions import Numbered, subscribe
from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.filters import Filter
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.values import to_us
from tidegate.matching.engine import Engine
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.records import SubscriptionRecord

NumberedChange = tuple[int, Change]
"""A change and the number of its row in the file."""


class ChangeLog:
    """The subscriptions of an engine as a log of changes makes them, bit by bit.

    A change that cannot be made is a bad line: of a subscription that is not there, a second
    `subscribe`, a bad filter.
    """

    def __init__(self, engine: Engine, file: InputFile, bad: BadLines) -> None:
        self._engine = engine
        self._file = file
        self._bad = bad
        self._live: dict[str, SubscriptionRecord] = {}
        """The subscriptions there are. Their parameters are all that were ever set: a later filter
        may name one that the filter of now does not."""

    def apply(self, changes: Sequence[NumberedChange]) -> None:
        """Make changes, in their order."""
        begun: list[Numbered] = []
        for number, change in changes:
            if change.op is not Op.SUBSCRIBE or change.id in self._live:
                self._subscribe(begun)  # after which it may be that it is not there after all
                begun = []
            try:
                if change.op is Op.SUBSCRIBE:
                    begun.append((number, self._begin(change)))
                elif change.op is Op.UPDATE:
                    self._update(change)
                else:
                    self._end(change)
            except TidegateError as error:
                self._bad.add(self._file, number, error)
        self._subscribe(begun)

    def _begin(self, change: Change) -> SubscriptionRecord:
        if change.id in self._live:
            raise SubscriptionError(f"there already is a subscription {change.id!r}")
        record = SubscriptionRecord(
            change.id,
            change.filter or "",
            change.params or {},
            change.subscriber,
            change.time,
            evolve=change.evolve,
        )
        self._live[change.id] = record
        return record

    def _subscribe(self, begun: list[Numbered]) -> None:
        """Subscribe many at once, which is much faster than one by one."""
        if not begun:
            return
        ids = {number: record.id for number, record in begun}
        for number, error in subscribe(self._engine, begun):
            self._bad.add(self._file, number, error)
            del self._live[ids[number]]

    def _update(self, change: Change) -> None:
        before = self._known(change)
        params = {**before.params, **(change.params or {})}
        if change.filter is None:
            self._engine.update(change.id, change.params or {})
            self._live[change.id] = replace(before, params=params)
            return
        after = replace(before, filter=change.filter, params=params)
        named = set(change.params or ())
        fitting = _fitting(after, named)
        self._engine.cancel(change.id)
        try:
            self._engine.subscribe_records([fitting])
        except TidegateError:
            self._engine.subscribe_records([_fitting(before)])
            raise
        self._live[change.id] = after

    def _end(self, change: Change) -> None:
        self._known(change)
        self._engine.cancel(change.id)
        del self._live[change.id]

    def _known(self, change: Change) -> SubscriptionRecord:
        found = self._live.get(change.id)
        if found is None:
            raise SubscriptionError(
                f"there is no subscription {change.id!r} at {change.time.isoformat()}"
            )
        return found


def _fitting(record: SubscriptionRecord, named: set[str] | None = None) -> SubscriptionRecord:
    """The record with the parameters that its filter has, and those that are named now."""
    try:
        wanted = {*Filter(parse_filter(record.filter)).parameters, *(named or ())}
    except TidegateError as error:
        raise SubscriptionError(f"subscription {record.id!r}: {error}") from None
    params = {name: value for name, value in record.params.items() if name in wanted}
    return replace(record, params=params)


def play(
    log: ChangeLog, changes: Sequence[NumberedChange], event_time_us: npt.NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """Make the changes as time goes by, and give the stretches of events that lie between them.

    ``changes`` and ``event_time_us`` are in the order of their times; a stretch is given by the
    places of its first event and of the one after its last.
    """
    change_time_us = [to_us(change.time) for _, change in changes]
    starts = np.searchsorted(event_time_us, change_time_us, "left").tolist()
    events_made, changes_made = 0, 0
    while changes_made < len(changes):
        if starts[changes_made] > events_made:
            yield events_made, starts[changes_made]
            events_made = starts[changes_made]
        if events_made < len(event_time_us):
            due = bisect_right(change_time_us, int(event_time_us[events_made]))
        else:
            due = len(changes)
        log.apply(changes[changes_made:due])
        changes_made = due
    if events_made < len(event_time_us):
        yield events_made, len(event_time_us)
