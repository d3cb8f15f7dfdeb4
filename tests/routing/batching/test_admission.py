"""Which events of a batch are routed, and with which stamps; see also `test_event_batches`."""

from __future__ import annotations

from support.twin_brokers import incoming_of
from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.routing.batching.admission import Admission
from tidegate.routing.broker import Broker
from tidegate.routing.messages import Advertise, Client, Notify, Publication, Publish, Stamp
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.strategies import strategy

PUB = Client("pub")


def broker(*, only_advertised: bool = False) -> Broker:
    made = Broker("me", strategy("subscription"), begun_us=3, only_advertised=only_advertised)
    domain = Domain("d", Architecture.ACYCLIC, "me")
    domain.link("peer", 1)
    made.add_domain(domain)
    return made


def test_a_refused_event_uses_up_no_stamp() -> None:
    made = broker(only_advertised=True)
    made.handle(Advertise("x > 0"), PUB, 7)
    sent = [(PUB, Publish(Event({"x": x}))) for x in (1, -1, 2)]
    admitted = Admission(made, incoming_of(sent)).admitted()
    assert admitted.routed.tolist() == [True, False, True]
    assert list(admitted.refused) == [1]
    assert admitted.stamps.numbers.tolist() == [1, 0, 2]
    assert admitted.publication(2) == Publication(
        Event({"x": 2}, from_us(7)), Stamp("me", 3, 2), "pub"
    )


def test_a_second_copy_is_dropped_also_within_a_batch() -> None:
    made = broker()

    def copy(number: int) -> tuple[str, Notify]:
        event = Event({"x": 1}, from_us(1))
        return "peer", Notify(Publication(event, Stamp("far", 1, number), "pub"))

    admitted = Admission(made, incoming_of([copy(2), copy(1), copy(2), copy(3)])).admitted()
    assert admitted.routed.tolist() == [True, False, False, True]
    assert admitted.refused == {}
    again = Admission(made, incoming_of([copy(3)])).admitted()
    assert again.routed.tolist() == [False]


def test_the_events_of_the_caller_stay_as_they_are() -> None:
    made = broker()
    incoming = incoming_of([(PUB, Publish(Event({"x": 1})))])
    before = incoming.batch.time(0)
    assert Admission(made, incoming).admitted().batch.time(0) is not None
    assert incoming.batch.time(0) is before is None
