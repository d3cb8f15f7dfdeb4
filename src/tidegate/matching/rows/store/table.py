"""All subscriptions of a matcher, by number: their ids, shapes, rows and lifetimes.

A past version has the id of its subscription as well, but is not found by it.

New subscriptions come in two steps. ``stage`` writes them under new numbers, where nothing finds
them; ``publish`` makes them known by their ids, all or none. So a matcher can write many chunks and
still refuse all of them if one id is taken.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.errors import UnresolvedError
from tidegate.language.evolve import evolve_from_int, evolve_to_int
from tidegate.language.expressions import ParameterRef, Variable, leaves
from tidegate.language.filters import Filter
from tidegate.language.shapes import Row, Shape
from tidegate.language.values import Value
from tidegate.matching.arrays import I64, NO_TIME, Bools
from tidegate.matching.batches import VersionColumns
from tidegate.matching.rows.store.cells import (
    Cells,
    RowHeap,
    StringPool,
    decode,
    encode,
    encode_all,
)
from tidegate.matching.rows.store.columns import (
    CURRENT,
    NO_END,
    PAST,
    STAGED,
    SubscriptionColumns,
)
from tidegate.matching.rows.store.ids import IdIndex, Numbers, check_ids
from tidegate.matching.rows.store.parameter_names import ParameterNames
from tidegate.matching.rows.store.shape_numbers import ShapeNumbers
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.rows.store.text_columns import TextColumn
from tidegate.matching.rows.store.uses import FORGOTTEN
from tidegate.matching.subscription import Subscription


class Forgotten(NamedTuple):
    """What a table has forgotten: the numbers of shapes, and strings."""

    shapes: list[int]
    texts: list[str]


class SubscriptionTable:
    """Subscriptions by number, in columns; past versions among them."""

    def __init__(self) -> None:
        self.rows = RowHeap(StringPool())
        self.columns = SubscriptionColumns()
        self._shapes = ShapeNumbers()
        self._names = ParameterNames()
        self._ids = IdIndex()
        self._subscribers: list[str | None] = []
        self._unread: tuple[Any, Any] | None = None
        """The ids and subscribers of a loaded table as Arrow arrays, until they are needed."""
        self._reading = threading.Lock()
        self._length = 0
        self._id_column = TextColumn(self._ids_between)
        self._subscriber_column = TextColumn(self._subscribers_between)

    def __len__(self) -> int:
        return self._length

    def __contains__(self, id: str) -> bool:
        return id in self._known().numbers

    # -- ids ----------------------------------------------------------------------------------

    def number(self, id: str) -> int:
        """The number of a subscription; raises KeyError."""
        if self._unread is not None:  # not through `_known`: each single update comes here
            self._read_texts()
        return self._ids.numbers[id]

    def numbers(self, ids: Iterable[str]) -> Numbers:
        """The numbers of subscriptions; raises KeyError."""
        known = self._known().numbers
        return np.array([known[id] for id in ids], np.int32)

    def _known(self) -> IdIndex:
        """The ids; those of a loaded table become Python objects only now."""
        if self._unread is not None:
            self._read_texts()
        return self._ids

    def _read_texts(self) -> None:
        """Read the ids and subscribers of a loaded table."""
        # Matches share the matcher's lock, so several of them may come here at once.
        with self._reading:
            if self._unread is None:
                return
            ids, subscribers = self._unread
            index = IdIndex()
            numbers = np.arange(self.columns.count, dtype=np.int32)
            index.reserve(self.columns.count)
            index.write(numbers, ids.to_pylist())
            index.enter(numbers[self.columns.is_current()])
            self._subscribers = subscribers.to_pylist()
            self._ids = index
            self._unread = None  # last: who sees this, without the lock, must find the others

    def ids_of(self, numbers: Numbers) -> list[str]:
        """The ids of some numbers."""
        return self._known().ids_of(numbers)

    def ids(self) -> pa.StringArray:
        """The ids of all numbers, freed ones included, as an Arrow array."""
        return self._id_column.array(self.columns.count)

    def version_columns(self) -> VersionColumns:
        """The ids, subscribers and beginnings of all numbers, freed ones included."""
        count = self.columns.count
        since_us = self.columns.since_us[:count]
        times = pa.array(since_us, pa.int64(), mask=since_us == NO_TIME)
        return VersionColumns(
            self.ids(),
            self._subscriber_column.array(count),
            times.cast(pa.timestamp("us", "UTC")),
        )

    def _ids_between(self, begin: int, end: int) -> list[str]:
        return self._known().between(begin, end)

    def _subscribers_between(self, begin: int, end: int) -> list[str | None]:
        self._known()
        return self._subscribers[begin:end]

    # -- subscriptions that come and go -------------------------------------------------------

    def stage(self, new: Sequence[Subscription]) -> Numbers:
        """Write subscriptions; returns their numbers. They are not known by their ids yet."""
        ids = [each.id for each in new]
        check_ids(ids)
        split = [each.filter.shape_and_row for each in new]
        values = [_values(each, row) for each, (_, row) in zip(new, split, strict=True)]
        numbers = self._allocate(len(new))
        columns = self.columns
        columns.shape[numbers] = self._shapes.numbers(split)
        columns.names[numbers] = [self._names.number_of(row) for _, row in split]
        columns.row[numbers] = self._add_rows(values)
        self._count_uses(numbers)
        columns.since_us[numbers] = [_or_no_time(each.since) for each in new]
        columns.until_us[numbers] = [NO_END if each.until is None else each.until for each in new]
        columns.origin_us[numbers] = [_or_no_time(each.counts_from) for each in new]
        columns.evolve[numbers] = [evolve_to_int(each.evolve) for each in new]
        columns.pinned_at_us[numbers] = [_or_no_time(each.pinned_at_us) for each in new]
        columns.state[numbers] = STAGED
        self._write_texts(numbers, ids, [each.subscriber for each in new])
        return numbers

    def publish(self, numbers: Numbers, *, past: bool = False) -> None:
        """Make staged subscriptions known by their ids; raises SubscriptionError if one is taken.

        Past versions are not known by their ids.
        """
        if not past:
            self._known().enter(numbers)
            self._length += len(numbers)
        self.columns.state[numbers] = PAST if past else CURRENT
        self.columns.note_lifetimes(numbers)

    def unstage(self, numbers: Numbers) -> None:
        """Forget subscriptions that were staged and not published."""
        for number in numbers.tolist():
            self._free(number)

    def remove(self, number: int) -> None:
        """Forget a subscription or a past version."""
        if self.columns.state[number] == CURRENT:
            self._known().remove(number)
            self._length -= 1
        self._free(number)

    def copy_past(self, numbers: Numbers, until_us: I64) -> Numbers:
        """Copy subscriptions as they are now to past versions; returns the numbers of these."""
        ids = self._known().ids_of(numbers)
        subscribers = [self._subscribers[number] for number in numbers.tolist()]
        copies = self._allocate(len(numbers))
        self.columns.copy(numbers, copies)
        self.columns.until_us[copies] = until_us
        self.columns.row[copies] = self._copied_rows(numbers)
        self._count_uses(copies)
        self._write_texts(copies, ids, subscribers)
        self.publish(copies, past=True)
        return copies

    def _allocate(self, count: int) -> Numbers:
        known = self._known()
        numbers = self.columns.allocate(count)
        known.reserve(self.columns.capacity)
        self._subscribers += [None] * (self.columns.capacity - len(self._subscribers))
        return numbers

    def _free(self, number: int) -> None:
        """Free the number and the row of a subscription for reuse."""
        columns = self.columns
        shape = columns.shape.item(number)
        self.rows.remove(columns.row.item(number), self._shapes.widths[shape])
        self._shapes.uses.remove([shape])
        self._names.uses.remove([columns.names.item(number)])
        columns.free(number)

    def _count_uses(self, numbers: Numbers) -> None:
        """Count new subscriptions as uses of their shapes and lists of names."""
        self._shapes.uses.add(self.columns.shape[numbers].tolist())
        self._names.uses.add(self.columns.names[numbers].tolist())

    def _write_texts(
        self, numbers: Numbers, ids: Sequence[str], subscribers: Sequence[str | None]
    ) -> None:
        self._known().write(numbers, ids)
        for number, subscriber in zip(numbers.tolist(), subscribers, strict=True):
            self._subscribers[number] = subscriber
        self._id_column.has_changed(numbers)
        self._subscriber_column.has_changed(numbers)

    def _add_rows(self, rows: list[Sequence[Value | None]]) -> I64:
        """Add rows to the heap, those of one width at once; returns where they begin."""
        starts = np.zeros(len(rows), np.int64)
        by_width: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            by_width.setdefault(len(row), []).append(index)
        for width, members in by_width.items():
            flat = [value for member in members for value in rows[member]]
            kinds, cells = encode_all(flat, self.pool)
            shape = (len(members), width)
            starts[members] = self.rows.append(kinds.reshape(shape), cells.reshape(shape))
        return starts

    def _copied_rows(self, numbers: Numbers) -> I64:
        """Add copies of the rows of subscriptions to the heap; returns where they begin."""
        shapes = self.columns.shape[numbers].tolist()
        widths = np.array([self._shapes.widths[each] for each in shapes])
        starts = np.zeros(len(numbers), np.int64)
        for width in np.unique(widths).tolist():
            mine = np.flatnonzero(widths == width)
            cells_at = self.columns.row[numbers[mine]][:, None] + np.arange(width)
            starts[mine] = self.rows.append(self.rows.kinds[cells_at], self.rows.cells[cells_at])
        return starts

    def forget_unused(self) -> Forgotten:
        """Forget the strings, shapes and names that nothing uses; returns what others may know.

        Called at the end of a change, when no entry contains the numbers of these strings.
        """
        self._names.forget()
        if self.rows.is_sparse():
            self._compact_rows()
        return Forgotten(self._shapes.forget(), self.pool.forget())

    def forget_shapes(self) -> list[int]:
        """Forget all shapes that no subscription has; returns their numbers."""
        return self._shapes.forget(keep=0)

    def numbers_with(self, shapes: Sequence[int], most: int) -> Numbers | None:
        """The current subscriptions with some shapes.

        None if there are more than ``most``, or past versions or staged ones among them.
        """
        counts = self._shapes.uses.counts()
        if sum(counts[shape] for shape in shapes) > most:
            return None
        columns = self.columns
        used = columns.used()
        found = used[np.isin(columns.shape[used], shapes)]
        return found if np.all(columns.state[found] == CURRENT) else None

    def all_with(self, shapes: Sequence[int]) -> Numbers:
        """The subscriptions with some shapes, past versions and staged ones among them."""
        used = self.columns.used()
        return used[np.isin(self.columns.shape[used], shapes)]

    def _compact_rows(self) -> None:
        columns = self.columns
        numbers = columns.used()
        widths = np.array(self._shapes.widths, np.int64)[columns.shape[numbers]]
        columns.row[numbers] = self.rows.compact(columns.row[numbers], widths)

    # -- parameters ---------------------------------------------------------------------------

    def update(self, number: int, parameters: Mapping[str, Value | None]) -> tuple[int, ...] | None:
        """Write new values of parameters; raises UnresolvedError for an unknown one.

        Returns the slots that changed; None if one of them got a value of another kind.
        """
        row = self.columns.row.item(number)
        slots_of = self._names.slots(self.columns.names.item(number))
        if not parameters.keys() <= slots_of.keys():
            raise self._unknown_parameter(number, parameters)
        changed: tuple[int, ...] = ()
        same_kinds = True
        for name, value in parameters.items():
            kind, cell = encode(value, self.pool)
            slots = slots_of[name]
            for slot in slots:
                same_kinds &= self.rows.write(row + slot, kind, cell)
            changed += slots
        return changed if same_kinds else None

    def slots(
        self, numbers: Numbers, parameters: Sequence[Mapping[str, Value | None]]
    ) -> list[tuple[int, ...]]:
        """The slots that given parameters of subscriptions fill; raises UnresolvedError."""
        slots: list[tuple[int, ...]] = []
        names_of = self.columns.names[numbers].tolist()
        for index, (names, given) in enumerate(zip(names_of, parameters, strict=True)):
            slots_of = self._names.slots(names)
            if not given.keys() <= slots_of.keys():
                raise self._unknown_parameter(int(numbers[index]), given)
            filled: tuple[int, ...] = ()
            for name in given:
                filled += slots_of[name]
            slots.append(filled)
        return slots

    def write(
        self,
        numbers: Numbers,
        slots: Sequence[tuple[int, ...]],
        parameters: Sequence[Mapping[str, Value | None]],
    ) -> Bools:
        """Write new values of parameters into their slots; the numbers are distinct.

        Returns for which subscriptions all values are of the kinds of those before.
        """
        values: list[Value | None] = []
        names_of = self.columns.names[numbers].tolist()
        for names, given in zip(names_of, parameters, strict=True):
            slots_of = self._names.slots(names)
            for name, value in given.items():
                values += [value] * len(slots_of[name])
        lengths = np.fromiter(map(len, slots), np.int64, len(slots))
        flat = np.fromiter((slot for each in slots for slot in each), np.int64, len(values))
        owners = np.repeat(np.arange(len(numbers)), lengths)
        kinds, cells = encode_all(values, self.pool)
        cells_at = self.columns.row[numbers][owners] + flat
        same_kinds = np.ones(len(numbers), np.bool_)
        same_kinds[owners[~self.rows.write_all(cells_at, kinds, cells)]] = False
        return same_kinds

    def _unknown_parameter(
        self, number: int, parameters: Mapping[str, Value | None]
    ) -> UnresolvedError:
        slots_of = self._names.slots(self.columns.names.item(number))
        unknown = next(name for name in parameters if name not in slots_of)
        there = ", ".join(f":{name}" for name in slots_of) or "none"
        return UnresolvedError(
            f"subscription {self._known().id(number)!r} has no parameter :{unknown}; it has {there}"
        )

    # -- shapes and rows ----------------------------------------------------------------------

    @property
    def pool(self) -> StringPool:
        """The strings of all rows."""
        return self.rows.pool

    @property
    def shapes(self) -> Sequence[Shape]:
        """The shapes by number."""
        return self._shapes.shapes

    def numbered_shapes(self) -> Iterator[tuple[int, Shape]]:
        """All shapes that are not forgotten, each with its number."""
        return self._shapes.items()

    def variables(self) -> set[str]:
        """The names of the variables that shapes use."""
        return {
            leaf.name
            for shape in self.shapes
            for conjunction in shape.disjuncts
            for predicate in conjunction
            for operand in predicate.operands
            for leaf in leaves(operand)
            if isinstance(leaf, Variable)
        }

    def width(self, shape: int) -> int:
        """How many cells the rows of a shape have."""
        return self._shapes.widths[shape]

    def get(self, number: int) -> Subscription:
        """A subscription with its present values."""
        columns = self.columns
        shape, row = columns.shape.item(number), columns.row.item(number)
        parameters: dict[str, Value] = {}
        filled: list[Value | ParameterRef] = []
        for slot, name in enumerate(self._names.names(columns.names.item(number))):
            cell = row + slot
            value = decode(self.rows.kinds.item(cell), self.rows.cells.item(cell), self.pool)
            if name is not None:
                filled.append(ParameterRef(name))
                if value is not None:
                    parameters[name] = value
            elif value is not None:
                filled.append(value)
        since, until = columns.since_us.item(number), columns.until_us.item(number)
        origin, pinned_at = columns.origin_us.item(number), columns.pinned_at_us.item(number)
        self._known()
        return Subscription(
            self._ids.id(number),
            Filter.of_shape(self.shapes[shape], tuple(filled)),
            parameters,
            None if since == NO_TIME else since,
            self._subscribers[number],
            None if until == NO_END else until,
            None if origin in (NO_TIME, since) else origin,
            evolve_from_int(columns.evolve.item(number)),
            None if pinned_at == NO_TIME else pinned_at,
        )

    def by_shape(self, numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
        """Subscriptions grouped by the number of their shape."""
        shapes = self.columns.shape[numbers]
        order = np.argsort(shapes, kind="stable")
        bounds = np.flatnonzero(np.diff(shapes[order], prepend=-1, append=-1))
        for begin, end in pairwise(bounds.tolist()):
            members = order[begin:end]
            yield int(shapes[members[0]]), numbers[members]

    def by_kinds(
        self, shape: int, numbers: Numbers
    ) -> Iterator[tuple[tuple[int, ...], Cells, Numbers]]:
        """Subscriptions of one shape, grouped by the kinds of their cells; with their cells."""
        cells_at = self.columns.row[numbers][:, None] + np.arange(self.width(shape))
        patterns, which = np.unique(self.rows.kinds[cells_at], axis=0, return_inverse=True)
        for index, pattern in enumerate(patterns):
            chosen = which.ravel() == index
            kinds = tuple(int(kind) for kind in pattern)
            yield kinds, self.rows.cells[cells_at[chosen]], numbers[chosen]

    # -- snapshots ----------------------------------------------------------------------------

    def save(self, into: SectionWriter) -> None:
        """Add the table to a snapshot."""
        count = self.columns.count
        into.texts("ids", self._known().between(0, count))
        into.texts("subscribers", self._subscribers[:count])
        into.texts("shapes", self._shapes.texts())
        into.note("names", self._names.lists())
        self.columns.save(into)
        # What is being added is not part of a snapshot.
        staged = self.columns.staged()
        rows = self.columns.row[staged].tolist()
        widths = [self._shapes.widths[each] for each in self.columns.shape[staged].tolist()]
        self.rows.save(into, list(zip(rows, widths, strict=True)))

    @classmethod
    def load(cls, source: SectionReader) -> SubscriptionTable:
        """The table of a snapshot.

        Columns and cells are arrays of the mapped file. Ids and subscribers stay in it as texts
        until they are needed: a worker that only matches batches never needs them as objects.
        """
        table = cls()
        ids, subscribers = source.texts("ids"), source.texts("subscribers")
        table._unread = ids, subscribers
        table._id_column = TextColumn(table._ids_between, ids.cast(pa.string()))
        table._subscriber_column = TextColumn(
            table._subscribers_between, subscribers.cast(pa.string())
        )
        columns = table.columns = SubscriptionColumns.load(source)
        table._length = int(np.count_nonzero(columns.is_current()))
        used = columns.used()
        names, shapes = source.note("names"), source.texts("shapes").to_pylist()
        table._names = ParameterNames(names, _counts(columns.names[used], len(names)))
        table._shapes = ShapeNumbers(shapes, _counts(columns.shape[used], len(shapes)))
        table.rows = RowHeap.load(source)
        return table


def _values(subscription: Subscription, row: Row) -> Sequence[Value | None]:
    """A row with the values of parameters in their slots, None for one without a value."""
    if ParameterRef not in map(type, row):
        return row  # type: ignore[return-value]
    known = subscription.parameters
    return [known.get(each.name) if isinstance(each, ParameterRef) else each for each in row]


def _counts(numbers: Numbers, end: int) -> list[int]:
    """How often each number below ``end`` occurs; FORGOTTEN for those that do not."""
    counts = np.bincount(numbers, minlength=end)
    found: list[int] = np.where(counts == 0, FORGOTTEN, counts).tolist()
    return found


def _or_no_time(time_us: int | None) -> int:
    return int(NO_TIME) if time_us is None else time_us
