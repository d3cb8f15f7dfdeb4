"""Trace context of events (W3C): the attribute `traceparent`, which travels with an event.

An event whose trace is sampled is logged by each broker that routes it, with the ids of the trace.
Where no event of a turn has the attribute, that costs a look at the shapes of the turn.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidegate.network.wire.publications import PublicationBlock

_log = logging.getLogger(__name__)

ATTRIBUTE = "traceparent"
LOGGED_MAX = 100
"""Events that are logged of one turn, so that a publisher cannot fill the log at will."""
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?\Z"
)


class TraceContext(NamedTuple):
    """The ids of a trace and of the span that has published the event."""

    trace_id: str
    span_id: str
    is_sampled: bool


def parse_traceparent(text: object) -> TraceContext | None:
    """The trace context in a value; None if there is none.

    >>> parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    TraceContext(trace_id='0af7651916cd43dd8448eb211c80319c', span_id='b7ad6b7169203331', \
is_sampled=True)
    """
    found = _TRACEPARENT.match(text) if isinstance(text, str) else None
    if found is None or (found[4] and text.startswith("00")):  # type: ignore[attr-defined]
        return None
    return TraceContext(found[1], found[2], bool(int(found[3], 16) & 1))


def log_sampled(
    block: PublicationBlock,
    clients: Iterable[tuple[str, Iterable[int]]],
    neighbours: Mapping[str, Iterable[int]],
) -> None:
    """Log the events of a turn that are sampled, with who gets them.

    ``clients`` and ``neighbours`` are receivers with the indices of their events.
    """
    events = block.events
    places = {
        number: shape.names.index(ATTRIBUTE)
        for number, shape in enumerate(events.shapes)
        if ATTRIBUTE in shape.names
    }
    if not places or not _log.isEnabledFor(logging.INFO):
        return
    sampled: dict[int, TraceContext] = {}
    for index, shape in enumerate(events.shape_of.tolist()):
        place = places.get(shape)
        context = None if place is None else parse_traceparent(events.rows[index][place])
        if context is not None and context.is_sampled:
            sampled[index] = context
            if len(sampled) >= LOGGED_MAX:
                break
    to_clients = _receivers(clients, sampled)
    to_neighbours = _receivers(neighbours.items(), sampled)
    for index, context in sampled.items():
        stamp = block.stamp(index)
        _log.info(
            "event %s/%d of %s: %d deliveries, passed on to %s",
            stamp.broker,
            stamp.number,
            block.publishers[block.publisher_of[index]],
            len(to_clients.get(index, ())),
            ", ".join(to_neighbours.get(index, ())) or "nobody",
            extra={
                "event": "event_routed",
                "trace_id": context.trace_id,
                "span_id": context.span_id,
                "origin": stamp.broker,
                "number": stamp.number,
                "clients": to_clients.get(index, [])[:LOGGED_MAX],
                "neighbours": to_neighbours.get(index, []),
            },
        )


def _receivers(
    receivers: Iterable[tuple[str, Iterable[int]]], wanted: Mapping[int, TraceContext]
) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for name, events in receivers:
        for index in events:
            if index in wanted:
                found.setdefault(index, []).append(name)
    return found
