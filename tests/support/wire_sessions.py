"""Sound sessions of the wire protocol, which a fuzzer mutates: of clients, neighbours, brokers.

Crashes that were found are beside them, in `tests/network/survival/crashes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from support.wire_messages import connected, written
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Lazy, Periodic
from tidegate.language.filters import parse
from tidegate.language.patterns.pattern import parse_pattern
from tidegate.language.values import from_us
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.matching.subscription import Subscription
from tidegate.network.wire import requests as wire
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.deliveries import Deliver, DeliverSequence, Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.flow import Ack, Confirmed, Credit, Heartbeat, NotPublished
from tidegate.network.wire.handshake import Hello, Welcome
from tidegate.network.wire.problems import Problem
from tidegate.network.wire.publications import PublicationBlock
from tidegate.network.wire.values import wire_cells
from tidegate.routing import messages as m
from tidegate.routing.overlay.graph import Announcement

TIME = from_us(1_700_000_000_000_000)
EVENTS = [
    Event.of({"x": 1, "kind": "a"}),
    Event.of({"x": 2.5, "kind": "b", "deep": {"y": True}}, TIME),
    Event.of({"at": TIME, "x": -(2**63)}, TIME),
]
PLENTY: dict[str, Any] = {
    "credit_events": 1 << 40,
    "credit_bytes": 1 << 40,
    "heartbeat_ms": 600_000,
}


def _block() -> EventBlock:
    return EventBlock.of(EVENTS)


def _client(messages: Sequence[Any], rows: bool = False, **hello: Any) -> bytes:
    """What a client sends, from its first byte on."""
    first = Connection.connecting(Hello("desk-7", 5, **PLENTY, **hello))
    begin = written(first)
    client, _ = connected(**PLENTY, **hello)
    client.take_output()
    if rows:
        filter = parse("x < 3 and kind = 'a'")
        number = client.filter_shape(filter.shape_and_row[0])
        assert number is not None
        shape_rows = [wire_cells(filter.shape_and_row[1])] * 2
        client.send(wire.SubscribeRows(1, number, ["r1", "r2"], shape_rows, [], None, 1))
    for each in messages:
        client.send(each)
    return begin + written(client)


def _neighbour(messages: Sequence[Any]) -> bytes:
    """What a neighbour sends."""
    begin = written(Connection.connecting(Hello("b", 5, role="broker", **PLENTY)))
    neighbour, _ = connected(role="broker", **PLENTY)
    neighbour.take_output()
    for number, each in enumerate(messages, 1):
        neighbour.send_link(number, each)
    return begin + written(neighbour)


def sessions_to_broker() -> list[bytes]:
    """Sessions of clients and of neighbours."""
    named = wire.Subscribe(1, "x < :n", "low", {"n": 3}, None, 1, confirm=True)
    evolving = wire.Subscribe(2, "x < :n + t", "later", {"n": 3}, "lazy", 2, 1_700_000_000_000_000)
    joins = m.Connect("main", 1_000, True, (Announcement("b", 1, (("a", 1_000),)),), False)
    key, other = m.Key(1, None), m.Key(2, "b")
    evolving_filter = EvolvingFilter(parse("x < 3 + t"), 1_700_000_000_000_000, Periodic(0.5))
    publication = m.Publication(EVENTS[1], m.Stamp("b", 5, 1), "p")
    named_row = Subscription("low", parse("x < :n"), {"n": 3}, origin=5, evolve=Lazy())
    filters = m.FilterDelta(((key, parse("x < 3 and kind = 'a'")), (other, evolving_filter)))
    return [
        _client([named, wire.Update(2, 1, 2, {"n": 4}, "x > :n", True), wire.Cancel(3, 1)]),
        _client([evolving, wire.Unsubscribe(3, "x < 100"), wire.Suspend(4), wire.Resume(5)]),
        _client([Publish(1, _block()), Publish(4, _block(), True), Heartbeat()]),
        _client([wire.Advertise(1, "x < 5"), wire.Unadvertise(2, "x < 9"), wire.Depart(3)]),
        _client([wire.Subscribe(1, "x = 1 then x = 2 within 1 s"), Credit(10**9, 10**9)]),
        _client([named, Ack(1), Publish(1, _block(), True)], is_durable=True),
        _client([wire.Resume(1, "elsewhere", 3)]),
        _client([], rows=True),
        _neighbour([joins, filters, m.FilterDelta((), (key,), ((other, ((0, 5),)),))]),
        _neighbour([joins, m.AdvertisementDelta(((key, parse_advertisement("x < 3")),), ())]),
        _neighbour([joins, filters, m.Notify(publication, "b", None, None)]),
        _neighbour([joins, m.Probe("b", 1, None), m.Echo("a", 1), m.Announce(())]),
        _neighbour([joins, m.Seek("b", 1, m.Client("ann"), "a", None, 1), m.Release("b", 1)]),
        _neighbour(
            [
                joins,
                m.SeekReply(
                    "a", 1, True, (parse("x < 3"),), (parse_advertisement("x < 3"),),
                    (m.NamedSubscription(named_row, 1, None),),
                ),
                m.HandOver(
                    "a", 1, (m.Deliver(publication, (m.MatchedVersion("low", 1),), False),), 0,
                    (m.Stamp("b", 5, 1),),
                ),
            ]
        ),
        _neighbour([joins, m.Delegate(1, parse_pattern("x = 1 then x = 2"), 2), m.Undelegate(1)]),
        _neighbour([joins, m.NotifyChain(1, (publication,)), m.Disconnect()]),
        _neighbour([joins, m.Sync(b"\0" * 32, ((key, parse("x < 3")),), ()), m.Sync(b"\1" * 32)]),
        _neighbour([joins, m.Drain("b", 1, None), m.Drained(1, "b", ("a",))]),
        _neighbour(
            [
                joins,
                m.SummaryUpdate(1, ("b",), (m.Validity("b", 0, 2**60),), b"", True),
                m.SummaryWithdrawal(1),
                m.SummaryReceived(1),
                m.Refused(m.Disconnect(), "no"),
            ]
        ),
        _neighbour([m.Accept("main", 1_000, ()), m.Connect("other", 0, False, (), True)]),
    ]  # fmt: skip


def sessions_to_client() -> list[bytes]:
    """What brokers send to clients."""
    import numpy as np

    publications = PublicationBlock.of(
        [m.Publication(each, m.Stamp("a", 5, at), "p") for at, each in enumerate(EVENTS)]
    )
    count = len(EVENTS)
    ones = np.ones(count, np.int64)
    held = wire.HeldSubscription(1, "low", "x < :n", {"n": 3}, None, 2, None, None)
    problem = Problem("filter", "no", "x <", 3, 3)
    messages: list[list[Any]] = [
        [wire.Done(1, [1, 2], [(0, problem)]), wire.Refused(2, problem), wire.InForce(1, 2)],
        [wire.Held([held], True), Confirmed(7), NotPublished(8, problem), wire.Missed(3)],
        [Deliver(publications, np.arange(count) + 1, ones, ones, ones), Credit(9, 9)],
        [DeliverSequence(1, publications), Heartbeat()],
    ]
    found = []
    for each in messages:
        accepting = Connection.accepting()
        accepting.receive(written(Connection.connecting(Hello("desk-7", 5))))
        accepting.welcome(Welcome("a", 9))
        for message in each:
            accepting.send(message)
        found.append(written(accepting))
    return found
