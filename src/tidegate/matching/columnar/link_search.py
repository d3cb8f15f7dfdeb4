"""Searching parts of the index for the links of an event.

The kernel `match_links` decides links part by part. What it cannot decide it writes as entries;
`evaluate_unsure` evaluates the functions of those that move, as for a search for subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from tidegate.matching.arrays import F64, I64
from tidegate.matching.columnar.index_part import IndexPart
from tidegate.matching.columnar.kernels.match_links import (
    S_COUNT,
    S_FLAGS,
    S_LEFT,
    S_STEPS,
    SCRATCH_WORDS,
    STATE_WORDS,
    match_links,
)
from tidegate.matching.columnar.search import evaluated
from tidegate.matching.rows.encoding import Encoded
from tidegate.matching.rows.found_pairs import (
    NO_PAIRS,
    EntryPairs,
    ResultBuffers,
    concatenate_pairs,
)
from tidegate.matching.rows.kernels.flags import UNSURE
from tidegate.matching.rows.time_window import WindowLength

FIRST_PAIRS = 1_024
"""Entries that a search has room for at first."""


class LinkSearch:
    """Finds links in parts; threads may search at the same time.

    ``window_length`` receives the time spent evaluating functions.
    """

    def __init__(self, window_length: WindowLength) -> None:
        self._window_length = window_length
        self._buffers = ResultBuffers()

    def find(
        self,
        parts: Iterable[IndexPart],
        encoded: Encoded,
        times_us: I64,
        variables: F64,
        mask: int,
    ) -> tuple[int, EntryPairs, int]:
        """The links of one event that are found, the entries to look at, and the steps.

        The entries, given as pairs with the numbers of their subscriptions, are those with the link
        COLLECTED, and those that are to be verified.
        """
        undecided = _numbers_of(mask).copy()
        state = np.zeros(STATE_WORDS, np.int64)
        state[S_LEFT] = len(undecided)
        found: list[EntryPairs] = []
        for part in parts:
            if state.item(S_LEFT) == 0:
                break
            if part.link_bits is None or not len(part):
                continue
            pairs = self._find_in(part, encoded, times_us, variables, undecided, state)
            if pairs is not None:
                found.append(pairs)
        for link in undecided[: state[S_LEFT]].tolist():
            mask ^= 1 << link
        if len(found) == 1:
            return mask, found[0], state.item(S_STEPS)
        return mask, concatenate_pairs(found) if found else NO_PAIRS, state.item(S_STEPS)

    def _find_in(
        self,
        part: IndexPart,
        encoded: Encoded,
        times_us: I64,
        variables: F64,
        undecided: I64,
        state: I64,
    ) -> EntryPairs | None:
        """The entries of a part to look at; None if there are none."""
        assert part.link_bits is not None
        # an event falls into one cluster of a group, or into one for each member of a set
        pairs_max = 1 + len(encoded.set_value)
        pair_event, pair_cluster = np.empty(pairs_max, np.int32), np.empty(pairs_max, np.int32)
        scratch = np.empty(SCRATCH_WORDS, np.uint64)
        events, numbers, flags = self._buffers.with_room_for(FIRST_PAIRS)
        state[S_COUNT] = 0
        while not match_links(
            *part.packed, *encoded, *part.link_bits, undecided, state, pair_event, pair_cluster,
            scratch, numbers, flags,
        ):  # fmt: skip
            # no room: again with larger buffers; what is decided stays decided
            events, numbers, flags = self._buffers.with_room_for(2 * len(events))
            state[S_COUNT] = 0
        count = state.item(S_COUNT)
        if not count:
            return None
        pairs = events[:count], numbers[:count], flags[:count]
        events[:count] = 0
        if state.item(S_FLAGS) & UNSURE:
            sure, _ = evaluated(part, encoded, times_us, variables, pairs, self._window_length)
            return sure
        return pairs[0].copy(), pairs[1].copy(), pairs[2].copy()


@lru_cache(maxsize=1024)
def _numbers_of(links: int) -> I64:
    """The numbers of the links in a set, ascending; a broker has a mask for each spanning tree."""
    return np.array([at for at in range(links.bit_length()) if links >> at & 1], np.int64)
