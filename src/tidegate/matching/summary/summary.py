"""Stand-in: a mutable summary."""

from __future__ import annotations

from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.matching.summary.tables import SummaryTables


class Summary:
    def __init__(self, budget: object = None) -> None:
        self._filters: dict[tuple[str, int], Filter] = {}

    def add(self, owner: str, number: int, filter: Filter) -> None:
        assert (owner, number) not in self._filters
        self._filters[owner, number] = filter

    def remove(self, owner: str, number: int) -> None:
        del self._filters[owner, number]

    def replace(self, owner: str, number: int, filter: Filter) -> None:
        assert (owner, number) in self._filters
        self._filters[owner, number] = filter

    def tables(self) -> SummaryTables:
        filters = sorted(((o, n, f) for (o, n), f in self._filters.items()), key=lambda e: e[:2])
        return SummaryTables(tuple(sorted({each[0] for each in filters})), tuple(filters))


class SummaryIndex:
    def __init__(self, tables: SummaryTables) -> None:
        self._tables = tables

    def owners_matching(self, event: Event) -> set[str]:
        return {owner for owner, _, filter in self._tables.filters if filter.matches(event)}
