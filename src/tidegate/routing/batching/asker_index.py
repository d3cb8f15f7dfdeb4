"""The askers of the nodes that a matcher finds, in arrays by the matcher's numbers."""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import I32, I64
from tidegate.routing.batching.asker_codes import AskerPairs

_SEVERAL = -1
"""In place of a code: the number has not just one asker."""


class AskerIndex:
    """Codes of askers (see `asker_codes`) by number; most numbers have one asker.

    >>> index = AskerIndex()
    >>> index.put(0, np.array([7]))
    >>> index.put(2, np.array([8, 9]))
    >>> events, codes = index.pairs(np.array([4, 5]), np.array([0, 2]))
    >>> events.tolist(), codes.tolist()
    ([4, 5, 5], [7, 8, 9])
    """

    def __init__(self) -> None:
        self._single: I64 = np.full(16, _SEVERAL, np.int64)
        self._several: dict[int, I64] = {}

    def put(self, number: int, codes: I64) -> None:
        """Set the askers of a number, in place of those that it had."""
        while number >= len(self._single):
            more = np.full(len(self._single), _SEVERAL, np.int64)
            self._single = np.concatenate([self._single, more])
        if len(codes) == 1:
            self._single[number] = codes[0]
            self._several.pop(number, None)
        else:
            self._single[number] = _SEVERAL
            self._several[number] = codes

    def pairs(self, events: I32 | I64, numbers: I32) -> AskerPairs:
        """The pairs of an event and an asker, for pairs of an event and a number."""
        events = events.astype(np.int32, copy=False)
        codes = self._single[numbers]
        is_several = codes == _SEVERAL
        if not is_several.any():
            return events, codes
        lists = [self._several[each] for each in numbers[is_several].tolist()]
        repeated = np.repeat(events[is_several], [len(each) for each in lists])
        return (
            np.concatenate([events[~is_several], repeated]),
            np.concatenate([codes[~is_several], *lists]),
        )
