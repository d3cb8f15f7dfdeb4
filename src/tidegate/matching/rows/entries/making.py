"""The entries of subscriptions, given by their numbers in a table."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.language.shapes import Shape
from tidegate.matching.arrays import I32
from tidegate.matching.rows.entries.blocks import entries_of
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.comparisons import is_plain, plain_entries
from tidegate.matching.rows.entries.constraints import Compiler
from tidegate.matching.rows.entries.judgements import depends_on_now
from tidegate.matching.rows.entries.operands import needs_of
from tidegate.matching.rows.kernels.entry_lists import Entries
from tidegate.matching.rows.store.cells import Cells
from tidegate.matching.rows.store.table import SubscriptionTable


class EntryMaker:
    """Makes entries from the rows of a table, for as many rows at once as possible.

    The channels hold the shapes of all entries made; see `Reclaimer` for when they are released.
    """

    def __init__(self, table: SubscriptionTable, channels: Channels) -> None:
        self._table = table
        self._channels = channels
        self._compiler = Compiler(channels, table.pool)

    def entries(self, numbers: I32) -> Iterator[Entries]:
        """The entries of some subscriptions, in several lists.

        All entries of one subscription are found in one pass, but may be in several of the lists.
        """
        columns = self._table.columns
        plain: list[tuple[Shape, I32]] = []
        for number, members in self._table.by_shape(numbers):
            shape = self._table.shapes[number]
            if not self._channels.is_held(number):
                self._channels.hold(number, needs_of(shape, self._channels))
            if is_plain(shape):
                plain.append((shape, members))
                continue
            for kinds, cells, chosen in self._table.by_kinds(number, members):
                is_lazy = columns.is_lazy(chosen)
                if is_lazy.all() or not depends_on_now(shape):
                    yield from self._compiled(shape, kinds, cells, chosen, lazy=True)
                    continue
                for lazy in (True, False):
                    which = is_lazy == lazy
                    if which.any():
                        some = chosen[which]
                        yield from self._compiled(shape, kinds, cells[which], some, lazy=lazy)
        if plain:
            yield plain_entries(plain, self._table, self._channels)

    def _compiled(
        self, shape: Shape, kinds: tuple[int, ...], cells: Cells, numbers: I32, *, lazy: bool
    ) -> Iterator[Entries]:
        """The entries of rows of a shape whose cells have these kinds."""
        columns = self._table.columns
        origin, pins = columns.origin_us[numbers], columns.pins(numbers)
        for block in self._compiler.blocks(shape, kinds, cells, lazy=lazy):
            yield entries_of(block, numbers, origin, pins)
