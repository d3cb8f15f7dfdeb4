"""What a matcher can do that lets filters go by a version of some time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tidegate.matching.matcher import Matcher


class HoldingMatcher(Matcher, Protocol):
    """A matcher that filters may ask to be judged as of another time than that of the event."""

    def hold(self, ids: Sequence[str], micros: int | None) -> None:
        """Have filters that are `Cached` go by their version of a time; None if they have none.

        An event of an earlier time is judged at its own. Raises KeyError for one that is not there.
        """
        ...
