"""The figures of Siena's section 4.2 step by step: what is sent, and who asked for what.

`airline is not null` is the paper's "airline any". Each step has, for each neighbour, the filters
that are added and those that are removed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from support.broker_network import BrokerHarness, Network
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.routing.broker import Broker
from tidegate.routing.messages import (
    AdvertisementDelta,
    Client,
    Delegate,
    FilterDelta,
    Notify,
    NotifyChain,
    Publication,
    Publish,
    Stamp,
    Subscribe,
    Undelegate,
    Unsubscribe,
)
from tidegate.routing.patterns.delegation import PatternPart
from tidegate.routing.strategies import strategy

A, B = Client("a"), Client("b")
ANY = "airline is not null"
UA = "airline = 'UA'"
UA_DEN = "airline = 'UA' and dest = 'DEN'"
UA_PRICE = "airline = 'UA' and price < 500"
AZ = "airline = 'AZ'"
AZ_PRICE = "airline = 'AZ' and price < 500"


def roots(harness: BrokerHarness) -> list[str]:
    return [str(node.item) for node in harness.broker.subscriptions.poset if node.is_root]


def children(harness: BrokerHarness, text: str) -> list[str]:
    node = harness.broker.subscriptions.poset.find(parse(text))
    assert node is not None
    return [str(each.item) for each in node.children]


def nst(harness: BrokerHarness, text: str) -> set[str]:
    """The neighbours that are not down the spanning tree of anyone who asked for a filter."""
    node = harness.broker.subscriptions.poset.find(parse(text))
    assert node is not None
    down = {
        destination.peer
        for destination in harness.broker.domains.destinations_away_from(node.subscribers)
    }
    return set(harness.filters) - down


def publication(number: int = 1, **attributes: object) -> Publication:
    return Publication(Event.of(attributes, _at(number)), Stamp("far", 0, number), "pub")


def _at(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


# -- the poset ----------------------------------------------------------------------------------


def test_a_poset_of_simple_subscriptions() -> None:
    harness = BrokerHarness(Broker("1", strategy("subscription")))
    texts = [
        "orig = 'DEN'",
        "orig = 'DEN' and airline = 'UA' and price < 500",
        "price < 500",
        "orig = 'DEN' and airline = 'UA' and price < 400 and dest = 'MXP'",
        "orig = 'DEN' and airline = 'UA' and price < 400",
    ]
    for number, text in enumerate(texts):
        harness.send(Client(f"c{number}"), Subscribe(text))
    den, narrow, cheap, narrowest, narrower = texts
    assert roots(harness) == [den, cheap]
    assert children(harness, den) == children(harness, cheap) == [narrow]
    assert children(harness, narrow) == [narrower]
    assert children(harness, narrower) == [narrowest]


# -- the hierarchical server (4.2.1) ------------------------------------------------------------


def hierarchical_server() -> BrokerHarness:
    """Server 1, whose master is server 2."""
    return BrokerHarness(Broker("1", strategy("subscription")), "2", master="2")


def test_subscriptions_at_a_hierarchical_server() -> None:
    harness = hierarchical_server()

    assert harness.send(A, Subscribe(UA)) == {"2": ([UA], [])}
    assert harness.poset() == {UA: ({"a"}, {"2"})}

    assert harness.send(B, Subscribe(UA_DEN)) == {}  # covered by what the master has
    assert harness.poset() == {UA: ({"a"}, {"2"}), UA_DEN: ({"b"}, set())}
    assert children(harness, UA) == [UA_DEN]

    assert harness.send(A, Subscribe(ANY)) == {"2": ([ANY], [UA])}
    assert harness.poset() == {ANY: ({"a"}, {"2"}), UA_DEN: ({"b"}, set())}  # a no longer needs UA
    assert roots(harness) == [ANY]
    assert children(harness, ANY) == [UA_DEN]


def test_unsubscription_at_a_hierarchical_server() -> None:
    harness = hierarchical_server()
    for client, text in ((A, UA), (B, UA_DEN), (A, ANY)):
        harness.send(client, Subscribe(text))

    assert harness.send(A, Unsubscribe(ANY)) == {"2": ([UA_DEN], [ANY])}
    assert harness.poset() == {UA_DEN: ({"b"}, {"2"})}
    assert roots(harness) == [UA_DEN]
    assert harness.filters["2"].texts() == [UA_DEN]

    assert harness.send(B, Unsubscribe(UA)) == {"2": ([], [UA_DEN])}  # UA covers it
    assert harness.poset() == {}


def test_a_hierarchical_server_sends_events_to_its_master_in_any_case() -> None:
    harness = hierarchical_server()
    harness.send(A, Subscribe(UA))
    harness.send(B, Publish(Event.of({"airline": "AZ"})))
    ((receiver, message),) = harness.others
    assert receiver == "2"
    assert isinstance(message, Notify)

    harness.send(B, Publish(Event.of({"airline": "UA"})))
    assert [receiver for receiver, _ in harness.others] == [A, "2"]

    harness.send("2", Notify(publication(airline="UA")))  # not back to where it came from
    assert [receiver for receiver, _ in harness.others] == [A]


def test_a_hierarchical_server_takes_servers_below_it_as_clients() -> None:
    harness = BrokerHarness(Broker("1", strategy("subscription")), "2", "3", "4", master="2")
    assert harness.subscribe("3", parse(UA)) == {"2": ([UA], [])}
    assert harness.poset() == {UA: ({"3"}, {"2"})}
    harness.send("4", Notify(publication(airline="UA")))
    assert [receiver for receiver, _ in harness.others] == ["3", "2"]


# -- peer-to-peer servers, subscription forwarding (4.2.2) --------------------------------------


def peer_server(routing: str = "subscription") -> BrokerHarness:
    """Server 1, whose neighbours are 2, 3 and 4; client a is its own."""
    return BrokerHarness(Broker("1", strategy(routing)), "2", "3", "4")


def test_subscriptions_at_a_peer_to_peer_server() -> None:
    harness = peer_server()

    assert harness.subscribe("3", parse(ANY)) == {"2": ([ANY], []), "4": ([ANY], [])}
    assert harness.poset() == {ANY: ({"3"}, {"2", "4"})}
    assert nst(harness, ANY) == {"3"}

    assert harness.subscribe("2", parse(UA_DEN)) == {"3": ([UA_DEN], [])}
    assert harness.poset() == {ANY: ({"3"}, {"2", "4"}), UA_DEN: ({"2"}, {"3"})}
    assert children(harness, ANY) == [UA_DEN]
    assert nst(harness, UA_DEN) == {"2"}

    assert harness.send(A, Subscribe(ANY)) == {"3": ([ANY], [UA_DEN])}
    assert harness.poset() == {ANY: ({"3", "a"}, {"2", "3", "4"}), UA_DEN: ({"2"}, set())}
    assert nst(harness, ANY) == set()


def test_unsubscription_at_a_peer_to_peer_server() -> None:
    harness = peer_server()
    harness.send(A, Subscribe(UA))
    harness.send(A, Subscribe(AZ))
    harness.subscribe("2", parse(UA))
    harness.subscribe("3", parse(UA_PRICE))
    harness.subscribe("2", parse(UA_DEN))
    harness.subscribe("4", parse(AZ_PRICE))
    all_three = {"2", "3", "4"}
    assert harness.poset() == {
        UA: ({"a", "2"}, all_three),
        AZ: ({"a"}, all_three),
        UA_PRICE: ({"3"}, set()),
        UA_DEN: ({"2"}, set()),
        AZ_PRICE: ({"4"}, set()),
    }
    assert roots(harness) == [UA, AZ]
    assert nst(harness, UA) == set()

    told = harness.send(A, Unsubscribe(ANY))
    assert told == {
        "2": ([AZ_PRICE, UA_PRICE], [AZ, UA]),  # UA came from there, and hides the price no more
        "3": ([AZ_PRICE], [AZ]),
        "4": ([], [AZ]),  # the narrower one came from there
    }
    assert harness.poset() == {
        UA: ({"2"}, {"3", "4"}),
        UA_PRICE: ({"3"}, {"2"}),
        UA_DEN: ({"2"}, set()),  # 3 and 4 have UA, and 2 has asked for it
        AZ_PRICE: ({"4"}, {"2", "3"}),
    }
    assert roots(harness) == [UA, AZ_PRICE]
    assert nst(harness, UA) == {"2"}


def test_the_unsubscription_of_a_peer() -> None:
    harness = peer_server()
    harness.subscribe("3", parse(ANY))
    harness.subscribe("2", parse(UA_DEN))
    gone = FilterDelta((), (harness.key_of("3", ANY),))
    assert harness.send("3", gone) == {"2": ([], [ANY]), "4": ([UA_DEN], [ANY])}
    assert harness.poset() == {UA_DEN: ({"2"}, {"3", "4"})}


def test_notifications_go_where_matching_subscriptions_came_from() -> None:
    harness = peer_server()
    harness.subscribe("3", parse(ANY))
    harness.subscribe("2", parse(UA_DEN))
    harness.send(A, Subscribe(AZ))
    receivers = []
    for number, (sender, airline, dest) in enumerate(
        [("4", "UA", "DEN"), ("4", "AZ", "MXP"), ("3", "UA", "DEN"), ("3", "UA", "MXP")], 1
    ):
        harness.send(sender, Notify(publication(number, airline=airline, dest=dest)))
        receivers.append({str(getattr(each, "identity", each)) for each, _ in harness.others})
    assert receivers == [{"2", "3"}, {"3", "a"}, {"2"}, set()]


def test_a_new_peer_gets_the_root_subscriptions_and_loses_them_when_it_leaves() -> None:
    network = Network([("1", "2"), ("1", "3")])
    network.subscribe("2", "a", ANY)
    network.run()
    network.subscribe("3", "b", UA_DEN)
    network.run()
    network.connect("4", "1")
    new = network.brokers["4"]
    assert [str(node.item) for node in new.subscriptions.nodes_of_peer("1")] == [ANY]
    network.take("4", new.leave("1", network.now_us))
    network.run()
    assert len(new.subscriptions.poset) == 0
    for node in network.brokers["1"].subscriptions.poset:
        assert all(getattr(destination, "peer", None) != "4" for destination in node.forwards)


# -- advertisement forwarding (4.2.3) -----------------------------------------------------------

FLIGHTS = "airline is not null and dest is not null and price > 0"
UA_FLIGHTS = "airline = 'UA' and dest is not null"


def test_advertisements_are_forwarded_as_subscriptions_are() -> None:
    harness = peer_server("advertisement")
    flights, ua = parse_advertisement(FLIGHTS), parse_advertisement(UA_FLIGHTS)
    assert harness.advertise("3", ua) == {"2": ([UA_FLIGHTS], []), "4": ([UA_FLIGHTS], [])}
    assert harness.advertise("2", flights) == {"3": ([FLIGHTS], []), "4": ([FLIGHTS], [UA_FLIGHTS])}
    gone = AdvertisementDelta((), (harness.key_of("2", FLIGHTS),))
    assert harness.send("2", gone) == {"3": ([], [FLIGHTS]), "4": ([UA_FLIGHTS], [FLIGHTS])}


def test_subscriptions_go_only_to_where_an_advertisement_came_from() -> None:
    harness = peer_server("advertisement")
    ua = parse_advertisement(UA_FLIGHTS)
    assert harness.send(A, Subscribe(ANY)) == {}  # nobody has it
    harness.advertise("3", ua)
    assert harness.filters["3"].texts() == [ANY]  # at once, to the sender of the advertisement
    assert harness.filters["2"].texts() == harness.filters["4"].texts() == []
    assert harness.subscribe("2", parse(AZ)) == {}  # 3 has only UA
    assert harness.subscribe("3", parse(UA_DEN)) == {}  # only 3 has it, and that is who asks
    harness.send("3", AdvertisementDelta((), (harness.key_of("3", UA_FLIGHTS),)))
    assert harness.filters["3"].texts() == []


def test_a_subscription_waits_behind_a_wider_one_where_both_go() -> None:
    harness = peer_server("advertisement")
    harness.send(A, Subscribe(UA))
    harness.subscribe("2", parse(ANY))
    harness.advertise("4", parse_advertisement(FLIGHTS))
    assert harness.filters["4"].texts() == [ANY]
    harness.send("2", FilterDelta((), (harness.key_of("2", ANY),)))
    assert harness.filters["4"].texts() == [UA]


# -- patterns (4.2.4) ---------------------------------------------------------------------------

ALARMS = "alarm = 'failed login' and attempts > 0"
FILES = "file is not null and operation = 'file change'"
ALARM_1 = "alarm = 'failed login' and attempts = 1"
ALARM_2 = "alarm = 'failed login' and attempts = 2"
PASSWD = "file = '/etc/passwd' and operation = 'file change'"
INTRUSION = parse_pattern(f"{ALARM_1} then {ALARM_2} then {PASSWD}")


def test_the_table_of_available_patterns_and_the_factors() -> None:
    harness = peer_server("advertisement")
    harness.advertise("3", parse_advertisement(ALARMS))
    for peer in ("2", "4"):
        harness.advertise(peer, parse_advertisement(FILES))
    patterns = harness.broker.patterns
    assert patterns.providers(parse(ALARM_1)) == patterns.providers(parse(ALARM_2)) == {"3"}
    assert patterns.providers(parse(PASSWD)) == {"2", "4"}
    assert patterns.providers(parse("alarm = 'fire'")) == set()
    assert patterns.factored(INTRUSION, levels=3) == [
        PatternPart(0, 2, "3"),
        PatternPart(2, 3, None),
    ]


def test_the_alarms_are_delegated_and_the_file_is_subscribed_to() -> None:
    harness = peer_server("advertisement")
    harness.advertise("3", parse_advertisement(ALARMS))
    for peer in ("2", "4"):
        harness.advertise(peer, parse_advertisement(FILES))
    assert harness.send(A, Subscribe(INTRUSION)) == {"2": ([PASSWD], []), "4": ([PASSWD], [])}
    ((receiver, delegate),) = harness.others
    assert receiver == "3"
    assert isinstance(delegate, Delegate)
    assert delegate.pattern == Pattern(INTRUSION.steps[:2])
    assert harness.filters["3"].texts() == []

    assert harness.send(A, Unsubscribe(INTRUSION)) == {"2": ([], [PASSWD]), "4": ([], [PASSWD])}
    assert harness.others == [("3", Undelegate(delegate.number))]
    assert harness.poset() == {}
    assert len(harness.broker.patterns) == 0


def test_the_server_that_the_alarms_are_delegated_to_monitors_them_itself() -> None:
    """Server 3 of the figure: the first filter is available at 5, the second at 6."""
    harness = BrokerHarness(Broker("3", strategy("advertisement")), "1", "5", "6")
    harness.advertise("5", parse_advertisement(ALARM_1))
    harness.advertise("6", parse_advertisement(ALARM_2))
    delegate = Delegate(7, Pattern(INTRUSION.steps[:2]), 2)
    assert harness.send("1", delegate) == {"5": ([ALARM_1], []), "6": ([ALARM_2], [])}
    assert harness.others == []
    times = [Event.of({"alarm": "failed login", "attempts": n}) for n in (1, 2)]
    found = [
        Publication(Event.of(event, _at(second)), Stamp(peer, 0, 1), "pub")
        for second, (event, peer) in enumerate(zip(times, ("5", "6"), strict=True))
    ]
    harness.send("6", Notify(found[1]))
    harness.send("5", Notify(found[0]))  # later, but it was published earlier
    due_us = harness.broker.due_us
    assert due_us is not None
    sent = harness.broker.wake(due_us + 10_000_000)
    assert sent == [("1", NotifyChain(7, tuple(found)))]


def test_the_monitor_assembles_the_parts() -> None:
    network = Network([("1", "2"), ("1", "3"), ("1", "4"), ("3", "5")], "advertisement")
    network.advertise("5", "gate", ALARMS)
    for peer in ("2", "4"):
        network.advertise(peer, f"disk-{peer}", FILES)
    network.run()
    network.ask("1", "a", Subscribe(INTRUSION))
    network.run()
    assert {name: len(each.patterns) for name, each in network.brokers.items()} == {
        "1": 1, "2": 0, "3": 1, "4": 0, "5": 1
    }  # fmt: skip
    alarm = {"alarm": "failed login"}
    change = {"operation": "file change"}
    network.publish("4", "disk-4", file="/etc/passwd", **change)  # too early
    network.publish("5", "gate", attempts=1, **alarm)
    network.publish("5", "gate", attempts=3, **alarm)
    network.publish("5", "gate", attempts=2, **alarm)
    network.publish("2", "disk-2", file="/etc/hosts", **change)
    network.publish("2", "disk-2", file="/etc/passwd", **change)
    network.publish("4", "disk-4", file="/etc/passwd", **change)  # the match is complete
    network.wait()
    assert network.sequences("a") == [
        [
            {"attempts": 1, **alarm},
            {"attempts": 2, **alarm},
            {"file": "/etc/passwd", **change},
        ]
    ]
    assert network.delivered("a") == []
