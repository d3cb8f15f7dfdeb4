"""A search tree with the entries it holds.

Theory of operation. `records` keeps the entries, `place` gives them paths in the tree, where
`search` finds them, and `remove` takes them out. What changes bounds of placed entries, a new time
window or an update, writes them over the old ones and places anew only those entries that take
other branches now (kernels/changing.py).

Kernels stop when there is no room for another node or path, and go on after the arrays have grown.

Nothing here takes a lock.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.matching.arrays import I32, I64, U8
from tidegate.matching.rows.kernels.entry_lists import Entries
from tidegate.matching.rows.kernels.envelopes import WindowArrays
from tidegate.matching.rows.kernels.plan_values import SCRATCH_FLOATS, CellArrays, PlannedRows
from tidegate.matching.rows.kernels.rewrite_plan import NOT_IN_PLACE
from tidegate.matching.tree.entry_links import EntryLinks
from tidegate.matching.tree.entry_records import EntryRecords
from tidegate.matching.tree.kernels.descending import NO_ROOM
from tidegate.matching.tree.kernels.layout import H_NODES, H_PATHS, NONE
from tidegate.matching.tree.kernels.moving import enclose_entries, pin_entries
from tidegate.matching.tree.kernels.placing import place_entries
from tidegate.matching.tree.kernels.removing import remove_entries
from tidegate.matching.tree.kernels.rewriting import rewrite_entries, rewrite_entry
from tidegate.matching.tree.search import TreeSearch
from tidegate.matching.tree.storage import TreeStorage
from tidegate.matching.tree.tuning import DEFAULT_TUNING, TreeTuning


class SearchTree:
    """Entries in a search tree whose levels test channels in a given order."""

    def __init__(self, order: Sequence[int] = (), tuning: TreeTuning = DEFAULT_TUNING) -> None:
        self.storage = TreeStorage(order, tuning)
        self.records = EntryRecords(self.storage)
        self.links = EntryLinks(self.storage, self.records)
        self.search = TreeSearch(self.storage)
        self._scratch = np.empty(SCRATCH_FLOATS)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.storage.arrays.head[H_NODES])

    @property
    def paths(self) -> int:
        """Number of paths."""
        return int(self.storage.arrays.head[H_PATHS])

    # -- entries that come and go -----------------------------------------------------------------

    def add(self, entries: Entries) -> I64:
        """Store entries without placing them; returns their numbers."""
        numbers = self.records.add(entries)
        self.links.write(numbers, entries.subscription.tolist())
        return numbers

    def place(self, numbers: I64) -> None:
        """Place stored entries in the tree, where searches find them."""
        done = place_entries(self.storage.arrays, numbers)
        while done < len(numbers):
            self.storage.grow_nodes()
            done += place_entries(self.storage.arrays, numbers[done:])

    def remove(self, subscriptions: I32) -> None:
        """Remove the entries of some subscriptions, placed or not."""
        numbers = self.records.of(subscriptions)
        remove_entries(self.storage.arrays, numbers)
        self.records.free(subscriptions, numbers)

    # -- entries that change ----------------------------------------------------------------------

    def enclose(self, numbers: I64, window: WindowArrays, program: I32) -> None:
        """Write the envelopes of entries for a window, if they move; they are placed then."""
        done = 0
        while True:
            done += enclose_entries(
                self.storage.arrays, program, numbers[done:], window, self._scratch
            )
            if done == len(numbers):
                return
            self.storage.grow_nodes()

    def pin(self, numbers: I64, pin: int) -> None:
        """Evaluate the functions of entries for another time; envelopes are not written."""
        pin_entries(self.storage.arrays, numbers, pin)

    def rewrite(
        self,
        subscription: int,
        plan: I32,
        kinds: U8,
        cells: I64,
        row: int,
        window: WindowArrays,
        program: I32,
    ) -> int:
        """Change the only entry of a subscription by a plan; returns an outcome of the plan.

        NOT_IN_PLACE if the subscription has no entry, or several.
        """
        entry = self.records.only_of(subscription)
        if entry == NONE:
            return NOT_IN_PLACE
        while True:
            outcome: int = rewrite_entry(
                *self.storage.arrays, entry, plan, kinds, cells, row, program, *window,
                self._scratch,
            )  # fmt: skip
            if outcome != NO_ROOM:
                return outcome
            self.storage.grow_nodes()

    def rewrite_many(
        self,
        subscriptions: I32,
        planned: PlannedRows,
        cells: CellArrays,
        window: WindowArrays,
        program: I32,
    ) -> U8:
        """As ``rewrite`` for many subscriptions; returns the outcome of each."""
        entries = self.records.only_of_each(subscriptions)
        outcomes: U8 = np.full(len(entries), NOT_IN_PLACE, np.uint8)
        done = 0
        while True:
            done = rewrite_entries(
                self.storage.arrays, planned, cells, entries, done, program, window, self._scratch,
                outcomes,
            )  # fmt: skip
            if done == len(entries):
                return outcomes
            self.storage.grow_nodes()
