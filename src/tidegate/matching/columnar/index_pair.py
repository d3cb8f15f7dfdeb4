"""The two indexes of a matcher: of its current subscriptions and of past versions.

Past versions hold for events of their time only. They are rows of the same table but have an index
of their own, whose entries carry a lifetime, so that events of today do not pay for all that was
before. Both indexes are enclosed for the same time window.

The coming window. When a quarter of a time window is left, both indexes begin to be enclosed for
the coming one, a piece at a time, as far as the time of events has come: whoever matches an event
does the pieces that its time makes due (``keep_up``). So no event has to wait for all of it, unless
time jumps beyond the window.

Nothing here takes a lock: the matcher calls what only reads under its shared lock, and what changes
an index under its exclusive lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np

from tidegate.matching.arrays import F64, I32, I64
from tidegate.matching.columnar.index import OPEN, Index
from tidegate.matching.columnar.index_part import IndexPart
from tidegate.matching.columnar.layout_thread import RELEASE_ENTRIES_MIN
from tidegate.matching.columnar.link_search import LinkSearch
from tidegate.matching.columnar.part_build import PartBuild
from tidegate.matching.columnar.search import PartSearch
from tidegate.matching.columnar.sizes import IndexSizes
from tidegate.matching.rows.encoding import Encoded, encode_variables
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.making import EntryMaker
from tidegate.matching.rows.found_pairs import EntryPairs
from tidegate.matching.rows.kernels.entry_lists import Entries, limited
from tidegate.matching.rows.memory import release_memory
from tidegate.matching.rows.store.columns import CURRENT, PAST
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.rows.time_window import EventTimes, TimeWindow, WindowLength

COMING_SHARE = 4
"""The coming window is enclosed during the last one of so many shares of a window. In a longer time
each event does less, but windows overlap more, and are so enclosed more often."""

NEVER = 2**63
"""Later than any time of an event."""

LIFETIME_CLASS_BITS = 4
"""Past versions share a chunk if the lengths of their lives differ by less than about 2**4."""


class IndexPair:
    """The index of current subscriptions and, once there are any, that of past versions."""

    def __init__(
        self,
        table: SubscriptionTable,
        channels: Channels,
        window_length: WindowLength,
        sizes: IndexSizes,
    ) -> None:
        self._table = table
        self._channels = channels
        self._maker = EntryMaker(table, channels)
        self._search = PartSearch(window_length)
        self._link_search = LinkSearch(window_length)
        self._window_length = window_length
        self._sizes = sizes
        self.wants_build: Callable[[], object] = lambda: None
        """Called, with the lock held alone, when a part is to be built beside the index."""
        self._build: PartBuild | None = None
        self._coming_from_us = self._coming_until_us = 0
        """The times of events between which the coming window is enclosed."""
        self._next_piece_us = NEVER
        """The time of events from which on the next piece is due."""
        self._ahead_us = 0
        """How far the last window reaches ahead of the events for which it was made."""
        self._trailing_us = 0
        """How far behind the latest events those of another thread may be."""
        self._enclosing_s = 0.0
        """The time that enclosing for the coming window has taken so far."""
        self.current = Index(sizes=sizes)
        self._past: Index | None = None

    @property
    def _both(self) -> tuple[Index, ...]:
        return (self.current,) if self._past is None else (self.current, self._past)

    def find(
        self, encoded: Encoded, times_us: I64, times: EventTimes, variables: F64
    ) -> tuple[EntryPairs, int]:
        """The pairs of an event and an entry that it satisfies, by event; and all their flags."""
        return self._search.find(self.parts, encoded, times_us, times, variables)

    def find_links(
        self, encoded: Encoded, times_us: I64, variables: F64, mask: int
    ) -> tuple[int, EntryPairs, int]:
        """The links of one event that are found, the entries to look at, and the steps.

        Past versions have no links.
        """
        # The open part comes last: it is scanned, and the others may have decided all links.
        parts = self.current.parts
        return self._link_search.find(
            [*parts[OPEN + 1 :], parts[OPEN]], encoded, times_us, variables,
            mask & self.current.links.all,
        )  # fmt: skip

    def links_of(self, numbers: I32) -> list[int]:
        """The links of subscriptions, by their numbers."""
        return self.current.links.of(numbers)

    @property
    def parts(self) -> list[IndexPart]:
        """The parts of both indexes."""
        if self._past is None:
            return self.current.parts
        return self.current.parts + self._past.parts

    # -- entries ----------------------------------------------------------------------------------

    def add(self, numbers: I32) -> None:
        """Add the entries of current subscriptions; pending until ``flush``."""
        self._add(numbers, self.current)

    def add_past(self, numbers: I32) -> None:
        """Add the entries of past versions, chunk by chunk of similar lifetimes, each flushed."""
        if self._past is None:
            self._past = Index(self._channels.lifetime(), self._sizes)
        for chunk in self._by_lifetime(numbers):
            self._add(chunk, self._past)
            self._flush(self._past)

    def remove_past(self, numbers: list[int]) -> None:
        """Remove the entries of past versions; they are always flushed."""
        if self._past is not None:
            self._past.remove(*numbers)

    def reindex(self, numbers: I32) -> None:
        """Replace the entries of current subscriptions by new ones from their rows."""
        if len(numbers):
            self.flush_if_pending(numbers)
            self.current.remove(*numbers.tolist())
            self.add(numbers)

    def remake(self, numbers: I32) -> None:
        """As ``reindex``, also for past versions and for subscriptions without entries yet."""
        state = self._table.columns.state[numbers]
        self.reindex(numbers[state == CURRENT])
        past = numbers[state == PAST]
        if len(past):
            self.remove_past(past.tolist())
            self.add_past(past)

    def _add(self, numbers: I32, index: Index) -> None:
        index.reserve(self._table.columns.capacity)
        for entries in self._maker.entries(numbers):
            index.add(self._with_lifetimes(entries, index))

    def _with_lifetimes(self, entries: Entries, index: Index) -> Entries:
        """Entries of past versions with a range in the channel of event time."""
        if index.lifetime is None:
            return entries
        columns = self._table.columns
        since = columns.since_us[entries.subscription].astype(np.float64)
        last = (columns.until_us[entries.subscription] - 1).astype(np.float64)
        # One float wider at the low end: a range of one value would be taken for an equality, and
        # become a hash key. Times at the border are sorted out by the exact lifetimes of the table.
        return limited(entries, index.lifetime, np.nextafter(since, -np.inf), last)

    def _by_lifetime(self, numbers: I32) -> list[I32]:
        """Past versions in chunks of bounded size, each of versions with similar lifetimes.

        A chunk has versions that lived about equally long, in the order of their beginnings: a
        single long life among many short ones would let their part cover all times.
        """
        chunk_max = self._sizes.past_entries_max
        if len(numbers) <= chunk_max:
            return [numbers] if len(numbers) else []
        columns = self._table.columns
        since_us, until_us = columns.since_us[numbers], columns.until_us[numbers]
        lengths_us = np.maximum(1.0, until_us.astype(np.float64) - since_us)
        length_class = np.log2(lengths_us) // LIFETIME_CLASS_BITS
        order = np.lexsort((since_us, length_class))
        borders = np.flatnonzero(np.diff(length_class[order])) + 1
        chunks: list[I32] = []
        for run in np.split(numbers[order], borders):
            chunks += np.array_split(run, -(-len(run) // chunk_max))
        return chunks

    @property
    def columns(self) -> int:
        """How many columns of events parts may look at, those of removed entries included."""
        return max(each.columns for index in self._both for each in index.parts)

    @property
    def is_flushed(self) -> bool:
        """Whether all entries are in parts, where matches find them."""
        return self.current.is_flushed and (self._past is None or self._past.is_flushed)

    def flush(self) -> None:
        """Move all pending entries into parts."""
        for index in self._both:
            self._flush(index)

    def flush_if_pending(self, numbers: I32) -> None:
        """Move pending entries into parts if some of these subscriptions may have any.

        They must, before they are changed in place or removed. Others may wait for the next match.
        """
        if self.current.may_be_pending(numbers):
            self._flush(self.current)

    def _flush(self, index: Index) -> None:
        if index.is_flushed:
            return
        self._channels.flush()
        if index.has_motion and index.window is None:
            self._enclose_first(index)
        laid_out = index.flush(self._channels.program, self._channels.variable_columns)
        if laid_out >= RELEASE_ENTRIES_MIN:
            release_memory()
        if laid_out:
            self.look_for_builds()

    # -- parts that are built beside --------------------------------------------------------------

    def look_for_builds(self) -> None:
        """Say so if the index wants parts to be built beside it."""
        if self.current.wanted():
            self.wants_build()

    def begin_build(self) -> PartBuild | None:
        """Begin to build the parts that the index wants; None if it wants none."""
        old = self.current.wanted()
        self._build = None
        if old:
            program = self._channels.program
            self._build = PartBuild(self.current, old, program, self._sizes, self.reindex)
        return self._build

    def abandon_build(self) -> None:
        """Forget the part that is being built, if any."""
        if self._build is not None:
            self._build.abandon()
            self._build = None

    # -- time windows -----------------------------------------------------------------------------

    def is_enclosed(self, times: EventTimes, variables: F64) -> bool:
        """Whether moving bounds are enclosed for these times and values of variables."""
        moving = [index for index in self._both if index.has_motion]
        if not moving:
            return True
        needed = TimeWindow.of(times, variables)
        return all(index.is_enclosed(needed) for index in moving)

    def is_behind(self, times: EventTimes) -> bool:
        """Whether events of these times make a piece of the coming window due."""
        return times.begin <= times.end and times.end >= self._next_piece_us

    def keep_up(self, needed: TimeWindow) -> None:
        """Enclose for the coming window as far as the time of some events asks for.

        The indexes are enclosed for the needed window.
        """
        start = perf_counter()
        if self.current.coming is None:
            self._begin_coming(needed)
        span_us = self._coming_until_us - self._coming_from_us
        share = (needed.end - self._coming_from_us) / span_us if span_us > 0 else 1.0
        self._enclose_share(min(1.0, share))
        self._enclosing_s += perf_counter() - start
        if share >= 1.0:
            self._window_has_come()
            return
        pieces = 1 + max(len(part) for part in self.parts) // self._sizes.piece_entries
        self._next_piece_us = needed.end + 1 + span_us // pieces

    def _begin_coming(self, needed: TimeWindow) -> None:
        """Begin to enclose both indexes for the window that comes after the present one."""
        before = self.current.window
        assert before is not None
        self._ahead_us = self._window_length.length_us
        coming = needed.extended(self._ahead_us).recalling(before)
        coming = replace(
            coming,
            begin=min(coming.begin, needed.end - self._trailing_us),
            timeless=coming.timeless or before.timeless,
        )
        for index in self._both:
            index.begin_enclosing(coming)
        # a little before the window ends, as the next event comes a little later
        self._coming_from_us = needed.end
        self._coming_until_us = before.end - (before.end - needed.end) // 8

    def _enclose_share(self, share: float) -> None:
        for index in self._both:
            while index.coming is not None and index.enclose_piece(share):
                pass

    def _window_has_come(self) -> None:
        """Plan the next window, now that all is enclosed for this one."""
        self._window_length.has_enclosed(self._enclosing_s)
        self._enclosing_s = 0.0
        self._plan_pieces()
        self.look_for_builds()

    def _plan_pieces(self) -> None:
        window = self.current.window
        self._next_piece_us = NEVER
        if window is not None and window.begin <= window.end:
            self._next_piece_us = window.end - self._ahead_us // COMING_SHARE

    def enclose(self, needed: TimeWindow, *, contended: bool = False) -> None:
        """Enclose moving bounds for a window and some time ahead of it.

        ``contended``: the indexes were enclosed for these events a moment ago, but a thread with
        events of other times came between. Then they are enclosed for both, else the two threads
        would take turns in undoing each other's work.
        """
        before, coming = self.current.window, self.current.coming
        start = perf_counter()
        if coming is not None and coming.includes(needed):
            self._enclose_share(1.0)  # time has jumped, but not far
        else:
            self._ahead_us = self._window_length.length_us
            window = needed.extended(self._ahead_us)
            if before is not None:
                window = window.joined(before) if contended else window.recalling(before)
            latest_us = window.end - self._ahead_us
            self._trailing_us = max(0, latest_us - window.begin) if contended else 0
            for index in self._both:
                index.enclose(window)
        self._enclosing_s += perf_counter() - start
        self._window_has_come()

    def _enclose_first(self, index: Index) -> None:
        """Enclose an index for the first time: as the other one, or for when its entries begin."""
        for other in self._both:
            if other.window is not None:
                index.enclose(other.window)
                if other.coming is not None:
                    index.begin_enclosing(other.coming)
                return
        # No event has come yet; the first will probably come soon after the subscriptions began.
        unset = encode_variables({}, self._channels)
        self.enclose(TimeWindow.of(EventTimes.at(self._table.columns.latest_since), unset))

    # -- snapshots --------------------------------------------------------------------------------

    def save(self, into: SectionWriter) -> None:
        """Add both indexes to a snapshot; they must be flushed."""
        self.current.save(into, "now")
        into.note("has_past", self._past is not None)
        if self._past is not None:
            self._past.save(into, "past")

    def load(self, source: SectionReader) -> None:
        """Replace both indexes by those of a snapshot."""
        columns = self._channels.columns
        self.current = Index.load(source, "now", columns, self._sizes)
        if source.note("has_past"):
            self._past = Index.load(source, "past", columns, self._sizes)
        self._plan_pieces()
