"""Giving back what only subscriptions of the past have needed.

Strings, shapes, lists of parameter names, channels, variables, programs, patterns and update plans
are numbered, and kept by number. Here is the order in which they are given back:

    a row is removed or overwritten    its strings, shape and names lose a use (store/uses.py)
    at the end of that change          the table forgets those without uses; some shapes are kept
    strings that are forgotten         drop the patterns with their text
    shapes that are forgotten          drop their update plans, and release what their entries
                                       needed (entries/channels.py), which drops channels and so on
    columns of events at the end       go, if the index has no entry left that may look at them
    long numbers that no row has       lose their order labels (entries/orders.py), now and then
    the attribute with the last one    gets other channels, if most columns are those of no channel:
                                       the entries that name it are made again

At the end of a change, and not when a use ends: in between the index still has entries with the
numbers. It may have them afterwards too, marked as removed, which is why a number is never used in
another way; channels.py says how.

Nothing here takes a lock: it is part of a change, and runs while that holds the lock alone.
"""

from __future__ import annotations

from typing import Protocol

from tidegate.matching.arrays import I32
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.operands import needs_of
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.rows.update_plans import Rewriter

MOVED_MAX = 1_024
"""An attribute that more subscriptions name keeps its channels, wherever they are."""

SPREAD_MAX = 65_536
"""Order labels of an attribute that more subscriptions name are not spread anew: bounds without a
label are verified then. To make these entries again takes about half a second."""


class ReclaimableIndex(Protocol):
    """The index of the entries of a table's subscriptions."""

    @property
    def columns(self) -> int:
        """How many columns of events its entries may look at, those of removed ones included."""
        ...

    def flush(self) -> None:
        """Move all pending entries to where they are searched."""
        ...

    def reindex(self, numbers: I32) -> None:
        """Replace the entries of current subscriptions by new ones from their rows."""
        ...

    def remake(self, numbers: I32) -> None:
        """As ``reindex``, also for past versions and for subscriptions without entries yet."""
        ...


class Reclaimer:
    """Reclaims what the changes of a table have left behind."""

    def __init__(
        self,
        table: SubscriptionTable,
        channels: Channels,
        rewriter: Rewriter,
        index: ReclaimableIndex,
    ) -> None:
        self._table = table
        self._channels = channels
        self._rewriter = rewriter
        self._index = index
        self._strings = table.pool.uses
        self._stuck_columns: int | None = None

    def reclaim(self) -> None:
        """Forget what nothing uses; at the end of a change that added or removed subscriptions."""
        shapes, texts = self._table.forget_unused()
        if texts:
            self._channels.forget_texts(texts)
        if shapes:
            self._release(shapes)
        if self._channels.is_sparse:
            self._close_gaps()
        if shapes:
            self._channels.trim(self._index.columns)
        self.tidy_orders()

    def tidy_orders(self) -> None:
        """Drop order labels that no row needs, and make room where labels are crowded."""
        orders = self._channels.orders
        if not orders.needs_tidying:
            return
        if orders.has_many_long:
            orders.keep_long(self._table.rows.long_numbers())
        for attribute in orders.crowded():
            shapes = self._channels.shapes_with(attribute)
            numbers = self._table.numbers_with(shapes, SPREAD_MAX)
            if numbers is not None:
                self._remake(attribute, shapes, numbers)

    def _remake(self, attribute: str, shapes: list[int], numbers: I32) -> None:
        """Give up the channels of an attribute, and make all entries that name it again."""
        self._index.flush()  # pending entries have the channels that are given up
        self._rewriter.forget(shapes)
        self._channels.give_up(attribute)
        self._index.reindex(numbers)

    def _close_gaps(self) -> None:
        """Remove columns of events, most of which are those of no channel."""
        # shapes that are kept though they are unused may have the last columns
        self._release(self._table.forget_shapes())
        self._channels.trim(self._index.columns)
        # If an attribute could not be moved with as many columns, it is not tried again: to find
        # the subscriptions that name it takes long where there are a million.
        if self._channels.is_sparse and self._channels.columns != self._stuck_columns:
            moved = self._move_last_attribute()
            self._stuck_columns = None if moved else self._channels.columns

    def _release(self, shapes: list[int]) -> None:
        self._rewriter.forget(shapes)
        self._channels.release(shapes)

    def _move_last_attribute(self) -> bool:
        """Give the attribute with the last channel lower ones; returns whether that was possible.

        One attribute at a time, which is no pause.
        """
        attribute = self._channels.last_attribute()
        if attribute is None:
            return False
        shapes = self._channels.shapes_with(attribute)
        numbers = self._table.numbers_with(shapes, MOVED_MAX)
        if numbers is None:
            return False
        self._remake(attribute, shapes, numbers)
        return True

    def take_up_kinds(self) -> None:
        """Make the entries again that name variables whose kind was not expected."""
        shapes = self._channels.take_up_kinds()
        self._rewriter.forget(shapes)
        self._index.flush()
        self._index.remake(self._table.all_with(shapes))

    def reclaim_strings(self) -> None:
        """As ``reclaim`` after an update, which only leaves strings behind, and quicker."""
        if self._strings.unused:
            self._channels.forget_texts(self._table.pool.forget())
        self.tidy_orders()

    def hold_shapes(self) -> None:
        """Have the channels of a snapshot hold the shapes in it, and drop what no shape needs."""
        for number, shape in self._table.numbered_shapes():
            self._channels.hold(number, needs_of(shape, self._channels))
        self._channels.drop_unheld()
