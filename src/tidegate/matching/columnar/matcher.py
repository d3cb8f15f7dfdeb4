"""The default matcher: subscriptions as rows of their shapes, in an index of compiled kernels.

Theory of operation. The table (`store/`) holds the subscriptions in columns, by number: shape, row
of values, lifetime. `entries/` turns rows into entries, conjunctions of bounds on channels, and the
indexes (`index_pair`, `index`) make them searchable. `encoding` turns events into rows of floats,
`search` finds the pairs of an event and an entry with the kernels, and what an entry cannot
express exactly is verified by the meaning of the language. An update writes new bounds in place;
where that is impossible the entries are replaced.

Past versions of subscriptions are rows of the same table, with an index of their own.

Locking. One SharedLock: matches share it, changes hold it alone, so each event sees a change
entirely or not at all. While a match holds it,

- nothing in the table, the channels and the indexes changes, so no array is replaced or written
  (caches excepted that every match would fill alike: ids of a loaded table, patterns of a string);
- all entries are in parts, and moving bounds are enclosed for the times of its events (see
  ``_share_ready``; changes leave their entries pending, and the next match flushes them all);
- numbers mean what the table says. After it they may be given to other subscriptions, so results
  leave as ids, or with the array of ids of that moment.

Lock order: the locks of an engine and of the evolve modes are taken before it, and while it is held
only the one with which a loaded table reads its ids. The only foreign code that runs under it are
providers of variables, in batches; a provider that changed a subscription would wait for the match
that called it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from tidegate.language.events import Event
from tidegate.language.semantics import holds
from tidegate.language.values import Value
from tidegate.matching.arrays import F64, I32, I64, NO_TIME, Bools
from tidegate.matching.batches import EventBatch, Matches, VersionMatches
from tidegate.matching.columnar.encoding import (
    Encoded,
    encode_batch_variables,
    encode_columns,
    encode_event,
    encode_variables,
    write_event_times,
)
from tidegate.matching.columnar.entries.channels import Channels
from tidegate.matching.columnar.found_pairs import (
    EntryPairs,
    SubscriptionPairs,
    first_of_each,
    matches_of,
    take,
)
from tidegate.matching.columnar.index_pair import IndexPair
from tidegate.matching.columnar.kernels.motion import EVERY
from tidegate.matching.columnar.kernels.part import SHARED, VERIFY
from tidegate.matching.columnar.locks import SharedLock
from tidegate.matching.columnar.search import PartSearch
from tidegate.matching.columnar.sizes import DEFAULT_SIZES, IndexSizes
from tidegate.matching.columnar.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.columnar.store.table import SubscriptionTable
from tidegate.matching.columnar.time_window import EventTimes, TimeWindow, WindowLength
from tidegate.matching.columnar.update_plans import Rewriter
from tidegate.matching.subscription import Moment, Subscription

CHUNK_EVENTS = 8192
"""Events of a batch that are matched at once, under one hold of the lock."""

STAGED_MAX = 4_096
"""New subscriptions that exist as Python objects at a time; beyond that they are rows."""

Judged = Callable[[int], tuple[Event, Moment]]
"""An event of the matched ones, by index, and the moment at which it is judged."""


class ColumnarMatcher:
    """Holds subscriptions in columns and matches events with compiled kernels.

    ``sizes`` are those at which the index changes its form; tests make them small.
    """

    def __init__(self, *, sizes: IndexSizes = DEFAULT_SIZES) -> None:
        self._set_up(SubscriptionTable(), Channels(), sizes)

    def _set_up(self, table: SubscriptionTable, channels: Channels, sizes: IndexSizes) -> None:
        self._lock = SharedLock()
        self._table = table
        self._channels = channels
        window_length = WindowLength()
        self._indexes = IndexPair(table, channels, window_length, sizes)
        self._search = PartSearch(window_length)
        self._rewriter = Rewriter(table, channels)

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, id: str) -> bool:
        return id in self._table

    # -- changes ------------------------------------------------------------------------------

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        # Staged chunk by chunk, so that matches get in between while many are added. Staged rows
        # are invisible until all of them are published and indexed at once.
        staged: list[I32] = [np.zeros(0, np.int32)]
        source = iter(subscriptions)
        try:
            while chunk := list(islice(source, STAGED_MAX)):
                with self._lock:
                    staged.append(self._table.stage(chunk))
        except BaseException:
            with self._lock:
                self._table.unstage(np.concatenate(staged))
            raise
        numbers = np.concatenate(staged)
        with self._lock:
            try:
                self._table.publish(numbers)
            except BaseException:
                self._table.unstage(numbers)
                raise
            self._indexes.add(numbers)

    def remove(self, id: str) -> None:
        with self._lock:
            number = self._table.number(id)
            self._indexes.flush()
            self._indexes.current.remove(number)
            self._table.remove(number)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            number = self._table.number(id)
            changed = self._table.update(number, parameters)
            self._indexes.flush()  # a pending entry can neither be rewritten nor removed
            index = self._indexes.current
            if changed is None or not self._rewriter.rewrite(index, number, changed):
                self._indexes.reindex(np.array([number], np.int32))

    def update_many(self, updates: Mapping[str, Mapping[str, Value | None]]) -> None:
        """As ``update`` for many subscriptions, all or none, and quicker."""
        with self._lock:
            numbers = self._table.numbers(updates)
            parameters = list(updates.values())
            self._update(numbers, self._table.slots(numbers, parameters), parameters)

    def _update(
        self,
        numbers: I32,
        slots: Sequence[tuple[int, ...]],
        parameters: Sequence[Mapping[str, Value | None]],
    ) -> None:
        """Write parameters into their slots, and the resulting bounds into the index."""
        in_place = self._table.write(numbers, slots, parameters)
        self._indexes.flush()  # as in ``update``
        chosen = np.flatnonzero(in_place)
        in_place[chosen] = self._rewriter.rewrite_many(
            self._indexes.current, numbers[chosen], [slots[each] for each in chosen.tolist()]
        )
        self._indexes.reindex(numbers[~in_place])

    def pin(self, ids: Sequence[str], time_us: int | None) -> None:
        """Evaluate `Cached` filters as of a fixed time, until pinned again; None unpins them."""
        with self._lock:
            numbers = self._table.numbers(ids)
            self._indexes.flush()
            self._table.columns.set_pinned(numbers, time_us)
            self._indexes.current.pin(numbers, EVERY if time_us is None else time_us)

    # -- past versions ------------------------------------------------------------------------

    def succeed(
        self,
        ids: Iterable[str],
        since: I64,
        parameters: Sequence[Mapping[str, Value | None]],
    ) -> tuple[I32, I64]:
        """Change parameters of subscriptions, of each from a time on, and keep what was before.

        The ids are distinct. Returns the numbers of the past versions that are kept, and from when
        on each of them held.
        """
        with self._lock:
            numbers = self._table.numbers(ids)
            slots = self._table.slots(numbers, parameters)
            ended = self._table.copy_past(numbers, since)
            self._indexes.add_past(ended)
            self._update(numbers, slots, parameters)
            self._table.columns.begin(numbers, since)
            return ended, self._table.columns.since_us[ended]

    def keep_past(self, versions: Iterable[Subscription]) -> I32:
        """Add past versions, each with the time until which it held; returns their numbers.

        They have the ids of their subscriptions, but are found by their numbers only.
        """
        with self._lock:
            numbers: list[I32] = [np.zeros(0, np.int32)]
            source = iter(versions)
            while chunk := list(islice(source, STAGED_MAX)):
                numbers.append(self._table.stage(chunk))
                self._table.publish(numbers[-1], past=True)
            kept = np.concatenate(numbers)
            self._indexes.add_past(kept)
            return kept

    def forget_past(self, numbers: Iterable[int]) -> None:
        """Remove past versions, by number."""
        with self._lock:
            removed = list(numbers)
            self._indexes.remove_past(removed)
            for number in removed:
                self._table.remove(number)

    def past(self) -> Iterator[tuple[int, str, int]]:
        """The past versions: number, id, and from when on each held."""
        numbers = self._table.columns.past()
        since = self._table.columns.since_us[numbers].tolist()
        return zip(numbers.tolist(), self._table.ids_of(numbers), since, strict=True)

    # -- reading ------------------------------------------------------------------------------

    def get(self, id: str) -> Subscription:
        self._lock.share()
        try:
            return self._table.get(self._table.number(id))
        finally:
            self._lock.unshare()

    def cached(self) -> Iterator[Subscription]:
        """The subscriptions whose evolve mode is `Cached`."""
        return (self._table.get(number) for number in self._table.columns.cached().tolist())

    # -- snapshots ----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write all subscriptions and their indexes to one file."""
        into = SectionWriter()
        with self._lock:
            self._indexes.flush()
            self._table.save(into)
            self._channels.save(into)
            self._indexes.save(into)
            into.write(path)

    @classmethod
    def load(cls, path: str | Path, *, sizes: IndexSizes = DEFAULT_SIZES) -> ColumnarMatcher:
        """Open a file that ``save`` wrote; it is mapped, and read as it is needed."""
        source = SectionReader(path)
        matcher = cls(sizes=sizes)
        matcher._set_up(SubscriptionTable.load(source), Channels.load(source), sizes)
        matcher._indexes.load(source)
        return matcher

    # -- matching -----------------------------------------------------------------------------

    def match(self, event: Event, moment: Moment) -> list[str]:
        times = EventTimes.at(moment.time_us)
        variables = self._share_ready(
            times, lambda: encode_variables(moment.variables, self._channels)
        )
        try:
            times_us = np.array([NO_TIME if moment.time_us is None else moment.time_us], np.int64)
            encoded = encode_event(event.attributes, self._channels, self._table.pool)
            _, numbers, _ = self._matching_pairs(
                encoded, times_us, times, variables, lambda _: (event, moment)
            )
            return self._table.ids_of(numbers)
        finally:
            self._lock.unshare()

    def match_batch(self, batch: EventBatch) -> Matches:
        return matches_of(self._match_chunks(batch))

    def match_versions(self, batch: EventBatch) -> VersionMatches:
        """The matches with the versions that matched; no change may be made meanwhile."""
        chunks = self._match_chunks(batch)
        numbers = np.concatenate([np.zeros(0, np.int32), *(each.numbers for each in chunks)])
        events = np.concatenate([np.zeros(0, np.int64), *(each.events for each in chunks)])
        return VersionMatches(events, numbers, self._table.version_columns())

    def _match_chunks(self, batch: EventBatch) -> list[SubscriptionPairs]:
        return [
            self._match_chunk(batch, begin, min(CHUNK_EVENTS, batch.length - begin))
            for begin in range(0, batch.length, CHUNK_EVENTS)
        ]

    def _match_chunk(self, batch: EventBatch, begin: int, length: int) -> SubscriptionPairs:
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
            events, numbers, _ = self._matching_pairs(
                encoded,
                times_us,
                times,
                variables,
                lambda event: (batch.event(begin + event), batch.moment(begin + event)),
            )
            return SubscriptionPairs(events.astype(np.int64) + begin, numbers, self._table.ids())
        finally:
            self._lock.unshare()

    def _share_ready(self, times: EventTimes, encode: Callable[[], F64]) -> F64:
        """Share the lock while the indexes are ready for some events; returns their variables.

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
        """Share the lock if the indexes are ready; else None, without the lock."""
        self._lock.share()
        ready = False
        try:
            variables = encode()
            ready = self._indexes.is_flushed and self._indexes.is_enclosed(times, variables)
            return variables if ready else None
        finally:
            if not ready:
                self._lock.unshare()

    def _make_ready(self, times: EventTimes, encode: Callable[[], F64], *, contended: bool) -> None:
        """Flush all entries, and enclose moving bounds for the times of some events."""
        with self._lock:
            variables = encode()
            if not self._indexes.is_enclosed(times, variables):
                self._indexes.enclose(TimeWindow.of(times, variables), contended=contended)
            self._indexes.flush()

    def _matching_pairs(
        self, encoded: Encoded, times_us: I64, times: EventTimes, variables: F64, judged: Judged
    ) -> EntryPairs:
        """One pair for each event and subscription that matches it, in the order of the events.

        What is found is reduced step by step, the cheap steps first: one entry of each subscription
        is kept, subscriptions that were not alive at the time of the event are dropped, and only
        the rest is verified.
        """
        write_event_times(encoded, self._channels, times_us)
        pairs, flags = self._search.find(self._indexes.parts, encoded, times_us, times, variables)
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
            subscription = self._table.get(numbers.item(place))
            environment = subscription.environment(moment)
            matching[place] = holds(subscription.filter.node, event.attributes, environment)
        return matching
