"""Searching a tree: the entries that events satisfy, and the links of an event.

Kernels write what they find into buffers; if these are full, the search is repeated with larger
ones. Pairs whose functions of time are unsure are evaluated afterwards.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64
from tidegate.matching.matcher import COLLECTED
from tidegate.matching.rows.encoding import Encoded
from tidegate.matching.rows.found_pairs import EntryPairs, ResultBuffers
from tidegate.matching.rows.kernels.programs import STACK_MAX
from tidegate.matching.rows.link_words import LINK_BITS, as_int, as_words
from tidegate.matching.tree.kernels.layout import H_LEVELS
from tidegate.matching.tree.kernels.search import evaluate_pairs, match_events, match_links
from tidegate.matching.tree.kernels.splitting import CUTS_MAX
from tidegate.matching.tree.storage import TreeStorage

FIRST_PAIRS = 4_096
"""Pairs that a search has room for at first."""


class TreeSearch:
    """Runs the kernels that search a tree; threads may search at once."""

    def __init__(self, storage: TreeStorage) -> None:
        self._storage = storage
        self._buffers = ResultBuffers()

    def find(
        self, encoded: Encoded, times_us: I64, variables: F64, program: I32
    ) -> tuple[EntryPairs, int, int]:
        """The pairs of an event and an entry that it satisfies, by event, all their flags, and the
        steps. Pairs have the numbers of the subscriptions.
        """
        events, entries, flags = self._buffers.with_room_for(FIRST_PAIRS)
        stack, tree = self._stack(), self._storage.arrays
        while True:
            count, _, steps = match_events(
                tree.node, tree.slot, tree.path, tree.entry, tree.bound, encoded.matrix,
                encoded.set_first, encoded.set_value, stack, events, entries, flags,
            )  # fmt: skip
            if count >= 0:
                break
            events, entries, flags = self._buffers.with_room_for(2 * len(events))
        kept, seen = self._evaluated(
            encoded, times_us, variables, program, (events[:count], entries[:count], flags[:count])
        )
        return (events[:kept].copy(), entries[:kept].copy(), flags[:kept].copy()), seen, steps

    def find_links(
        self, encoded: Encoded, times_us: I64, variables: F64, program: I32, mask: int
    ) -> tuple[int, EntryPairs, int]:
        """The links of one event that are found Yes, the entries to look at, and the steps.

        The entries, given as pairs with the numbers of their subscriptions, are those with the link
        COLLECTED, and those that are to be verified.
        """
        words = self._storage.link_words
        known = mask & ((1 << (words * LINK_BITS)) - 1)
        events, entries, flags = self._buffers.with_room_for(FIRST_PAIRS)
        stack = self._stack()
        while True:
            undecided = as_words(known, words)
            count, steps = match_links(
                self._storage.arrays, encoded.matrix, encoded.set_first, encoded.set_value, stack,
                undecided, mask & COLLECTED, entries, flags,
            )  # fmt: skip
            if count >= 0:
                break
            events, entries, flags = self._buffers.with_room_for(2 * len(events))
        events[:count] = 0
        pairs = events[:count], entries[:count], flags[:count]
        kept, _ = self._evaluated(encoded, times_us, variables, program, pairs)
        found = known & ~as_int(undecided)
        return found, (events[:kept].copy(), entries[:kept].copy(), flags[:kept].copy()), steps

    def _evaluated(
        self,
        encoded: Encoded,
        times_us: I64,
        variables: F64,
        program: I32,
        pairs: EntryPairs,
    ) -> tuple[int, int]:
        """Evaluate unsure pairs in place; returns how many are left, and their flags."""
        tree = self._storage.arrays
        kept, seen = evaluate_pairs(
            tree.entry, tree.motion, program, encoded.matrix, times_us, variables,
            np.empty(STACK_MAX), *pairs,
        )  # fmt: skip
        return kept, seen

    def _stack(self) -> I32:
        # a node leaves at most two branches waiting, and a way has a node for each level and cut
        levels = int(self._storage.arrays.head[H_LEVELS])
        return np.empty(2 * (CUTS_MAX + 1) * (levels + 1) + 8, np.int32)
