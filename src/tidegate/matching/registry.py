"""The matchers by the names that users choose them with. A new matcher is one entry here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.errors import SubscriptionError
from tidegate.matching.columnar.matcher import ColumnarMatcher
from tidegate.matching.evolving.lazy import LazyMatcher
from tidegate.matching.evolving.periodic import PeriodicMatcher
from tidegate.matching.matcher import PinningMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.poset.matcher import PosetMatcher
from tidegate.matching.rete.matcher import ReteMatcher
from tidegate.matching.summary.matcher import SummaryMatcher
from tidegate.matching.tree.matcher import TreeMatcher


@dataclass(frozen=True, slots=True)
class MatcherEntry:
    """How a matcher is made, complete with the wrappers it needs for evolving filters."""

    make: Callable[[], PinningMatcher]
    parses_in_bulk: bool = True
    """Whether many filters are parsed together, by shape. The oracle parses each by itself, so that
    an error of the bulk parser shows as a difference between matchers."""


MATCHERS: dict[str, MatcherEntry] = {
    "columnar": MatcherEntry(ColumnarMatcher),
    "naive": MatcherEntry(NaiveMatcher, parses_in_bulk=False),
    # orders static filters only: `LazyMatcher` gives it the static part of each
    "poset": MatcherEntry(lambda: PeriodicMatcher(LazyMatcher(PosetMatcher()))),
    "tree": MatcherEntry(TreeMatcher),
    # sums up static filters only, as the poset orders them
    "summary": MatcherEntry(lambda: PeriodicMatcher(LazyMatcher(SummaryMatcher()))),
    # evaluates at the time of the event, which is wrong for pinned and for periodic filters only
    "rete": MatcherEntry(lambda: PeriodicMatcher(LazyMatcher(ReteMatcher(), only_cached=True))),
}


def matcher_entry(name: str) -> MatcherEntry:
    """The entry of a matcher; raises SubscriptionError that lists the choices."""
    if name not in MATCHERS:
        raise SubscriptionError(
            f"there is no matcher {name!r}; there are {', '.join(sorted(MATCHERS))}"
        )
    return MATCHERS[name]
