"""Changes of subscriptions: one row of a change log, checked.

Only the fields of a row are checked here. Whether a change can be made depends on the changes
before it, which may arrive later; that is decided in `timelines`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from tidegate.errors import SubscriptionError
from tidegate.language.evolve import Evolve
from tidegate.matching.records import (
    check_fields,
    evolve_of,
    params_of,
    required_text,
    text_of,
    time_of,
)

FIELDS = ("time", "op", "id", "filter", "params", "subscriber", "evolve", "seq")


class Op(Enum):
    """The operation of a change."""

    SUBSCRIBE = "subscribe"
    UPDATE = "update"
    UNSUBSCRIBE = "unsubscribe"


_MORE_FIELDS = {
    Op.SUBSCRIBE: ("filter", "params", "subscriber", "evolve"),
    Op.UPDATE: ("filter", "params"),
    Op.UNSUBSCRIBE: (),
}
"""The fields that a change may have beside `time`, `op` and `id`."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one subscription, in force from ``time`` on, inclusive.

    Changes of one time are made in the order of ``seq``, and of arrival where that is equal too.
    """

    time: datetime
    op: Op
    id: str
    filter: str | None = None
    params: Mapping[str, object] | None = None
    subscriber: str | None = None
    evolve: Evolve | None = None
    seq: int = 0
    held_from: datetime | None = None
    """From when on it is in force if it came too late for its own time."""

    @property
    def since(self) -> datetime:
        """From when on it is in force."""
        return self.time if self.held_from is None else self.held_from

    @property
    def place(self) -> tuple[datetime, int]:
        """Its place among the changes of its subscription."""
        return self.time, self.seq

    @classmethod
    def of(cls, row: Mapping[str, object]) -> Change:
        """Check the fields of a row; raises SubscriptionError that names the field."""
        check_fields(row, FIELDS, "a change")
        time = time_of(row, "time")
        if time is None:
            raise SubscriptionError("time: is missing")
        op = _op_of(row)
        id = required_text(row, "id")
        for name in ("filter", "params", "subscriber", "evolve"):
            # a table has all columns in all rows, and an empty map or list where one has no params
            if name not in _MORE_FIELDS[op] and row.get(name) not in (None, {}, []):
                raise SubscriptionError(f"{name}: has no place in a row of op {op.value}")
        filter = required_text(row, "filter") if op is Op.SUBSCRIBE else text_of(row, "filter")
        params = params_of(row)
        if op is Op.UPDATE and filter is None and params is None:
            raise SubscriptionError("an update needs params, a filter, or both")
        evolve = evolve_of(row) if op is Op.SUBSCRIBE else None
        subscriber = text_of(row, "subscriber")
        return cls(time, op, id, filter, params, subscriber, evolve, _seq_of(row))


def _seq_of(row: Mapping[str, object]) -> int:
    value = row.get("seq")
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    raise SubscriptionError(f"seq: must be an integer of 64 bits, not {value!r:.120}")


def _op_of(row: Mapping[str, object]) -> Op:
    text = required_text(row, "op")
    try:
        return Op(text)
    except ValueError:
        choices = ", ".join(op.value for op in Op)
        raise SubscriptionError(f"op: there is no {text!r}; there are {choices}") from None
