"""Partitioned indexes, for sets of subscriptions that are too large for one worker.

Theory of operation. One attribute is chosen that many filters compare with `=` or `in`. Events and
subscriptions are assigned to buckets by the hash of its value, so a worker needs only the index of
the bucket of its events. A subscription whose filter does not fix the attribute belongs to the
rest, which every worker matches besides its bucket. An event is in one bucket, so no match is found
twice; a subscription may be in several buckets, one for each value of its `in` list.

Spark computes the bucket of an event and Python that of a subscription, so both must hash the same
bytes: the CRC-32 of the value as Spark casts it to a string, in UTF-8.
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
from tidegate.spark.columns import quoted_column
from tidegate.spark.worker_tasks import DeliveryLayout, IndexHandle

BYTES_PER_SUBSCRIPTION = 450
"""Estimated size of an index."""
INDEX_BYTES_MAX = 2**30
"""A larger index is partitioned, unless the caller forbids that."""
SAMPLE_SIZE = 10_000
"""The number of subscriptions that are examined to find the most used attribute."""
BUCKET = "_bucket"

# Values of these types have one string form each; floats and timestamps do not.
_KEY_TYPES = (t.StringType, t.ByteType, t.ShortType, t.IntegerType, t.LongType)


class EqualityKeys:
    """Finds the attributes that filters fix by `=` or `in`, and the values they may have."""

    def __init__(self) -> None:
        self._parser = BulkParser()

    def attributes(self, version: Version) -> list[str]:
        """The attributes that every disjunct of a filter fixes."""
        disjuncts, _ = self._read(version)
        fixed = [
            {each.attribute for each in conjunction if _fixes_attribute(each)}
            for conjunction in disjuncts
        ]
        return sorted(set.intersection(*fixed)) if fixed else []

    def values(self, version: Version, attribute: str) -> set[object] | None:
        """The values with which a filter can match; None if some disjunct accepts others too."""
        disjuncts, row = self._read(version)
        values: set[object] = set()
        for conjunction in disjuncts:
            fixing = [
                each
                for each in conjunction
                if each.attribute == attribute and _fixes_attribute(each)
            ]
            if not fixing:
                return None
            # Of several predicates any one will do: an event must satisfy all of them.
            slots = [each.index for each in fixing[0].operands if isinstance(each, Slot)]
            try:
                values.update(_value(row[slot], version.params) for slot in slots)
            except BadValueError:
                return None  # a bad parameter; building the index reports it
        return values

    def _read(self, version: Version) -> tuple[tuple[tuple[Predicate, ...], ...], Row]:
        try:
            shape, row = self._parser.read(version.filter)
        except TidegateError:
            return ((),), ()  # fixes no attribute; building the index reports the error
        return shape.disjuncts, row


def _fixes_attribute(predicate: Predicate) -> bool:
    """Whether a predicate is an equality with constants or parameters, not with expressions."""
    return predicate.operator in (Operator.EQUAL, Operator.IN) and all(
        isinstance(operand, Slot) for operand in predicate.operands
    )


def _value(cell: object, params: Mapping[str, object]) -> object:
    return to_value(params.get(cell.name)) if isinstance(cell, ParameterRef) else cell


def most_used_attribute(versions: Sequence[Version], events: DataFrame) -> str | None:
    """The attribute that most filters fix, among those that are columns of the events."""
    eligible = {each.name for each in events.schema if isinstance(each.dataType, _KEY_TYPES)}
    keys = EqualityKeys()
    step = max(1, len(versions) // SAMPLE_SIZE)
    counts = Counter(
        name
        for version in islice(versions, 0, None, step)
        for name in keys.attributes(version)
        if name in eligible
    )
    return counts.most_common(1)[0][0] if counts else None


def check_attribute(events: DataFrame, attribute: str) -> None:
    """Check that events can be partitioned by an attribute."""
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


def split_into_buckets(
    versions: Iterable[Version], events: DataFrame, attribute: str, buckets: int
) -> tuple[list[Version], list[list[Version]]]:
    """Split versions by the values of an attribute.

    Returns the versions that may match events of any bucket, and those of each bucket.
    """
    keys = EqualityKeys()
    is_string = isinstance(events.schema[attribute].dataType, t.StringType)
    rest: list[Version] = []
    of_bucket: list[list[Version]] = [[] for _ in range(buckets)]
    for version in versions:
        values = keys.values(version, attribute) or ()
        texts = [text for value in values if (text := _as_text(value, is_string)) is not None]
        # Without texts the version may match any event, or none at all. It is indexed even then,
        # because building the index finds bad subscriptions.
        if not texts:
            rest.append(version)
        for bucket in {zlib.crc32(text.encode()) % buckets for text in texts}:
            of_bucket[bucket].append(version)
    return rest, of_bucket


def _as_text(value: object, is_string: bool) -> str | None:
    """A value as Spark casts it to a string; None if no value of the column is equal to it."""
    if is_string:
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return str(int(value)) if value == value // 1 and abs(value) <= 2**63 else None


def with_bucket(events: DataFrame, attribute: str, buckets: int) -> DataFrame:
    """Events with the number of their bucket in a column; each bucket is in one partition."""
    if BUCKET in events.columns:
        raise EventError(
            f"the events have a column {BUCKET!r}, which partitioning adds; rename it, "
            "or rule partitioning out with `partition_by=None`"
        )
    checksum = f.crc32(quoted_column(attribute).cast("string").cast("binary"))
    # An event without the attribute matches only the rest, so any bucket will do. A hash of all
    # columns spreads such events evenly; one fixed bucket would get all of them.
    spread = f.xxhash64(*map(quoted_column, events.columns))
    bucket: Column = f.pmod(f.coalesce(checksum, spread), f.lit(buckets)).cast("int")
    numbered = events.withColumn(BUCKET, bucket)
    if not hasattr(numbered, "repartitionById"):  # new in Spark 4.1
        return numbered.repartition(buckets, BUCKET)  # several buckets may share a partition
    return numbered.repartitionById(buckets, BUCKET)


@dataclass(frozen=True, slots=True)
class PartitionedTask:
    """Matches events with the index of their bucket and with that of the rest.

    For `mapInArrow` on the output of `with_bucket`.
    """

    rest: IndexHandle
    buckets: Sequence[IndexHandle]
    layout: DeliveryLayout

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for all_events in batches:
            column = all_events.column(BUCKET).to_numpy(zero_copy_only=False)
            original = all_events.drop_columns([BUCKET])
            # Usually all events of a batch are in one bucket; the result does not rely on it.
            for bucket in np.unique(column).tolist():
                chosen = column == bucket
                events = original if chosen.all() else original.filter(pa.array(chosen))
                batch = self.layout.event_batch(events)
                for index in (self.buckets[bucket], self.rest):
                    yield from self.layout.rows(events, index.open().match(batch), None)
