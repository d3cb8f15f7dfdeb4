"""Indexes too large for one worker: subscriptions and events brought together by a common value.

Theory of operation. One attribute is chosen that many filters compare with `=` (or `in`): events
and subscriptions go to a bucket by its value, and a worker needs the index of its events' bucket
only. The subscriptions that ask for no value of that attribute are the rest, which every worker
needs beside its bucket. An event is in one bucket, so no match is found twice.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tidegate.errors import BadValueError, EventError, SubscriptionError, TidegateError
from tidegate.language.expressions import ParameterRef, Slot
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.shapes import Row
from tidegate.language.syntax import Operator, Predicate
from tidegate.language.values import to_value
from tidegate.matching.history.versions import Version
from tidegate.spark.worker import DeliveryLayout, OpensIndex

BYTES_PER_SUBSCRIPTION = 450
INDEX_BYTES_MAX = 2**30
"""An index that is larger than this is partitioned, unless that is ruled out."""
SAMPLE = 10_000
"""From so many subscriptions it is told which attribute is used most."""
BUCKET = "_bucket"

_KEY_TYPES = (t.StringType, t.ByteType, t.ShortType, t.IntegerType, t.LongType)
REST = -1


class Keys:
    """Which values of an attribute filters ask for."""

    def __init__(self) -> None:
        self._parser = BulkParser()

    def attributes(self, version: Version) -> list[str]:
        """The attributes that a filter cannot match without a certain value, or one of some."""
        disjuncts, _ = self._read(version)
        found = [{each.attribute for each in some if _asks(each)} for some in disjuncts]
        return sorted(set.intersection(*found)) if found else []

    def values(self, version: Version, attribute: str) -> set[object] | None:
        """The values of an attribute that a filter asks for; None if it may match with any."""
        disjuncts, row = self._read(version)
        wanted: set[object] = set()
        for conjunction in disjuncts:
            asked = [each for each in conjunction if each.attribute == attribute and _asks(each)]
            if not asked:
                return None
            slots = [each.index for each in asked[0].operands if isinstance(each, Slot)]
            try:
                wanted.update(_value(row[slot], version.params) for slot in slots)
            except BadValueError:
                return None  # as of a filter that cannot be read
        return wanted

    def _read(self, version: Version) -> tuple[tuple[tuple[Predicate, ...], ...], Row]:
        try:
            shape, row = self._parser.read(version.filter)
        except TidegateError:
            return ((),), ()  # asks for nothing; its index will say what is wrong
        return shape.disjuncts, row


def _asks(predicate: Predicate) -> bool:
    return predicate.operator in (Operator.EQUAL, Operator.IN) and all(
        isinstance(operand, Slot) for operand in predicate.operands
    )


def _value(held: object, params: Mapping[str, object]) -> object:
    return to_value(params.get(held.name)) if isinstance(held, ParameterRef) else held


def most_used(versions: Sequence[Version], events: DataFrame) -> str | None:
    """The attribute that most filters compare with `=`, of those that events have a column for."""
    eligible = {each.name for each in events.schema if isinstance(each.dataType, _KEY_TYPES)}
    keys = Keys()
    step = max(1, len(versions) // SAMPLE)
    counts = Counter(
        name
        for version in islice(versions, 0, None, step)
        for name in keys.attributes(version)
        if name in eligible
    )
    return counts.most_common(1)[0][0] if counts else None


def check_attribute(events: DataFrame, attribute: str) -> None:
    """See that events can be partitioned by an attribute."""
    if attribute not in events.columns:
        raise SubscriptionError(
            f"the events have no column {attribute!r} to be partitioned by; they have "
            f"{', '.join(events.columns)}"
        )
    kind = events.schema[attribute].dataType
    if not isinstance(kind, _KEY_TYPES):
        raise SubscriptionError(
            f"column {attribute!r} is of {kind.simpleString()}; events are partitioned by strings "
            "or integers"
        )


def bucketed(
    versions: Iterable[Version], events: DataFrame, attribute: str, buckets: int
) -> tuple[list[Version], list[list[Version]]]:
    """The rest, and the versions of each bucket."""
    keys = Keys()
    is_text = isinstance(events.schema[attribute].dataType, t.StringType)
    rest: list[Version] = []
    found: list[list[Version]] = [[] for _ in range(buckets)]
    for version in versions:
        values = keys.values(version, attribute) or ()
        texts = [text for value in values if (text := _text(value, is_text)) is not None]
        if not texts:  # any event may match, or none; its index also says if it is a bad one
            rest.append(version)
        for bucket in {zlib.crc32(text.encode()) % buckets for text in texts}:
            found[bucket].append(version)
    return rest, found


def _text(value: object, is_text: bool) -> str | None:
    """A value as Spark writes it; None if no value of the column can be equal to it."""
    if is_text:
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return str(int(value)) if value == value // 1 and abs(value) <= 2**63 else None


def with_bucket(events: DataFrame, attribute: str, buckets: int) -> DataFrame:
    """Events with the number of their bucket, each bucket in one partition."""
    if BUCKET in events.columns:
        raise EventError(
            f"the events have a column {BUCKET!r}, which partitioning adds; rename it, "
            "or rule partitioning out with `partition_by=None`"
        )
    number = f.crc32(f.col(f"`{attribute}`").cast("string").cast("binary"))
    # an event without the value matches only the rest, so any bucket will do
    anywhere = f.xxhash64(*(f.col(f"`{name}`") for name in events.columns))
    bucket: Column = f.pmod(f.coalesce(number, anywhere), f.lit(buckets)).cast("int")
    return events.withColumn(BUCKET, bucket).repartitionById(buckets, BUCKET)


@dataclass(frozen=True, slots=True)
class PartitionedTask:
    """Matches events with the index of their bucket and with the rest; for `mapInArrow`."""

    rest: OpensIndex
    buckets: Sequence[OpensIndex]
    layout: DeliveryLayout

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for all_events in batches:
            column = all_events.column(BUCKET).to_numpy(zero_copy_only=False)
            without = all_events.drop_columns([BUCKET])
            for bucket in np.unique(column).tolist():
                chosen = column == bucket
                events = without if chosen.all() else without.filter(pa.array(chosen))
                batch = self.layout.taken(events)
                for index in (self.buckets[bucket], self.rest):
                    yield from self.layout.rows(events, index.open().match(batch), None)
