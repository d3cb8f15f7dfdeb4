"""Building a part beside the index: a layout or a merge that nobody waits for.

Laying out a million entries takes seconds. Readers need not wait for it, because the old parts stay
right; and a change is small. So a new part is made in steps, between which others go on:

1. The entries of the old parts are copied, piece by piece, each under the shared lock. From the
   beginning on the old parts note which of their entries change.
2. The copy is laid out, and its moving bounds are enclosed for a time window that reaches further
   than that of the index. No lock is held.
3. Entries that have changed are brought up to date, piece by piece, under the shared lock: as a
   reader, which keeps writers out of the old parts.
4. When few are left, the lock is held alone: the last ones are brought up to date, and the new part
   takes the place of the old ones.

Rules. (1) What is copied is the state of an entry, not the change: so it does not matter how often
an entry changed, nor whether it did before or after its piece was copied. (2) An entry keeps its
number of the subscription. The number of a removed one may be given out again meanwhile, but its
new entries are in other parts: only parts that were there in the beginning are replaced. (3) If the
window of the index has left that of the new part when it is ready, step 2 encloses it again, for a
longer one. (4) A bound that was a single value when it was copied may be a key of the new part, and
another value by now; that subscription gets a new entry from its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tidegate.matching.arrays import I32, I64, U8
from tidegate.matching.columnar.index import Index
from tidegate.matching.columnar.index_part import IndexPart
from tidegate.matching.columnar.kernels.layout import lay_out, take_out
from tidegate.matching.columnar.kernels.part import pack
from tidegate.matching.columnar.kernels.rewrite import copy_changes
from tidegate.matching.columnar.sizes import IndexSizes
from tidegate.matching.rows.kernels.entry_lists import Entries, concatenate
from tidegate.matching.rows.kernels.envelopes import WindowArrays
from tidegate.matching.rows.kernels.flags import GONE, ORDINAL_SHIFT, SHARED
from tidegate.matching.rows.kernels.plan_values import SCRATCH_FLOATS
from tidegate.matching.rows.kernels.rewrite_plan import NOT_IN_PLACE
from tidegate.matching.rows.locks import SharedLock
from tidegate.matching.rows.time_window import TimeWindow

REACH_MAX = 16
"""A new part is enclosed for up to so many lengths of a time window ahead; then while all wait."""


class PartBuild:
    """A new part for neighbouring parts of an index, made step by step.

    ``reindex`` gives subscriptions new entries from their rows. Make it with the lock held alone.
    """

    def __init__(
        self,
        index: Index,
        old: list[IndexPart],
        program: I32,
        sizes: IndexSizes,
        reindex: Callable[[I32], None],
    ) -> None:
        self._index = index
        self._old = old
        self._program = program
        self._sizes = sizes
        self._reindex = reindex
        self._done = [0] * len(old)
        """How many of the noted changes of each old part the new part has."""
        self._window: TimeWindow | None = None
        """The window for which the new part is enclosed."""
        self._place_of: I32 = np.zeros(0, np.int32)
        """By number of a subscription with one entry: the place of its copy, or -1."""
        self._places_of: dict[int, list[int]] = {}
        """The places of the copies of subscriptions with several entries."""
        self._misfits: set[int] = set()
        """The places of copies whose key is another one by now."""
        self._scratch = np.empty(SCRATCH_FLOATS)
        for each in old:
            each.changed = []

    def __len__(self) -> int:
        return sum(map(len, self._old))

    def abandon(self) -> None:
        """Leave the old parts as they are; hold the lock alone."""
        for each in self._old:
            each.changed = None

    def is_abandoned(self) -> bool:
        """Whether some of the old parts are in the index no more, or nobody notes their changes."""
        return any(each.changed is None for each in self._old)

    def steps(self, lock: SharedLock, pause: Callable[[], object]) -> Iterator[None]:
        """Do it, and stop between the steps; ``pause`` is called where no lock is held."""
        try:
            yield from self._steps(lock, pause)
        finally:
            self.abandon()  # if it is not done: nobody needs to note changes any more

    def _steps(self, lock: SharedLock, pause: Callable[[], object]) -> Iterator[None]:
        copied: list[Entries] = []
        for each in self._old:
            for begin in range(0, max(1, len(each)), self._sizes.piece_entries):
                with lock.shared():
                    if self.is_abandoned():
                        return
                    copied.append(take_out(each.part, begin, begin + self._sizes.piece_entries))
                yield
        entries = concatenate(copied)
        copied.clear()
        pause()
        new = IndexPart(pack(lay_out(entries, self._program, self._sizes.layout, pause)))
        del entries
        self._note_places(new)
        yield
        reach = 1
        while not self.is_abandoned():
            with lock.shared():
                self._window = self._window_ahead(reach)
            if self._window is not None and new.has_motion:
                new.enclose(0, len(new), self._arrays())
            yield
            while self._bring_up_to_date(lock, new):
                yield
            with lock:
                if self.is_abandoned():
                    return
                self._copy(new, None)
                if not self._is_enclosed(new) and reach > REACH_MAX:
                    self._window = self._window_ahead(0)
                    new.enclose(0, len(new), self._arrays())
                if self._is_enclosed(new):
                    self._replace(new)
                    return
            reach *= 2

    # -- windows ----------------------------------------------------------------------------------

    def _window_ahead(self, lengths: int) -> TimeWindow | None:
        """The windows of the index, extended by some times their length."""
        window, coming = self._index.window, self._index.coming
        if window is None:
            return None
        both = window if coming is None else window.hull(coming)
        return replace(both, end=both.end + lengths * max(0, window.end - window.begin))

    def _is_enclosed(self, new: IndexPart) -> bool:
        """Whether the new part is enclosed for the windows of the index."""
        if not new.has_motion or self._index.window is None:
            return True
        needed = (self._index.window, self._index.coming or self._index.window)
        return self._window is not None and all(map(self._window.includes, needed))

    def _arrays(self) -> WindowArrays:
        if self._window is None:
            return WindowArrays(np.zeros(0, np.int64), np.zeros((2, 1)))
        return WindowArrays(self._window.times, self._window.variables)

    # -- changes ----------------------------------------------------------------------------------

    def _note_places(self, new: IndexPart) -> None:
        owners, flags = new.part.subscription, new.part.flags
        self._place_of = np.full(owners.max(initial=-1) + 1, -1, np.int32)
        self._place_of[owners] = np.arange(len(owners))
        for place in np.flatnonzero(flags & SHARED).tolist():
            self._places_of.setdefault(owners.item(place), []).append(place)

    def _bring_up_to_date(self, lock: SharedLock, new: IndexPart) -> bool:
        """Copy one piece of the changes; returns whether there is another whole piece."""
        with lock.shared():
            if self.is_abandoned():
                return False
            self._copy(new, self._sizes.piece_entries)
            left = sum(len(each.changed or ()) for each in self._old) - sum(self._done)
            return left > self._sizes.piece_entries

    def _copy(self, new: IndexPart, limit: int | None) -> None:
        """Copy the state of entries that were noted, up to a limit for each old part."""
        for number, old in enumerate(self._old):
            assert old.changed is not None
            begin = self._done[number]
            noted = old.changed[begin : None if limit is None else begin + limit]
            self._done[number] += len(noted)
            entries, places = self._pairs(old, np.unique(np.array(noted, np.int64)), new)
            outcomes: U8 = np.zeros(len(entries), np.uint8)
            copy_changes(
                old.packed, new.packed, entries, places, self._arrays(), self._scratch, outcomes
            )
            self._misfits.difference_update(places[outcomes != NOT_IN_PLACE].tolist())
            self._misfits.update(places[outcomes == NOT_IN_PLACE].tolist())

    def _pairs(self, old: IndexPart, entries: I64, new: IndexPart) -> tuple[I64, I64]:
        """Changed entries of an old part, and the places of their copies, as pairs."""
        owners, flags = old.part.subscription[entries], old.part.flags[entries]
        alone = (flags & SHARED == 0) & (owners < len(self._place_of))
        sources, places = entries[alone], self._place_of[owners[alone]].astype(np.int64)
        sources, places = sources[places >= 0], places[places >= 0]
        more: list[tuple[int, int]] = []
        for entry, owner, flag in zip(
            *(each[flags & SHARED != 0].tolist() for each in (entries, owners, flags)), strict=True
        ):
            places_of = self._places_of.get(owner, ())
            ordinal = flag >> ORDINAL_SHIFT
            if flag & GONE:
                self._places_of.pop(owner, None)
            elif ordinal:
                places_of = [
                    each for each in places_of if new.flag(each) >> ORDINAL_SHIFT == ordinal
                ]
            more += [(entry, place) for place in places_of]
        extra = np.array(more, np.int64).reshape(-1, 2)
        return np.concatenate([sources, extra[:, 0]]), np.concatenate([places, extra[:, 1]])

    def _replace(self, new: IndexPart) -> None:
        self._index.replace(self._old, new, self._places_of)
        if self._misfits:
            self._reindex(np.unique(new.part.subscription[sorted(self._misfits)]))
