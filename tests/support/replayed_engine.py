"""The embedded engine over events and changes in the order of their times: what Spark must give."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from support.spark_streams import Row
from tidegate import Engine
from tidegate.language.filters import parse

Pairs = Counter[tuple[object, object]]
"""The numbers of events and the ids of subscriptions."""


def time_of(row: Row) -> datetime:
    return datetime.fromisoformat(str(row["time"]))


@dataclass
class CurrentSubscription:
    """A subscription at the time that the replay has reached."""

    filter: str
    params: dict[str, object]
    since: datetime


class Replay:
    """The embedded engine, with each change applied when the events reach its time."""

    def __init__(self, changes: list[Row]) -> None:
        self._engine = Engine(clock=lambda: None)
        self._waiting = sorted(changes, key=time_of)
        self._current: dict[str, CurrentSubscription] = {}

    def match(self, event: Row) -> list[str]:
        while self._waiting and time_of(self._waiting[0]) <= time_of(event):
            self._apply(self._waiting.pop(0))
        attributes = {name: event[name] for name in ("a", "b") if event[name] is not None}
        return self._engine.match(attributes, time=time_of(event))

    def _apply(self, change: Row) -> None:
        """Apply a change, if that is possible."""
        id, params = str(change["id"]), json.loads(str(change.get("params") or "{}"))
        before = self._current.get(id)
        if (before is None) != (change["op"] == "subscribe"):
            return
        if change["op"] == "unsubscribe":
            self._engine.cancel(id)
            del self._current[id]
            return
        known = CurrentSubscription("", {}, time_of(change)) if before is None else before
        filter = str(change.get("filter") or known.filter)
        names = parse(filter).parameters
        if any(name not in names for name in params):
            return
        after = CurrentSubscription(filter, {**known.params, **params}, known.since)
        if before is not None:
            self._engine.cancel(id)
        fitting = {name: value for name, value in after.params.items() if name in names}
        unset = {name: None for name in names if name not in fitting}
        self._engine.subscribe(filter, id=id, since=after.since, parameters={**unset, **fitting})
        self._current[id] = after


def embedded(events: list[Row], changes: list[Row]) -> Pairs:
    replay = Replay(changes)
    return Counter(
        (each["number"], id) for each in sorted(events, key=time_of) for id in replay.match(each)
    )


def without_versions(found: Counter[tuple[object, ...]]) -> Pairs:
    return Counter((number, id) for number, id, _ in found.elements())
