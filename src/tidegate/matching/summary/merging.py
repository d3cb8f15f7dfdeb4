"""Stand-in: merged tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidegate.matching.summary.tables import SummaryTables


def merge(tables: Sequence[SummaryTables]) -> SummaryTables:
    owners = [owner for each in tables for owner in each.owners]
    assert len(set(owners)) == len(owners)
    filters = sorted((f for each in tables for f in each.filters), key=lambda each: each[:2])
    return SummaryTables(tuple(sorted(owners)), tuple(filters))


def restrict(tables: SummaryTables, owners: Collection[str]) -> SummaryTables:
    filters = tuple(each for each in tables.filters if each[0] in owners)
    return SummaryTables(tuple(sorted({each[0] for each in filters})), filters)
