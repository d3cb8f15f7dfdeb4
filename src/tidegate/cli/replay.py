"""Events matched as of their own time, with a log of changes.

Theory of operation. Changes and events are each sorted by time. Then the log is played: all changes
up to the time of the next event, inclusive, are applied to the engine; then all events before the
next change are matched together. A subscription begins at the time of its `subscribe`, so `t`
continues to count through its updates.

This is the second implementation of a log, independent of the first on purpose.
`matching/history/timelines.py` folds a log into versions that are all in one index; Spark and
backtests use it. Here there are no versions: the engine holds the subscriptions of one moment, and
a change is a call that a user could make, so every matcher can do it. Tests compare the two
(`tests/cli/test_replay.py`, `tests/cli/test_match_on_spark.py`); neither may be built on the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.hints import Hints
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.files.subscriptions import Numbered, subscribe
from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.filters import Filter, check_values
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.values import to_us
from tidegate.matching.engine import Engine
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.records import SubscriptionRecord

NumberedChange = tuple[int, Change]
"""A change and the number of its row in the file."""


class ChangeLog:
    """Applies a log of changes to the subscriptions of an engine, some changes at a time.

    A change that cannot be applied is a bad line: an update of an unknown subscription, a second
    `subscribe` with the same id, a bad filter.
    """

    def __init__(self, engine: Engine, file: InputFile, bad: BadLines, hints: Hints) -> None:
        self._engine = engine
        self._file = file
        self._bad = bad
        self._hints = hints
        self._live: dict[str, SubscriptionRecord] = {}
        """The current subscriptions, with every parameter ever set: a later filter may name one
        that the current filter does not."""

    def apply(self, changes: Sequence[NumberedChange]) -> None:
        """Apply changes in order; runs of `subscribe` go to the engine in bulk."""
        pending: list[Numbered] = []
        for number, change in changes:
            # The pending subscriptions come first: this change may refer to one of them, and the
            # engine may refuse one, which frees its id.
            if change.op is not Op.SUBSCRIBE or change.id in self._live:
                self._subscribe(pending)
                pending = []
            try:
                if change.op is Op.SUBSCRIBE:
                    pending.append((number, self._begin(change)))
                elif change.op is Op.UPDATE:
                    self._update(change)
                else:
                    self._end(change)
            except TidegateError as error:
                self._bad.add(self._file, number, error)
        self._subscribe(pending)

    def _begin(self, change: Change) -> SubscriptionRecord:
        """Make the record of a `subscribe`, which is not in the engine yet."""
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

    def _subscribe(self, pending: list[Numbered]) -> None:
        """Add subscriptions to the engine in bulk, which is much faster than one by one."""
        if not pending:
            return
        ids = {number: record.id for number, record in pending}
        for number, error in subscribe(self._engine, pending):
            self._bad.add(self._file, number, error)
            del self._live[ids.pop(number)]
        self._hints.add_subscriptions(map(self._engine.get, ids.values()))

    def _update(self, change: Change) -> None:
        before = self._record(change)
        params = {**before.params, **(change.params or {})}
        if change.filter is None:
            self._engine.update(change.id, self._values(change))
            self._live[change.id] = replace(before, params=params)
            return
        after = replace(before, filter=change.filter, params=params)
        # An engine cannot change a filter in place. The record keeps `since`, so `t` goes on.
        replacement = _with_own_params(after, set(change.params or ()))
        self._engine.cancel(change.id)
        try:
            self._engine.subscribe_records([replacement])
        except TidegateError:  # a refused change leaves the subscription as it was
            self._engine.subscribe_records([_with_own_params(before)])
            raise
        self._hints.add_subscriptions([self._engine.get(change.id)])
        self._live[change.id] = after

    def _values(self, change: Change) -> Mapping[str, object]:
        """The parameters of an update, with strings as timestamps where the space has them."""
        params, space = change.params or {}, self._engine.space
        if space is None:
            return params
        filter = self._engine.get(change.id).filter
        return space.with_timestamps(filter, check_values("parameter :", params))

    def _end(self, change: Change) -> None:
        self._record(change)
        self._engine.cancel(change.id)
        del self._live[change.id]

    def _record(self, change: Change) -> SubscriptionRecord:
        """The live subscription that a change refers to; raises SubscriptionError."""
        record = self._live.get(change.id)
        if record is None:
            raise SubscriptionError(
                f"there is no subscription {change.id!r} at {change.time.isoformat()}"
            )
        return record


def _with_own_params(
    record: SubscriptionRecord, changed: set[str] | None = None
) -> SubscriptionRecord:
    """The record with only the parameters that its filter names or that are ``changed``.

    Parameters of an earlier filter are dropped silently. One that the change itself sets stays even
    if the filter does not name it, so that the engine refuses it.
    """
    try:
        names = {*Filter(parse_filter(record.filter)).parameters, *(changed or ())}
    except TidegateError as error:
        raise SubscriptionError(f"subscription {record.id!r}: {error}") from None
    params = {name: value for name, value in record.params.items() if name in names}
    return replace(record, params=params)


def play(
    log: ChangeLog, changes: Sequence[NumberedChange], event_time_us: npt.NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """Apply the changes in the order of time, and yield the ranges of events between them.

    ``changes`` and ``event_time_us`` are sorted by time. A range (start, stop) has the positions of
    events that see the same subscriptions; the caller matches them before it asks for the next one.
    """
    change_time_us = [to_us(change.time) for _, change in changes]
    # For each change the position of the first event that sees it: "left", because a change holds
    # from its time on, inclusive.
    first_event = np.searchsorted(event_time_us, change_time_us, "left").tolist()
    events_done, changes_done = 0, 0
    while changes_done < len(changes):
        if first_event[changes_done] > events_done:
            yield events_done, first_event[changes_done]
            events_done = first_event[changes_done]
        if events_done < len(event_time_us):
            due = bisect_right(change_time_us, int(event_time_us[events_done]))
        else:
            due = len(changes)  # no event sees them, but they are checked
        log.apply(changes[changes_done:due])
        changes_done = due
    if events_done < len(event_time_us):
        yield events_done, len(event_time_us)
