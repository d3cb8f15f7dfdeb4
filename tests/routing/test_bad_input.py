"""Messages that cannot be accepted are refused with a reason, and change nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from support.broker_network import BrokerHarness, Network, state_of
from tidegate.errors import RoutingError
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Evolve, Periodic
from tidegate.language.filters import Filter, parse
from tidegate.language.limits import Limits
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.routing.broker import Broker, BrokerLimits
from tidegate.routing.messages import (
    Accept,
    Address,
    Advertise,
    AdvertisementDelta,
    Announce,
    Cancel,
    Client,
    Connect,
    Delegate,
    Deliver,
    Disconnect,
    FilterDelta,
    HandOver,
    InForce,
    Key,
    Message,
    Notify,
    NotifyChain,
    Probe,
    Publication,
    Publish,
    Refused,
    Release,
    Resume,
    Seek,
    SeekReply,
    Stamp,
    Subscribe,
    Suspend,
    Unadvertise,
    Undelegate,
    Unsubscribe,
    Update,
)
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.overlay.graph import Announcement
from tidegate.routing.patterns.delegation import LEVELS_MAX
from tidegate.routing.strategies import strategy

ANN, BOB = Client("ann"), Client("bob")
ADVERTISEMENT = parse_advertisement("x > 1")
KEY, UNKNOWN = Key(1, None), Key(99, None)
LONG = parse(f"x = '{'a' * 58}'")
LONG_AD = parse_advertisement(str(LONG))
SMALL = BrokerLimits(
    Limits(length_chars_max=60, pattern_steps_max=3, disjuncts_max=5),
    per_client_max=3,
    delta_items_max=2,
)


def a_broker() -> BrokerHarness:
    """Broker m, neighbours p and q, with subscriptions, advertisements and patterns."""
    harness = BrokerHarness(Broker("m", strategy("advertisement"), limits=SMALL), "p", "q")
    harness.advertise("p", parse_advertisement("x > 0 and y > 0"))
    harness.send(ANN, Subscribe("x > 5"))
    harness.send(ANN, Subscribe("x = 1 then x = 2"))
    harness.send(ANN, Advertise("z > 0"))
    harness.subscribe("q", parse("x > 3"))
    harness.send("q", Delegate(7, parse_pattern("y = 1 then y = 2"), 2))
    return harness


def refusal(broker: Broker, sender: Address, message: Message) -> str:
    """The reason for which a message is refused; the state of the broker must not change."""
    before = state_of(broker)
    ((receiver, answer),) = broker.handle(message, sender, now_us=50)
    assert receiver == sender
    assert isinstance(answer, Refused)
    assert answer.request is message
    assert state_of(broker) == before
    return answer.reason


@pytest.mark.parametrize(
    ("sender", "message"),
    [
        (ANN, Subscribe("y > 5")),
        (ANN, Unsubscribe("x > 5")),
        (ANN, Suspend()),
        ("q", FilterDelta((), (Key(2, None),))),
        ("q", Undelegate(7)),
        ("q", Disconnect()),
        ("q", Probe("far", 1)),
        ("q", Announce((Announcement("far", 1, ()),))),
    ],
    ids=str,
)
def test_accepted_messages_change_the_state(sender: Address, message: Message) -> None:
    broker = a_broker().broker
    before = state_of(broker)
    assert state_of(broker) == before
    assert not any(isinstance(sent, Refused) for _, sent in broker.handle(message, sender, 50))
    assert state_of(broker) != before


def publication(time: datetime | None = None) -> Publication:
    return Publication(Event.of({"x": 9}, time), Stamp("far", 0, 1), "pub")


NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOT_CONSTANT = ["x > :limit", "x > t", "x > @load", "x > now()"]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Subscribe("x > "), "^"),
        (Subscribe("x > 5 then y ="), "^"),
        (Subscribe("x > 5" + " and x > 5" * 20), "at most 60"),
        (Subscribe(" then ".join(["x = 1"] * 4)), "at most 3 steps"),
        (Subscribe(Pattern((parse("x = 1"),) * 4)), "between 1 and 3 steps, not 4"),
        (Subscribe(Pattern(())), "between 1 and 3 steps, not 0"),
        (Subscribe(LONG), "has 64 characters; at most 60"),
        (Subscribe(Pattern((parse("x = 1"), LONG))), "has 64 characters; at most 60"),
        (Subscribe(" or ".join(f"x={n}" for n in range(6))), "more than 5 disjuncts"),
        (Advertise(LONG_AD), "has 64 characters; at most 60"),
        (Unsubscribe("x > 4 and"), "^"),
        (Unsubscribe("y > 5"), "'ann' has no subscription that `y > 5` covers"),
        (Unsubscribe("x > 7"), "'ann' has no subscription that `x > 7` covers"),
        (Unsubscribe("x = 1 then x = 3"), "has no subscription that `x = 1 then x = 3` covers"),
        (Advertise("x >"), "^"),
        (Advertise("x > :p"), "made of constants"),
        (Unadvertise("x > 0"), "'ann' has no advertisement that `x > 0` covers"),
        (Unadvertise("z > 1"), "'ann' has no advertisement that `z > 1` covers"),
        (Publish(Event.of({"x": 1})), "'ann' has not advertised such an event"),
        (Resume("p"), "'ann' is at 'm' already"),
        (Deliver(publication()), "a client cannot send Deliver"),
        (FilterDelta(), "a client cannot send FilterDelta"),
    ],
    ids=str,
)  # fmt: skip
def test_requests_of_a_client(message: Message, reason: str) -> None:
    assert reason in refusal(a_broker().broker, ANN, message)


@pytest.mark.parametrize("text", NOT_CONSTANT)
@pytest.mark.parametrize("call", [Subscribe, Unsubscribe])
def test_filters_with_values_that_change(
    text: str, call: type[Subscribe] | type[Unsubscribe]
) -> None:
    for wanted in (text, parse(text), f"y = 1 then {text}"):
        assert "has values that change" in refusal(a_broker().broker, ANN, call(wanted))


def test_the_place_that_does_not_parse_is_shown() -> None:
    reason = refusal(a_broker().broker, ANN, Subscribe("x > 5 and y ~ 3"))
    *_, line, carets = reason.splitlines()
    assert line[carets.index("^")] == "~"


@pytest.mark.parametrize("message", [Suspend(), Resume(), Resume("m")])
def test_who_is_not_known_here(message: Message) -> None:
    assert "'bob' is not known here" in refusal(a_broker().broker, BOB, message)


def test_too_many_subscriptions_and_advertisements() -> None:
    harness = a_broker()
    harness.send(ANN, Subscribe("y = 3"))
    assert "'ann' has 3 subscriptions" in refusal(harness.broker, ANN, Subscribe("y = 4"))
    for z in (-1, -2):
        harness.send(ANN, Advertise(f"z = {z}"))
    assert "'ann' has 3 advertisements" in refusal(harness.broker, ANN, Advertise("z = -3"))
    assert harness.send(BOB, Subscribe("y = 4")) != {}  # others still can


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Subscribe("x > 5"), "a broker cannot send Subscribe"),
        (FilterDelta((), (KEY, UNKNOWN)), "'q' removes or updates"),
        (FilterDelta(((UNKNOWN, parse("x > 1")),), (Key(2, "tree"),)), "'q' removes or updates"),
        (AdvertisementDelta((), (UNKNOWN,)), "'q' removes or updates"),
        (FilterDelta(tuple((Key(n, None), parse("x > 1")) for n in range(3))), "at most 2"),
        (AdvertisementDelta(tuple((Key(n, None), ADVERTISEMENT) for n in range(3))), "at most 2"),
        (FilterDelta(((Key(8, "p"), parse("x > 1")),)), "has one tree only"),
        (FilterDelta(((Key(8, None), parse("x > 1")), (Key(9, None), parse("x > :p")))), "known"),
        (FilterDelta(((Key(8, None), parse("x > 1")), (Key(9, None), parse("x > t")))), "known"),
        (Delegate(8, parse_pattern("x = 1 then x = :p"), 2), "has values that change"),
        (Delegate(8, parse_pattern("x = 1 then x = 2"), LEVELS_MAX), f"at most {LEVELS_MAX} times"),
        (Delegate(8, parse_pattern("x = 1 then x = 2"), -1), f"at most {LEVELS_MAX} times"),
        (Delegate(8, Pattern((parse("x = 1"),) * 4), 2), "between 1 and 3 steps"),
        (Undelegate(8), "'q' has not delegated a pattern 8"),
        (FilterDelta(((Key(8, None), parse("x > 1")), (Key(9, None), LONG))), "at most 60"),
        (AdvertisementDelta(((KEY, ADVERTISEMENT), (UNKNOWN, LONG_AD))), "at most 60"),
        (Delegate(8, Pattern((parse("x = 1"), LONG)), 2), "at most 60"),
        (Notify(publication()), "must have its time of publication"),
        (Notify(publication(NOW), "p"), "has one tree only"),
        (Notify(publication(NOW), None, frozenset("p")), "a list of targets, which this routing"),
        (Probe("far", 1, "p"), "has one tree only"),
        (Seek("far", 1, BOB, "m", "p"), "has one tree only"),
        (SeekReply("far", 1, False), "no client moves"),
        (Release("far", 1), "no client moves"),
        (HandOver("far", 1, ()), "no client moves"),
        (Connect("d", 1), "'q' is a neighbour of 'm' already"),
        (Connect("e", 1), "'m' is not in the domain 'e', but in: d"),
        (Accept("d", 1), "'q' was not asked to be a neighbour"),
    ],
    ids=str,
)  # fmt: skip
def test_messages_of_a_neighbour(message: Message, reason: str) -> None:
    assert reason in refusal(a_broker().broker, "q", message)


def test_a_message_that_nobody_knows() -> None:
    broker = a_broker().broker
    assert "cannot send str" in refusal(broker, "q", "hello")  # type: ignore[arg-type]
    assert "cannot send str" in refusal(broker, ANN, "hello")  # type: ignore[arg-type]


def test_values_of_other_types() -> None:
    broker = a_broker().broker
    wanted: Filter = "x > 1"  # type: ignore[assignment]
    assert "not for x > 1" in refusal(broker, "q", FilterDelta(((UNKNOWN, wanted),)))
    assert "not int" in refusal(broker, ANN, Subscribe(5))  # type: ignore[arg-type]
    assert "not int" in refusal(broker, ANN, Advertise(5))  # type: ignore[arg-type]


def test_a_tree_is_named_where_each_source_has_one() -> None:
    network = Network([("m", "q")], architecture=Architecture.GENERAL)
    broker = network.brokers["m"]
    wanted = FilterDelta(((Key(1, None), parse("x > 1")),))
    assert "a tree for each source" in refusal(broker, "q", wanted)
    assert "a tree for each source" in refusal(broker, "q", Notify(publication(NOW)))


@pytest.mark.parametrize(
    "message",
    [
        FilterDelta(((KEY, parse("x > 1")),)),
        AdvertisementDelta(),
        Notify(publication(NOW)),
        Delegate(1, parse_pattern("x = 1 then x = 2"), 1),
        Announce((Announcement("stranger", 1, ()),)),
        Probe("stranger", 1),
        Seek("stranger", 1, ANN, "m"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_who_is_no_neighbour(message: Message) -> None:
    reason = refusal(a_broker().broker, "stranger", message)
    assert reason == "'stranger' is not a neighbour of 'm'; connect first"


def test_a_disconnect_of_a_stranger_changes_nothing() -> None:
    broker = a_broker().broker
    before = state_of(broker)
    assert broker.handle(Disconnect(), "stranger", 50) == []
    assert state_of(broker) == before


def test_chains_of_another_length_than_the_part() -> None:
    harness = a_broker()
    harness.send(BOB, Subscribe("x = 3 then y = 4"))
    ((_, delegate),) = harness.others
    assert isinstance(delegate, Delegate)
    for events in ((), (publication(NOW),)):
        reason = refusal(harness.broker, "p", NotifyChain(delegate.number, events))
        assert f"'p' has {len(events)} events for 2 steps" in reason
    assert "time of publication" in refusal(
        harness.broker, "p", NotifyChain(delegate.number, (publication(),) * 2)
    )


# -- named subscriptions ------------------------------------------------------------------------


def a_broker_with_names() -> BrokerHarness:
    """Broker m, where ann has a static and an evolving named subscription, and q some filters."""
    limits = BrokerLimits(Limits(length_chars_max=60), per_client_max=4)
    harness = BrokerHarness(Broker("m", strategy("subscription"), limits=limits), "p", "q")
    harness.send(ANN, Subscribe("x < :n", "s", {"n": 5}, version=3))
    harness.send(ANN, Subscribe("x < :n + t", "evolving", {"n": 5}, Periodic(1.0), version=4))
    harness.send("q", FilterDelta(((KEY, parse("x > 3 and y = 'a'")),)))
    harness.send("q", FilterDelta(((Key(2, None), EvolvingFilter(parse("x > 3 - t"), 5)),)))
    return harness


def bad(thing: object) -> Any:
    """A value of a type that is wrong here."""
    return thing


@pytest.mark.parametrize(
    ("sender", "message"),
    [
        (ANN, Subscribe("y < :n", "new", version=9)),
        (ANN, Update("s", 9, {"n": 6})),
        (ANN, Update("s", 9)),
        (ANN, Update("evolving", 9, {"n": 6})),
        (ANN, Cancel("s")),
        (ANN, Cancel("evolving")),
        (ANN, Unsubscribe("x < 100")),
        ("q", FilterDelta(updated=((KEY, ((0, 7),)),))),
        ("q", FilterDelta(updated=((Key(2, None), ((0, 7),)),))),
    ],
    ids=str,
)
def test_accepted_updates_change_the_state(sender: Address, message: Message) -> None:
    broker = a_broker_with_names().broker
    before = state_of(broker)
    assert state_of(broker) == before
    assert not any(isinstance(sent, Refused) for _, sent in broker.handle(message, sender, 50))
    assert state_of(broker) != before


NAMELESS = "the name of a subscription has 1 to 200 characters"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Subscribe("y = 1", ""), NAMELESS),
        (Subscribe("y = 1", "n" * 201), NAMELESS),
        (Subscribe("y = 1", bad(5)), NAMELESS),
        (Subscribe("y = 1", "s", version=9), "'ann' has a subscription 's' already"),
        (Subscribe("y =", "new"), "^"),
        (Subscribe("y = 1" + " or y = 1" * 20, "new"), "at most 60"),
        (Subscribe("y = 1 then y = 2", "new"), "^"),
        (Subscribe(parse_pattern("y = 1 then y = 2"), "new"), "needs a filter, not Pattern"),
        (Subscribe(bad(5), "new"), "needs a filter, not int"),
        (Subscribe("y = :p", "new", {"q": 1}), "has no parameter :q; it has :p"),
        (Subscribe("y = 1", "new", {"q": 1}), "has no parameter :q; it has none"),
        (Subscribe("y = :p", "new", {"p": bad([1])}), "parameter :p"),
        (Subscribe("y = :p", "new", {"p": 2**63}), "parameter :p"),
        (Subscribe("y = t", "new", evolve=bad("lazy")), "'lazy' is no evolve mode"),
        (Subscribe("y = t", "new", origin_us=bad("now")), "'now' is no time in microseconds"),
        (Subscribe("y = t", "new", origin_us=2**64), "is no time in microseconds"),
        (Subscribe("y = t", "new", origin_us=-(2**62)), "is no time in microseconds"),
        (Subscribe("y = 1", "new", version=bad("1")), "'1' is no version"),
        (Update("other", 9, {"n": 6}), "'ann' has no subscription 'other'"),
        (Update("s", 3, {"n": 6}), "'s' has version 3, and 3 is not later"),
        (Update("s", 2, {"n": 6}), "'s' has version 3, and 2 is not later"),
        (Update("s", bad("9"), {"n": 6}), "'9' is no version"),
        (Update("s", bad(None), {"n": 6}), "None is no version"),
        (Update("s", 9, {"m": 6}), "has no parameter :m; it has :n"),
        (Update("s", 9, {"n": 6, "m": 6}), "has no parameter :m; it has :n"),
        (Update("s", 9, {"n": bad({})}), "parameter :n"),
        (Update("s", 9, {"n": 6}, filter="x < 5"), "has no parameter :n; it has none"),
        (Update("s", 9, filter="x <"), "^"),
        (Update("s", 9, filter="x = 1" + " or x = 1" * 20), "at most 60"),
        (Update("s", 9, filter="x = 1 then x = 2"), "^"),
        (Update("s", 9, filter=bad(7)), "needs a filter, not int"),
        (Cancel("other"), "'ann' has no subscription 'other'"),
        (Unsubscribe("x < 2"), "'ann' has no subscription that `x < 2` covers"),
        (Unsubscribe("x < t"), "has values that change"),
        (InForce("s", 3), "a client cannot send InForce"),
    ],
    ids=str,
)  # fmt: skip
def test_requests_about_a_name(message: Message, reason: str) -> None:
    assert reason in refusal(a_broker_with_names().broker, ANN, message)


def test_a_name_is_known_for_its_own_client_only() -> None:
    broker = a_broker_with_names().broker
    for message in (Update("s", 9, {"n": 6}), Cancel("s")):
        assert "'bob' has no subscription 's'" in refusal(broker, BOB, message)


def test_too_many_with_a_name() -> None:
    harness = a_broker_with_names()
    harness.send(ANN, Subscribe("y = 1"))
    harness.send(ANN, Subscribe("y = 2", "third", version=5))
    most = "'ann' has 4 subscriptions, which is the most"
    assert most in refusal(harness.broker, ANN, Subscribe("y = 3", "fourth", version=6))
    assert most in refusal(harness.broker, ANN, Subscribe("y = 3"))


def cells(*cells: object) -> FilterDelta:
    return FilterDelta(updated=((KEY, bad(cells)),))


FINE = (Key(9, None), parse("y > 1"))


def evolving(filter: Filter, origin_us: int, evolve: Evolve | None = None) -> FilterDelta:
    """A delta with a filter that is fine and an evolving one."""
    return FilterDelta((FINE, (UNKNOWN, EvolvingFilter(filter, origin_us, evolve))))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (FilterDelta(updated=((UNKNOWN, ((0, 1),)),)), "'q' removes or updates"),
        (FilterDelta(updated=((Key(1, "p"), ((0, 1),)),)), "'q' removes or updates"),
        (FilterDelta((FINE,), updated=((Key(9, None), ((0, 1),)),)), "'q' removes or updates"),
        (cells((2, 1)), "has no cell 2; its 2 cells are numbered from 0"),
        (cells((-1, 1)), "has no cell -1; its 2 cells are numbered from 0"),
        (cells((0, 1), (7, 1)), "has no cell 7; its 2 cells are numbered from 0"),
        (cells(("0", 1)), "has no cell '0'"),
        (cells((0, None)), "a cell must hold a value, not "),
        (cells((0, float("nan"))), "a cell must hold a value, not "),
        (cells((0, [1])), "a cell cannot hold this value"),
        (cells((0, 2**63)), "a cell cannot hold this value"),
        (FilterDelta((FINE,), (Key(2, None),), ((KEY, ((5, 1),)),)), "has no cell 5"),
        (evolving(parse("x < :p + t"), 0), "has parameters or variables"),
        (evolving(parse("x < @v + t"), 0), "has parameters or variables"),
        (evolving(parse("x < t"), bad("now")), "it needs the time in micro"),
        (evolving(parse("x < t"), 10**400), "it needs the time in micro"),
        (evolving(parse("x < t"), 0, bad("lazy")), "it needs the time"),
        (evolving(bad("x < t"), 0), "not for x < t since 0 us"),
        (FilterDelta(((UNKNOWN, parse("x < t")),)), "whose values are known, not for x < t"),
        (FilterDelta(((UNKNOWN, parse("x < @v")),)), "whose values are known, not for x < @v"),
        (Update("s", 9, {"n": 6}), "a broker cannot send Update"),
        (Cancel("s"), "a broker cannot send Cancel"),
        (InForce("s", 9), "a broker cannot send InForce"),
    ],
    ids=lambda each: str(each)[:80],
)  # fmt: skip
def test_filters_and_cells_that_a_neighbour_may_not_send(message: Message, reason: str) -> None:
    assert reason in refusal(a_broker_with_names().broker, "q", message)


# -- joining ------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", [Architecture.ACYCLIC, Architecture.HIERARCHICAL])
def test_a_link_that_would_close_a_cycle(architecture: Architecture) -> None:
    network = Network([("a", "b"), ("b", "c")], architecture=architecture)
    is_hierarchy = architecture is Architecture.HIERARCHICAL
    before = {name: state_of(each) for name, each in network.brokers.items()}
    network.take("c", network.brokers["c"].join("a", "d", 1, as_client=is_hierarchy))
    network.run()
    (refused,) = network.refused
    assert "there is a path from 'a' to 'c' in the domain 'd' already" in refused.reason
    assert architecture.value in refused.reason
    assert {name: state_of(each) for name, each in network.brokers.items()} == before


def test_a_second_master() -> None:
    network = Network([("s", "m")], architecture=Architecture.HIERARCHICAL)
    network.add("n")
    broker = network.brokers["s"]
    before = state_of(broker)
    with pytest.raises(RoutingError, match="'s' has a master already, or has asked one, 'm'"):
        broker.join("n", "d", 1, as_client=True)
    assert state_of(broker) == before


def test_a_second_master_before_the_first_has_answered() -> None:
    network = Network([], architecture=Architecture.HIERARCHICAL)
    for name in "smn":
        network.add(name)
    network.take("s", network.brokers["s"].join("m", "d", 1, as_client=True))
    with pytest.raises(RoutingError, match="has asked one, 'm'"):
        network.brokers["s"].join("n", "d", 1, as_client=True)
    network.run()
    assert network.brokers["s"].domains.by_name["d"].master == "m"


@pytest.mark.parametrize(
    ("architecture", "request_", "reason"),
    [
        (Architecture.ACYCLIC, Connect("d", 1, master=True), "to a neighbour, not to a master"),
        (Architecture.HIERARCHICAL, Connect("d", 1), "so a broker connects to a master"),
        (Architecture.GENERAL, Connect("d", -1), "0 us or more, not -1"),
        (Architecture.GENERAL, Connect("e", 1), "'m' is not in the domain 'e', but in: d"),
    ],
)  # fmt: skip
def test_requests_to_connect(architecture: Architecture, request_: Connect, reason: str) -> None:
    broker = Broker("m", strategy("subscription"))
    broker.add_domain(Domain("d", architecture, "m"))
    assert reason in refusal(broker, "new", request_)


def test_a_broker_is_no_neighbour_of_itself() -> None:
    assert "of itself" in refusal(a_broker().broker, "m", Connect("d", 1))


def test_a_broker_without_a_domain_has_no_neighbours() -> None:
    broker = Broker("m", strategy("subscription"))
    assert "but in: none" in refusal(broker, "new", Connect("d", 1))
    with pytest.raises(RoutingError, match="is not in the domain 'd'"):
        broker.join("new", "d", 1)


def test_an_answer_for_another_domain_leaves_the_request_open() -> None:
    broker = a_broker().broker
    broker.join("new", "d", 1)
    assert "was not asked to be a neighbour in 'e'" in refusal(broker, "new", Accept("e", 1))
    broker.handle(Accept("d", 1), "new", 60)
    assert "new" in broker.domains.domain_of


def test_only_the_refusal_of_the_request_itself_ends_it() -> None:
    broker = a_broker().broker
    ((_, request),) = broker.join("new", "d", 1)
    broker.handle(Refused(FilterDelta(), "you are no neighbour"), "new", 50)
    assert broker.knows("new")
    broker.handle(Refused(request, "no"), "new", 50)
    assert not broker.knows("new")


def test_who_is_asked_or_linked_already() -> None:
    broker = a_broker().broker
    broker.join("new", "d", 1)
    for peer in ("new", "q"):
        with pytest.raises(RoutingError, match="is a neighbour of 'm' already, or was asked"):
            broker.join(peer, "d", 1)
    with pytest.raises(RoutingError, match="'new' is not a neighbour of 'm'"):
        broker.leave("new", 50)
