"""The index: entries in parts, of which there are never many.

Theory of operation. An entry goes through three places. ``add`` appends it to a list of pending
entries, which no match sees. ``flush`` moves the pending ones to the *open part*, parts[0], which
is flat: one cluster without bitmaps that is scanned as a whole, so it is cheap to write again
with each flush. When the open part would grow beyond its limit, its entries are laid out as a part
of their own, merged with all the last parts that are not much larger (as in an LSM tree, and as
ClickHouse merges parts). So the sizes of the parts are roughly geometric: there are few of them,
each of which costs an event some hash probes, and an entry is laid out again only when the index
has grown by a factor.

A removed entry stays in its part with a flag. A part is laid out again, alone, once more than half
of its entries are removed, or once its moving bounds are elsewhere than when it was laid out.

Large parts are merged and laid out again beside the index, while it is used: ``wanted`` names
parts that are to be one, `PartBuild` (part_build.py) makes the new part, and ``replace`` puts it in
their place. Meanwhile the parts note which of their entries change (``IndexPart.changed``).

Links are kept by number of the subscription (links.py). A part has them as bits too
(kernels/link_bits.py), which are made with the part and written when a link is set. Both exist only
once a link was set.

Where bounds move, all parts are enclosed for one time window (see kernels/envelopes.py), and are
right for no other. Before it ends, they are enclosed for the coming one, a piece after the other
(``enclose_share``): each entry is then right for one of the two windows, so the index is right for
the times that both have. Entries that are written meanwhile are enclosed for both.

Past versions have an index of their own. Each of its entries has a lifetime, a range in the channel
of event time. A part whose entries all lie outside of the times of the events is skipped, and
parts stay small enough for that to happen often.

Locking. An index has no lock: its owner lets matches read it together, and everything that changes
it run alone (see rows/locks.py). Arrays of a part are written in place (rewrite, enclose, remove)
or replaced by a new part; either way a match sees the state before or after, never one in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import deepcopy

import numpy as np

from tidegate.matching.arrays import I32, I64, U8
from tidegate.matching.columnar.entry_places import NO_ENTRY, EntryPlaces
from tidegate.matching.columnar.index_part import IndexPart, enclosed
from tidegate.matching.columnar.kernels.layout import flat, lay_out, take_out
from tidegate.matching.columnar.kernels.link_bits import link_bits, write_links
from tidegate.matching.columnar.kernels.part import PackedPart, Part, pack
from tidegate.matching.columnar.kernels.rewrite import (
    copy_rewritten,
    enclose_moved,
    pin_entries,
    rewrite_entries,
    rewrite_entry,
)
from tidegate.matching.columnar.links import SubscriptionLinks
from tidegate.matching.columnar.sizes import DEFAULT_SIZES, IndexSizes
from tidegate.matching.rows.kernels.entry_lists import (
    Entries,
    beginning,
    concatenate,
    no_entries,
    still_entries,
)
from tidegate.matching.rows.kernels.envelopes import WindowArrays
from tidegate.matching.rows.kernels.flags import GONE
from tidegate.matching.rows.kernels.plan_values import SCRATCH_FLOATS, CellArrays, PlannedRows
from tidegate.matching.rows.kernels.rewrite_plan import DONE, MOVED, NO_PLAN, NOT_IN_PLACE
from tidegate.matching.rows.link_words import LINK_BITS, as_words
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.rows.time_window import TimeWindow

MERGE_RATIO = 4
"""New entries are merged with the last part unless that is more than this many times as large."""

OPEN = 0
"""The number of the open part. It is there always, if only as a part without entries."""

COPIED_MAX, COPIED_CONSTRAINTS_MAX = 64, 256
"""A subscription with more entries or constraints is not copied when a key changes, but made anew
from its row."""

NO_PROGRAM = np.zeros(1, np.int32)
"""In place of the code that motions refer to, where nothing moves."""

_NOT_ENCLOSED = WindowArrays(np.zeros(0, np.int64), np.zeros((2, 1)))


class Index:
    """Entries in parts, and where the entries of each subscription are.

    ``lifetime`` is the channel in which all entries have a range, None if they have no lifetimes.
    """

    def __init__(self, lifetime: int | None = None, sizes: IndexSizes = DEFAULT_SIZES) -> None:
        self.lifetime = lifetime
        self._sizes = sizes
        self.parts = [IndexPart.empty()]
        self._pending: list[Entries] = []
        self._pending_motion = False
        self.places = EntryPlaces(np.zeros(0, np.int32), np.zeros(0, np.int32))
        self.links = SubscriptionLinks()
        self._window: TimeWindow | None = None
        self._coming: TimeWindow | None = None
        self._enclosed_for = _NOT_ENCLOSED
        self._scratch = np.empty(SCRATCH_FLOATS)
        self._copies = still_entries(COPIED_MAX, COPIED_CONSTRAINTS_MAX)
        """Scratch space, for entries that are copied."""

    @property
    def window(self) -> TimeWindow | None:
        """The time window for which moving bounds are enclosed; None if they are not."""
        return self._window

    @property
    def coming(self) -> TimeWindow | None:
        """The time window for which moving bounds are being enclosed; None if they are not."""
        return self._coming

    def is_enclosed(self, needed: TimeWindow) -> bool:
        """Whether all moving bounds are enclosed for a window."""
        if self._window is None or not self._window.includes(needed):
            return not self.has_motion
        return self._coming is None or self._coming.includes(needed) or not self.has_motion

    @property
    def has_motion(self) -> bool:
        """Whether there are moving bounds, pending ones included."""
        return self._pending_motion or any(each.has_motion for each in self.parts)

    def enclose(self, window: TimeWindow) -> None:
        """Enclose moving bounds for another time window, all at once."""
        self.begin_enclosing(window)
        while self.enclose_piece(1.0):
            pass

    def begin_enclosing(self, coming: TimeWindow) -> None:
        """Begin to enclose moving bounds for the coming time window."""
        self._set_windows(self._window, coming)
        for each in self.parts:
            each.enclosed = 0

    def enclose_piece(self, share: float) -> bool:
        """Enclose one more piece for the coming window, until this share of each part is enclosed.

        Returns whether there is more to do for that. If all is enclosed, the window has come.
        """
        assert self._coming is not None
        coming = WindowArrays(self._coming.times, self._coming.variables)
        for each in self.parts:
            end = min(math.ceil(share * len(each)), each.enclosed + self._sizes.piece_entries)
            if each.has_motion and end > each.enclosed:
                each.enclose(each.enclosed, end, coming)
                each.enclosed = end
                return True
        if share >= 1.0:
            self._set_windows(self._coming, None)
            for each in list(self.parts):
                each.windows += each.has_motion
                number = self.parts.index(each)  # those before may have been deleted
                if self._is_outdated(number) and not self._is_beside(number):
                    self._shrink(number)
        return False

    def _is_outdated(self, number: int) -> bool:
        """Whether a part is to be laid out: it has not been, or its bounds have moved since."""
        part = self.parts[number]
        return number != OPEN and (part.is_flat or part.windows >= self._sizes.windows_per_layout)

    def _set_windows(self, window: TimeWindow | None, coming: TimeWindow | None) -> None:
        self._window, self._coming = window, coming
        both = window if coming is None else coming if window is None else coming.hull(window)
        if both is not None:
            self._enclosed_for = WindowArrays(both.times, both.variables)

    # -- entries that come ----------------------------------------------------------------------

    @property
    def is_flushed(self) -> bool:
        """Whether all entries are in parts, where matches find them."""
        return not self._pending

    def may_be_pending(self, numbers: I32) -> bool:
        """Whether some subscription may have pending entries, as it has none in a part."""
        return bool(self._pending) and bool((self.places.entry_of[numbers] == NO_ENTRY).any())

    def reserve(self, count: int) -> None:
        """Make room for subscriptions with numbers below ``count``."""
        if count > len(self.places.part_of):
            self.places.reserve(count)
            self.links.reserve(count)

    def add(self, entries: Entries) -> None:
        """Append entries to the pending ones."""
        self._pending.append(entries)
        self._pending_motion |= bool(len(entries.motion))

    def flush(self, program: I32, variables: int) -> int:
        """Move the pending entries into parts; returns how many entries were laid out for that.

        ``program`` has the programs of all moving bounds, and ``variables`` is how many they use.
        """
        if not self._pending:
            return 0
        self._set_windows(
            None if self._window is None else self._window.with_columns_for(variables),
            None if self._coming is None else self._coming.with_columns_for(variables),
        )
        if self._append_pending(program):
            return 0
        # nobody can have waited for what is more than all that was there
        is_load = sum(map(len, self._pending)) > sum(map(len, self.parts))
        entries = concatenate([take_out(self.parts[OPEN].part), *self._pending])
        self._pending, self._pending_motion = [], False
        if len(entries) <= self._sizes.open_entries_max:
            self._put(OPEN, self._new_open(entries, program))
            return 0
        self.parts[OPEN] = self._new_open(no_entries(), program)
        at_once = is_load or self.lifetime is not None  # parts of past versions are bounded
        while len(self.parts) > 1 and self._should_merge(len(entries), beside=not at_once):
            last = self.parts.pop()
            last.changed = None  # if it is built anew, that build is abandoned
            entries = concatenate([take_out(last.part), entries])
        number = len(self.parts)
        self.parts.append(IndexPart.empty())
        if at_once or len(entries) <= self._sizes.at_once_entries_max:
            if len(self._enclosed_for.times):
                # The layout depends on the bounds: moving ones need their envelopes before.
                entries = enclosed(entries, program, self._enclosed_for)
            self._put(number, IndexPart(pack(self._laid_out(entries, program)), self.lifetime))
        else:
            self._put(number, IndexPart(pack(flat(entries, program))))
            self.parts[number].is_flat = True
        return len(entries)

    def _append_pending(self, program: I32) -> bool:
        """Append the pending entries to the open part; False if they have no room there."""
        while self._pending and self._append(self._pending[0], program):
            del self._pending[0]
        self._pending_motion = any(len(each.motion) for each in self._pending)
        return not self._pending

    def _append(self, entries: Entries, program: I32) -> bool:
        """Append entries to the open part; False if they have no room there."""
        part = self.parts[OPEN]
        begin = len(part)
        if (
            self.lifetime is not None
            or begin + len(entries) > self._sizes.open_entries_max
            or not part.has_room_for(entries, program)
        ):
            return False
        part.append(entries)
        self.places.enter(OPEN, entries.subscription, entries.flags, begin)
        self._add_link_bits(part, begin)
        if len(self._enclosed_for.times) and len(entries.motion):
            part.enclose(begin, len(part), self._enclosed_for)
        if part.enclosed == begin:
            part.enclosed = len(part)
        return True

    def _new_open(self, entries: Entries, program: I32) -> IndexPart:
        if self.lifetime is not None:  # such a part is flushed once, by a whole chunk
            return IndexPart(pack(flat(entries, program)), self.lifetime)
        return IndexPart.growing(entries, program, self._sizes.open_entries_max)

    def _should_merge(self, new: int, *, beside: bool) -> bool:
        """Whether this many new entries are put into one part with those of the last part.

        ``beside``: only if that is quick, because it can be done beside the index later, and if the
        part is not built anew already. It is quick where few are laid out, or none.
        """
        last = len(self.parts[-1])
        if beside:
            if self.parts[-1].changed is not None:
                return False
            if new + last > self._sizes.at_once_entries_max:
                return self.parts[-1].is_flat and new + last <= self._sizes.flat_entries_max
        if self.lifetime is not None and new + last > self._sizes.past_entries_max:
            return False
        return new * MERGE_RATIO >= last

    def _laid_out(self, entries: Entries, program: I32) -> Part:
        return lay_out(entries, program, self._sizes.layout)

    def _put(self, number: int, new: IndexPart) -> None:
        """Set a part, enclose its moving bounds, and note where its entries are."""
        self.parts[number] = new
        if len(self._enclosed_for.times) and new.has_motion:
            new.enclose(0, len(new), self._enclosed_for)
        new.enclosed = len(new)
        self.places.enter(number, new.part.subscription, new.part.flags)
        self._make_link_bits(new)

    # -- entries that go ------------------------------------------------------------------------

    def remove(self, *numbers: int) -> None:
        """Remove the entries of subscriptions, none of which may be pending."""
        touched = {self._flag_removed(number) for number in numbers}
        for number in sorted(touched, reverse=True):  # parts behind a deleted one are renumbered
            if self._is_half_removed(number) and not self._is_beside(number):
                self._shrink(number)

    def _is_half_removed(self, number: int) -> bool:
        part = self.parts[number]
        return 2 * part.removed > len(part)

    def _is_beside(self, number: int) -> bool:
        """Whether a part is too large to be laid out at once, or is built anew already."""
        if number == OPEN:
            return False
        part = self.parts[number]
        large = len(part) > self._sizes.at_once_entries_max and self.lifetime is None
        return large or part.changed is not None

    def _flag_removed(self, number: int) -> int:
        """Flag the entries of a subscription as removed; returns their part, OPEN if none."""
        entries = self.places.all(number)
        if not entries:
            return OPEN  # its filter matches nothing, so it has no entries
        at = self.places.part(number)
        self._write_link_bits(number, 0)
        self.parts[at].flag_gone(entries)
        self.parts[at].note_changed(entries)
        self.places.forget(number)
        return at

    def _shrink(self, number: int) -> None:
        """Lay a part out again without the removed entries; delete it if no others are left."""
        part = self.parts[number].part
        entries = take_out(part)
        if number == OPEN:
            self._put(OPEN, self._new_open(entries, part.program))
        elif len(entries):
            self._put(number, IndexPart(pack(self._laid_out(entries, part.program)), self.lifetime))
        else:
            del self.parts[number]
            self.places.renumber(number + 1, 1)

    # -- parts that are built beside --------------------------------------------------------------

    def wanted(self) -> list[IndexPart]:
        """Neighbouring parts that are to be laid out as one, beside the index; none if all is well.

        None are wanted while some are being built. Parts of past versions are laid out at once.
        """
        if self.lifetime is not None or any(each.changed is not None for each in self.parts):
            return []
        first, total = len(self.parts) - 1, len(self.parts[-1])
        while first > OPEN + 1 and total * MERGE_RATIO >= len(self.parts[first - 1]):
            first -= 1
            total += len(self.parts[first])
        if first > OPEN and first < len(self.parts) - 1:
            return self.parts[first:]
        for number in range(OPEN + 1, len(self.parts)):
            if self._is_outdated(number) or self._is_half_removed(number):
                return [self.parts[number]]
        return []

    def replace(self, old: list[IndexPart], new: IndexPart, shared: dict[int, list[int]]) -> None:
        """Put a new part in the place of neighbouring old ones that have the same entries.

        ``shared`` has the positions of the entries of subscriptions that have several.
        """
        first = self.parts.index(old[0])
        behind = first + len(old)
        self.parts[first:behind] = [new]
        if len(old) > 1:
            self.places.renumber(behind, len(old) - 1)
        present = np.flatnonzero((new.part.flags & GONE) == 0)
        owners = new.part.subscription[present]
        self.places.replace(first, owners, present, shared)
        new.removed = len(new) - len(present)
        new.enclosed = len(new)
        self._make_link_bits(new)

    def drop(self, numbers: Iterable[int]) -> None:
        """Flag the entries of subscriptions as removed, and lay out nothing."""
        for number in numbers:
            self._flag_removed(number)

    # -- links ----------------------------------------------------------------------------------

    def set_links(self, number: int, links: int) -> None:
        """Set the links over which a subscription is reached; its entries may be pending."""
        width = self.links.width
        self.links.set(number, links)
        if self.links.width != width:
            for each in self.parts:
                self._make_link_bits(each)
        else:
            self._write_link_bits(number, links)

    def _make_link_bits(self, part: IndexPart) -> None:
        if self.links.width:
            words = self.links.words(part.part.subscription)
            part.link_bits = link_bits(part.part, words, self.links.width)

    def _add_link_bits(self, part: IndexPart, begin: int) -> None:
        """Write the bits of the entries of a part from ``begin`` on, which were appended."""
        if not self.links.width:
            return
        if part.link_bits is None or 64 * part.link_bits.entries.shape[1] < len(part) + 64:
            self._make_link_bits(part)
            return
        owners = part.part.subscription[begin:]
        for entry, words in enumerate(self.links.words(owners), begin):
            write_links(
                *part.link_bits, part.part.cluster_first, part.part.cluster_group, entry, words
            )

    def _write_link_bits(self, number: int, links: int) -> None:
        """Write the bits of the entries of a subscription that are in a part."""
        entries = self.places.all(number) if self.links.width else []
        if not entries:
            return
        words = as_words(links, -(-self.links.width // LINK_BITS))
        each = self.parts[self.places.part(number)]
        assert each.link_bits is not None
        for entry in entries:
            write_links(
                *each.link_bits, each.part.cluster_first, each.part.cluster_group, entry, words
            )

    # -- entries that change in place -----------------------------------------------------------

    def rewrite(self, number: int, plan: I32, kinds: U8, cells: I64, row: int) -> int:
        """Change the only entry of a subscription by a plan; returns what ``rewrite_entry`` does.

        NOT_IN_PLACE if the subscription has no entry, or several.
        """
        entry = self.places.only(number)
        if entry == NO_ENTRY:
            return NOT_IN_PLACE
        part = self.parts[self.places.part(number)]
        variables = self._enclosed_for.variables
        outcome: int = rewrite_entry(
            plan, kinds, cells, row, *part.packed, entry, variables, self._scratch
        )
        if part.changed is not None:
            part.changed.append(entry)
        if outcome == MOVED:
            self._enclose_moved(part.packed, np.array([entry], np.int32))
            return DONE
        if outcome == NOT_IN_PLACE and part.needs_lookup:
            return self._replace_rewritten(number, {entry: plan}, kinds, cells, row)
        return outcome

    def rewrite_each(
        self, number: int, plans: Mapping[int, I32], kinds: U8, cells: I64, row: int
    ) -> int:
        """Change entries of a subscription, each by the plan of its ordinal; returns an outcome."""
        entries = self.places.all(number)
        if not entries:
            return NOT_IN_PLACE  # they are pending
        part = self.parts[self.places.part(number)]
        planned = part.by_place(entries, plans)
        if planned is None:
            return NOT_IN_PLACE
        variables = self._enclosed_for.variables
        outcome = DONE
        moved: list[int] = []
        for entry, plan in planned.items():
            outcome = rewrite_entry(
                plan, kinds, cells, row, *part.packed, entry, variables, self._scratch
            )
            if outcome == MOVED:
                moved.append(entry)
            elif outcome != DONE:
                break
        part.note_changed(planned)
        if moved:
            self._enclose_moved(part.packed, np.array(moved, np.int32))
        if outcome == NOT_IN_PLACE and part.needs_lookup:
            return self._replace_rewritten(number, planned, kinds, cells, row)
        return DONE if outcome == MOVED else outcome

    def _replace_rewritten(
        self, number: int, plans: Mapping[int, I32], kinds: U8, cells: I64, row: int
    ) -> int:
        """Replace the entries of a subscription by copies, some of them changed by plans.

        For changes of a key. NOT_IN_PLACE if an entry is of a kind that is not copied.
        """
        part, entries = self.parts[self.places.part(number)], self.places.all(number)
        if len(entries) > COPIED_MAX:
            return NOT_IN_PLACE
        copies = self._copies
        end = 0
        for index, entry in enumerate(entries):
            count = copy_rewritten(
                plans.get(entry, NO_PLAN), kinds, cells, row, *part.packed, entry,
                copies.channel[end:], copies.low[end:], copies.high[end:],
                self._enclosed_for.variables, self._scratch,
            )  # fmt: skip
            if count < 0:
                return NOT_IN_PLACE
            end += count
            copies.first[index + 1] = end
            copies.flags[index] = part.flag(entry)
        copies.subscription[: len(entries)] = number
        copied = beginning(copies, len(entries))
        self.remove(number)
        if self._pending or not self._append(copied, NO_PROGRAM):
            self.add(deepcopy(copied))
        return DONE

    def rewrite_many(self, numbers: I32, planned: PlannedRows, cells: CellArrays) -> U8:
        """As ``rewrite`` for many subscriptions; returns the outcome of each."""
        outcomes: U8 = np.full(len(numbers), NOT_IN_PLACE, np.uint8)
        entries, parts = self.places.entry_of[numbers], self.places.part_of[numbers]
        alone = self.places.alone(numbers)
        for part in np.unique(parts[alone]).tolist():
            mine = np.flatnonzero(alone & (parts == part))
            outcome: U8 = np.zeros(len(mine), np.uint8)
            rewrite_entries(
                planned._replace(plan_of=planned.plan_of[mine], rows=planned.rows[mine]), cells,
                self.parts[part].packed, entries[mine], self._enclosed_for.variables, self._scratch,
                outcome,
            )  # fmt: skip
            moved = outcome == MOVED
            if moved.any():
                self._enclose_moved(self.parts[part].packed, entries[mine[moved]])
                outcome[moved] = DONE
            if self.parts[part].changed is not None:
                self.parts[part].note_changed(entries[mine].tolist())
            outcomes[mine] = outcome
        return outcomes

    def _enclose_moved(self, packed: PackedPart, entries: I32) -> None:
        """Write the envelopes of entries whose motions have changed, if there is a window."""
        times, variables = self._enclosed_for
        if len(times):
            enclose_moved(*packed, entries, times, variables, self._scratch)

    def pin(self, numbers: I32, pin: int) -> None:
        """Evaluate the functions of subscriptions, none pending, for another time."""
        times, variables = self._enclosed_for
        for number, entries in self.places.by_part(numbers):
            part = self.parts[number]
            pin_entries(*part.packed, entries, pin, times, variables, self._scratch)
            if part.changed is not None:  # asked here, because there may be many
                part.note_changed(entries.tolist())

    # -- snapshots ------------------------------------------------------------------------------

    def save(self, into: SectionWriter, name: str) -> None:
        """Add the index to a snapshot, under a name; it must be flushed."""
        into.array(f"{name}.part_of", self.places.part_of)
        into.array(f"{name}.entry_of", self.places.entry_of)
        into.note(f"{name}.lifetime", self.lifetime)
        into.note(f"{name}.parts", len(self.parts))
        # A window that is only coming is dropped. Some entries are enclosed for that one, so what
        # is left is for what both windows have.
        window = self._window
        if window is not None and self._coming is not None:
            window = window.common(self._coming)
        into.note(f"{name}.window", None if window is None else window.as_json())
        for number, each in enumerate(self.parts):
            for field in PackedPart._fields:
                into.array(f"{name}.part{number}.{field}", getattr(each.packed, field))

    @classmethod
    def load(
        cls, source: SectionReader, name: str, columns: int, sizes: IndexSizes = DEFAULT_SIZES
    ) -> Index:
        """The index of a snapshot, under a name; its arrays are those of the mapped file.

        ``columns`` are as many as any part needs.
        """
        index = cls(source.note(f"{name}.lifetime"), sizes)
        index.places = EntryPlaces(
            source.array(f"{name}.part_of"), source.array(f"{name}.entry_of")
        )
        index.parts = [
            IndexPart(
                PackedPart(
                    *(source.array(f"{name}.part{number}.{each}") for each in PackedPart._fields)
                ),
                index.lifetime,
                columns,
            )
            for number in range(source.note(f"{name}.parts"))
        ]
        for each in index.parts:
            index.places.note_several(each.part.subscription, each.part.flags)
            each.removed = int(np.count_nonzero(each.part.flags & GONE))
        window = source.note(f"{name}.window")
        index._set_windows(None if window is None else TimeWindow.of_json(window), None)
        return index
