"""Searching parts of the index for the entries that encoded events satisfy.

Two kernels do it, part by part. `match_events` (`match_flat` if there is nothing to look up) finds
all pairs whose bounds are satisfied; where
moving bounds are concerned it marks pairs as unsure that lie between the envelope and what surely
passes. `evaluate_unsure` then evaluates the functions of those.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter

import numpy as np

from tidegate.matching.arrays import F64, I64
from tidegate.matching.columnar.index_part import IndexPart
from tidegate.matching.columnar.kernels.evaluate import BLOCK_PAIRS, evaluate_unsure
from tidegate.matching.columnar.kernels.match import match_events, match_flat
from tidegate.matching.rows.encoding import Encoded
from tidegate.matching.rows.found_pairs import (
    NO_PAIRS,
    EntryPairs,
    ResultBuffers,
    concatenate_pairs,
    empty_pairs,
    in_event_order,
)
from tidegate.matching.rows.kernels.flags import UNSURE
from tidegate.matching.rows.kernels.programs import STACK_MAX
from tidegate.matching.rows.time_window import EventTimes, WindowLength


class PartSearch:
    """Finds pairs in parts; threads may search at the same time.

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
        times: EventTimes,
        variables: F64,
    ) -> tuple[EntryPairs, int]:
        """The pairs of an event and an entry that it satisfies, by event; and all their flags.

        ``times`` are the first and the last of ``times_us``.
        """
        found: list[EntryPairs] = []
        flags_seen = 0
        for part in parts:
            if part.may_match(times):
                pairs, flags = self._find_in(part, encoded, times_us, variables)
                found.append(pairs)
                flags_seen |= flags
        if len(found) == 1:
            return found[0], flags_seen
        pairs = concatenate_pairs(found) if found else NO_PAIRS
        return (in_event_order(pairs) if len(times_us) > 1 else pairs), flags_seen

    def _find_in(
        self, part: IndexPart, encoded: Encoded, times_us: I64, variables: F64
    ) -> tuple[EntryPairs, int]:
        # A guess that nearly always suffices; a kernel cannot grow its buffers.
        room = max(4096, 32 * len(times_us), 2 * part.cluster_entries_max)
        while True:
            events, numbers, flags = self._buffers.with_room_for(room)
            if part.needs_lookup:
                count, flags_seen = match_events(
                    *part.packed, encoded.matrix, encoded.set_first, encoded.set_value, events,
                    numbers, flags,
                )  # fmt: skip
            else:
                at, i32, _, f32, f64, _, _ = part.packed
                count, flags_seen = match_flat(
                    at, i32, f32, f64, encoded.matrix, encoded.set_first, encoded.set_value,
                    events, numbers, flags,
                )  # fmt: skip
            if count >= 0:
                break
            room = 2 * len(events)  # they were too small: search again with larger ones
        pairs = events[:count], numbers[:count], flags[:count]
        if flags_seen & UNSURE:
            return evaluated(part, encoded, times_us, variables, pairs, self._window_length)
        # copied, because the next search of this thread writes to the same buffers
        return (pairs[0].copy(), pairs[1].copy(), pairs[2].copy()), flags_seen


def evaluated(
    part: IndexPart,
    encoded: Encoded,
    times_us: I64,
    variables: F64,
    pairs: EntryPairs,
    window_length: WindowLength,
) -> tuple[EntryPairs, int]:
    """The pairs found in a part that match, after the unsure ones were evaluated, and their flags.

    The pairs that are given are overwritten. ``window_length`` receives the time that it takes.
    """
    start = perf_counter()
    at, i32, _, _, f64, _, _ = part.packed
    sure = empty_pairs(len(pairs[0]))
    count, flags_seen = evaluate_unsure(
        at, i32, f64, encoded.matrix, times_us, variables, np.empty(STACK_MAX),
        np.empty(BLOCK_PAIRS, np.int32), *pairs, *sure,
    )  # fmt: skip
    window_length.has_evaluated(perf_counter() - start)
    return (sure[0][:count], sure[1][:count], sure[2][:count]), flags_seen
