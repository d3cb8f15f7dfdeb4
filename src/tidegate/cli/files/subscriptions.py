"""Files of subscriptions: `id`, `filter`, and optionally the other fields of a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.hints import Hints
from tidegate.cli.files.input_file import Advance, InputFile
from tidegate.cli.files.rows import RowLayout, read_rows
from tidegate.errors import TidegateError
from tidegate.matching.engine import Engine
from tidegate.matching.records import FIELDS, SubscriptionRecord

AT_ONCE_MAX = 100_000
"""Number of subscriptions that are given to an engine at once, which bounds memory."""

_LAYOUT = RowLayout("a subscription", FIELDS, ("id", "filter"), SubscriptionRecord.of)

Numbered = tuple[int, SubscriptionRecord]
"""A subscription and the number of its row in the file."""


def read_subscriptions(file: InputFile, bad: BadLines, advance: Advance) -> Iterator[Numbered]:
    """The subscriptions of a file."""
    return read_rows(file, _LAYOUT, bad, advance)


def subscribe_all(
    engine: Engine, file: InputFile, bad: BadLines, hints: Hints, advance: Advance
) -> None:
    """Add all subscriptions of a file to an engine; the refused ones are collected in ``bad``."""
    rows = read_subscriptions(file, bad, advance)
    while chunk := list(islice(rows, AT_ONCE_MAX)):
        refused = dict(subscribe(engine, chunk))
        for number, error in refused.items():
            bad.add(file, number, error)
        hints.add_subscriptions(
            engine.get(record.id) for number, record in chunk if number not in refused
        )


def subscribe(engine: Engine, rows: Sequence[Numbered]) -> list[tuple[int, TidegateError]]:
    """Add subscriptions to an engine; returns the refused ones as (row number, error)."""
    try:
        engine.subscribe_records([record for _, record in rows])
        return []
    except TidegateError as error:
        if len(rows) == 1:
            return [(rows[0][0], error)]
    # An engine accepts all records or none. Bisection finds the few bad ones and keeps the speed of
    # bulk parsing for the others.
    middle = len(rows) // 2
    return subscribe(engine, rows[:middle]) + subscribe(engine, rows[middle:])
