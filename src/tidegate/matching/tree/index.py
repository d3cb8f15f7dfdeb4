"""The index of a tree matcher: entries of a table in a search tree, and the order of its levels.

Theory of operation. New entries are stored and placed at the next `flush`, because those with
moving bounds need the envelopes of a time window first. When the window changes, moving entries
are enclosed anew. An update carries out a plan on the entry (`rewrite`).

Order of attributes (Gryphon, 2): the fewest don't-cares near the root. The tree counts how many
entries test each channel. The order is chosen when the first entries are placed; later ones may
have other attributes, so `drifted_order` compares the estimated steps of the present order with
those of the best one. Then a new tree is built beside the one that is searched (`copy`, `build`),
and takes its place (`replace`) with what has changed meanwhile.

Nothing here takes a lock: the matcher calls what only reads under its shared lock, and what changes
the index under its exclusive lock, except for `build`, which reads a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, U8
from tidegate.matching.rows.encoding import Encoded, encode_variables
from tidegate.matching.rows.entries.channels import PATTERNS, PRESENT, Channels
from tidegate.matching.rows.entries.making import EntryMaker
from tidegate.matching.rows.found_pairs import EntryPairs
from tidegate.matching.rows.kernels.entry_lists import Entries, concatenate
from tidegate.matching.rows.kernels.envelopes import WindowArrays
from tidegate.matching.rows.kernels.flags import MOVING
from tidegate.matching.rows.kernels.plan_values import CellArrays, PlannedRows
from tidegate.matching.rows.kernels.rewrite_plan import NOT_IN_PLACE
from tidegate.matching.rows.store.columns import CURRENT
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.rows.time_window import EventTimes, TimeWindow, WindowLength
from tidegate.matching.tree.entry_order import in_branch_order
from tidegate.matching.tree.level_order import ConstraintCounts, best_order, estimated_steps
from tidegate.matching.tree.search_tree import SearchTree
from tidegate.matching.tree.tuning import TreeTuning

DRIFT_MAX = 1.25
"""The order is chosen anew when the present one is estimated to take this many times the steps."""

DRIFT_ENTRIES_MIN = 64
"""Below this number of entries any order is good enough."""

_WITHOUT_VALUES = (PATTERNS, PRESENT)
"""Kinds of channels in which events have no values that branches could tell apart."""

_NOT_ENCLOSED = WindowArrays(np.zeros(0, np.int64), np.zeros((2, 1)))


class TreeIndex:
    """An `EntryIndex` that finds entries with a search tree."""

    def __init__(self, table: SubscriptionTable, channels: Channels, tuning: TreeTuning) -> None:
        self._table = table
        self._channels = channels
        self._tuning = tuning
        self._maker = EntryMaker(table, channels)
        self._window_length = WindowLength()
        self._window: TimeWindow | None = None
        self._enclosed_for = _NOT_ENCLOSED
        self._pending: list[Entries] = []
        self._changed: set[int] | None = None
        """Numbers of subscriptions that were changed since `copy`; None if there is no copy."""
        self._copied_columns = 0
        """How many columns events had at the last `copy`; 0 if there is no copy."""
        self._checked = 0
        self._has_motion = False
        self.tree = SearchTree(tuning=tuning)
        self.steps = 0
        """Matching steps of all searches; threads that search at once may lose some."""

    # -- entries ----------------------------------------------------------------------------------

    def add(self, numbers: I32) -> None:
        """Add the entries of subscriptions; pending until ``flush``."""
        for entries in self._maker.entries(numbers):
            self._pending.append(entries)
            self._has_motion |= bool(len(entries.motion))
        self._note_change(numbers)

    def remove(self, numbers: I32) -> None:
        """Remove the entries of subscriptions; the index must be flushed."""
        if len(numbers):
            self.tree.remove(numbers)
            self._note_change(numbers)

    def reindex(self, numbers: I32) -> None:
        """Replace the entries of subscriptions by new ones from their rows."""
        self.remove(numbers)
        self.add(numbers)

    def remake(self, numbers: I32) -> None:
        """As ``reindex``, also for subscriptions without entries yet."""
        self.reindex(numbers[self._table.columns.state[numbers] == CURRENT])

    def pin(self, numbers: I32, pin: int) -> None:
        """Evaluate the functions of subscriptions for another time; the index must be flushed."""
        entries = self.tree.records.of(numbers)
        self.tree.pin(entries, pin)
        if self._window is not None:
            self.tree.enclose(entries, self._enclosed_for, self._program())
        self._note_change(numbers)

    def rewrite(self, number: int, plan: I32, kinds: U8, cells: I64, row: int) -> int:
        """Change the only entry of a subscription by a plan; the index must be flushed.

        Returns the outcome, NOT_IN_PLACE if the subscription has no entry, or several.
        """
        if self._changed is not None:
            self._changed.add(number)
        return self.tree.rewrite(
            number, plan, kinds, cells, row, self._enclosed_for, self._program()
        )

    def rewrite_many(self, numbers: I32, planned: PlannedRows, cells: CellArrays) -> U8:
        """As ``rewrite`` for many subscriptions; returns the outcome of each."""
        self._note_change(numbers)
        return self.tree.rewrite_many(numbers, planned, cells, self._enclosed_for, self._program())

    def rewrite_each(
        self, _number: int, _plans: Mapping[int, I32], _kinds: U8, _cells: I64, _row: int
    ) -> int:
        """Change several entries of a subscription, or bounds of other forms: it replaces them."""
        return NOT_IN_PLACE

    def _note_change(self, numbers: I32) -> None:
        if self._changed is not None:
            self._changed.update(numbers.tolist())

    def _program(self) -> I32:
        """The code of all programs."""
        return self._channels.program

    def _set_window(self, window: TimeWindow) -> None:
        self._window = window
        self._enclosed_for = WindowArrays(window.times, window.variables)

    @property
    def columns(self) -> int:
        """How many columns of events the tree may look at, besides those of its entries.

        A node may test a channel that no entry has any more; it is that of a level. So may a node
        of a tree that is built from a copy, which has the channels of that time.
        """
        return max(max(self.tree.storage.order, default=-1) + 1, self._copied_columns)

    @property
    def is_flushed(self) -> bool:
        """Whether all entries are in the tree, where ``find`` finds them."""
        return not self._pending

    def flush(self) -> None:
        """Place all pending entries in the tree."""
        if not self._pending:
            return
        self._channels.flush()
        if not self.tree.records.size:
            order = self._best_order(ConstraintCounts.of(self._pending))
            tree = SearchTree(order, self._tuning)
            tree.links.take_over(self.tree.links)
            self.tree = tree
        if self._has_motion and self._window is None:
            # no event has come yet; the first will probably come soon after the subscriptions began
            unset = encode_variables({}, self._channels)
            self.enclose(TimeWindow.of(EventTimes.at(self._table.columns.latest_since), unset))
        if self._window is not None:
            # kernels need a column for each variable, also for those that are new
            self._set_window(self._window.with_columns_for(self._channels.variable_columns))
        self._place(self.tree, concatenate(self._pending))
        self._pending = []

    def _place(self, tree: SearchTree, entries: Entries) -> None:
        entries = in_branch_order(entries, tree.storage.order)
        numbers = tree.add(entries)
        moving = entries.flags & MOVING != 0
        tree.place(numbers[~moving])
        if self._window is not None and moving.any():
            tree.enclose(numbers[moving], self._enclosed_for, self._program())

    # -- time windows -----------------------------------------------------------------------------

    def is_enclosed(self, times: EventTimes, variables: F64) -> bool:
        """Whether moving bounds are enclosed for these times and values of variables."""
        if not self._has_motion:
            return True
        return self._window is not None and self._window.includes(TimeWindow.of(times, variables))

    def enclose(self, needed: TimeWindow, *, contended: bool = False) -> None:
        """Enclose moving bounds for a window and some time ahead of it.

        ``contended`` if another thread undid it before: then both windows are enclosed.
        """
        window = needed.extended(self._window_length.length_us)
        if self._window is not None:
            before = self._window
            window = window.joined(before) if contended else window.recalling(before)
        self._set_window(window)
        start = perf_counter()
        self.tree.enclose(self.tree.records.moving(), self._enclosed_for, self._program())
        self._window_length.has_enclosed(perf_counter() - start)

    def is_behind(self, _times: EventTimes) -> bool:
        """Whether work for a coming window is due: never, all is enclosed when a window comes."""
        return False

    def keep_up(self, _needed: TimeWindow) -> None:
        """Do the work for a coming window that is due: none."""

    # -- matching ---------------------------------------------------------------------------------

    def find(
        self, encoded: Encoded, times_us: I64, _times: EventTimes, variables: F64
    ) -> tuple[EntryPairs, int]:
        """The pairs of an event and an entry that it satisfies, by event; and all their flags."""
        start = perf_counter()
        pairs, flags, steps = self.tree.search.find(encoded, times_us, variables, self._program())
        self.steps += steps
        if self._has_motion:
            self._window_length.has_evaluated(perf_counter() - start)
        return pairs, flags

    def find_links(
        self, encoded: Encoded, times_us: I64, variables: F64, mask: int
    ) -> tuple[int, EntryPairs, int]:
        """The links of one event that are found, the entries to look at, and the steps."""
        found, pairs, steps = self.tree.search.find_links(
            encoded, times_us, variables, self._program(), mask
        )
        self.steps += steps
        return found, pairs, steps

    def links_of(self, numbers: I32) -> list[int]:
        """The links of subscriptions, by their numbers."""
        return [self.tree.links.of(number) for number in numbers.tolist()]

    # -- the order of the levels ------------------------------------------------------------------

    def _best_order(self, tests: ConstraintCounts) -> list[int]:
        """The best order of the channels; those of the given attributes come first."""
        given: list[int] = []
        for attribute in self._tuning.order:
            kinds = self._channels.of_attribute.get(attribute, ())
            given += [number for kind, number in kinds if kind not in _WITHOUT_VALUES]
        return [*dict.fromkeys([*given, *best_order(tests)])]

    def drifted_order(self) -> list[int] | None:
        """The order in which to build the tree anew; None if it need not be.

        It is built anew if its order has drifted far from the best, or if most of it is garbage.
        """
        records = self.tree.records
        size = records.size
        if records.is_wasteful:
            return self._best_order(records.tests)
        if size < DRIFT_ENTRIES_MIN or self._checked <= 2 * size <= 4 * self._checked:
            return None  # compared only when the size has changed by a factor of two
        self._checked = size
        best = self._best_order(records.tests)
        now, then = (
            estimated_steps(order, records.tests, size) for order in (self.tree.storage.order, best)
        )
        return best if now > DRIFT_MAX * then else None

    def copy(self) -> Entries:
        """A copy of all entries to build another tree from; changes are noted from now on."""
        self._changed = set()
        self._copied_columns = self._channels.columns
        return self.tree.records.take_out()

    def build(self, entries: Entries, order: list[int]) -> SearchTree:
        """Another tree of copied entries; the index is not touched."""
        tree = SearchTree(order, self._tuning)
        entries = in_branch_order(entries, order)
        moving = entries.flags & MOVING != 0
        numbers = tree.add(entries)
        tree.place(numbers[~moving])
        return tree

    def replace(self, tree: SearchTree) -> None:
        """Replace the tree by another one, with what has changed since it was copied."""
        changed = np.array(sorted(self._changed or ()), np.int32)
        self._changed = None
        self.flush()
        tree.links.take_over(self.tree.links)
        tree.remove(changed)
        self.tree = tree
        if self._window is not None:
            tree.enclose(tree.records.moving(), self._enclosed_for, self._program())
        self._copied_columns = 0
        live = changed[self._table.columns.is_current()[changed]]
        for entries in self._maker.entries(live):
            self._place(tree, entries)
