"""The default matcher: subscriptions as rows of their shapes, in an index of compiled kernels.

Theory of operation. The table (`rows/store/`) holds the subscriptions in columns, by number: shape,
row of values, lifetime. `rows/entries/` turns rows into entries, conjunctions of bounds on
channels, and the indexes (`index_pair`, `index`) make them searchable. `rows/encoding.py` turns
events into rows of floats, `search` finds the pairs of an event and an entry with the kernels, and
what an entry cannot express exactly is verified by the meaning of the language. An update writes
new bounds in place; where that is impossible the entries are replaced.

Past versions of subscriptions are rows of the same table, with an index of their own.

Locking. One SharedLock, as `rows/event_matching.py` says: matches share it, changes hold it alone.
Lock order: the locks of an engine and of the evolve modes are taken before it, and while it is held
only the one with which a loaded table reads its ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from weakref import finalize

import numpy as np

from tidegate.language.events import Event
from tidegate.language.values import Value
from tidegate.matching.arrays import I32, I64
from tidegate.matching.batches import EventBatch, Matches, VersionMatches
from tidegate.matching.columnar.index_pair import IndexPair
from tidegate.matching.columnar.layout_thread import LayoutThread
from tidegate.matching.columnar.sizes import DEFAULT_SIZES, IndexSizes
from tidegate.matching.forking import Rank, survive_forks
from tidegate.matching.matcher import LinkMatches
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.event_matching import STAGED_MAX, EventMatching, add_staged
from tidegate.matching.rows.found_pairs import matches_of
from tidegate.matching.rows.kernels.motion import EVERY
from tidegate.matching.rows.link_matching import match_links
from tidegate.matching.rows.locks import SharedLock
from tidegate.matching.rows.reclaiming import Reclaimer
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.rows.time_window import WindowLength
from tidegate.matching.rows.update_plans import Rewriter
from tidegate.matching.subscription import Moment, Subscription

_CALLER_NOTES = "caller"


class ColumnarMatcher:
    """Holds subscriptions in columns and matches events with compiled kernels.

    ``sizes`` are those at which the index changes its form; tests make them small. Parts are laid
    out beside the index on a thread; if not ``threaded``, by calling ``build``.
    """

    def __init__(self, *, sizes: IndexSizes = DEFAULT_SIZES, threaded: bool = True) -> None:
        self._threaded = threaded
        self._set_up(SubscriptionTable(), Channels(), sizes)
        self.notes: Mapping[str, object] = {}
        """What was written beside the subscriptions into the file that ``load`` has opened."""

    def _set_up(self, table: SubscriptionTable, channels: Channels, sizes: IndexSizes) -> None:
        self._lock = SharedLock()
        survive_forks(self._lock, Rank.MATCHER)
        self._table = table
        self._channels = channels
        self._indexes = IndexPair(table, channels, WindowLength(), sizes)
        self._layout_thread = LayoutThread(self._lock, self._indexes)
        finalize(self, self._layout_thread.stop).atexit = False  # there all are stopped at once
        if self._threaded:
            self._indexes.wants_build = self._layout_thread.start
        self._rewriter = Rewriter(table, channels)
        self._reclaimer = Reclaimer(table, channels, self._rewriter, self._indexes)
        self._matching = EventMatching(
            self._lock, table, channels, self._indexes, self._reclaimer.take_up_kinds
        )

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, id: str) -> bool:
        return id in self._table

    # -- changes ------------------------------------------------------------------------------

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        try:
            add_staged(subscriptions, self._lock, self._table, self._indexes.add)
        except BaseException:
            with self._lock:
                self._reclaimer.reclaim()  # what was staged and refused
            raise
        if self._channels.orders.needs_tidying:
            with self._lock:
                self._reclaimer.tidy_orders()

    def remove(self, id: str) -> None:
        with self._lock:
            number = self._table.number(id)
            self._indexes.flush_if_pending(np.array([number], np.int32))
            self._indexes.current.remove(number)
            self._indexes.current.set_links(number, 0)
            self._table.remove(number)
            self._reclaimer.reclaim()
            self._indexes.look_for_builds()

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            number = self._table.number(id)
            changed = self._table.update(number, parameters)
            index = self._indexes.current
            # a pending entry cannot be rewritten; then it is replaced
            if changed is None or not self._rewriter.rewrite(index, number, changed):
                self._indexes.reindex(np.array([number], np.int32))
            self._reclaimer.reclaim_strings()

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
        chosen = np.flatnonzero(in_place)
        in_place[chosen] = self._rewriter.rewrite_many(
            self._indexes.current, numbers[chosen], [slots[each] for each in chosen.tolist()]
        )
        self._indexes.reindex(numbers[~in_place])
        self._reclaimer.reclaim_strings()

    def pin(self, ids: Sequence[str], time_us: int | None) -> None:
        """Evaluate `Cached` filters as of a fixed time, until pinned again; None unpins them."""
        with self._lock:
            numbers = self._table.numbers(ids)
            self._indexes.flush_if_pending(numbers)
            self._table.columns.set_pinned(numbers, time_us)
            self._indexes.current.pin(numbers, EVERY if time_us is None else time_us)

    # -- parts that are built beside ------------------------------------------------------------

    def build(self) -> Iterator[None]:
        """Build the parts that the index wants, and stop between the steps; no lock is held then.

        For matchers that are not threaded.
        """
        while True:
            with self._lock:
                build = self._indexes.begin_build()
            if build is None:
                return
            yield from build.steps(self._lock, lambda: None)

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
            self._reclaimer.reclaim()

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

    def samples(self) -> Iterator[Subscription]:
        """A subscription of each shape, and for each choice of kinds of the values in its row."""
        return (subscription for subscription, _ in self.counted_samples())

    def counted_samples(self) -> Iterator[tuple[Subscription, int]]:
        """The same, each with the number of subscriptions that are like it."""
        numbers = np.flatnonzero(self._table.columns.is_current()).astype(np.int32)
        for shape, members in self._table.by_shape(numbers):
            for _, _, chosen in self._table.by_kinds(shape, members):
                yield self._table.get(chosen.item(0)), len(chosen)

    def cached(self) -> Iterator[Subscription]:
        """The subscriptions whose evolve mode is `Cached`."""
        return (self._table.get(number) for number in self._table.columns.cached().tolist())

    def attributes(self) -> set[str]:
        """The names of the attributes that filters name."""
        return {name for _, shape in self._table.numbered_shapes() for name in shape.attributes}

    def variables(self) -> set[str]:
        """The names of the variables that filters use, or have used."""
        return self._table.variables()

    # -- snapshots ----------------------------------------------------------------------------

    def save(
        self, path: str | Path, *, notes: Callable[[], Mapping[str, object]] | None = None
    ) -> None:
        """Write all subscriptions and their indexes to one file, and the notes of the caller.

        Links are not written: they number the links of a broker, which change with its network and
        are numbered again when a broker starts.
        """
        into = SectionWriter()
        with self._lock:
            into.note(_CALLER_NOTES, notes() if notes is not None else {})
            self._indexes.flush()
            self._table.save(into)
            self._channels.save(into)
            self._indexes.save(into)
            into.write(path)

    @classmethod
    def load(
        cls, path: str | Path, *, sizes: IndexSizes = DEFAULT_SIZES, mapped: bool = True
    ) -> ColumnarMatcher:
        """Open a file that ``save`` wrote; if ``mapped``, it is read as it is needed."""
        source = SectionReader(path, mapped=mapped)
        matcher = cls(sizes=sizes)
        matcher._set_up(SubscriptionTable.load(source), Channels.load(source), sizes)
        matcher._indexes.load(source)
        matcher._reclaimer.hold_shapes()
        matcher.notes = source.optional_note(_CALLER_NOTES) or {}
        return matcher

    # -- matching -----------------------------------------------------------------------------

    def match(self, event: Event, moment: Moment) -> list[str]:
        return self._matching.match(event, moment)

    def match_batch(self, batch: EventBatch) -> Matches:
        return matches_of(self._matching.match_chunks(batch))

    def numbers(self, ids: Sequence[str]) -> I32:
        """The numbers of subscriptions, as `match_numbers` gives them."""
        self._lock.share()
        try:
            return self._table.numbers(ids)
        finally:
            self._lock.unshare()

    def match_numbers(self, batch: EventBatch) -> tuple[I64, I32]:
        """As ``match_batch``, with numbers in place of ids; nothing may be removed meanwhile."""
        return self._matching.match_numbers(batch)

    def match_versions(self, batch: EventBatch) -> VersionMatches:
        """The matches with the versions that matched; no change may be made meanwhile."""
        events, numbers = self._matching.match_numbers(batch)
        return VersionMatches(events, numbers, self._table.version_columns())

    # -- links --------------------------------------------------------------------------------

    def set_links(self, id: str, links: int) -> None:
        """Say over which links a subscription is reached."""
        with self._lock:
            self._indexes.current.set_links(self._table.number(id), links)

    def match_links(self, event: Event, moment: Moment, mask: int) -> LinkMatches:
        """The links in ``mask`` over which a subscription that matches an event is reached.

        A step is a group that is looked up, or an entry that is checked.
        """
        return match_links(self._matching, self._table, self._indexes, event, moment, mask)
