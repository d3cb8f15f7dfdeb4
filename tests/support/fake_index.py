"""An index that finds what a test says, and a lock and variables that record their use."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from tidegate.language.values import Value
from tidegate.matching.arrays import F64, I64
from tidegate.matching.rows.encoding import Encoded
from tidegate.matching.rows.found_pairs import EntryPairs
from tidegate.matching.rows.locks import SharedLock
from tidegate.matching.rows.time_window import EventTimes, TimeWindow

Pair = tuple[int, int, int]
"""An event, the number of a subscription, and flags."""


def pairs_of(listed: Iterable[Pair]) -> EntryPairs:
    """Pairs as the kernels return them."""
    events, numbers, flags = np.array(list(listed), np.int64).reshape(-1, 3).T
    return events.astype(np.int32), numbers.astype(np.int32), flags.astype(np.uint8)


class RecordedLock(SharedLock):
    """A lock that writes to a log when it is taken and released."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self._log = log

    def share(self) -> None:
        super().share()
        self._log.append("share")

    def unshare(self) -> None:
        self._log.append("unshare")
        super().unshare()

    def __enter__(self) -> None:
        super().__enter__()
        self._log.append("alone")

    def __exit__(self, *error: object) -> None:
        self._log.append("release")
        super().__exit__(*error)


class WatchedVariables(dict[str, Value]):
    """Variables that count lookups, and raise KeyError for a name that they do not have."""

    def __init__(self, **values: Value) -> None:
        super().__init__(values)
        self.lookups = 0

    def get(self, name: str, default: object = None) -> Value:
        del default
        self.lookups += 1
        return self[name]


class FakeIndex:
    """Finds the pairs that ``finds`` returns for the times of events, and records its calls.

    ``enclosed`` has what the next calls of ``is_enclosed`` return; later ones return True. So has
    ``behind`` for ``is_behind``, later ones return False.
    """

    def __init__(self, log: list[str], finds: Callable[[I64], Iterable[Pair]]) -> None:
        self._log = log
        self._finds = finds
        self.is_flushed = True
        self.enclosed: list[bool] = []
        self.behind: list[bool] = []
        self.windows: list[tuple[TimeWindow, bool]] = []

    def flush(self) -> None:
        self._log.append("flush")
        self.is_flushed = True

    def is_enclosed(self, times: EventTimes, variables: F64) -> bool:
        del times, variables
        return self.enclosed.pop(0) if self.enclosed else True

    def enclose(self, needed: TimeWindow, *, contended: bool = False) -> None:
        self._log.append("enclose")
        self.windows.append((needed, contended))

    def is_behind(self, times: EventTimes) -> bool:
        del times
        return self.behind.pop(0) if self.behind else False

    def keep_up(self, needed: TimeWindow) -> None:
        self._log.append("keep up")
        self.windows.append((needed, False))

    def find(
        self, encoded: Encoded, times_us: I64, times: EventTimes, variables: F64
    ) -> tuple[EntryPairs, int]:
        del times, variables
        assert len(encoded.matrix) == len(times_us)
        self._log.append("find")
        found = list(self._finds(times_us))
        return pairs_of(found), int(np.bitwise_or.reduce([flags for *_, flags in found] or [0]))
