"""The index: entries in parts, of which there are never many.

New entries gather in a small open part, whose entries are checked one by one. When it is full they
are laid out as a part of their own, together with all parts that are not much larger; so an entry
is laid out anew only as often as the index grows by some factor.

Where bounds move, all parts are enclosed for one stretch of time (see envelopes.py), and hold for
no other.

The versions of the past have an index of their own. Each of its entries has a lifetime, a range in
the channel of the times at which events are judged; a part is left alone when no event is of the
times of its entries, and parts stay so small that this is worth something.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tidegate.matching.arrays import I32, I64, U8
from tidegate.matching.columnar.entries.constraints import Block, entries_of
from tidegate.matching.columnar.kernels.layout import Entries, concatenate, flat, lay_out, take_out
from tidegate.matching.columnar.kernels.part import (
    CHANNEL_MASK,
    GONE,
    MOVING,
    SHARED,
    PackedPart,
    Part,
    pack,
    unpack,
)
from tidegate.matching.columnar.kernels.rewrite import (
    NOT_IN_PLACE,
    ROOM,
    enclose_part,
    hold_entries,
    rewrite_entries,
    rewrite_entry,
)
from tidegate.matching.columnar.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.columnar.time_window import EventTimes, TimeWindow

OPEN_ENTRIES_MAX = 512
MERGE_RATIO = 4
LAYOUT_ENCLOSINGS = 64
"""After so many stretches of time, parts whose bounds move are laid out anew: by then the bounds
are elsewhere than when their cells were cut."""
OPEN = 0
"""The place of the open part among all parts."""
PAST_ENTRIES_MAX = 65_536
"""Parts of the past are not made larger than this."""

_NOTHING_ENCLOSED = np.zeros(0, np.int64), np.zeros((2, 1))


class IndexPart:
    """A part, packed for the kernel and as its fields; both are the same memory."""

    def __init__(self, packed: PackedPart, lifetime: int | None = None) -> None:
        self.packed: PackedPart = packed
        self.part: Part = unpack(packed)
        self.longest = int(np.diff(self.part.segment_first).max(initial=0))
        self.moves = len(self.part.motion) > 0
        self.gone = 0
        self._extent = (-np.inf, np.inf)
        if lifetime is not None:
            bounds = self.part.bound.reshape(-1, 3)
            mine = bounds[bounds[:, 2].view(np.int64) & CHANNEL_MASK == lifetime]
            self._extent = mine[:, 0].min(initial=np.inf), mine[:, 1].max(initial=-np.inf)

    def __len__(self) -> int:
        return self.part.entries

    def may_match(self, times: EventTimes) -> bool:
        """Whether it has entries that events of such times could match."""
        begin, end = self._extent
        return len(self) > 0 and (begin == -np.inf or (times.begin <= end and begin <= times.end))


class Index:
    """Parts, and where in them the entries of each subscription stand.

    ``lifetime`` is the channel in which all entries have a range, if they do.
    """

    def __init__(self, lifetime: int | None = None) -> None:
        self.lifetime = lifetime
        self.parts = [IndexPart(pack(_empty_part()))]
        self._new: list[Entries] = []
        self._new_moves = False
        self._part_of: I32 = np.zeros(0, np.int32)
        self._place_of: I32 = np.zeros(0, np.int32)
        self._places_of: dict[int, list[int]] = {}
        self._stretch: TimeWindow | None = None
        self._enclosed_for = _NOTHING_ENCLOSED
        self._enclosings = 0
        self._room = np.empty(ROOM)

    @property
    def stretch(self) -> TimeWindow | None:
        """What the bounds that move are enclosed for; None if they are not."""
        return self._stretch

    @property
    def moves(self) -> bool:
        """Whether there are bounds that move."""
        return self._new_moves or any(each.moves for each in self.parts)

    def enclose(self, stretch: TimeWindow) -> None:
        """Have the bounds that move hold for another stretch of time."""
        self._set_stretch(stretch)
        self._enclosings += 1
        for place, each in enumerate(self.parts):
            if each.moves and place != OPEN and self._enclosings % LAYOUT_ENCLOSINGS == 0:
                entries = _enclosed(take_out(each.part), each.part.program, stretch)
                self._set(place, lay_out(entries, each.part.program))
            elif each.moves:
                _enclose(each.packed, stretch)

    def _set_stretch(self, stretch: TimeWindow | None) -> None:
        self._stretch = stretch
        if stretch is not None:
            self._enclosed_for = stretch.times, stretch.variables

    @property
    def is_settled(self) -> bool:
        """Whether all entries are in parts."""
        return not self._new

    def reserve(self, count: int) -> None:
        """Make room for subscriptions with numbers below ``count``."""
        if count > len(self._part_of):
            more = np.full(count - len(self._part_of), -1, np.int32)
            self._part_of = np.concatenate([self._part_of, more])
            self._place_of = np.concatenate([self._place_of, more])

    def add(self, entries: Entries) -> None:
        """Take entries in; they are in a part after ``settle``."""
        self._new.append(entries)
        self._new_moves |= bool(len(entries.motion))

    def settle(self, program: I32, variables: int) -> int:
        """Put the new entries into parts; gives how many entries were laid out for that.

        Their programs may use so many variables.
        """
        if not self._new:
            return 0
        if self._stretch is not None:
            self._set_stretch(self._stretch.with_room_for(variables))
        entries = concatenate([take_out(self.parts[OPEN].part), *self._new])
        self._new, self._new_moves = [], False
        if len(entries) <= OPEN_ENTRIES_MAX:
            self._set(OPEN, flat(entries, program))
            return 0
        if self._stretch is not None:
            # where an entry is laid out depends on its bounds
            entries = _enclosed(entries, program, self._stretch)
        self._set(OPEN, _empty_part())
        while len(self.parts) > 1 and self._should_merge(len(entries)):
            entries = concatenate([take_out(self.parts.pop().part), entries])
        self.parts.append(IndexPart(pack(_empty_part())))
        self._set(len(self.parts) - 1, lay_out(entries, program))
        return len(entries)

    def _should_merge(self, new: int) -> bool:
        """Whether so many new entries are laid out together with those of the last part."""
        last = len(self.parts[-1])
        if self.lifetime is not None and new + last > PAST_ENTRIES_MAX:
            return False
        return new * MERGE_RATIO >= last

    def _set(self, place: int, part: Part) -> None:
        """Put a part in its place, enclose what moves, and note where its entries stand."""
        self.parts[place] = IndexPart(pack(part), self.lifetime)
        if self._stretch is not None and self.parts[place].moves:
            _enclose(self.parts[place].packed, self._stretch)
        self._part_of[part.subscription] = place
        self._place_of[part.subscription] = np.arange(len(part.subscription))
        self._note_shared(part)

    def _note_shared(self, part: Part) -> None:
        """Note where the subscriptions stand that have several entries in a part."""
        shared = np.flatnonzero((part.flags & (SHARED | GONE)) == SHARED)
        owners = part.subscription[shared].tolist()
        for number in owners:
            self._places_of[number] = []
        for entry, number in zip(shared.tolist(), owners, strict=True):
            self._places_of[number].append(entry)

    def take_away(self, *numbers: int) -> None:
        """Mark the entries of subscriptions as gone; all must be settled."""
        touched = {self._mark_gone(number) for number in numbers}
        for at in sorted(touched, reverse=True):  # those behind a part that goes move up
            if at > OPEN and 2 * self.parts[at].gone > len(self.parts[at]):
                self._shrink(at)

    def _mark_gone(self, number: int) -> int:
        """Mark the entries of a subscription as gone; gives their part, OPEN if it has none."""
        if self._place_of.item(number) < 0:
            return OPEN  # a filter that never matches
        at = self._part_of.item(number)
        part = self.parts[at]
        flags = part.part.flags
        for place in self._places_of.pop(number, [self._place_of.item(number)]):
            flags[place] |= GONE
            part.gone += 1
        self._place_of[number] = -1
        return at

    def _shrink(self, at: int) -> None:
        """Lay a part out anew without the entries that are gone; if all are, there is no part."""
        part = self.parts[at].part
        entries = take_out(part)
        if len(entries):
            self._set(at, lay_out(entries, part.program))
        else:
            del self.parts[at]
            self._part_of[self._part_of > at] -= 1

    def rewrite(self, number: int, plan: I32, kinds: U8, cells: I64, row: int) -> int:
        """Change the only entry of a subscription as a plan says; see ``rewrite_entry``."""
        place = self._place_of.item(number)
        if place < 0 or number in self._places_of:
            return NOT_IN_PLACE
        at, i32, i64, f32, f64, u64, _ = self.parts[self._part_of.item(number)].packed
        times, variables = self._enclosed_for
        done: int = rewrite_entry(
            plan, kinds, cells, row, at, i32, i64, f32, f64, u64, place, times, variables,
            self._room,
        )  # fmt: skip
        return done

    def hold(self, numbers: I32, hold: int) -> None:
        """Have the functions of subscriptions evaluated for another time; all must be settled."""
        times, variables = self._enclosed_for
        for number, places in self._places_in_parts(numbers):
            at, i32, i64, f32, f64, u64, _ = self.parts[number].packed
            room = np.empty(ROOM)
            hold_entries(at, i32, i64, f32, f64, u64, places, hold, times, variables, room)

    def _places_in_parts(self, numbers: I32) -> Iterator[tuple[int, I64]]:
        """Where the entries of subscriptions stand, part by part, in the order of memory."""
        places = self._place_of[numbers].astype(np.int64)
        parts = self._part_of[numbers]
        for part in np.unique(parts[places >= 0]).tolist():
            mine = (parts == part) & (places >= 0)
            found = places[mine]
            if self._places_of:
                some = [self._places_of.get(number, []) for number in numbers[mine].tolist()]
                found = np.unique([*found.tolist(), *(place for each in some for place in each)])
            yield part, np.sort(found)

    def rewrite_many(
        self, numbers: I32, plans: Sequence[I32], which: I64, kinds: U8, cells: I64, rows: I64
    ) -> U8:
        """As ``rewrite`` for many subscriptions, each by one of some plans; what came of each.

        A plan of no length stands for one that is still to be made.
        """
        done: U8 = np.full(len(numbers), NOT_IN_PLACE, np.uint8)
        words = np.concatenate([np.zeros(0, np.int32), *plans])
        first = np.cumsum([0, *map(len, plans)])
        times, variables = self._enclosed_for
        places, parts = self._place_of[numbers], self._part_of[numbers]
        alone = places >= 0
        if self._places_of:
            alone &= np.array([each not in self._places_of for each in numbers.tolist()], np.bool_)
        for part in np.unique(parts[alone]).tolist():
            mine = np.flatnonzero(alone & (parts == part))
            at, i32, i64, f32, f64, u64, _ = self.parts[part].packed
            come: U8 = np.zeros(len(mine), np.uint8)
            rewrite_entries(
                words, first, which[mine], kinds, cells, rows[mine], at, i32, i64, f32, f64, u64,
                places[mine], times, variables, self._room, come,
            )  # fmt: skip
            done[mine] = come
        return done

    def save(self, into: SectionWriter, name: str) -> None:
        """Add the index to a snapshot, under a name; all must be settled."""
        into.array(f"{name}.part_of", self._part_of)
        into.array(f"{name}.place_of", self._place_of)
        into.note(f"{name}.lifetime", self.lifetime)
        into.note(f"{name}.parts", len(self.parts))
        into.note(f"{name}.stretch", None if self._stretch is None else self._stretch.as_json())
        for number, each in enumerate(self.parts):
            for field in PackedPart._fields:
                into.array(f"{name}.part{number}.{field}", getattr(each.packed, field))

    @classmethod
    def load(cls, source: SectionReader, name: str) -> Index:
        """An index of a snapshot."""
        index = cls(source.note(f"{name}.lifetime"))
        index._part_of = source.array(f"{name}.part_of")
        index._place_of = source.array(f"{name}.place_of")
        index.parts = [
            IndexPart(
                PackedPart(
                    *(source.array(f"{name}.part{number}.{each}") for each in PackedPart._fields)
                ),
                index.lifetime,
            )
            for number in range(source.note(f"{name}.parts"))
        ]
        for each in index.parts:
            index._note_shared(each.part)
            each.gone = int(np.count_nonzero(each.part.flags & GONE))
        stretch = source.note(f"{name}.stretch")
        index._set_stretch(None if stretch is None else TimeWindow.of_json(stretch))
        return index


def _empty_part() -> Part:
    no_times = np.zeros(0, np.int64)
    nothing = entries_of(Block(0), np.zeros(0, np.int32), no_times, no_times)
    return flat(nothing, np.zeros(1, np.int32))


def _enclosed(entries: Entries, program: I32, stretch: TimeWindow) -> Entries:
    """Entries with the envelopes of the bounds that move."""
    if not np.any(entries.flags & MOVING):
        return entries
    packed = pack(flat(entries, program))
    _enclose(packed, stretch)
    part = unpack(packed)
    bounds = part.bound.reshape(-1, 3)
    return replace(entries, low=bounds[:, 0].copy(), high=bounds[:, 1].copy())


def _enclose(packed: PackedPart, stretch: TimeWindow) -> None:
    at, i32, i64, f32, f64, u64, _ = packed
    times, variables = stretch.times, stretch.variables
    enclose_part(at, i32, i64, f32, f64, u64, times, variables, np.empty(ROOM))
