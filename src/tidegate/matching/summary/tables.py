"""Stand-in: the tables of a summary as a mapping of filters."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.language.filters import Filter


@dataclass(frozen=True, slots=True)
class SummaryTables:
    owners: tuple[str, ...]
    filters: tuple[tuple[str, int, Filter], ...]


NO_ENTRIES = SummaryTables((), ())
