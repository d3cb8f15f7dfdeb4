"""Matching events with an index of entries: the steps that do not depend on the kind of index.

`EventMatching` encodes events, makes sure that the index is ready for them, has it find the pairs
of an event and an entry, and reduces these to the subscriptions that match. An index is whatever
implements `EntryIndex`, as the pair of columnar indexes does.

Locking. Matches share the lock, changes hold it alone, so each event sees a change entirely or not
at all. While a match holds it,

- nothing in the table, the channels and the index changes, so no array is replaced or written
  (caches excepted that every match would fill alike: ids of a loaded table, patterns of a string);
- all entries are where matches find them, and moving bounds are enclosed for the times of its
  events (see ``_share_ready``; changes leave their entries pending, and the next match flushes
  them all);
- numbers mean what the table says. After it they may be given to other subscriptions, so results
  leave as ids, or with the array of ids of that moment.

No code of a user runs under the lock: what providers of variables return is known before (see
`VariableState.evaluated`), and a generator of new subscriptions is drawn from in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tidegate.language.events import Event
from tidegate.language.semantics import holds
from tidegate.matching.arrays import F64, I32, I64, NO_TIME, Bools
from tidegate.matching.batches import EventBatch
from tidegate.matching.rows.encoding import (
    Encoded,
    encode_batch_variables,
    encode_columns,
    encode_event,
    encode_variables,
    write_event_times,
)
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.found_pairs import (
    EntryPairs,
    SubscriptionPairs,
    first_of_each,
    take,
)
from tidegate.matching.rows.judging import judge_batch, judge_event
from tidegate.matching.rows.kernels.flags import SHARED, VERIFY
from tidegate.matching.rows.locks import SharedLock
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.rows.time_window import EventTimes, TimeWindow
from tidegate.matching.subscription import Moment, Subscription

CHUNK_EVENTS = 8192
"""Events of a batch that are matched at once, under one hold of the lock."""

CHUNK_EVENTS_MIN, CONTENDED_S = 32, 0.001
"""The fewest events of a chunk, and how long one should take, while writers wait for readers."""

STAGED_MAX = 4_096
"""New subscriptions that exist as Python objects at a time; beyond that they are rows."""

Judged = Callable[[int], tuple[Event, Moment]]
"""An event of the matched ones, by index, and the moment at which it is judged."""


class EntryIndex(Protocol):
    """Finds the entries that events satisfy; what changes it is called with the lock held alone."""

    @property
    def is_flushed(self) -> bool:
        """Whether all entries are where ``find`` finds them."""
        ...

    def flush(self) -> None:
        """Move all pending entries to where ``find`` finds them."""
        ...

    def is_enclosed(self, times: EventTimes, variables: F64) -> bool:
        """Whether moving bounds are enclosed for these times and values of variables."""
        ...

    def enclose(self, needed: TimeWindow, *, contended: bool = False) -> None:
        """Enclose moving bounds for a window; ``contended`` if another thread undid it before."""
        ...

    def is_behind(self, times: EventTimes) -> bool:
        """Whether these times make work for a coming window due, which ``keep_up`` does."""
        ...

    def keep_up(self, needed: TimeWindow) -> None:
        """Do the work for a coming window that is due; ``needed`` lies in the present one."""
        ...

    def find(
        self, encoded: Encoded, times_us: I64, times: EventTimes, variables: F64
    ) -> tuple[EntryPairs, int]:
        """The pairs of an event and an entry that it satisfies, by event; and all their flags."""
        ...


class ReadyEvents(NamedTuple):
    """Encoded events, their times, and the broker's variables, as an index is given them."""

    encoded: Encoded
    times_us: I64
    times: EventTimes
    variables: F64


class EventMatching:
    """Matches events against the subscriptions of a table, with an index of their entries."""

    def __init__(
        self,
        lock: SharedLock,
        table: SubscriptionTable,
        channels: Channels,
        index: EntryIndex,
        take_up_kinds: Callable[[], None],
    ) -> None:
        self._lock = lock
        self._table = table
        self._channels = channels
        self._index = index
        self._take_up_kinds = take_up_kinds
        """Makes entries again that were compiled for variables of other kinds than they have."""
        # Shared by threads without a lock: a lost write means a chunk that is a little off.
        self._chunk_events = CHUNK_EVENTS

    def match(self, event: Event, moment: Moment) -> list[str]:
        """The ids of the subscriptions that match an event."""
        times = EventTimes.at(moment.time_us)
        # as in ``ready_for``, which costs some microseconds more
        variables = self._share_ready(
            times, partial(encode_variables, moment.variables, self._channels)
        )
        try:
            ready = self._encoded(event, moment, times, variables)
            _, numbers, _ = self.matching_pairs(ready, lambda _: (event, moment))
            return self._table.ids_of(numbers)
        finally:
            self._lock.unshare()

    @contextmanager
    def ready_for(self, event: Event, moment: Moment) -> Iterator[ReadyEvents]:
        """Share the lock while the index is ready for an event, which is given encoded."""
        times = EventTimes.at(moment.time_us)
        variables = self._share_ready(
            times, partial(encode_variables, moment.variables, self._channels)
        )
        try:
            yield self._encoded(event, moment, times, variables)
        finally:
            self._lock.unshare()

    def _encoded(
        self, event: Event, moment: Moment, times: EventTimes, variables: F64
    ) -> ReadyEvents:
        times_us = np.array([NO_TIME if moment.time_us is None else moment.time_us], np.int64)
        encoded = encode_event(event.attributes, self._channels, self._table.pool)
        judge_event(encoded.matrix, event.attributes, moment, self._channels)
        return ReadyEvents(encoded, times_us, times, variables)

    def match_chunks(self, batch: EventBatch) -> list[SubscriptionPairs]:
        """The pairs of a batch, chunk by chunk of its events."""
        return self._match_chunks(batch, self._table.ids)

    def match_numbers(self, batch: EventBatch) -> tuple[I64, I32]:
        """The pairs of a batch: the events, and the numbers of the subscriptions."""
        chunks = self._match_chunks(batch, _no_ids)
        if len(chunks) == 1:
            return chunks[0].events, chunks[0].numbers
        numbers = np.concatenate([np.zeros(0, np.int32), *(each.numbers for each in chunks)])
        return np.concatenate([np.zeros(0, np.int64), *(each.events for each in chunks)]), numbers

    def _match_chunks(
        self, batch: EventBatch, ids: Callable[[], pa.StringArray]
    ) -> list[SubscriptionPairs]:
        """The pairs of a batch, chunk by chunk, with what ``ids`` returns while the lock is held.

        Writers wait for a whole chunk. So once one has had to wait, chunks are made so small that
        they take about `CONTENDED_S`, and writers that come one right after the other are let
        pass in between. Chunks grow again while nobody waits.
        """
        found: list[SubscriptionPairs] = []
        begin, waits = 0, self._lock.waits
        while begin < batch.length:
            length = min(self._chunk_events, batch.length - begin)
            start = perf_counter()
            found.append(self._match_chunk(batch, begin, length, ids))
            taken_s = perf_counter() - start
            begin += length
            if self._lock.waits != waits:
                waits = self._lock.waits
                fitting = int(length * CONTENDED_S / taken_s)
                self._chunk_events = max(CHUNK_EVENTS_MIN, min(fitting, CHUNK_EVENTS))
                self._lock.let_writers_pass()
            elif length == self._chunk_events:
                self._chunk_events = min(self._chunk_events + length // 8 + 1, CHUNK_EVENTS)
        return found

    def _match_chunk(
        self, batch: EventBatch, begin: int, length: int, ids: Callable[[], pa.StringArray]
    ) -> SubscriptionPairs:
        times_us = np.full(length, NO_TIME)
        if batch.times_us is not None:
            times_us = batch.times_us[begin : begin + length]
        times = EventTimes.of(times_us)
        variables = self._share_ready(
            times, partial(encode_batch_variables, batch, times_us, self._channels)
        )
        try:
            pool = self._table.pool
            encoded = encode_columns(batch.columns, begin, length, self._channels, pool)
            judge_batch(encoded.matrix, batch, begin, times_us, self._channels)
            events, numbers, _ = self.matching_pairs(
                ReadyEvents(encoded, times_us, times, variables),
                lambda event: (batch.event(begin + event), batch.moment(begin + event)),
            )
            return SubscriptionPairs(events.astype(np.int64) + begin, numbers, ids())
        finally:
            self._lock.unshare()

    def _share_ready(self, times: EventTimes, encode: Callable[[], F64]) -> F64:
        """Share the lock while the index is ready for some events; returns their variables.

        ``encode`` encodes the variables as the channels number them, which is known only under the
        lock.
        """
        contended = False
        while True:
            variables = self._share_if_ready(times, encode)
            if variables is not None:
                return variables
            # A reader cannot become a writer, so the lock is released in between, and whatever
            # another thread changed meanwhile is seen in the next round.
            self._make_ready(times, encode, contended=contended)
            contended = True

    def _share_if_ready(self, times: EventTimes, encode: Callable[[], F64]) -> F64 | None:
        """Share the lock if the index is ready; else None, without the lock."""
        self._lock.share()
        ready = False
        try:
            variables = encode()
            index = self._index
            ready = (
                not self._channels.noticed_kinds
                and index.is_flushed
                and not index.is_behind(times)
                and index.is_enclosed(times, variables)
            )
            return variables if ready else None
        finally:
            if not ready:
                self._lock.unshare()

    def _make_ready(self, times: EventTimes, encode: Callable[[], F64], *, contended: bool) -> None:
        """Flush all entries, and enclose moving bounds for the times of some events."""
        with self._lock:
            variables = encode()
            index = self._index
            if self._channels.noticed_kinds:
                self._take_up_kinds()
                variables = encode()
            if not index.is_enclosed(times, variables):
                index.enclose(TimeWindow.of(times, variables), contended=contended)
            elif index.is_behind(times):
                index.keep_up(TimeWindow.of(times, variables))
            index.flush()

    def matching_pairs(self, ready: ReadyEvents, judged: Judged) -> EntryPairs:
        """One pair for each event and subscription that matches it, in the order of the events.

        What is found is reduced step by step, the cheap steps first: one entry of each subscription
        is kept, subscriptions that were not alive at the time of the event are dropped, and only
        the rest is verified.
        """
        encoded, times_us, times, variables = ready
        write_event_times(encoded, self._channels, times_us)
        pairs, flags = self._index.find(encoded, times_us, times, variables)
        if flags & SHARED:
            pairs = first_of_each(pairs)
        if not self._table.columns.all_alive(times.begin, times.end):
            pairs = take(pairs, self._table.columns.alive_at(pairs[1], times_us[pairs[0]]))
        if flags & VERIFY:
            pairs = take(pairs, self._verified(pairs, judged))
        return pairs

    def _verified(self, pairs: EntryPairs, judged: Judged) -> Bools:
        """Which pairs match; those without VERIFY are sure, the others are evaluated."""
        events, numbers, flags = pairs
        matching: Bools = (flags & VERIFY) == 0
        for place in np.flatnonzero(~matching).tolist():
            event, moment = judged(events.item(place))
            matching[place] = is_match(self._table.get(numbers.item(place)), event, moment)
        return matching


def _no_ids() -> pa.StringArray:
    return pa.array([], pa.string())


def is_match(subscription: Subscription, event: Event, moment: Moment) -> bool:
    """Whether an event matches a subscription, by the meaning of the language."""
    environment = subscription.environment(moment)
    return holds(subscription.filter.node, event.attributes, environment)


def add_staged(
    subscriptions: Iterable[Subscription],
    lock: SharedLock,
    table: SubscriptionTable,
    index: Callable[[I32], None],
) -> None:
    """Add subscriptions to a table, all or none, and give their numbers to ``index``.

    They are staged chunk by chunk, so that matches get in between while many are added. Staged rows
    are invisible until all of them are published and indexed at once.
    """
    staged: list[I32] = [np.zeros(0, np.int32)]
    source = iter(subscriptions)
    try:
        while chunk := list(islice(source, STAGED_MAX)):
            with lock:
                staged.append(table.stage(chunk))
    except BaseException:
        with lock:
            table.unstage(np.concatenate(staged))
        raise
    numbers = np.concatenate(staged)
    with lock:
        try:
            table.publish(numbers)
        except BaseException:
            table.unstage(numbers)
            raise
        index(numbers)
