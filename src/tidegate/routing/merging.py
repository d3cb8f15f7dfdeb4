"""Perfect merging: filters for the same destination are sent as one filter where that is exact.

`price < 5` and `price between 5 and 9` are sent as `price <= 9`. Rules.

(1) A merged filter matches exactly the events that some of its members match. So no event goes
    further because of merging; what it saves is entries in the tables of other brokers.
(2) A merged filter that exceeds the limits of a filter is not made: the neighbour would refuse it.
(3) Evolving filters are sent as they are.

Theory of operation. The filters of one destination are in groups, each with its merged filter. A
new filter joins the first group with which it can be merged, and the result is tried with the other
groups again. When a member leaves or changes, its group is dissolved and the other members are
placed again: what they merge into cannot be computed from the merged filter. A group gets a new
number whenever it changes, so the outbox sees a removed and a new item; if they have the same
structure it still sends an update. Which filters are merged depends on the order in which they
came, so two brokers with the same filters may send different ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.language.filters import Filter
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.routing.validation import size_problem


@dataclass(frozen=True, slots=True)
class _MergedFilter:
    """A group of nodes, and one filter that matches what any of their filters matches."""

    merged: WantedFilter
    members: tuple[PosetNode[WantedFilter], ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(sorted(self.merged.attributes))


class MergedFilters:
    """The wire form of one destination in which filters are merged (see `outbox.WireForm`)."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._groups: dict[int, _MergedFilter] = {}
        self._group_of: dict[PosetNode[WantedFilter], int] = {}
        self._by_attributes: dict[tuple[str, ...], dict[int, None]] = {}
        """The numbers of the groups by the attributes they constrain, which must be the same for
        two filters to be merged."""
        self._last_number = 0

    def change(
        self,
        removed: Iterable[PosetNode[WantedFilter]],
        added: Iterable[PosetNode[WantedFilter]],
        updated: Iterable[PosetNode[WantedFilter]],
    ) -> tuple[list[int], list[tuple[int, WantedFilter]]]:
        """Change the filters of the destination.

        Returns the numbers of the groups that were dissolved, and the number and merged filter of
        each new group.
        """
        before = set(self._groups)
        to_place = dict.fromkeys(added)
        for node in updated:
            number = self._group_of.get(node)
            if number is not None:
                to_place.update(dict.fromkeys(self._dissolve(number).members))
        for node in removed:
            number = self._group_of.get(node)
            if number is not None:
                to_place.update(dict.fromkeys(self._dissolve(number).members))
            to_place.pop(node, None)
        for node in to_place:
            self._place(_MergedFilter(node.item, (node,)))
        dissolved = [number for number in before if number not in self._groups]
        new = [
            (number, group.merged) for number, group in self._groups.items() if number not in before
        ]
        # Sorted, because the order of a set must not show in the order of messages.
        return sorted(dissolved), new

    def _place(self, group: _MergedFilter) -> None:
        """Add a group, merged with as many other groups as possible."""
        while (mergeable := self._mergeable(group)) is not None:
            number, merged = mergeable
            group = _MergedFilter(merged, self._dissolve(number).members + group.members)
        self._last_number += 1
        self._groups[self._last_number] = group
        self._by_attributes.setdefault(group.attributes, {})[self._last_number] = None
        for node in group.members:
            self._group_of[node] = self._last_number

    def _mergeable(self, group: _MergedFilter) -> tuple[int, Filter] | None:
        """The number of the first group that can be merged with this one, and the merged filter."""
        if not isinstance(group.merged, Filter):
            return None
        for number in self._by_attributes.get(group.attributes, ()):
            other = self._groups[number].merged
            if not isinstance(other, Filter):
                continue
            merged = other.merge(group.merged)
            if merged.exact and size_problem(merged.filter, self._limits) is None:
                return number, merged.filter
        return None

    def _dissolve(self, number: int) -> _MergedFilter:
        group = self._groups.pop(number)
        same_attributes = self._by_attributes[group.attributes]
        del same_attributes[number]
        if not same_attributes:
            del self._by_attributes[group.attributes]
        for node in group.members:
            del self._group_of[node]
        return group
