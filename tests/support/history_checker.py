"""Judges histories of clients: what was lost, doubled, reordered, stale, in a gap or corrupt.

Rules, in the manner of Jepsen. An operation may have taken effect at any moment between its
invocation and its completion; one that was not completed may have, or not.

(1) *Versions.* An event that was published after a version came into force is matched by that
    version or by a later one, up to the last that the client had asked for when it received the
    event. So a delivery is **stale** if none of these matches the event, if it names a version
    before the one in force, or if the client had changed its subscription meanwhile to one that
    does not match (strictness). And a confirmed event that all of these match must be delivered:
    else it is **lost** if the subscription did not change, and in a **gap** if it did (coverage).
(2) *Order.* Events of one publisher are delivered in its order, to one client; else they are
    **reordered**. So the versions of rule 1 end where a later event of that publisher arrives.
(3) *Once.* A client skips positions up to the last that it has handled. What is left has each event
    once; else it is **doubled**, as is a position that comes twice to one process.
(4) A delivery is **corrupt** unless it is what its publisher has published, type by type.

`simulation.verifying.checked_client` has rule 1 for runs in which the end of a round is known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from support import history as h
from tidegate.language.events import Event
from tidegate.language.evolve import parse_evolve
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.matching.subscription import Subscription
from tidegate.simulation.verifying.checked_client import matches

EventId = tuple[str, int]
"""A publisher and its number; events have them as the attributes `by` and `n`."""


class Finding(NamedTuple):
    """Something that was promised not to happen."""

    kind: str
    client: str
    text: str


@dataclass(slots=True)
class _Publication:
    event: Event
    asked_ns: int
    is_confirmed: bool = False
    is_refused: bool = False


@dataclass(slots=True)
class _Version:
    """A subscription from one change to the next."""

    asked_ns: int
    row: Subscription | None
    """None after the end of the subscription, or while nobody knows when `t` began for it."""
    is_known: bool = True
    in_force_ns: int | None = None
    number: int = 0

    def was_in_force(self, at_ns: int) -> bool:
        """Whether all brokers had this version, or a later one, at a time."""
        return self.in_force_ns is not None and self.in_force_ns <= at_ns


@dataclass(slots=True)
class _Receiver:
    """A client with its subscriptions and what it has received."""

    versions: dict[str, list[_Version]] = field(default_factory=lambda: defaultdict(list))
    received: dict[EventId, int] = field(default_factory=dict)
    """Events with the time of their first delivery."""
    order: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """By publisher: the numbers of its events with their times."""
    at: dict[int, EventId] = field(default_factory=dict)
    """Events by position."""
    last_position: int = 0
    last_of_process: int = 0
    drained_ns: int | None = None


class _Judge:
    def __init__(self) -> None:
        self.publications: dict[EventId, _Publication] = {}
        self.receivers: dict[str, _Receiver] = defaultdict(_Receiver)
        self.findings: list[Finding] = []

    # -- the records ----------------------------------------------------------------------------

    def take(self, record: h.AnyRecord) -> None:
        """Take the next record of a history."""
        client = record.client
        match record:
            case h.Publish(number=number, attributes=attributes, time_us=time_us):
                event = Event(attributes, from_us(time_us))
                known = self.publications.setdefault(
                    (client, number), _Publication(event, record.at_ns)
                )
                if not _same(known.event, event):
                    raise ValueError(f"{client} has used the number {number} for two events")
            case h.NotPublished(number=number):
                self.publications[client, number].is_refused = True
            case h.Confirmed(number=number):
                self._confirm(client, number)
            case h.Began():
                self.receivers[client].last_of_process = 0
            case h.Drained():
                self.receivers[client].drained_ns = record.at_ns
            case h.Change():
                self._change(self.receivers[client], record)
            case h.InForce():
                _came_into_force(self.receivers[client].versions[record.name][-1], record)
            case h.Deliver():
                self._deliver(client, self.receivers[client], record)

    def _confirm(self, client: str, number: int) -> None:
        while number and not (known := self.publications[client, number]).is_confirmed:
            known.is_confirmed = True
            number -= 1

    def _change(self, receiver: _Receiver, record: h.Change) -> None:
        versions = receiver.versions[record.name]
        row = None
        if record.filter is not None:
            evolve = None if record.evolve is None else parse_evolve(record.evolve)
            row = Subscription(record.name, parse(record.filter), record.parameters, evolve=evolve)
        # `t` counts from the first version on, which tells when that was once it is in force.
        before = versions[-1].row if versions else None
        if row is not None and before is not None and before.origin is not None:
            row = _with_origin(row, before.origin)
        is_known = row is None or row.origin is not None or not _evolves(row)
        versions.append(_Version(record.at_ns, row, is_known))

    # -- deliveries -----------------------------------------------------------------------------

    def _deliver(self, client: str, receiver: _Receiver, record: h.Deliver) -> None:
        id = (str(record.attributes.get("by")), _integer(record.attributes.get("n")))
        published = self.publications.get(id)
        event = Event(record.attributes, from_us(record.time_us))
        if published is None or published.is_refused or not _same(published.event, event):
            self._find("corrupt", client, f"{record.attributes} at {record.position}")
            return
        if self._is_new(client, receiver, record, id):
            if id in receiver.received:
                self._find("doubled", client, f"{id} comes again at {record.position}")
                return
            order = receiver.order[id[0]]
            if order and order[-1][0] > id[1]:
                self._find("reordered", client, f"{id} comes after {order[-1][0]}")
            receiver.received[id] = record.at_ns
            order.append((id[1], record.at_ns))
        self._judge_versions(client, receiver, record, published)

    def _is_new(self, client: str, receiver: _Receiver, record: h.Deliver, id: EventId) -> bool:
        """Whether a client that stores positions with the effect of events handles this one."""
        position = record.position
        if not position:
            return True
        if position <= receiver.last_of_process:
            kind = "doubled" if receiver.at.get(position) == id else "reordered"
            text = f"position {position} comes after {receiver.last_of_process}"
            self._find(kind, client, text)
        receiver.last_of_process = max(receiver.last_of_process, position)
        if position > receiver.last_position:
            receiver.last_position, receiver.at[position] = position, id
            return True
        if receiver.at.get(position) != id:
            self._find("reordered", client, f"{id} at {position}, which the client had passed")
        return False

    def _judge_versions(
        self, client: str, receiver: _Receiver, record: h.Deliver, published: _Publication
    ) -> None:
        for name, number in record.matches:
            versions = receiver.versions[name]
            usable = _usable(versions, published.asked_ns, record.at_ns)
            if not usable:
                continue
            is_old = usable[0].was_in_force(published.asked_ns) and number < usable[0].number
            may_match = [not each.is_known or _matches(each, published.event) for each in usable]
            # The last one is the client's own, by which it judges once more what it hands out.
            if not is_old and any(may_match) and may_match[-1]:
                return
        text = f"{record.attributes} for {record.matches}"
        self._find("stale", client, text)

    # -- what is missing --------------------------------------------------------------------------

    def judge_missing(self) -> None:
        """Find the events that clients that were there to the end should have received."""
        for client, receiver in self.receivers.items():
            if receiver.drained_ns is None:
                continue
            arrivals = {by: _Arrivals(order) for by, order in receiver.order.items()}
            for id, published in self.publications.items():
                if not published.is_confirmed or published.is_refused or id in receiver.received:
                    continue
                end_ns = receiver.drained_ns
                if id[0] in arrivals:
                    end_ns = min(end_ns, arrivals[id[0]].first_after(id[1], end_ns))
                for kind in _reasons(receiver, published, end_ns):
                    self._find(kind, client, f"{dict(published.event.attributes)}")
                    break

    def _find(self, kind: str, client: str, text: str) -> None:
        self.findings.append(Finding(kind, client, text))


def findings(records: Iterable[h.AnyRecord]) -> list[Finding]:
    """What is wrong with a history, whose records are in the order of their times."""
    judge = _Judge()
    for each in records:
        judge.take(each)
    judge.judge_missing()
    return judge.findings


class _Arrivals:
    """When the events of one publisher came to one client."""

    def __init__(self, order: list[tuple[int, int]]) -> None:
        self._numbers = sorted(number for number, _ in order)
        times = dict(order)
        self._times = [times[number] for number in self._numbers]
        for index in range(len(self._times) - 2, -1, -1):
            self._times[index] = min(self._times[index], self._times[index + 1])

    def first_after(self, number: int, default: int) -> int:
        """When an event with a greater number came first."""
        index = bisect_right(self._numbers, number)
        return self._times[index] if index < len(self._times) else default


def _reasons(receiver: _Receiver, published: _Publication, end_ns: int) -> Iterator[str]:
    """Why a client should have received an event, once for each such subscription."""
    for versions in receiver.versions.values():
        usable = _usable(versions, published.asked_ns, end_ns)
        if not usable or not usable[0].was_in_force(published.asked_ns):
            continue
        if all(each.is_known and _matches(each, published.event) for each in usable):
            yield "lost" if len(usable) == 1 else "gap"


def _usable(versions: list[_Version], published_ns: int, end_ns: int) -> list[_Version]:
    """The versions that brokers may use: from the last in force at publication to the end."""
    last = bisect_right(versions, end_ns, key=lambda each: each.asked_ns)
    first = last
    while first:
        first -= 1
        if versions[first].was_in_force(published_ns):
            break
    return versions[first:last]


def _came_into_force(version: _Version, record: h.InForce) -> None:
    version.in_force_ns, version.number = record.at_ns, record.version
    if version.row is not None and version.row.origin is None and record.origin_us is not None:
        version.row = _with_origin(version.row, record.origin_us)
    version.is_known = True


def _with_origin(row: Subscription, origin_us: int) -> Subscription:
    return Subscription(row.id, row.filter, row.parameters, origin=origin_us, evolve=row.evolve)


def _evolves(row: Subscription) -> bool:
    return row.filter.evolves


def _matches(version: _Version, event: Event) -> bool:
    return version.row is not None and matches(version.row, event, {})


def _same(one: Event, other: Event) -> bool:
    """Whether two events are the same, types of values and time included."""
    return one.time == other.time and _typed(one) == _typed(other)


def _typed(event: Event) -> dict[str, tuple[type, object]]:
    return {name: (type(value), value) for name, value in event.attributes.items()}


def _integer(value: object) -> int:
    return value if isinstance(value, int) else -1
