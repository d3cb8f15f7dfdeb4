"""The tree matcher: subscriptions as rows of a table, in Gryphon's parallel search tree.

Where it is the right choice: filters over one schema that mostly ask for equality, with few values
and many attributes, and brokers that look for links instead of subscriptions (`match_links`).
Elsewhere, and where parameters change often, the columnar matcher is faster; docs/performance.md
has the figures.

Theory of operation. The table, entries, encoding of events and the steps around the search are
those of all compiled matchers (`matching/rows`); this folder has the tree. `kernels/layout.py`
describes its records; `descending.py`, `splitting.py` and `guards.py` say how entries get into it
and why each optimization leaves the answers as they are; `search.py` is the search, `trits.py` has
the annotations for links.

Locking. One SharedLock, as `rows/event_matching.py` says: matches share it, changes hold it alone.
Only when the order of the levels has drifted is another tree built without the lock, beside the
readers, by the thread whose change was the last straw; it holds the lock to copy and to replace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tidegate.language.events import Event
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.forking import Rank, forkable_lock, survive_forks
from tidegate.matching.matcher import LinkMatches
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.event_matching import EventMatching, add_staged
from tidegate.matching.rows.found_pairs import matches_of
from tidegate.matching.rows.kernels.motion import EVERY
from tidegate.matching.rows.link_matching import match_links
from tidegate.matching.rows.locks import SharedLock
from tidegate.matching.rows.reclaiming import Reclaimer
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.rows.update_plans import Rewriter
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.index import TreeIndex
from tidegate.matching.tree.tuning import DEFAULT_TUNING, TreeTuning


class TreeMatcher:
    """Holds subscriptions in a parallel search tree and matches events with compiled kernels."""

    def __init__(self, tuning: TreeTuning = DEFAULT_TUNING) -> None:
        self._lock = SharedLock()
        survive_forks(self._lock, Rank.MATCHER)
        self._table = SubscriptionTable()
        self._channels = Channels()
        self._index = TreeIndex(self._table, self._channels, tuning)
        self._rewriter = Rewriter(self._table, self._channels)
        self._reclaimer = Reclaimer(self._table, self._channels, self._rewriter, self._index)
        self._matching = EventMatching(
            self._lock, self._table, self._channels, self._index, self._reclaimer.take_up_kinds
        )
        self._rebuilding = forkable_lock(Rank.REBUILDING)

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, id: str) -> bool:
        return id in self._table

    # -- changes ------------------------------------------------------------------------------

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        try:
            add_staged(subscriptions, self._lock, self._table, self._index.add)
        except BaseException:
            with self._lock:
                self._reclaimer.reclaim()  # what was staged and refused
            raise
        if self._channels.orders.needs_tidying:
            with self._lock:
                self._reclaimer.tidy_orders()
        self._follow_drift()

    def remove(self, id: str) -> None:
        with self._lock:
            number = self._table.number(id)
            self._index.flush()
            self._index.remove(np.array([number], np.int32))
            self._index.tree.links.set(number, 0)
            self._table.remove(number)
            self._reclaimer.reclaim()
        self._follow_drift()

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            number = self._table.number(id)
            changed = self._table.update(number, parameters)
            self._index.flush()  # a pending entry can neither be rewritten nor removed
            in_place = changed is not None and self._rewriter.rewrite(self._index, number, changed)
            if not in_place:
                self._index.reindex(np.array([number], np.int32))
            self._reclaimer.reclaim_strings()
            if in_place:
                return  # with as many entries and as much garbage as before, nothing has drifted
        self._follow_drift()

    def update_many(self, updates: Mapping[str, Mapping[str, Value | None]]) -> None:
        """As ``update`` for many subscriptions, all or none, and quicker."""
        with self._lock:
            numbers = self._table.numbers(updates)
            parameters = list(updates.values())
            slots = self._table.slots(numbers, parameters)
            in_place = self._table.write(numbers, slots, parameters)
            self._index.flush()
            chosen = np.flatnonzero(in_place)
            in_place[chosen] = self._rewriter.rewrite_many(
                self._index, numbers[chosen], [slots[each] for each in chosen.tolist()]
            )
            all_in_place = bool(in_place.all())
            if not all_in_place:
                self._index.reindex(numbers[~in_place])
            self._reclaimer.reclaim_strings()
        if not all_in_place:
            self._follow_drift()

    def pin(self, ids: Sequence[str], time_us: int | None) -> None:
        """Evaluate `Cached` filters as of a fixed time, until pinned again; None unpins them."""
        with self._lock:
            numbers = self._table.numbers(ids)
            self._index.flush()
            self._table.columns.set_pinned(numbers, time_us)
            self._index.pin(numbers, EVERY if time_us is None else time_us)

    def _follow_drift(self) -> None:
        """Build the tree anew, beside the readers, if the order of its levels has drifted."""
        if not self._rebuilding.acquire(blocking=False):
            return  # another thread is at it
        try:
            with self._lock:
                self._index.flush()
                order = self._index.drifted_order()
                entries = None if order is None else self._index.copy()
            if order is None or entries is None:
                return
            tree = self._index.build(entries, order)
            with self._lock:
                self._index.replace(tree)
        finally:
            self._rebuilding.release()

    # -- reading ------------------------------------------------------------------------------

    def get(self, id: str) -> Subscription:
        self._lock.share()
        try:
            return self._table.get(self._table.number(id))
        finally:
            self._lock.unshare()

    @property
    def steps(self) -> int:
        """Matching steps of all searches so far, as the paper counts them."""
        return self._index.steps

    @property
    def nodes(self) -> int:
        """Number of nodes of the tree."""
        return self._index.tree.nodes

    # -- matching -----------------------------------------------------------------------------

    def match(self, event: Event, moment: Moment) -> list[str]:
        return self._matching.match(event, moment)

    def match_batch(self, batch: EventBatch) -> Matches:
        return matches_of(self._matching.match_chunks(batch))

    # -- links --------------------------------------------------------------------------------

    def set_links(self, id: str, links: int) -> None:
        """Say over which links a subscription is reached."""
        with self._lock:
            number = self._table.number(id)
            self._index.flush()
            self._index.tree.links.set(number, links)

    def match_links(self, event: Event, moment: Moment, mask: int) -> LinkMatches:
        """The links in ``mask`` over which a subscription that matches an event is reached."""
        return match_links(self._matching, self._table, self._index, event, moment, mask)
