"""All subscriptions of a matcher, by number: their ids, shapes, rows and times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import SubscriptionError, UnresolvedError
from tidegate.language.expressions import Parameter
from tidegate.language.filters import Filter
from tidegate.language.limits import Limits
from tidegate.language.parser import parse_filter
from tidegate.language.shapes import Row, Shape, split
from tidegate.language.values import Value
from tidegate.matching.parts import (
    NO_TIME,
)
from tidegate.matching.rows import Cells, Kinds, RowHeap, StringPool, decode, encode, encode_column
from tidegate.matching.sections import SectionReader, SectionWriter
from tidegate.matching.subscription import Subscription

Numbers = npt.NDArray[np.int32]

NO_END = np.int64(2**63 - 1)
COLUMN_ROWS_MIN = 16
_NO_LIMITS = Limits(10**9, 1000, 10**9, 10**9)


class SubscriptionTable:
    """Subscriptions by number; the numbers of removed ones are given out again."""

    def __init__(self) -> None:
        self.pool = StringPool()
        self.rows = RowHeap()
        self.shapes: list[Shape] = []
        self._widths: list[int] = []
        self.capacity = 0
        self._shape_numbers: dict[Shape, int] = {}
        self._names: dict[tuple[str | None, ...], int] = {}
        self._name_lists: list[tuple[str | None, ...]] = []
        self._slots_of: list[dict[str, tuple[int, ...]]] = []
        self._ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._unread: Any = None
        self._subscribers: dict[int, str] = {}
        self._free: list[int] = []
        self._length = 0
        self._shape_of: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._row_of: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._names_of: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._since: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._until: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._latest_since = NO_TIME
        self._first_until = NO_END
        self._arrow_ids: pa.StringArray | None = None

    def __len__(self) -> int:
        return self._length

    def __contains__(self, id: str) -> bool:
        return id in self._by_id()

    def number(self, id: str) -> int:
        """The number of a subscription."""
        return self._by_id()[id]

    def _by_id(self) -> dict[str, int]:
        """Numbers by id; a table that was loaded makes its Python strings only now."""
        if self._unread is not None:
            self._ids = self._unread.to_pylist()
            free = set(self._free)
            self._numbers = {
                id: number for number, id in enumerate(self._ids) if number not in free
            }
            self._unread = None
        return self._numbers

    def ids_of(self, numbers: Numbers) -> list[str]:
        """The ids of some subscriptions."""
        self._by_id()
        ids = self._ids
        return [ids[number] for number in numbers.tolist()]

    def ids(self) -> pa.StringArray:
        """The ids of all numbers, those given back included, as an Arrow array."""
        if self._arrow_ids is None:
            self._arrow_ids = pa.array(self._ids, pa.string())
        return self._arrow_ids

    def place(self, number: int) -> tuple[int, int]:
        """The number of a subscription's shape, and where its row begins."""
        return self._shape_of.item(number), self._row_of.item(number)

    def width(self, shape: int) -> int:
        """How many cells the rows of a shape have."""
        return self._widths[shape]

    def since(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """When subscriptions began, NO_TIME where that is not known."""
        return self._since[numbers]

    @property
    def latest_since(self) -> int | None:
        """When the last subscription began; None if that is not known of any."""
        return None if self._latest_since == NO_TIME else int(self._latest_since)

    def all_live(self, begin: int, end: int) -> bool:
        """Whether all subscriptions are surely there from one time to another."""
        return bool(begin >= self._latest_since and end < self._first_until)

    def living(self, numbers: Numbers, micros: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which subscriptions are there at the given times."""
        living: npt.NDArray[np.bool_] = self._since[numbers] <= micros
        living &= micros < self._until[numbers]
        living |= micros == NO_TIME
        return living

    # -- changes ------------------------------------------------------------------------------

    def stage(self, new: Sequence[Subscription]) -> Numbers:
        """Write subscriptions down and give them numbers; known by their ids after ``publish``."""
        self._by_id()
        numbers = self._take_numbers(len(new))
        by_shape: dict[int, list[int]] = {}
        number_of: dict[int, int] = {}  # by identity, because hashing a shape walks over all of it
        rows: list[Row] = []
        for index, each in enumerate(new):
            shape, row = each.filter.shape_and_row
            rows.append(row)
            number = number_of.get(id(shape))
            if number is None:
                number = number_of[id(shape)] = self._shape_number(shape)
            by_shape.setdefault(number, []).append(index)
        for shape_number, members in by_shape.items():
            self._shape_of[numbers[members]] = shape_number
        values = [self._values(each, row) for each, row in zip(new, rows, strict=True)]
        self._row_of[numbers] = self._add_rows(list(by_shape.values()), values)
        for number, row in zip(numbers.tolist(), rows, strict=True):
            self._names_of[number] = self._names_number(row)
        for number, each in zip(numbers.tolist(), new, strict=True):
            self._ids[number] = each.id
            self._since[number] = NO_TIME if each.since is None else each.since
            self._until[number] = NO_END if each.until is None else each.until
            if each.subscriber is not None:
                self._subscribers[number] = each.subscriber
        self._arrow_ids = None
        return numbers

    def publish(self, numbers: Numbers) -> None:
        """Let subscriptions be known by their ids; raises SubscriptionError if one is taken."""
        known = self._by_id()
        before = len(known)
        for done, number in enumerate(numbers.tolist()):
            id = self._ids[number]
            if known.setdefault(id, number) != number:
                for taken_back in numbers[:done].tolist():
                    del known[self._ids[taken_back]]
                raise SubscriptionError(f"there already is a subscription {id!r}")
        self._length += len(known) - before
        if len(numbers):
            self._latest_since = max(self._latest_since, self._since[numbers].max())
            self._first_until = min(self._first_until, self._until[numbers].min())

    def unstage(self, numbers: Numbers) -> None:
        """Forget subscriptions that were not published."""
        for number in numbers.tolist():
            self._give_back(number)

    def _give_back(self, number: int) -> None:
        self.rows.remove(int(self._row_of[number]), self._widths[self._shape_of[number]])
        self._subscribers.pop(number, None)
        self._free.append(number)

    @staticmethod
    def _values(subscription: Subscription, row: Row) -> Sequence[Value | None]:
        """A row with the values of parameters in their places."""
        if Parameter not in map(type, row):
            return row  # type: ignore[return-value]
        known = subscription.parameters
        return [known.get(each.name) if isinstance(each, Parameter) else each for each in row]

    def _add_rows(
        self, members_by_shape: list[list[int]], values: list[Sequence[Value | None]]
    ) -> npt.NDArray[np.int64]:
        """Add rows to the heap, column by column where many have one shape."""
        places = np.zeros(len(values), np.int64)
        few: dict[int, list[int]] = {}
        for members in members_by_shape:
            width = len(values[members[0]])
            if len(members) < COLUMN_ROWS_MIN:
                few.setdefault(width, []).extend(members)
                continue
            columns = [
                encode_column(column, self.pool)
                for column in zip(*(values[member] for member in members), strict=True)
            ]
            kinds = np.column_stack([each for each, _ in columns]) if columns else None
            cells = np.column_stack([each for _, each in columns]) if columns else None
            places[members] = self._append(len(members), width, kinds, cells)
        for width, members in few.items():
            flat = [value for member in members for value in values[member]]
            kinds, cells = encode_column(flat, self.pool) if flat else (None, None)
            places[members] = self._append(len(members), width, kinds, cells)
        return places

    def _append(
        self, count: int, width: int, kinds: Kinds | None, cells: Cells | None
    ) -> npt.NDArray[np.int64]:
        if kinds is None or cells is None:
            kinds, cells = np.zeros((count, 0), np.uint8), np.zeros((count, 0), np.int64)
        return self.rows.append(kinds.reshape(count, width), cells.reshape(count, width))

    def _take_numbers(self, count: int) -> Numbers:
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        begin = len(self._ids)
        fresh = count - len(reused)
        self._ids += [""] * fresh
        self._reserve(len(self._ids))
        return np.array([*reused, *range(begin, begin + fresh)], np.int32)

    def _reserve(self, count: int) -> None:
        if count <= self.capacity:
            return
        self.capacity = max(count, 2 * self.capacity, 64)
        for name in ("_shape_of", "_row_of", "_names_of", "_since", "_until"):
            old = getattr(self, name)
            new = np.zeros(self.capacity, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def _shape_number(self, shape: Shape) -> int:
        number = self._shape_numbers.get(shape)
        if number is None:
            number = self._shape_numbers[shape] = len(self.shapes)
            self.shapes.append(shape)
            self._widths.append(shape.width)
        return number

    def _names_number(self, row: Row) -> int:
        names = tuple(each.name if isinstance(each, Parameter) else None for each in row)
        return self._names_number_of(names)

    def _names_number_of(self, names: tuple[str | None, ...]) -> int:
        number = self._names.get(names)
        if number is None:
            number = self._names[names] = len(self._name_lists)
            self._name_lists.append(names)
            slots: dict[str, list[int]] = {}
            for slot, name in enumerate(names):
                if name is not None:
                    slots.setdefault(name, []).append(slot)
            self._slots_of.append({name: tuple(found) for name, found in slots.items()})
        return number

    def remove(self, number: int) -> None:
        """Forget a subscription."""
        del self._numbers[self._ids[number]]
        self._length -= 1
        self._give_back(number)

    def update(self, number: int, parameters: Mapping[str, Value | None]) -> tuple[int, ...] | None:
        """Write new values of parameters.

        Gives the slots that changed; None if one of them got a value of another kind.
        """
        row = self._row_of.item(number)
        slots_of = self._slots_of[self._names_of.item(number)]
        if not parameters.keys() <= slots_of.keys():
            unknown = next(name for name in parameters if name not in slots_of)
            there = ", ".join(f":{name}" for name in slots_of) or "none"
            raise UnresolvedError(
                f"subscription {self._ids[number]!r} has no parameter :{unknown}; it has {there}"
            )
        changed: tuple[int, ...] = ()
        same = True
        for name, value in parameters.items():
            kind, cell = encode(value, self.pool)
            slots = slots_of[name]
            for slot in slots:
                same &= self.rows.write(row + slot, kind, cell)
            changed += slots
        return changed if same else None

    # -- reading ------------------------------------------------------------------------------

    def get(self, number: int) -> Subscription:
        """A subscription as it stands."""
        shape, row = self.place(number)
        parameters: dict[str, Value] = {}
        filled: list[Value | Parameter] = []
        for slot, name in enumerate(self._name_lists[self._names_of[number]]):
            place = row + slot
            value = decode(int(self.rows.kinds[place]), int(self.rows.cells[place]), self.pool)
            if name is not None:
                filled.append(Parameter(name))
                if value is not None:
                    parameters[name] = value
            elif value is not None:
                filled.append(value)
        since, until = int(self._since[number]), int(self._until[number])
        return Subscription(
            self._ids[number],
            Filter.of_shape(self.shapes[shape], tuple(filled)),
            parameters,
            None if since == NO_TIME else since,
            self._subscribers.get(number),
            None if until == NO_END else until,
        )

    def by_shape(self, numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
        """Subscriptions grouped by the number of their shape."""
        shapes = self._shape_of[numbers]
        order = np.argsort(shapes, kind="stable")
        starts = np.flatnonzero(np.diff(shapes[order], prepend=-1))
        for begin, end in zip(starts, [*starts[1:], len(order)], strict=True):
            members = order[begin:end]
            yield int(shapes[members[0]]), numbers[members]

    def places(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """Where the rows of subscriptions begin."""
        return self._row_of[numbers]

    def by_kinds(
        self, shape: int, numbers: Numbers
    ) -> Iterator[tuple[tuple[int, ...], Cells, Numbers]]:
        """Subscriptions of one shape, grouped by the kinds of their cells."""
        cells_at = self._row_of[numbers][:, None] + np.arange(self._widths[shape])
        patterns, which = np.unique(self.rows.kinds[cells_at], axis=0, return_inverse=True)
        for index, pattern in enumerate(patterns):
            chosen = which.ravel() == index
            kinds = tuple(int(kind) for kind in pattern)
            yield kinds, self.rows.cells[cells_at[chosen]], numbers[chosen]

    # -- snapshots ----------------------------------------------------------------------------

    def save(self, into: SectionWriter) -> None:
        """Add the table to a snapshot."""
        self._by_id()
        count = len(self._ids)
        into.texts("ids", self._ids)
        into.texts("strings", self.pool.texts())
        for name in ("shape_of", "row_of", "names_of", "since", "until"):
            into.array(name, getattr(self, f"_{name}")[:count])
        into.array("free", np.array(self._free, np.int32))
        into.array("subscriber_of", np.array(list(self._subscribers), np.int32))
        into.texts("subscribers", list(self._subscribers.values()))
        into.note("names", self._name_lists)
        into.texts("shapes", [shape_text(shape) for shape in self.shapes])
        self.rows.save(into)

    @classmethod
    def load(cls, source: SectionReader) -> SubscriptionTable:
        """The table of a snapshot."""
        table = cls()
        table._unread = source.texts("ids")
        table._arrow_ids = table._unread.cast(pa.string())
        table.pool = StringPool(source.texts("strings").to_pylist())
        for name in ("shape_of", "row_of", "names_of", "since", "until"):
            setattr(table, f"_{name}", source.array(name))
        table._free = source.array("free").tolist()
        table.capacity = len(table._shape_of)
        table._length = table.capacity - len(table._free)
        subscribers = source.texts("subscribers").to_pylist()
        table._subscribers = dict(
            zip(source.array("subscriber_of").tolist(), subscribers, strict=True)
        )
        for names in source.note("names"):
            table._names_number_of(tuple(names))
        for text in source.texts("shapes").to_pylist():
            table._shape_number(shape_from(text))
        table.rows = RowHeap.load(source)
        if len(table._since):
            table._latest_since = table._since.max()
            table._first_until = table._until.min()
        return table


def shape_text(shape: Shape) -> str:
    """A shape as a filter text: parameters in place of its slots."""
    return str(shape.fill(tuple(Parameter(f"s{slot}") for slot in range(shape.width))))


def shape_from(text: str) -> Shape:
    """The shape that ``shape_text`` wrote."""
    shape, _ = split(parse_filter(text, _NO_LIMITS))
    return shape
