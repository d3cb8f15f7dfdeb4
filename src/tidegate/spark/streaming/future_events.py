"""Events dated too far in the future, which are set aside before they are spooled.

One event dated 2099 would otherwise move the border of lateness there, and all others were late.
It becomes a bad record in the spool itself, because the clock, which it is compared with, has gone
on when the spool is read again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.spark.sinks.rejected import EVENT


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """The time after which no event of a micro-batch may be."""

    event_time: str
    last_us: int
    """The limit in microseconds: by so much ahead of the clock at the begin of the batch."""
    ahead: timedelta

    def apply(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows, with each event that is too far ahead as a bad record."""
        times = pc.struct_field(rows.column("event"), [self.event_time])
        times_us = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
        is_ahead: Any = pc.fill_null(pc.greater(times_us, pa.scalar(self.last_us)), False)
        numbers = np.flatnonzero(is_ahead.to_numpy(zero_copy_only=False)).tolist()
        if not numbers:
            return rows
        events, bad = rows.column("event"), rows.column("bad").to_pylist()
        for number in numbers:
            record = {k: v for k, v in events[number].as_py().items() if v is not None}
            bad[number] = {
                "kind": EVENT,
                "reason": f"is more than {self.ahead} ahead of the clock",
                "record": json.dumps(record, default=str, ensure_ascii=False),
                "source": None,
            }
        kept = pc.if_else(is_ahead, pa.nulls(len(events), events.type), events)
        rows = _replaced(rows, "event", kept)
        return _replaced(rows, "bad", pa.array(bad, rows.schema.field("bad").type))


def _replaced(rows: pa.RecordBatch, name: str, column: Any) -> pa.RecordBatch:
    return rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
