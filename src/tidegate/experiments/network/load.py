"""The load of the network benchmark: `market` subscriptions on some connections, and its events.

The least volume of each subscription is a parameter, which can be updated; at first it has the
value of the workload.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.experiments.workloads import WORKLOADS
from tidegate.language.events import Event
from tidegate.matching.arrays import I64
from tidegate.matching.engine import Engine
from tidegate.network.wire.event_block import EventBlock

_VOLUME = re.compile(r"volume > (\d+)")
PARAMETER = "least"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A subscription of the load: its number, filter and parameter."""

    row: int
    text: str
    least: int


class Load:
    """Subscriptions, divided among connections, and events.

    >>> load = Load(100, 3, events=50)
    >>> [len(each) for each in load.by_connection]
    [34, 33, 33]
    """

    def __init__(self, subscriptions: int, connections: int, *, events: int) -> None:
        self.connections = connections
        texts = WORKLOADS["market"].subscriptions(subscriptions)["filter"].to_pylist()
        self.wanted = [_wanted(row, str(text)) for row, text in enumerate(texts)]
        self._rows = WORKLOADS["market"].events(events).to_pylist()

    @property
    def by_connection(self) -> list[list[Wanted]]:
        """The subscriptions of each connection, dealt out in turn."""
        return [self.wanted[at :: self.connections] for at in range(self.connections)]

    @cached_property
    def events(self) -> EventBlock:
        """The events."""
        return EventBlock.of([Event.of(row) for row in self._rows])

    @property
    def rows(self) -> Sequence[dict[str, object]]:
        """The events as they are published in other systems."""
        return self._rows

    def expected_pairs(self, least: Mapping[int, int] | None = None) -> I64:
        """What the embedded engine says: numbers of an event and of a subscription, in two columns.

        ``least`` has the parameters that are not those of the beginning. The pairs ascend.
        """
        values = least or {}
        ids = [str(each.row) for each in self.wanted]
        parameters = [{PARAMETER: values.get(each.row, each.least)} for each in self.wanted]
        engine = Engine()
        engine.subscribe_batch(
            pa.table(
                {"id": ids, "filter": [each.text for each in self.wanted], "params": parameters}
            )
        )
        found = engine.match_batch(pa.Table.from_pylist(self._rows))
        events = np.asarray(found["event"], np.int64)
        rows = np.array(found["subscription"].to_pylist(), np.int64)
        return sorted_pairs(events, rows)

    def counts(self, pairs: I64) -> tuple[int, int]:
        """Deliveries (an event comes once to a connection) and matches of some pairs."""
        events, rows = pairs.T
        return len(np.unique(events * self.connections + rows % self.connections)), len(pairs)


def sorted_pairs(events: I64, rows: I64) -> I64:
    """Pairs as the rows of an array that ascend."""
    order = np.lexsort((rows, events))
    return np.stack([events[order], rows[order]], axis=1)


def spread(values: I64, share: float) -> float:
    """A percentile of durations in microseconds, as milliseconds; 0 without any.

    >>> spread(np.arange(101) * 1_000, 99)
    99.0
    """
    return float(np.percentile(values, share)) / 1_000 if len(values) else 0.0


def _wanted(row: int, text: str) -> Wanted:
    found = _VOLUME.search(text)
    assert found is not None  # each subscription of `market` has a least volume
    return Wanted(row, _VOLUME.sub(f"volume > :{PARAMETER}", text), int(found[1]))
