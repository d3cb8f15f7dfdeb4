"""The figures of Siena's section 4.2 step by step: what is sent, and who asked for what.

`airline is not null` is the paper's "airline any". Each step gives, for each neighbour, the filters
that it is sent and those that are taken back.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from support.broker_network import Around, Network
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.routing.broker import Broker
from tidegate.routing.messages import (
    Client,
    Delegate,
    Interests,
    Notify,
    NotifyChain,
    Offers,
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


def roots(around: Around) -> list[str]:
    return [str(node.item) for node in around.broker.subscriptions.poset.roots()]


def children(around: Around, text: str) -> list[str]:
    node = around.broker.subscriptions.poset.find(parse(text))
    assert node is not None
    return [str(each.item) for each in node.children]


def nst(around: Around, text: str) -> set[str]:
    """The neighbours that are not down the spanning tree of anyone who asked for a filter."""
    node = around.broker.subscriptions.poset.find(parse(text))
    assert node is not None
    down = {label.peer for label in around.broker.around.away_from(node.subscribers)}
    return set(around.filters) - down


def publication(number: int = 1, **attributes: object) -> Publication:
    return Publication(Event.of(attributes, _at(number)), Stamp("far", 0, number), "pub")


def _at(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


# -- the poset ----------------------------------------------------------------------------------


def test_a_poset_of_simple_subscriptions() -> None:
    around = Around(Broker("1", strategy("subscription")))
    texts = [
        "orig = 'DEN'",
        "orig = 'DEN' and airline = 'UA' and price < 500",
        "price < 500",
        "orig = 'DEN' and airline = 'UA' and price < 400 and dest = 'MXP'",
        "orig = 'DEN' and airline = 'UA' and price < 400",
    ]
    for number, text in enumerate(texts):
        around.tell(Client(f"c{number}"), Subscribe(text))
    den, narrow, cheap, narrowest, narrower = texts
    assert roots(around) == [den, cheap]
    assert children(around, den) == children(around, cheap) == [narrow]
    assert children(around, narrow) == [narrower]
    assert children(around, narrower) == [narrowest]


# -- the hierarchical server (4.2.1) ------------------------------------------------------------


def hierarchical_server() -> Around:
    """Server 1, whose master is server 2."""
    return Around(Broker("1", strategy("subscription")), "2", master="2")


def test_subscriptions_at_a_hierarchical_server() -> None:
    around = hierarchical_server()

    assert around.tell(A, Subscribe(UA)) == {"2": ([UA], [])}
    assert around.poset() == {UA: ({"a"}, {"2"})}

    assert around.tell(B, Subscribe(UA_DEN)) == {}  # covered by what the master has
    assert around.poset() == {UA: ({"a"}, {"2"}), UA_DEN: ({"b"}, set())}
    assert children(around, UA) == [UA_DEN]

    assert around.tell(A, Subscribe(ANY)) == {"2": ([ANY], [UA])}
    assert around.poset() == {ANY: ({"a"}, {"2"}), UA_DEN: ({"b"}, set())}  # a no longer needs UA
    assert roots(around) == [ANY]
    assert children(around, ANY) == [UA_DEN]


def test_unsubscription_at_a_hierarchical_server() -> None:
    around = hierarchical_server()
    for client, text in ((A, UA), (B, UA_DEN), (A, ANY)):
        around.tell(client, Subscribe(text))

    assert around.tell(A, Unsubscribe(ANY)) == {"2": ([UA_DEN], [ANY])}
    assert around.poset() == {UA_DEN: ({"b"}, {"2"})}
    assert roots(around) == [UA_DEN]
    assert around.filters["2"].texts() == [UA_DEN]

    assert around.tell(B, Unsubscribe(UA)) == {"2": ([], [UA_DEN])}  # UA covers it
    assert around.poset() == {}


def test_a_hierarchical_server_sends_events_to_its_master_in_any_case() -> None:
    around = hierarchical_server()
    around.tell(A, Subscribe(UA))
    around.tell(B, Publish(Event.of({"airline": "AZ"})))
    ((receiver, message),) = around.others
    assert receiver == "2"
    assert isinstance(message, Notify)

    around.tell(B, Publish(Event.of({"airline": "UA"})))
    assert [receiver for receiver, _ in around.others] == [A, "2"]

    around.tell("2", Notify(publication(airline="UA")))  # not back to where it came from
    assert [receiver for receiver, _ in around.others] == [A]


def test_a_hierarchical_server_takes_servers_below_it_as_clients() -> None:
    around = Around(Broker("1", strategy("subscription")), "2", "3", "4", master="2")
    assert around.want("3", parse(UA)) == {"2": ([UA], [])}
    assert around.poset() == {UA: ({"3"}, {"2"})}
    around.tell("4", Notify(publication(airline="UA")))
    assert [receiver for receiver, _ in around.others] == ["3", "2"]


# -- peer-to-peer servers, subscription forwarding (4.2.2) --------------------------------------


def peer_server(routing: str = "subscription") -> Around:
    """Server 1, whose neighbours are 2, 3 and 4; client a is its own."""
    return Around(Broker("1", strategy(routing)), "2", "3", "4")


def test_subscriptions_at_a_peer_to_peer_server() -> None:
    around = peer_server()

    assert around.want("3", parse(ANY)) == {"2": ([ANY], []), "4": ([ANY], [])}
    assert around.poset() == {ANY: ({"3"}, {"2", "4"})}
    assert nst(around, ANY) == {"3"}

    assert around.want("2", parse(UA_DEN)) == {"3": ([UA_DEN], [])}
    assert around.poset() == {ANY: ({"3"}, {"2", "4"}), UA_DEN: ({"2"}, {"3"})}
    assert children(around, ANY) == [UA_DEN]
    assert nst(around, UA_DEN) == {"2"}

    assert around.tell(A, Subscribe(ANY)) == {"3": ([ANY], [UA_DEN])}
    assert around.poset() == {ANY: ({"3", "a"}, {"2", "3", "4"}), UA_DEN: ({"2"}, set())}
    assert nst(around, ANY) == set()


def test_unsubscription_at_a_peer_to_peer_server() -> None:
    around = peer_server()
    around.tell(A, Subscribe(UA))
    around.tell(A, Subscribe(AZ))
    around.want("2", parse(UA))
    around.want("3", parse(UA_PRICE))
    around.want("2", parse(UA_DEN))
    around.want("4", parse(AZ_PRICE))
    all_three = {"2", "3", "4"}
    assert around.poset() == {
        UA: ({"a", "2"}, all_three),
        AZ: ({"a"}, all_three),
        UA_PRICE: ({"3"}, set()),
        UA_DEN: ({"2"}, set()),
        AZ_PRICE: ({"4"}, set()),
    }
    assert roots(around) == [UA, AZ]
    assert nst(around, UA) == set()

    told = around.tell(A, Unsubscribe(ANY))
    assert told == {
        "2": ([AZ_PRICE, UA_PRICE], [AZ, UA]),  # UA came from there, and hides the price no more
        "3": ([AZ_PRICE], [AZ]),
        "4": ([], [AZ]),  # the narrower one came from there
    }
    assert around.poset() == {
        UA: ({"2"}, {"3", "4"}),
        UA_PRICE: ({"3"}, {"2"}),
        UA_DEN: ({"2"}, set()),  # 3 and 4 have UA, and 2 has asked for it
        AZ_PRICE: ({"4"}, {"2", "3"}),
    }
    assert roots(around) == [UA, AZ_PRICE]
    assert nst(around, UA) == {"2"}


def test_the_unsubscription_of_a_peer() -> None:
    around = peer_server()
    around.want("3", parse(ANY))
    around.want("2", parse(UA_DEN))
    gone = Interests((), (around.name_of("3", ANY),))
    assert around.tell("3", gone) == {"2": ([], [ANY]), "4": ([UA_DEN], [ANY])}
    assert around.poset() == {UA_DEN: ({"2"}, {"3", "4"})}


def test_notifications_go_where_matching_subscriptions_came_from() -> None:
    around = peer_server()
    around.want("3", parse(ANY))
    around.want("2", parse(UA_DEN))
    around.tell(A, Subscribe(AZ))
    receivers = []
    for number, (sender, airline, dest) in enumerate(
        [("4", "UA", "DEN"), ("4", "AZ", "MXP"), ("3", "UA", "DEN"), ("3", "UA", "MXP")], 1
    ):
        around.tell(sender, Notify(publication(number, airline=airline, dest=dest)))
        receivers.append({str(getattr(each, "identity", each)) for each, _ in around.others})
    assert receivers == [{"2", "3"}, {"3", "a"}, {"2"}, set()]


def test_a_new_peer_gets_the_root_subscriptions_and_loses_them_when_it_leaves() -> None:
    network = Network([("1", "2"), ("1", "3")])
    network.subscribe("2", "a", ANY)
    network.run()
    network.subscribe("3", "b", UA_DEN)
    network.run()
    network.connect("4", "1")
    new = network.brokers["4"]
    assert [str(node.item) for node in new.subscriptions.held_by("1")] == [ANY]
    network.take("4", new.leave("1", network.now_us))
    network.run()
    assert len(new.subscriptions.poset) == 0
    for node in network.brokers["1"].subscriptions.poset:
        assert all(getattr(label, "peer", None) != "4" for label in node.forwards)


# -- advertisement forwarding (4.2.3) -----------------------------------------------------------

FLIGHTS = "airline is not null and dest is not null and price > 0"
UA_FLIGHTS = "airline = 'UA' and dest is not null"


def test_advertisements_are_forwarded_as_subscriptions_are() -> None:
    around = peer_server("advertisement")
    flights, ua = parse_advertisement(FLIGHTS), parse_advertisement(UA_FLIGHTS)
    assert around.offer("3", ua) == {"2": ([UA_FLIGHTS], []), "4": ([UA_FLIGHTS], [])}
    assert around.offer("2", flights) == {"3": ([FLIGHTS], []), "4": ([FLIGHTS], [UA_FLIGHTS])}
    gone = Offers((), (around.name_of("2", FLIGHTS),))
    assert around.tell("2", gone) == {"3": ([], [FLIGHTS]), "4": ([UA_FLIGHTS], [FLIGHTS])}


def test_subscriptions_go_only_to_where_an_advertisement_came_from() -> None:
    around = peer_server("advertisement")
    ua = parse_advertisement(UA_FLIGHTS)
    assert around.tell(A, Subscribe(ANY)) == {}  # nobody has it
    around.offer("3", ua)
    assert around.filters["3"].texts() == [ANY]  # at once, to the sender of the advertisement
    assert around.filters["2"].texts() == around.filters["4"].texts() == []
    assert around.want("2", parse(AZ)) == {}  # 3 has only UA
    assert around.want("3", parse(UA_DEN)) == {}  # only 3 has it, and that is who asks
    around.tell("3", Offers((), (around.name_of("3", UA_FLIGHTS),)))
    assert around.filters["3"].texts() == []


def test_a_subscription_waits_behind_a_wider_one_where_both_go() -> None:
    around = peer_server("advertisement")
    around.tell(A, Subscribe(UA))
    around.want("2", parse(ANY))
    around.offer("4", parse_advertisement(FLIGHTS))
    assert around.filters["4"].texts() == [ANY]
    around.tell("2", Interests((), (around.name_of("2", ANY),)))
    assert around.filters["4"].texts() == [UA]


# -- patterns (4.2.4) ---------------------------------------------------------------------------

ALARMS = "alarm = 'failed login' and attempts > 0"
FILES = "file is not null and operation = 'file change'"
ALARM_1 = "alarm = 'failed login' and attempts = 1"
ALARM_2 = "alarm = 'failed login' and attempts = 2"
PASSWD = "file = '/etc/passwd' and operation = 'file change'"
INTRUSION = parse_pattern(f"{ALARM_1} then {ALARM_2} then {PASSWD}")


def test_the_table_of_available_patterns_and_the_factors() -> None:
    around = peer_server("advertisement")
    around.offer("3", parse_advertisement(ALARMS))
    for peer in ("2", "4"):
        around.offer(peer, parse_advertisement(FILES))
    patterns = around.broker.patterns
    assert patterns.available(parse(ALARM_1)) == patterns.available(parse(ALARM_2)) == {"3"}
    assert patterns.available(parse(PASSWD)) == {"2", "4"}
    assert patterns.available(parse("alarm = 'fire'")) == set()
    assert patterns.factored(INTRUSION, levels=3) == [
        PatternPart(0, 2, "3"),
        PatternPart(2, 3, None),
    ]


def test_the_alarms_are_delegated_and_the_file_is_subscribed_to() -> None:
    around = peer_server("advertisement")
    around.offer("3", parse_advertisement(ALARMS))
    for peer in ("2", "4"):
        around.offer(peer, parse_advertisement(FILES))
    assert around.tell(A, Subscribe(INTRUSION)) == {"2": ([PASSWD], []), "4": ([PASSWD], [])}
    ((receiver, delegate),) = around.others
    assert receiver == "3"
    assert isinstance(delegate, Delegate)
    assert delegate.pattern == Pattern(INTRUSION.steps[:2])
    assert around.filters["3"].texts() == []

    assert around.tell(A, Unsubscribe(INTRUSION)) == {"2": ([], [PASSWD]), "4": ([], [PASSWD])}
    assert around.others == [("3", Undelegate(delegate.number))]
    assert around.poset() == {}
    assert len(around.broker.patterns) == 0


def test_the_server_that_the_alarms_are_delegated_to_monitors_them_itself() -> None:
    """Server 3 of the figure: the first filter is available at 5, the second at 6."""
    around = Around(Broker("3", strategy("advertisement")), "1", "5", "6")
    around.offer("5", parse_advertisement(ALARM_1))
    around.offer("6", parse_advertisement(ALARM_2))
    delegate = Delegate(7, Pattern(INTRUSION.steps[:2]), 2)
    assert around.tell("1", delegate) == {"5": ([ALARM_1], []), "6": ([ALARM_2], [])}
    assert around.others == []
    times = [Event.of({"alarm": "failed login", "attempts": n}) for n in (1, 2)]
    found = [
        Publication(Event.of(event, _at(second)), Stamp(peer, 0, 1), "pub")
        for second, (event, peer) in enumerate(zip(times, ("5", "6"), strict=True))
    ]
    around.tell("6", Notify(found[1]))
    around.tell("5", Notify(found[0]))  # later, but it was published earlier
    due_us = around.broker.due_us
    assert due_us is not None
    sent = around.broker.wake(due_us + 10_000_000)
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
