"""Perfect merging: filters that go to the same place are sent as one where that is exact.

`price < 5` and `price between 5 and 9` are sent as `price <= 9`. Only what loses nothing is merged,
so no event goes further because of it; what it saves is entries in the tables of other brokers.
What would be over the limits of filters stays apart, because others would refuse it.

Theory of operation. The filters for one place are in groups, each of which has a merged filter. A
new one joins the first group with which it can be merged, and the result is tried with the others
again. When one goes, its group is given up, and the rest of it is placed anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.language.filters import Filter
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.routing.checks import too_large


@dataclass(frozen=True, slots=True)
class _MergedFilter:
    """Filters, and one that matches what any of them does."""

    merged: WantedFilter
    members: tuple[PosetNode[WantedFilter], ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(sorted(self.merged.attributes))


class MergedFilters:
    """The filters that go to one place."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._groups: dict[int, _MergedFilter] = {}
        self._group_of: dict[PosetNode[WantedFilter], int] = {}
        self._alike: dict[tuple[str, ...], dict[int, None]] = {}
        """The groups by the attributes that they constrain: only such can be merged."""
        self._made = 0

    def change(
        self,
        gone: Iterable[PosetNode[WantedFilter]],
        new: Iterable[PosetNode[WantedFilter]],
        altered: Iterable[PosetNode[WantedFilter]],
    ) -> tuple[list[int], list[tuple[int, WantedFilter]]]:
        """Take filters out and in; gives the groups that are no more, and those that are new."""
        before = set(self._groups)
        to_place = dict.fromkeys(new)
        for node in altered:
            number = self._group_of.get(node)
            if number is not None:
                to_place.update(dict.fromkeys(self._give_up(number).members))
        for node in gone:
            number = self._group_of.get(node)
            if number is not None:
                to_place.update(dict.fromkeys(self._give_up(number).members))
            to_place.pop(node, None)
        for node in to_place:
            self._place(_MergedFilter(node.item, (node,)))
        dropped = [number for number in before if number not in self._groups]
        added = [
            (number, group.merged) for number, group in self._groups.items() if number not in before
        ]
        return sorted(dropped), added

    def _place(self, group: _MergedFilter) -> None:
        """Merge a group with all that it can be merged with."""
        while (found := self._mergeable(group)) is not None:
            number, merged = found
            group = _MergedFilter(merged, self._give_up(number).members + group.members)
        self._made += 1
        self._groups[self._made] = group
        self._alike.setdefault(group.attributes, {})[self._made] = None
        for node in group.members:
            self._group_of[node] = self._made

    def _mergeable(self, group: _MergedFilter) -> tuple[int, Filter] | None:
        if not isinstance(group.merged, Filter):
            return None  # what moves is sent as it is
        for number in self._alike.get(group.attributes, ()):
            other = self._groups[number].merged
            if not isinstance(other, Filter):
                continue
            merged = other.merge(group.merged)
            if merged.exact and too_large(merged.filter, self._limits) is None:
                return number, merged.filter
        return None

    def _give_up(self, number: int) -> _MergedFilter:
        group = self._groups.pop(number)
        alike = self._alike[group.attributes]
        del alike[number]
        if not alike:
            del self._alike[group.attributes]
        for node in group.members:
            del self._group_of[node]
        return group
