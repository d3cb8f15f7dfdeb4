"""Sizes of summaries: bytes on the wire beside equations (1) and (2) of the paper.

"Subscription Summarization", 5.1 and 5.2. Subscriptions are drawn as there: of 10 attributes,
4 arithmetic and 6 of strings, each names half, and a constraint is subsumed with a probability. A
subsumed one falls into one of two ranges, or into one of two prefixes; another one is an equality
with a value of its own, a price in cents, or a text of 10 characters.

Two other workloads have no such ranges. In `cuts` every arithmetic constraint is a range between
two of 64 bounds, so an entry is a member of a run of rows (as where a budget limits the rows); in
`exact` the bounds are random prices in cents, so nearly every range begins rows of its own. There
the members are as many as the square of the subscriptions, so it is measured for one broker only.

For each set of subscriptions there is one summary of all brokers, and the difference that a batch
of new subscriptions makes. Beside the bytes of the message stand those of three other ways:

- `formula_bytes`: the paper's equations with table 2's sizes;
- `listed_bytes`: the same message with the members of each row as a list of differences (varints)
  in place of runs, which is how an inverted file has them;
- `deflated_bytes`: the message after zlib.

Times are processor time of the thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import thread_time
from typing import TypeVar
from zlib import compress

import numpy as np

from tidegate.experiments.progress import Progress, silent
from tidegate.matching.arrays import I64, Bools
from tidegate.matching.summary.merging import Pairs, key_bounds, row_keys, spread
from tidegate.matching.summary.tables import (
    AnyTable,
    ChannelKind,
    RangeTable,
    RowKind,
    RowPattern,
    StringTable,
    SummaryTables,
    has_attribute,
)
from tidegate.matching.summary.wire import decode, encode, encode_difference
from tidegate.matching.summary.wire.columns import Writer, varint_sizes
from tidegate.matching.summary.wire.runs import runs_of
from tidegate.matching.summary.wire.sizes import formula_bytes

WORKLOADS = ("paper", "cuts", "exact")
SUBSUMPTIONS = (0.1, 0.25, 0.5, 0.75, 0.9)
BROKERS = (1, 24)
SUBSCRIPTIONS = 1_000
"""Of each broker; the paper's S."""
BATCH = 10
"""New subscriptions in a period at the first broker; the least of the paper's sigma."""

ATTRIBUTES = 10
ARITHMETIC = 4
NAMED = 5
RANGES = 2
STRING_CHARS = 10
CUTS = 64
CENTS_MAX = 100_000

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SummarySize:
    """Figures of one summary."""

    workload: str
    subsumption: float
    brokers: int
    subscriptions: int
    """Of all brokers."""
    rows: int
    members: int
    formula_bytes: int
    wire_bytes: int
    listed_bytes: int
    deflated_bytes: int
    difference_bytes: int
    """Of the message that adds the last `BATCH` subscriptions of the first broker."""
    encode_ms: float
    decode_ms: float


def measure(
    workloads: Iterable[str] = WORKLOADS,
    subsumptions: Iterable[float] = SUBSUMPTIONS,
    brokers: Iterable[int] = BROKERS,
    *,
    subscriptions: int = SUBSCRIPTIONS,
    batch: int = BATCH,
    seed: int = 1,
    progress: Progress = silent,
) -> Iterator[SummarySize]:
    """A row for each workload, subsumption probability and number of brokers."""
    counts = tuple(brokers)
    for workload in workloads:
        # Where no constraint is subsumed there is nothing to vary.
        for subsumption in subsumptions if workload == "paper" else (0.0,):
            for count in counts if workload != "exact" else (1,):
                progress(f"{workload}, subsumption {subsumption:g}, {count} brokers")
                drawn = DrawnSubscriptions(workload, subsumption, count, subscriptions, seed)
                yield _measured(drawn, batch)


class DrawnSubscriptions:
    """Random subscriptions, and the exact summary of any of them."""

    def __init__(
        self, workload: str, subsumption: float, brokers: int, each: int, seed: int
    ) -> None:
        rng = np.random.default_rng(seed)
        self.workload, self.subsumption = workload, subsumption
        self.brokers, self.each = brokers, each
        count = brokers * each
        named = np.argsort(rng.random((count, ATTRIBUTES)), axis=1)[:, :NAMED]
        self.masks = np.bitwise_or.reduce(np.uint64(1) << named.astype(np.uint64), axis=1)
        is_subsumed = rng.random((count, ATTRIBUTES)) < subsumption
        self.rows = rng.integers(RANGES, size=(count, ATTRIBUTES))
        if workload == "paper":
            points = rng.integers(RANGES * 10_000, CENTS_MAX, (count, ARITHMETIC))
            in_range, low = is_subsumed[:, :ARITHMETIC], self.rows[:, :ARITHMETIC] * 10_000
            cents = np.stack(
                (np.where(in_range, low, points), np.where(in_range, low + 5_000, points))
            )
        else:
            step = CENTS_MAX // CUTS if workload == "cuts" else 1
            cents = np.sort(
                rng.integers(CENTS_MAX // step, size=(2, count, ARITHMETIC)) * step, axis=0
            )
        self.lows, self.highs = cents / 100
        letters = rng.integers(ord("A"), ord("Z") + 1, (count, STRING_CHARS), dtype=np.uint8)
        self.texts = [text.tobytes().decode() for text in letters]
        self.is_prefix = is_subsumed[:, ARITHMETIC:]

    def tables(self, chosen: Bools) -> SummaryTables:
        """The summary of the chosen subscriptions."""
        kept = np.flatnonzero(chosen)
        masks = self.masks[kept].reshape(-1, 1)
        ranges, strings = [], []
        for attribute in range(ATTRIBUTES):
            members = np.flatnonzero(has_attribute(masks, attribute))
            if attribute < ARITHMETIC:
                ranges.append(self._range_table(attribute, members, kept))
            else:
                strings.append(self._string_table(attribute, members, kept))
        return SummaryTables(
            tuple(f"broker-{i:02}" for i in range(self.brokers)),
            tuple(f"attribute-{i}" for i in range(ATTRIBUTES)),
            (kept // self.each).astype(np.int32),
            kept % self.each,
            masks,
            tuple(ranges),
            tuple(strings),
        )

    def _range_table(self, attribute: int, members: I64, kept: I64) -> RangeTable:
        number = ChannelKind.NUMBER
        lows = row_keys(self.lows[kept[members], attribute], number)
        ends = row_keys(self.highs[kept[members], attribute], number) + 1
        cuts = np.unique(np.concatenate((lows, ends)))
        first = np.searchsorted(cuts, lows)
        lengths = np.searchsorted(cuts, ends) - first
        pairs = spread(first, lengths) * len(kept) + np.repeat(members, lengths)
        rows, starts, entries = Pairs(np.sort(pairs), len(kept)).rows()
        low, high = key_bounds(cuts[rows], number), key_bounds(cuts[rows + 1] - 1, number)
        return RangeTable(f"attribute-{attribute}", number, low, high, starts, entries)

    def _string_table(self, attribute: int, members: I64, kept: I64) -> StringTable:
        patterns = [self._pattern(i, attribute) for i in kept[members].tolist()]
        distinct = sorted(set(patterns))
        places = {pattern: row for row, pattern in enumerate(distinct)}
        rows = np.array([places[pattern] for pattern in patterns], np.int64)
        _, starts, entries = Pairs(np.sort(rows * len(kept) + members), len(kept)).rows()
        return StringTable(f"attribute-{attribute}", tuple(distinct), starts, entries)

    def _pattern(self, subscription: int, attribute: int) -> RowPattern:
        if self.is_prefix[subscription, attribute - ARITHMETIC]:
            return RowPattern(RowKind.PREFIX, ("ABCDE"[self.rows[subscription, attribute] :],))
        turned = self.texts[subscription]
        return RowPattern(RowKind.EQUAL, (turned[attribute:] + turned[:attribute],))


def _measured(drawn: DrawnSubscriptions, batch: int) -> SummarySize:
    everyone = np.ones(drawn.brokers * drawn.each, np.bool_)
    earlier = everyone.copy()
    earlier[drawn.each - batch : drawn.each] = False
    before, tables = drawn.tables(earlier), drawn.tables(everyone)
    encode_ms, data = _timed(lambda: encode(tables))
    decode_ms, decoded = _timed(lambda: decode(data))
    assert decoded == tables
    saved_bytes = sum(_list_bytes(table) - _run_bytes(tables, table) for table in tables.all_tables)
    return SummarySize(
        drawn.workload,
        drawn.subsumption,
        drawn.brokers,
        len(everyone),
        rows=sum(len(table.starts) - 1 for table in tables.all_tables),
        members=sum(len(table.members) for table in tables.all_tables),
        formula_bytes=formula_bytes(tables),
        wire_bytes=len(data),
        listed_bytes=len(data) + saved_bytes,
        deflated_bytes=len(compress(data, 9)),
        difference_bytes=len(encode_difference(before, tables)),
        encode_ms=encode_ms,
        decode_ms=decode_ms,
    )


def _list_bytes(table: AnyTable) -> int:
    """The size of the members as one list a row: its length, the first, and differences less 1."""
    gaps = np.diff(table.members, prepend=0).astype(np.int64) - 1
    gaps[table.starts[:-1]] = table.members[table.starts[:-1]]
    return int(varint_sizes(gaps).sum() + varint_sizes(np.diff(table.starts)).sum())


def _run_bytes(tables: SummaryTables, table: AnyTable) -> int:
    """The size of the members as the message has them."""
    entry_count = len(tables.entry_owners)
    index = tables.attributes.index(table.attribute)
    participants = np.flatnonzero(has_attribute(tables.entry_masks, index))
    sizes = np.diff(table.starts)
    pairs = np.repeat(np.arange(len(sizes)), sizes) * entry_count + table.members
    writer = Writer()
    writer.record(runs_of(pairs, participants, entry_count))
    return len(writer.data)


def _timed(work: Callable[[], _T]) -> tuple[float, _T]:
    """The least of three times, in milliseconds, and the result."""
    times = []
    for _ in range(3):
        start = thread_time()
        result = work()
        times.append(thread_time() - start)
    return min(times) * 1e3, result
