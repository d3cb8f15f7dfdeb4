"""The plan of a partitioned index: the indexes of a subscription, the partitions of an event.

Theory of operation. One attribute is chosen that many filters compare with `=` or `in`. Events and
subscriptions are assigned to *buckets* by the CRC-32 of its value, so that a task needs only the
indexes of the bucket of its events. A subscription whose filter does not fix the attribute belongs
to the *rest*, which every task matches besides its bucket. An event is in one bucket, so no match
is found twice; a subscription may be in several buckets, one for each value of its `in` list.

Values are never equally frequent: a few symbols have most of the subscriptions, and most of the
events. So the subscriptions of a bucket, and those of the rest, are split into *shards* of about
`SUBSCRIPTIONS_PER_INDEX` by their ids: each shard is an index, built by one task. And a bucket that
many events are in has several *replicas*: partitions that share its events, each matched with
all of its shards. Both are planned from samples; a bad sample costs time and no answers.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from tidegate.matching.history.versions import Version
from tidegate.spark.partitioned.equality_keys import EqualityKeys

SUBSCRIPTIONS_PER_INDEX = 100_000
"""The number of subscriptions that one task makes an index of, in about 100 MB."""
REPLICAS_MAX = 64


@dataclass(frozen=True)
class PartitionPlan:
    """How subscriptions are divided into indexes, and events into partitions.

    Indexes are numbered: first the shards of the rest, then those of each bucket in turn.
    """

    attribute: str | None
    """The attribute to partition by; None if all subscriptions belong to the rest."""
    is_string: bool
    """Whether the attribute is a string; else it is an integer."""
    rest_shards: int
    shards: tuple[int, ...]
    """The number of shards of each bucket."""
    replicas: tuple[int, ...]
    """The number of replicas of each bucket."""

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return len(self.shards)

    @property
    def indexes(self) -> int:
        """The number of indexes."""
        return self.rest_shards + sum(self.shards)

    @cached_property
    def first_indexes(self) -> tuple[int, ...]:
        """The number of the first index of each bucket."""
        return tuple(accumulate(self.shards, initial=self.rest_shards))

    @cached_property
    def first_replicas(self) -> tuple[int, ...]:
        """The number of the first partition of each bucket; the last item is that of partitions."""
        return tuple(accumulate(self.replicas, initial=0))

    def bucket_of(self, text: str) -> int:
        """The bucket of a value of the attribute, given as Spark casts it to a string."""
        return zlib.crc32(text.encode()) % self.buckets

    def buckets_of(self, version: Version, keys: EqualityKeys) -> set[int]:
        """The buckets of a subscription; empty if it belongs to the rest."""
        if self.attribute is None:
            return set()
        texts = keys.texts(version, self.attribute, is_string=self.is_string)
        return {self.bucket_of(text) for text in texts}

    def indexes_of(self, version: Version, keys: EqualityKeys) -> set[int]:
        """The numbers of the indexes that have a subscription."""
        hashed = zlib.crc32(version.id.encode())
        buckets = self.buckets_of(version, keys)
        if not buckets:
            return {hashed % self.rest_shards}
        return {self.first_indexes[each] + hashed % self.shards[each] for each in buckets}

    def of_bucket(self, bucket: int) -> range:
        """The numbers of the indexes of a bucket."""
        first = self.first_indexes[bucket]
        return range(first, first + self.shards[bucket])

    @classmethod
    def of(
        cls,
        attribute: str | None,
        *,
        is_string: bool,
        buckets: int,
        subscriptions: int,
        sample: Sequence[Version],
        event_texts: Iterable[str | None] = (),
    ) -> PartitionPlan:
        """A plan for about so many ``subscriptions``, of which ``sample`` are some.

        ``event_texts`` are values of the attribute in a sample of the events.
        """
        if attribute is None:
            return cls(None, False, _shards(subscriptions), (), ())
        even = cls(attribute, is_string, 1, (1,) * buckets, (1,) * buckets)
        keys = EqualityKeys()
        rest = 0
        counts: Counter[int] = Counter()
        for version in sample:
            found = even.buckets_of(version, keys)
            counts.update(found)
            rest += not found
        scale = subscriptions / max(1, len(sample))
        shards = tuple(_shards(counts[each] * scale) for each in range(buckets))
        events = Counter(even.bucket_of(text) for text in event_texts if text is not None)
        return cls(attribute, is_string, _shards(rest * scale), shards, _replicas(events, buckets))


def _shards(subscriptions: float) -> int:
    return max(1, round(subscriptions / SUBSCRIPTIONS_PER_INDEX))


def _replicas(events: Mapping[int, int], buckets: int) -> tuple[int, ...]:
    """So many partitions for each bucket that each has about as many events as an average one."""
    average = sum(events.values()) / buckets
    if not average:
        return (1,) * buckets
    counts = (round(events.get(each, 0) / average) for each in range(buckets))
    return tuple(min(max(1, count), REPLICAS_MAX) for count in counts)
