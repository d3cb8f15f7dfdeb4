"""All subscriptions of a matcher, by number: their ids, shapes, rows and times.

A version of the past has the id of its subscription as well, but is not found by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import UnresolvedError
from tidegate.language.evolve import evolve_of_number, number_of_evolve
from tidegate.language.expressions import ParameterRef
from tidegate.language.filters import Filter
from tidegate.language.limits import Limits
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.shapes import Row, Shape, split
from tidegate.language.values import Value
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.batches import VersionColumns
from tidegate.matching.columnar.kernels.programs import EVERY
from tidegate.matching.columnar.store.cells import (
    Cells,
    RowHeap,
    StringPool,
    decode,
    encode,
    encode_all,
)
from tidegate.matching.columnar.store.ids import IdIndex, Numbers, check_ids
from tidegate.matching.columnar.store.parameter_names import ParameterNames
from tidegate.matching.columnar.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.columnar.store.text_columns import TextColumn
from tidegate.matching.subscription import Subscription

NO_END = np.int64(2**63 - 1)
_NO_LIMITS = Limits(10**9, 1000, 10**9, 10**9)
_COLUMNS = (
    "_shape_of", "_row_of", "_names_of", "_since", "_until", "_origin", "_evolve", "_held",
    "_is_past",
)  # fmt: skip
"""What is known of each number, an array each."""


class SubscriptionTable:
    """Subscriptions by number; the numbers of removed ones are given out again."""

    def __init__(self) -> None:
        self.pool = StringPool()
        self.rows = RowHeap()
        self.shapes: list[Shape] = []
        self._widths: list[int] = []
        self.capacity = 0
        self._shape_numbers: dict[Shape, int] = {}
        self._names = ParameterNames()
        self._ids = IdIndex()
        self._unread: Any = None
        self._subscribers: list[str | None] = []
        self._unread_subscribers: Any = None
        self._free: list[int] = []
        self._count = 0
        self._length = 0
        self._shape_of: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._row_of: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._names_of: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._since: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._until: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._origin: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._evolve: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._held: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._is_past: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._latest_since = NO_TIME
        self._first_until = NO_END
        self._id_column = TextColumn(lambda begin, end: self._known().between(begin, end))
        self._subscriber_column = TextColumn(lambda begin, end: self._subscribers[begin:end])

    def __len__(self) -> int:
        return self._length

    def __contains__(self, id: str) -> bool:
        return id in self._known().numbers

    def number(self, id: str) -> int:
        """The number of a subscription; raises KeyError."""
        if self._unread is not None:
            self._known()
        return self._ids.numbers[id]

    def numbers(self, ids: Iterable[str]) -> Numbers:
        """The numbers of subscriptions; raises KeyError."""
        known = self._known().numbers
        return np.array([known[id] for id in ids], np.int32)

    def _known(self) -> IdIndex:
        """The ids; a table that was loaded reads them only now."""
        if self._unread is not None:
            ids = IdIndex()
            numbers = np.arange(self._count, dtype=np.int32)
            ids.reserve(self._count)
            ids.write(numbers, self._unread.to_pylist())
            known = self._is_past[: self._count] == 0
            known[self._free] = False
            ids.enter(numbers[known])
            self._ids, self._unread = ids, None
            self._subscribers = self._unread_subscribers.to_pylist()
        return self._ids

    def ids_of(self, numbers: Numbers) -> list[str]:
        """The ids of some subscriptions."""
        return self._known().ids_of(numbers)

    def ids(self) -> pa.StringArray:
        """The ids of all numbers, those given back included, as an Arrow array."""
        return self._id_column.array(self._count)

    def place(self, number: int) -> tuple[int, int]:
        """The number of a subscription's shape, and where its row begins."""
        return self._shape_of.item(number), self._row_of.item(number)

    def shapes_of(self, numbers: Numbers) -> Numbers:
        """The numbers of subscriptions' shapes."""
        return self._shape_of[numbers]

    def width(self, shape: int) -> int:
        """How many cells the rows of a shape have."""
        return self._widths[shape]

    def since(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """From when on subscriptions hold, NO_TIME where that is not known."""
        return self._since[numbers]

    def until(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """When subscriptions end, NO_END for those that go on."""
        return self._until[numbers]

    def origin(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """From when on the `t` of subscriptions counts, NO_TIME where that is not known."""
        return self._origin[numbers]

    def hold(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """For which time the functions of subscriptions are evaluated (see programs.py)."""
        evolve, held = self._evolve[numbers], self._held[numbers]
        is_held = (evolve < 0) & (held != NO_TIME)
        return np.where(is_held, held, EVERY + np.maximum(evolve, 0))

    def cached(self) -> Numbers:
        """The numbers of the subscriptions that are evaluated now and then."""
        is_cached = self._evolve[: self._count] < 0
        is_cached[self._free] = False
        is_cached &= self._is_past[: self._count] == 0
        return np.flatnonzero(is_cached).astype(np.int32)

    def past(self) -> Numbers:
        """The numbers of the versions of the past."""
        return np.flatnonzero(self._is_past[: self._count]).astype(np.int32)

    def version_columns(self) -> VersionColumns:
        """What is known of all numbers, those given back included."""
        since = self._since[: self._count]
        times = pa.array(since, pa.int64(), mask=since == NO_TIME)
        return VersionColumns(
            self.ids(),
            self._subscriber_column.array(self._count),
            times.cast(pa.timestamp("us", "UTC")),
        )

    @property
    def latest_since(self) -> int | None:
        """When the last version began; None if that is not known of any."""
        return None if self._latest_since == NO_TIME else int(self._latest_since)

    def all_live(self, begin: int, end: int) -> bool:
        """Whether all subscriptions are surely there from one time to another."""
        return bool(begin >= self._latest_since and end < self._first_until)

    def living(self, numbers: Numbers, times_us: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which subscriptions are there at the given times.

        Most are there at all of these times, which takes less to see for each than for each pair.
        """
        known = times_us[times_us != NO_TIME]
        begin, end = known.min(initial=NO_END), known.max(initial=NO_TIME)
        count = self._count
        doubtful = (self._since[:count] > begin) | (self._until[:count] <= end)
        living = np.ones(len(numbers), np.bool_)
        asked = np.flatnonzero(doubtful[numbers])
        chosen, at = numbers[asked], times_us[asked]
        living[asked] = ((self._since[chosen] <= at) & (at < self._until[chosen])) | (at == NO_TIME)
        return living

    # -- changes ------------------------------------------------------------------------------

    def stage(self, new: Sequence[Subscription]) -> Numbers:
        """Write subscriptions down and give them numbers; known by their ids after ``publish``."""
        known = self._known()
        ids = [each.id for each in new]
        check_ids(ids)
        split = [each.filter.shape_and_row for each in new]
        values = [self._values(each, row) for each, (_, row) in zip(new, split, strict=True)]
        numbers = self._take_numbers(len(new))
        known.write(numbers, ids)
        self._shape_of[numbers] = self._numbers_of_shapes(split)
        self._names_of[numbers] = [self._names.number_of(row) for _, row in split]
        self._row_of[numbers] = self._add_rows(values)
        self._since[numbers] = [NO_TIME if each.since is None else each.since for each in new]
        self._until[numbers] = [NO_END if each.until is None else each.until for each in new]
        origins = [each.since if each.origin is None else each.origin for each in new]
        self._origin[numbers] = [NO_TIME if each is None else each for each in origins]
        self._evolve[numbers] = [number_of_evolve(each.evolve) for each in new]
        self._held[numbers] = [NO_TIME if each.held is None else each.held for each in new]
        self._is_past[numbers] = 0
        for number, each in zip(numbers.tolist(), new, strict=True):
            self._subscribers[number] = each.subscriber
        self._id_column.has_changed(numbers)
        self._subscriber_column.has_changed(numbers)
        return numbers

    def publish(self, numbers: Numbers, *, past: bool = False) -> None:
        """Let subscriptions be known by their ids; raises SubscriptionError if one is taken.

        Those of the past are not known by their ids.
        """
        if past:
            self._is_past[numbers] = 1
        else:
            self._known().enter(numbers)
            self._length += len(numbers)
        if len(numbers):
            self._latest_since = max(self._latest_since, self._since[numbers].max())
            self._first_until = min(self._first_until, self._until[numbers].min())

    def unstage(self, numbers: Numbers) -> None:
        """Forget subscriptions that were not published."""
        for number in numbers.tolist():
            self._give_back(number)

    def _give_back(self, number: int) -> None:
        self.rows.remove(int(self._row_of[number]), self._widths[self._shape_of[number]])
        self._free.append(number)

    @staticmethod
    def _values(subscription: Subscription, row: Row) -> Sequence[Value | None]:
        """A row with the values of parameters in their places."""
        if ParameterRef not in map(type, row):
            return row  # type: ignore[return-value]
        known = subscription.parameters
        return [known.get(each.name) if isinstance(each, ParameterRef) else each for each in row]

    def _add_rows(self, rows: list[Sequence[Value | None]]) -> npt.NDArray[np.int64]:
        """Add rows to the heap, all of one width at a time."""
        places = np.zeros(len(rows), np.int64)
        by_width: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            by_width.setdefault(len(row), []).append(index)
        for width, members in by_width.items():
            flat = [value for member in members for value in rows[member]]
            kinds, cells = encode_all(flat, self.pool)
            shape = (len(members), width)
            places[members] = self.rows.append(kinds.reshape(shape), cells.reshape(shape))
        return places

    def _take_numbers(self, count: int) -> Numbers:
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        begin = self._count
        self._count += count - len(reused)
        self._reserve(self._count)
        return np.array([*reused, *range(begin, self._count)], np.int32)

    def _reserve(self, count: int) -> None:
        if count <= self.capacity:
            return
        self.capacity = max(count, 2 * self.capacity, 64)
        self._known().reserve(self.capacity)
        self._subscribers += [None] * (self.capacity - len(self._subscribers))
        for name in _COLUMNS:
            old = getattr(self, name)
            new = np.zeros(self.capacity, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def _numbers_of_shapes(self, split: list[tuple[Shape, Row]]) -> list[int]:
        known: dict[int, int] = {}  # by identity, because hashing a shape walks over all of it
        numbers: list[int] = []
        for shape, row in split:
            number = known.get(id(shape))
            if number is None:
                number = known[id(shape)] = self._shape_number(shape, len(row))
            numbers.append(number)
        return numbers

    def _shape_number(self, shape: Shape, width: int) -> int:
        number = self._shape_numbers.get(shape)
        if number is None:
            number = self._shape_numbers[shape] = len(self.shapes)
            self.shapes.append(shape)
            self._widths.append(width)
        return number

    def remove(self, number: int) -> None:
        """Forget a subscription."""
        if self._is_past[number]:
            self._is_past[number] = 0
        else:
            self._known().remove(number)
            self._length -= 1
        self._give_back(number)

    def begin(self, numbers: Numbers, since: npt.NDArray[np.int64]) -> None:
        """Let subscriptions hold from other times on; their `t` counts on."""
        self._since[numbers] = since
        self._latest_since = max(self._latest_since, since.max(initial=NO_TIME))

    def copy_past(self, numbers: Numbers, until: npt.NDArray[np.int64]) -> Numbers:
        """Have subscriptions as they stand as versions of the past, too; gives their numbers."""
        known = self._known()
        ids = known.ids_of(numbers)
        subscribers = [self._subscribers[number] for number in numbers.tolist()]
        copies = self._take_numbers(len(numbers))
        for name in _COLUMNS:
            column = getattr(self, name)
            column[copies] = column[numbers]
        self._until[copies] = until
        self._row_of[copies] = self._copied_rows(numbers)
        known.write(copies, ids)
        for copy, subscriber in zip(copies.tolist(), subscribers, strict=True):
            self._subscribers[copy] = subscriber
        self._id_column.has_changed(copies)
        self._subscriber_column.has_changed(copies)
        self.publish(copies, past=True)
        return copies

    def _copied_rows(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """Rows that hold the same as those of some subscriptions; gives where they begin."""
        widths = np.array([self._widths[each] for each in self._shape_of[numbers].tolist()])
        places = np.zeros(len(numbers), np.int64)
        for width in np.unique(widths).tolist():
            mine = np.flatnonzero(widths == width)
            cells_at = self._row_of[numbers[mine]][:, None] + np.arange(width)
            places[mine] = self.rows.append(self.rows.kinds[cells_at], self.rows.cells[cells_at])
        return places

    def set_held(self, numbers: Numbers, time_us: int | None) -> None:
        """Note the time of the version that subscriptions go by; None if they have none."""
        self._held[numbers] = NO_TIME if time_us is None else time_us

    def update(self, number: int, parameters: Mapping[str, Value | None]) -> tuple[int, ...] | None:
        """Write new values of parameters.

        Gives the slots that changed; None if one of them got a value of another kind.
        """
        row = self._row_of.item(number)
        slots_of = self._names.slots(self._names_of.item(number))
        if not parameters.keys() <= slots_of.keys():
            raise self._unknown(number, parameters)
        changed: tuple[int, ...] = ()
        same = True
        for name, value in parameters.items():
            kind, cell = encode(value, self.pool)
            slots = slots_of[name]
            for slot in slots:
                same &= self.rows.write(row + slot, kind, cell)
            changed += slots
        return changed if same else None

    def slots(
        self, numbers: Numbers, parameters: Sequence[Mapping[str, Value | None]]
    ) -> list[tuple[int, ...]]:
        """The slots that parameters of subscriptions stand in; raises UnresolvedError."""
        found: list[tuple[int, ...]] = []
        names_of = self._names_of[numbers].tolist()
        for index, (names, given) in enumerate(zip(names_of, parameters, strict=True)):
            slots_of = self._names.slots(names)
            if not given.keys() <= slots_of.keys():
                raise self._unknown(int(numbers[index]), given)
            slots: tuple[int, ...] = ()
            for name in given:
                slots += slots_of[name]
            found.append(slots)
        return found

    def write(
        self,
        numbers: Numbers,
        slots: Sequence[tuple[int, ...]],
        parameters: Sequence[Mapping[str, Value | None]],
    ) -> npt.NDArray[np.bool_]:
        """Write new values of parameters into their slots; each subscription stands there once.

        Gives whose values all are of the kinds of those before.
        """
        values: list[Value | None] = []
        names_of = self._names_of[numbers].tolist()
        for names, given in zip(names_of, parameters, strict=True):
            slots_of = self._names.slots(names)
            for name, value in given.items():
                values += [value] * len(slots_of[name])
        lengths = np.fromiter(map(len, slots), np.int64, len(slots))
        flat = np.fromiter((slot for each in slots for slot in each), np.int64, len(values))
        owners = np.repeat(np.arange(len(numbers)), lengths)
        kinds, cells = encode_all(values, self.pool)
        same = np.ones(len(numbers), np.bool_)
        same[owners[~self.rows.write_all(self._row_of[numbers][owners] + flat, kinds, cells)]] = 0
        return same

    def _unknown(self, number: int, parameters: Mapping[str, Value | None]) -> UnresolvedError:
        slots_of = self._names.slots(self._names_of.item(number))
        unknown = next(name for name in parameters if name not in slots_of)
        there = ", ".join(f":{name}" for name in slots_of) or "none"
        return UnresolvedError(
            f"subscription {self._known().id(number)!r} has no parameter :{unknown}; it has {there}"
        )

    # -- reading ------------------------------------------------------------------------------

    def get(self, number: int) -> Subscription:
        """A subscription as it stands."""
        shape, row = self.place(number)
        parameters: dict[str, Value] = {}
        filled: list[Value | ParameterRef] = []
        for slot, name in enumerate(self._names.names(self._names_of.item(number))):
            place = row + slot
            value = decode(int(self.rows.kinds[place]), int(self.rows.cells[place]), self.pool)
            if name is not None:
                filled.append(ParameterRef(name))
                if value is not None:
                    parameters[name] = value
            elif value is not None:
                filled.append(value)
        since, until = int(self._since[number]), int(self._until[number])
        origin, held = int(self._origin[number]), int(self._held[number])
        return Subscription(
            self._known().id(number),
            Filter.of_shape(self.shapes[shape], tuple(filled)),
            parameters,
            None if since == NO_TIME else since,
            self._subscribers[number],
            None if until == NO_END else until,
            None if origin in (NO_TIME, since) else origin,
            evolve_of_number(int(self._evolve[number])),
            None if held == NO_TIME else held,
        )

    def by_shape(self, numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
        """Subscriptions grouped by the number of their shape."""
        shapes = self._shape_of[numbers]
        order = np.argsort(shapes, kind="stable")
        bounds = np.flatnonzero(np.diff(shapes[order], prepend=-1, append=-1))
        for begin, end in pairwise(bounds.tolist()):
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
        count = self._count
        into.texts("ids", self._known().between(0, count))
        into.texts("strings", self.pool.texts())
        for name in _COLUMNS:
            into.array(name[1:], getattr(self, name)[:count])
        into.array("free", np.array(self._free, np.int32))
        into.texts("subscribers", self._subscribers[:count])
        into.note("names", self._names.lists())
        into.texts("shapes", [shape_text(shape) for shape in self.shapes])
        self.rows.save(into)

    @classmethod
    def load(cls, source: SectionReader) -> SubscriptionTable:
        """The table of a snapshot."""
        table = cls()
        table._unread = source.texts("ids")
        table._unread_subscribers = source.texts("subscribers")
        table._id_column = TextColumn(
            lambda begin, end: table._known().between(begin, end), table._unread.cast(pa.string())
        )
        table._subscriber_column = TextColumn(
            lambda begin, end: table._subscribers[begin:end],
            table._unread_subscribers.cast(pa.string()),
        )
        table.pool = StringPool(source.texts("strings").to_pylist())
        for name in _COLUMNS:
            setattr(table, name, source.array(name[1:]))
        table._free = source.array("free").tolist()
        table.capacity = table._count = len(table._shape_of)
        table._length = table._count - len(table._free) - int(table._is_past.sum())
        table._names = ParameterNames(source.note("names"))
        for text in source.texts("shapes").to_pylist():
            shape = shape_from(text)
            table._shape_number(shape, shape.width)
        table.rows = RowHeap.load(source)
        if len(table._since):
            table._latest_since = table._since.max()
            table._first_until = table._until.min()
        return table


def shape_text(shape: Shape) -> str:
    """A shape as a filter text: parameters in place of its slots."""
    return str(shape.fill(tuple(ParameterRef(f"s{slot}") for slot in range(shape.width))))


def shape_from(text: str) -> Shape:
    """The shape that ``shape_text`` wrote."""
    shape, _ = split(parse_filter(text, _NO_LIMITS))
    return shape
