"""The default matcher: subscriptions as rows of their shapes, indexed for matching.

Theory of operation. `table` and `rows` hold what was asked, in columns, one table for each shape.
`constraints` turns rows into entries, conjunctions of bounds on channels; `index` and `layout` make
them searchable, `encoding` makes rows of floats of events, and `kernels` finds the pairs. An update
writes the new bounds where they stand; where that cannot be, the entry goes and comes anew. Matches
share a lock that changes hold alone, so that each event sees a change whole or not at all.

Beside the subscriptions of now there may be versions of the past, which hold for events of their
time only. They are rows of the same table, with an index of their own whose entries have one more
range: the time. So events of today do not pay for all that was before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.language.events import Event
from tidegate.language.semantics import holds
from tidegate.language.shapes import Shape
from tidegate.language.values import Value
from tidegate.matching.arrays import F64, I32, I64, NO_TIME, U8
from tidegate.matching.batches import EventBatch, Matches, VersionMatches
from tidegate.matching.columnar.encoding import (
    Encoded,
    encode_columns,
    encode_event,
    encode_variables,
    encode_variables_of,
    tell_times,
)
from tidegate.matching.columnar.entries.channels import Channels
from tidegate.matching.columnar.entries.comparisons import is_plain, plain_entries
from tidegate.matching.columnar.entries.constraints import Compiler, entries_of
from tidegate.matching.columnar.index import PAST_ENTRIES_MAX, Index, IndexPart
from tidegate.matching.columnar.kernels.evaluate import BLOCK_PAIRS, evaluate_unsure
from tidegate.matching.columnar.kernels.layout import Entries, limited
from tidegate.matching.columnar.kernels.match import match_events
from tidegate.matching.columnar.kernels.part import SHARED, UNSURE, VERIFY
from tidegate.matching.columnar.kernels.programs import EVERY, STACK_MAX
from tidegate.matching.columnar.locks import SharedLock
from tidegate.matching.columnar.memory import give_back_memory
from tidegate.matching.columnar.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.columnar.store.table import SubscriptionTable
from tidegate.matching.columnar.time_window import NO_TIMES, EventTimes, TimeWindow, WindowLength
from tidegate.matching.columnar.update_plans import Rewriter
from tidegate.matching.subscription import Moment, Subscription

CHUNK_EVENTS = 8192
STAGED_MAX = 4_096
"""So many new subscriptions are Python objects at a time."""
MANY_ENTRIES = 50_000
LENGTH_CLASS_BITS = 4
"""Versions of the past belong together if one lived less than 2**4 times as long as the other."""

_EntryPairs = tuple[I32, I32, U8]
"""Pairs of an event and an entry: events, subscriptions, flags."""
_NOTHING_FOUND: _EntryPairs = np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint8)


class _SubscriptionPairs(NamedTuple):
    """Pairs of an event and a subscription, by number; and the ids of numbers at that moment."""

    events: I64
    numbers: I32
    ids: pa.StringArray


class _ResultBuffers(threading.local):
    """Room for results, kept from call to call, for each thread its own."""

    def __init__(self) -> None:
        self._arrays = self._made(1024)

    def of(self, length: int) -> tuple[I32, I32, U8]:
        """Arrays for events, subscriptions and flags, at least so long."""
        if len(self._arrays[0]) < length:
            self._arrays = self._made(length)
        return self._arrays

    @staticmethod
    def _made(length: int) -> tuple[I32, I32, U8]:
        return np.empty(length, np.int32), np.empty(length, np.int32), np.empty(length, np.uint8)


class ColumnarMatcher:
    """Holds subscriptions in columns and matches events with compiled kernels."""

    def __init__(self) -> None:
        self._lock = SharedLock()
        self._table = SubscriptionTable()
        self._channels = Channels()
        self._compiler = Compiler(self._channels, self._table.pool)
        self._index = Index()
        self._past: Index | None = None
        self._foresight = WindowLength()
        self._room = _ResultBuffers()
        self._rewriter = Rewriter(self._table, self._channels)

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, id: str) -> bool:
        return id in self._table

    # -- changes ------------------------------------------------------------------------------

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        staged: list[I32] = [np.zeros(0, np.int32)]
        source = iter(subscriptions)
        try:
            while some := list(islice(source, STAGED_MAX)):
                with self._lock:
                    staged.append(self._table.stage(some))
            with self._lock:
                self._table.publish(np.concatenate(staged))
        except BaseException:
            with self._lock:
                self._table.unstage(np.concatenate(staged))
            raise
        numbers = np.concatenate(staged)
        with self._lock:
            self._enter(numbers, self._index)

    def remove(self, id: str) -> None:
        with self._lock:
            number = self._table.number(id)
            self._settle()
            self._index.take_away(number)
            self._table.remove(number)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            number = self._table.number(id)
            changed = self._table.update(number, parameters)
            self._settle()  # else one entry that came anew would have all others come anew, too
            if changed is None or not self._rewriter.rewrite(self._index, number, changed):
                self._enter_anew(np.array([number], np.int32))

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
        """Write parameters into their slots, and what follows from them into the index."""
        in_place = self._table.write(numbers, slots, parameters)
        self._settle()  # else one entry that came anew would have all others come anew, too
        chosen = np.flatnonzero(in_place)
        in_place[chosen] = self._rewriter.rewrite_many(
            self._index, numbers[chosen], [slots[each] for each in chosen.tolist()]
        )
        self._enter_anew(numbers[~in_place])

    def _enter_anew(self, numbers: I32) -> None:
        """Have entries in the index as the rows say now, in place of those that are there."""
        if len(numbers):
            self._index.take_away(*numbers.tolist())
            self._enter(numbers, self._index)

    def hold(self, ids: Sequence[str], time_us: int | None) -> None:
        """Have filters that are `Cached` go by their version of a time; None if they have none."""
        with self._lock:
            numbers = self._table.numbers(ids)
            self._settle()
            self._table.set_held(numbers, time_us)
            self._index.hold(numbers, EVERY if time_us is None else time_us)

    def cached(self) -> Iterator[Subscription]:
        """The subscriptions that are evaluated now and then."""
        return (self._table.get(number) for number in self._table.cached().tolist())

    # -- versions -----------------------------------------------------------------------------

    def succeed(
        self,
        ids: Iterable[str],
        since: I64,
        parameters: Sequence[Mapping[str, Value | None]],
    ) -> tuple[I32, I64]:
        """Let subscriptions have other values of parameters, each from a time of its own on.

        What they were until then become versions of the past; gives the numbers of those, and from
        when on they held. Each subscription stands there once.
        """
        with self._lock:
            numbers = self._table.numbers(ids)
            slots = self._table.slots(numbers, parameters)
            ended = self._table.copy_past(numbers, since)
            self._enter_past(ended)
            self._update(numbers, slots, parameters)
            self._table.begin(numbers, since)
            return ended, self._table.since(ended)

    def keep_past(self, versions: Iterable[Subscription]) -> I32:
        """Add versions of the past, each with the time until which it held; gives their numbers.

        They have the ids of their subscriptions, but are known by their numbers only.
        """
        with self._lock:
            numbers: list[I32] = [np.zeros(0, np.int32)]
            source = iter(versions)
            while some := list(islice(source, STAGED_MAX)):
                numbers.append(self._table.stage(some))
                self._table.publish(numbers[-1], past=True)
            kept = np.concatenate(numbers)
            self._enter_past(kept)
            return kept

    def _enter_past(self, numbers: I32) -> None:
        """Put versions of the past into their index."""
        if self._past is None:
            self._past = Index(self._channels.lifetime())
        for era in self._eras(numbers):
            self._enter(era, self._past)
            self._settle_index(self._past)

    def forget_past(self, numbers: Iterable[int]) -> None:
        """Take versions of the past away."""
        with self._lock:
            gone = list(numbers)
            if self._past is not None:
                self._past.take_away(*gone)
            for number in gone:
                self._table.remove(number)

    def past(self) -> Iterator[tuple[int, str, int]]:
        """The versions of the past: the number of each, its id, and from when on it held."""
        numbers = self._table.past()
        since = self._table.since(numbers).tolist()
        return zip(numbers.tolist(), self._table.ids_of(numbers), since, strict=True)

    def _eras(self, numbers: I32) -> list[I32]:
        """Versions in the order of their times, in parts that are not too large.

        Those that lived about equally long come together: among many short ones, a single long one
        would let a part be of all times.
        """
        if len(numbers) <= PAST_ENTRIES_MAX:
            return [numbers] if len(numbers) else []
        since, until = self._table.since(numbers), self._table.until(numbers)
        length = np.log2(np.maximum(1.0, until.astype(np.float64) - since)) // LENGTH_CLASS_BITS
        order = np.lexsort((since, length))
        borders = np.flatnonzero(np.diff(length[order])) + 1
        eras: list[I32] = []
        for run in np.split(numbers[order], borders):
            eras += np.array_split(run, -(-len(run) // PAST_ENTRIES_MAX))
        return eras

    def get(self, id: str) -> Subscription:
        self._lock.share()
        try:
            return self._table.get(self._table.number(id))
        finally:
            self._lock.unshare()

    def _enter(self, numbers: I32, index: Index) -> None:
        """Put subscriptions of the table into an index."""
        index.reserve(self._table.capacity)
        plain: list[tuple[Shape, I32]] = []
        for number, members in self._table.by_shape(numbers):
            shape = self._table.shapes[number]
            if is_plain(shape):
                plain.append((shape, members))
                continue
            for kinds, cells, chosen in self._table.by_kinds(number, members):
                origin, hold = self._table.origin(chosen), self._table.hold(chosen)
                for block in self._compiler.blocks(shape, kinds, cells):
                    entries = entries_of(block, chosen, origin, hold)
                    index.add(self._with_lifetimes(entries, index))
        if plain:
            entries = plain_entries(plain, self._table, self._channels)
            index.add(self._with_lifetimes(entries, index))

    def _with_lifetimes(self, entries: Entries, index: Index) -> Entries:
        if index.lifetime is None:
            return entries
        since = self._table.since(entries.subscription).astype(np.float64)
        last = (self._table.until(entries.subscription) - 1).astype(np.float64)
        # a bit more room: a range of one value would be taken for an equality
        return limited(entries, index.lifetime, np.nextafter(since, -np.inf), last)

    def _settle(self) -> None:
        """Put what is new into the indexes, where it is found fast."""
        for index in self._indexes:
            self._settle_index(index)

    def _settle_index(self, index: Index) -> None:
        if index.is_settled:
            return
        self._channels.settle()
        if index.moves and index.stretch is None:
            self._enclose_first(index)
        program = np.array([*self._channels.program, 0], np.int32)
        laid_out = index.settle(program, len(self._channels.variables))
        if laid_out >= MANY_ENTRIES:
            give_back_memory()

    def _enclose_first(self, index: Index) -> None:
        """Enclose an index that was not yet: as the other, or for the time of subscriptions."""
        for other in self._indexes:
            if other.stretch is not None:
                index.enclose(other.stretch)
                return
        # no event has come yet; the first will probably come soon after the subscriptions
        unset = encode_variables({}, self._channels)
        self._enclose(TimeWindow.of(EventTimes.at(self._table.latest_since), unset), again=False)

    @property
    def _indexes(self) -> tuple[Index, ...]:
        return (self._index,) if self._past is None else (self._index, self._past)

    # -- snapshots ----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write all subscriptions and their index to one file."""
        into = SectionWriter()
        with self._lock:
            self._settle()
            self._table.save(into)
            self._channels.save(into)
            self._index.save(into, "now")
            into.note("has_past", self._past is not None)
            if self._past is not None:
                self._past.save(into, "past")
            into.write(path)

    @classmethod
    def load(cls, path: str | Path) -> ColumnarMatcher:
        """Open a file that ``save`` wrote; it is mapped, and read as it is needed."""
        source = SectionReader(path)
        matcher = cls()
        matcher._table = SubscriptionTable.load(source)
        matcher._channels = Channels.load(source)
        matcher._compiler = Compiler(matcher._channels, matcher._table.pool)
        matcher._rewriter = Rewriter(matcher._table, matcher._channels)
        matcher._index = Index.load(source, "now")
        if source.note("has_past"):
            matcher._past = Index.load(source, "past")
        return matcher

    # -- matching -----------------------------------------------------------------------------

    def match(self, event: Event, moment: Moment) -> list[str]:
        times = EventTimes.at(moment.time_us)
        values = self._share(times, lambda: encode_variables(moment.variables, self._channels))
        try:
            encoded = encode_event(event.attributes, self._channels, self._table.pool)
            numbers = self._match_one(encoded, event, moment, values)
            if not self._table.all_live(times.begin, times.end) and moment.time_us is not None:
                time_us = np.full(len(numbers), moment.time_us)
                numbers = numbers[self._table.living(numbers, time_us)]
            return self._table.ids_of(numbers)
        finally:
            self._lock.unshare()

    def _match_one(self, encoded: Encoded, event: Event, moment: Moment, variables: F64) -> I32:
        """The numbers of the subscriptions that match one event."""
        time_us = np.array([NO_TIME if moment.time_us is None else moment.time_us], np.int64)
        found, seen = self._match_parts(encoded, time_us, variables)
        _, numbers, flags = found[0] if len(found) == 1 else _joined(found)
        if seen & VERIFY:
            good = (flags & VERIFY) == 0
            for place in np.flatnonzero(~good).tolist():
                good[place] = self._verified(int(numbers[place]), event, moment)
            numbers = numbers[good]
        return np.unique(numbers) if seen & SHARED else numbers

    def match_batch(self, batch: EventBatch) -> Matches:
        return _all_of(self._match_chunks(batch))

    def match_versions(self, batch: EventBatch) -> VersionMatches:
        """The matches with the versions that matched; no change may be made meanwhile."""
        found = self._match_chunks(batch)
        numbers = np.concatenate([np.zeros(0, np.int32), *(each.numbers for each in found)])
        events = np.concatenate([np.zeros(0, np.int64), *(each.events for each in found)])
        return VersionMatches(events, numbers, self._table.version_columns())

    def _match_chunks(self, batch: EventBatch) -> list[_SubscriptionPairs]:
        found: list[_SubscriptionPairs] = []
        for begin in range(0, batch.length, CHUNK_EVENTS):
            length = min(CHUNK_EVENTS, batch.length - begin)
            time_us = np.full(length, NO_TIME)
            if batch.times_us is not None:
                time_us = batch.times_us[begin : begin + length]
            times = EventTimes.of(time_us)
            encode = partial(encode_variables_of, batch, time_us, self._channels)
            variables = self._share(times, encode)
            try:
                events, numbers = self._match_chunk(batch, begin, time_us, times, variables)
                found.append(_SubscriptionPairs(events, numbers, self._table.ids()))
            finally:
                self._lock.unshare()
        return found

    def _share(self, times: EventTimes, encode: Callable[[], F64]) -> F64:
        """Share the lock, with an index that has all entries and holds for the given times.

        It also holds for the values of variables, which are given back.
        """
        tries = 0
        while True:
            self._lock.share()
            try:
                variables = encode()
                settled = all(index.is_settled for index in self._indexes)
                ready = settled and self._is_enclosed(times, variables)
            except BaseException:
                self._lock.unshare()
                raise
            if ready:
                return variables
            self._lock.unshare()
            with self._lock:
                variables = encode()
                if not self._is_enclosed(times, variables):
                    self._enclose(TimeWindow.of(times, variables), again=tries > 0)
                self._settle()
            tries += 1

    def _is_enclosed(self, times: EventTimes, variables: F64) -> bool:
        moving = [index for index in self._indexes if index.moves]
        if not moving:
            return True
        needed = TimeWindow.of(times, variables)
        return all(index.stretch is not None and index.stretch.includes(needed) for index in moving)

    def _enclose(self, needed: TimeWindow, *, again: bool) -> None:
        """Have the index hold for a stretch of time, and for some time after it.

        If it does not hold although it just did, other threads have events of other times: then for
        those as well, lest each takes away what the other needs.
        """
        before = self._index.stretch
        stretch = needed.extended(self._foresight.length_us)
        if before is not None:
            stretch = stretch.joined(before) if again else stretch.recalling(before)
        start = perf_counter()
        for index in self._indexes:
            index.enclose(stretch)
        self._foresight.has_enclosed(perf_counter() - start)

    def _match_chunk(
        self, batch: EventBatch, begin: int, times_us: I64, times: EventTimes, variables: F64
    ) -> tuple[I64, I32]:
        encoded = encode_columns(
            batch.columns, begin, len(times_us), self._channels, self._table.pool
        )
        found, seen = self._match_parts(encoded, times_us, variables)
        events, numbers, flags = found[0] if len(found) == 1 else _in_order(found)
        if seen & SHARED:
            chosen = _once_each(events, numbers, flags)
            events, numbers, flags = events[chosen], numbers[chosen], flags[chosen]
        if not self._table.all_live(times.begin, times.end):
            living = self._table.living(numbers, times_us[events])
            events, numbers, flags = events[living], numbers[living], flags[living]
        if seen & VERIFY:
            good = (flags & VERIFY) == 0
            for place in np.flatnonzero(~good):
                index = begin + int(events[place])
                event, moment = batch.event(index), batch.moment(index)
                good[place] = self._verified(int(numbers[place]), event, moment)
            events, numbers = events[good], numbers[good]
        return events.astype(np.int64) + begin, numbers

    def _match_parts(
        self, encoded: Encoded, times_us: I64, variables: F64
    ) -> tuple[list[_EntryPairs], int]:
        """What is found in each part, and all flags seen."""
        tell_times(encoded, self._channels, times_us)
        times = NO_TIMES if self._past is None else EventTimes.of(times_us)
        found: list[_EntryPairs] = []
        seen = 0
        for part in (part for index in self._indexes for part in index.parts):
            if part.may_match(times):
                pairs, flags = self._match_part(part, encoded, times_us, variables)
                found.append(pairs)
                seen |= flags
        return found or [_NOTHING_FOUND], seen

    def _match_part(
        self, part: IndexPart, encoded: Encoded, times_us: I64, variables: F64
    ) -> tuple[_EntryPairs, int]:
        """All pairs of an event and an entry of a part, and all flags seen."""
        room = max(4096, 32 * len(times_us), 2 * part.longest)
        while True:
            events, numbers, flags = self._room.of(room)
            count, seen = match_events(
                *part.packed, encoded.matrix, encoded.set_first, encoded.set_value, events,
                numbers, flags,
            )  # fmt: skip
            if count >= 0:
                break
            room = 2 * len(events)
        found = events[:count], numbers[:count], flags[:count]
        if not seen & UNSURE:
            return (found[0].copy(), found[1].copy(), found[2].copy()), seen
        start = perf_counter()
        at, i32, _, _, f64, _, _ = part.packed
        matching = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.uint8)
        count, seen = evaluate_unsure(
            at, i32, f64, encoded.matrix, times_us, variables, np.empty(STACK_MAX),
            np.empty(BLOCK_PAIRS, np.int32), *found, *matching,
        )  # fmt: skip
        self._foresight.has_evaluated(perf_counter() - start)
        return (matching[0][:count], matching[1][:count], matching[2][:count]), seen

    def _verified(self, number: int, event: Event, moment: Moment) -> bool:
        """Whether a subscription really matches, by the meaning of the language."""
        subscription = self._table.get(number)
        environment = subscription.environment(moment)
        return holds(subscription.filter.node, event.attributes, environment)


def _all_of(found: list[_SubscriptionPairs]) -> Matches:
    """Pairs of several moments; between them numbers may have gone to other subscriptions."""
    if not found:
        found = [
            _SubscriptionPairs(
                np.zeros(0, np.int64), np.zeros(0, np.int32), pa.array([], pa.string())
            )
        ]
    events = np.concatenate([each.events for each in found])
    if all(each.ids is found[0].ids for each in found):
        numbers = np.concatenate([each.numbers for each in found])
        return Matches(events, pa.DictionaryArray.from_arrays(numbers, found[0].ids))
    ids = pa.concat_arrays([each.ids.take(each.numbers) for each in found])
    return Matches(events, ids.dictionary_encode())


def _joined(found: list[_EntryPairs]) -> _EntryPairs:
    """What was found in several parts, one behind the other."""
    events, numbers, flags = zip(*found, strict=True)
    return np.concatenate(events), np.concatenate(numbers), np.concatenate(flags)


def _in_order(found: list[_EntryPairs]) -> _EntryPairs:
    """What was found in several parts, by event."""
    events, numbers, flags = _joined(found)
    order = np.argsort(events, kind="stable")
    return events[order], numbers[order], flags[order]


def _once_each(events: I32, numbers: I32, flags: U8) -> I64:
    """One of the entries of each pair, one that needs no verifying if there is such."""
    pairs = events.astype(np.int64) << 32 | numbers
    order = np.lexsort((flags & VERIFY, pairs))
    in_order = pairs[order]
    first = np.concatenate([[True], in_order[1:] != in_order[:-1]])
    chosen: I64 = order[first[: len(order)]]
    return chosen
