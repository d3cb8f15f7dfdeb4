"""Files of subscriptions: `id` and `filter` and, where wanted, the other fields of a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.input_file import Advance, InputFile
from tidegate.cli.files.rows import RowLayout, read_rows
from tidegate.errors import TidegateError
from tidegate.matching.engine import Engine
from tidegate.matching.records import FIELDS, SubscriptionRecord

AT_ONCE_MAX = 100_000

_LAYOUT = RowLayout("a subscription", FIELDS, ("id", "filter"), SubscriptionRecord.of)

Numbered = tuple[int, SubscriptionRecord]
"""A subscription and the number of its row in the file."""


def read_subscriptions(file: InputFile, bad: BadLines, advance: Advance) -> Iterator[Numbered]:
    """The subscriptions of a file."""
    return read_rows(file, _LAYOUT, bad, advance)


def subscribe_all(engine: Engine, file: InputFile, bad: BadLines, advance: Advance) -> None:
    """Give an engine all subscriptions of a file."""
    records = read_subscriptions(file, bad, advance)
    while some := list(islice(records, AT_ONCE_MAX)):
        for number, error in subscribe(engine, some):
            bad.add(file, number, error)


def subscribe(engine: Engine, some: Sequence[Numbered]) -> list[tuple[int, TidegateError]]:
    """Give an engine some subscriptions; gives back what is wrong with the others, by number."""
    try:
        engine.subscribe_records([record for _, record in some])
        return []
    except TidegateError as error:
        if len(some) == 1:
            return [(some[0][0], error)]
    # An engine takes all or none. Halves find the few bad ones without asking one by one.
    middle = len(some) // 2
    return subscribe(engine, some[:middle]) + subscribe(engine, some[middle:])
