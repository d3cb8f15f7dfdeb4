"""A transaction of a store: everything that one turn of a broker makes durable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.network.store.rows import (
    EventRow,
    PositionRow,
    QueueRow,
    ShapeRow,
    StateRow,
    event_checksum,
    position_checksum,
    queue_row_checksum,
    state_checksum,
)


@dataclass(slots=True)
class Transaction:
    """Collects changes; `Store.commit` writes all of them, or none.

    Within a transaction, what is removed is removed before anything is added.
    """

    shapes: list[ShapeRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    queues: list[tuple[int, str, str]] = field(default_factory=list)
    """New queues: number, kind, name."""
    queue_rows: list[QueueRow] = field(default_factory=list)
    acknowledged: dict[int, int] = field(default_factory=dict)
    """By queue: the last position that its receiver needs no more."""
    missed: dict[int, int] = field(default_factory=dict)
    """By queue: how many events were dropped, of which its receiver has still to be told."""
    removed_queues: list[int] = field(default_factory=list)
    positions: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    state: dict[tuple[str, str, bytes], bytes | None] = field(default_factory=dict)
    """By kind, owner and key; None removes."""
    removed_owners: list[tuple[str, str]] = field(default_factory=list)
    """Kinds and owners of which all pieces of state are removed."""
    purged: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of positions, both ends included, whose events are removed unless a queue has them."""
    rejected: list[tuple[str, str, Sequence[object]]] = field(default_factory=list)
    """Damaged rows that are set aside: table, reason, columns."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)

    @property
    def adds_events(self) -> bool:
        return bool(self.events or self.queue_rows)

    def add_event(
        self, position: int, shape: int, time_us: int, header: bytes, body: bytes
    ) -> None:
        """Store an event."""
        checksum = event_checksum(position, shape, time_us, header, body)
        self.events.append(EventRow(position, shape, time_us, header, body, checksum))

    def enqueue(self, queue: int, position: int, detail: bytes) -> None:
        """Put an event, which this or an earlier transaction stores, at the end of a queue."""
        checksum = queue_row_checksum(queue, position, detail)
        self.queue_rows.append(QueueRow(queue, position, detail, checksum))

    def acknowledge(self, queue: int, position: int) -> None:
        """Remove all rows of a queue up to a position."""
        self.acknowledged[queue] = max(position, self.acknowledged.get(queue, position))

    def set_position(self, kind: str, name: str, epoch: int, number: int) -> None:
        """Note how far the numbered events of a publisher or broker have been taken."""
        self.positions[kind, name] = (epoch, number)

    def put_state(self, kind: str, owner: str, key: bytes, value: bytes) -> None:
        """Keep a piece of state."""
        self.state[kind, owner, key] = value

    def remove_state(self, kind: str, owner: str, key: bytes) -> None:
        """Remove a piece of state."""
        self.state[kind, owner, key] = None

    def remove_owner(self, kind: str, owner: str) -> None:
        """Remove all state of a kind and owner; what the transaction has of it so far, too."""
        for each in [key for key in self.state if key[:2] == (kind, owner)]:
            del self.state[each]
        self.removed_owners.append((kind, owner))

    # -- rows, for the writer -----------------------------------------------------------------

    def position_rows(self) -> list[PositionRow]:
        return [
            PositionRow(kind, name, epoch, number, position_checksum(kind, name, epoch, number))
            for (kind, name), (epoch, number) in self.positions.items()
        ]

    def state_rows(self) -> list[StateRow]:
        return [
            StateRow(kind, owner, key, value, state_checksum(kind, owner, key, value))
            for (kind, owner, key), value in self.state.items()
            if value is not None
        ]

    def removed_state(self) -> list[tuple[str, str, bytes]]:
        return [key for key, value in self.state.items() if value is None]
