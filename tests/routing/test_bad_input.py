"""What cannot be accepted is refused with a reason, and nothing has changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from support.broker_network import Around, Network, state_of
from tidegate.errors import RoutingError
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Periodic
from tidegate.language.filters import Filter, parse
from tidegate.language.limits import Limits
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.routing.broker import Broker, BrokerLimits
from tidegate.routing.messages import (
    Accept,
    Address,
    Advertise,
    Announce,
    Cancel,
    Client,
    Connect,
    Delegate,
    Deliver,
    Disconnect,
    HandOver,
    InForce,
    Interests,
    Key,
    Message,
    Notify,
    NotifyChain,
    Offers,
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
evolving = EvolvingFilter
OFFERED = parse_advertisement("x > 1")
KEY, UNKNOWN = Key(1, None), Key(99, None)
LONG = parse(f"x = '{'a' * 58}'")
LONG_OFFER = parse_advertisement(str(LONG))
SMALL = BrokerLimits(
    Limits(length_chars_max=60, pattern_steps_max=3, disjuncts_max=5),
    per_client_max=3,
    interests_max=2,
)


def a_broker() -> Around:
    """Broker m, neighbours p and q; it has subscriptions, advertisements and patterns of others."""
    around = Around(Broker("m", strategy("advertisement"), limits=SMALL), "p", "q")
    around.offer("p", parse_advertisement("x > 0 and y > 0"))
    around.tell(ANN, Subscribe("x > 5"))
    around.tell(ANN, Subscribe("x = 1 then x = 2"))
    around.tell(ANN, Advertise("z > 0"))
    around.want("q", parse("x > 3"))
    around.tell("q", Delegate(7, parse_pattern("y = 1 then y = 2"), 2))
    return around


def refusal(broker: Broker, sender: Address, message: Message) -> str:
    """The reason for which a message is refused, where the broker stays as it was."""
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
        ("q", Interests((), (Key(2, None),))),
        ("q", Undelegate(7)),
        ("q", Disconnect()),
        ("q", Probe("far", 1)),
        ("q", Announce((Announcement("far", 1, ()),))),
    ],
    ids=str,
)
def test_what_is_accepted_is_seen_in_the_state(sender: Address, message: Message) -> None:
    broker = a_broker().broker
    before = state_of(broker)
    assert state_of(broker) == before
    assert not any(isinstance(sent, Refused) for _, sent in broker.handle(message, sender, 50))
    assert state_of(broker) != before


def publication(time: datetime | None = None) -> Publication:
    return Publication(Event.of({"x": 9}, time), Stamp("far", 0, 1), "pub")


NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPEN = ["x > :limit", "x > t", "x > @load", "x > now()"]


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
        (Advertise(LONG_OFFER), "has 64 characters; at most 60"),
        (Unsubscribe("x > 4 and"), "^"),
        (Unsubscribe("y > 5"), "'ann' has no subscription that this covers"),
        (Unsubscribe("x > 7"), "'ann' has no subscription that this covers"),
        (Unsubscribe("x = 1 then x = 3"), "'ann' has no subscription that this covers"),
        (Advertise("x >"), "^"),
        (Advertise("x > :p"), "made of constants"),
        (Unadvertise("x > 0"), "'ann' has no advertisement that this covers"),
        (Unadvertise("z > 1"), "'ann' has no advertisement that this covers"),
        (Publish(Event.of({"x": 1})), "'ann' has not advertised such an event"),
        (Resume("p"), "'ann' is at 'm' already"),
        (Deliver(publication()), "a client cannot send Deliver"),
        (Interests(), "a client cannot send Interests"),
    ],
    ids=str,
)  # fmt: skip
def test_requests_of_a_client(message: Message, reason: str) -> None:
    assert reason in refusal(a_broker().broker, ANN, message)


@pytest.mark.parametrize("text", OPEN)
@pytest.mark.parametrize("call", [Subscribe, Unsubscribe])
def test_a_filter_whose_values_are_not_known(
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
    around = a_broker()
    around.tell(ANN, Subscribe("y = 3"))
    assert "'ann' has 3 subscriptions" in refusal(around.broker, ANN, Subscribe("y = 4"))
    for z in (-1, -2):
        around.tell(ANN, Advertise(f"z = {z}"))
    assert "'ann' has 3 advertisements" in refusal(around.broker, ANN, Advertise("z = -3"))
    assert around.tell(BOB, Subscribe("y = 4")) != {}  # others still can


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Subscribe("x > 5"), "a broker cannot send Subscribe"),
        (Interests((), (KEY, UNKNOWN)), "'q' takes back"),
        (Interests(((UNKNOWN, parse("x > 1")),), (Key(2, "tree"),)), "'q' takes back"),
        (Offers((), (UNKNOWN,)), "'q' takes back"),
        (Interests(tuple((Key(n, None), parse("x > 1")) for n in range(3))), "at most 2"),
        (Offers(tuple((Key(n, None), OFFERED) for n in range(3))), "at most 2"),
        (Interests(((Key(8, "p"), parse("x > 1")),)), "has one tree only"),
        (Interests(((Key(8, None), parse("x > 1")), (Key(9, None), parse("x > :p")))), "known"),
        (Interests(((Key(8, None), parse("x > 1")), (Key(9, None), parse("x > t")))), "known"),
        (Delegate(8, parse_pattern("x = 1 then x = :p"), 2), "has values that change"),
        (Delegate(8, parse_pattern("x = 1 then x = 2"), LEVELS_MAX), f"at most {LEVELS_MAX} times"),
        (Delegate(8, parse_pattern("x = 1 then x = 2"), -1), f"at most {LEVELS_MAX} times"),
        (Delegate(8, Pattern((parse("x = 1"),) * 4), 2), "between 1 and 3 steps"),
        (Undelegate(8), "'q' has not delegated a pattern 8"),
        (Interests(((Key(8, None), parse("x > 1")), (Key(9, None), LONG))), "at most 60"),
        (Offers(((Key(8, None), OFFERED), (Key(9, None), LONG_OFFER))), "at most 60"),
        (Delegate(8, Pattern((parse("x = 1"), LONG)), 2), "at most 60"),
        (Notify(publication()), "has its time of publication"),
        (Notify(publication(NOW), "p"), "has one tree only"),
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


def test_what_is_no_filter_and_no_advertisement() -> None:
    broker = a_broker().broker
    wanted: Filter = "x > 1"  # type: ignore[assignment]
    assert "not for x > 1" in refusal(broker, "q", Interests(((UNKNOWN, wanted),)))
    assert "not int" in refusal(broker, ANN, Subscribe(5))  # type: ignore[arg-type]
    assert "not int" in refusal(broker, ANN, Advertise(5))  # type: ignore[arg-type]


def test_a_tree_is_named_where_each_source_has_one() -> None:
    network = Network([("m", "q")], architecture=Architecture.GENERAL)
    broker = network.brokers["m"]
    wanted = Interests(((Key(1, None), parse("x > 1")),))
    assert "a tree for each source" in refusal(broker, "q", wanted)
    assert "a tree for each source" in refusal(broker, "q", Notify(publication(NOW)))


@pytest.mark.parametrize(
    "message",
    [
        Interests(((KEY, parse("x > 1")),)),
        Offers(),
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
    around = a_broker()
    around.tell(BOB, Subscribe("x = 3 then y = 4"))
    ((_, delegate),) = around.others
    assert isinstance(delegate, Delegate)
    for events in ((), (publication(NOW),)):
        reason = refusal(around.broker, "p", NotifyChain(delegate.number, events))
        assert f"'p' has {len(events)} events for 2 steps" in reason
    assert "time of publication" in refusal(
        around.broker, "p", NotifyChain(delegate.number, (publication(),) * 2)
    )


# -- subscriptions with a name ------------------------------------------------------------------


def a_broker_with_names() -> Around:
    """As before; ann has a subscription that can be changed and one that moves, q asks for some."""
    limits = BrokerLimits(Limits(length_chars_max=60), per_client_max=4)
    around = Around(Broker("m", strategy("subscription"), limits=limits), "p", "q")
    around.tell(ANN, Subscribe("x < :n", "s", {"n": 5}, version=3))
    around.tell(ANN, Subscribe("x < :n + t", "moving", {"n": 5}, Periodic(1.0), version=4))
    around.tell("q", Interests(((KEY, parse("x > 3 and y = 'a'")),)))
    around.tell("q", Interests(((Key(2, None), evolving(parse("x > 3 - t"), 5)),)))
    return around


def bad(thing: object) -> Any:
    """Something of a kind that nothing should have."""
    return thing


@pytest.mark.parametrize(
    ("sender", "message"),
    [
        (ANN, Subscribe("y < :n", "new", version=9)),
        (ANN, Update("s", 9, {"n": 6})),
        (ANN, Update("s", 9)),
        (ANN, Update("moving", 9, {"n": 6})),
        (ANN, Cancel("s")),
        (ANN, Cancel("moving")),
        (ANN, Unsubscribe("x < 100")),
        ("q", Interests(altered=((KEY, ((0, 7),)),))),
        ("q", Interests(altered=((Key(2, None), ((0, 7),)),))),
    ],
    ids=str,
)
def test_what_is_accepted_of_that_is_seen_in_the_state(sender: Address, message: Message) -> None:
    broker = a_broker_with_names().broker
    before = state_of(broker)
    assert state_of(broker) == before
    assert not any(isinstance(sent, Refused) for _, sent in broker.handle(message, sender, 50))
    assert state_of(broker) != before


NAMELESS = "a name has from 1 to 200 characters"


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
        (Subscribe(parse_pattern("y = 1 then y = 2"), "new"), "has a filter, not Pattern"),
        (Subscribe(bad(5), "new"), "has a filter, not int"),
        (Subscribe("y = :p", "new", {"q": 1}), "has no parameter :q; it has :p"),
        (Subscribe("y = 1", "new", {"q": 1}), "has no parameter :q; it has none"),
        (Subscribe("y = :p", "new", {"p": bad([1])}), "parameter :p"),
        (Subscribe("y = :p", "new", {"p": 2**63}), "parameter :p"),
        (Subscribe("y = t", "new", evolve=bad("lazy")), "'lazy' does not say when"),
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
        (Update("s", 9, filter=bad(7)), "has a filter, not int"),
        (Cancel("other"), "'ann' has no subscription 'other'"),
        (Unsubscribe("x < 2"), "'ann' has no subscription that this covers"),
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
    around = a_broker_with_names()
    around.tell(ANN, Subscribe("y = 1"))
    around.tell(ANN, Subscribe("y = 2", "third", version=5))
    most = "'ann' has 4 subscriptions, which is the most"
    assert most in refusal(around.broker, ANN, Subscribe("y = 3", "fourth", version=6))
    assert most in refusal(around.broker, ANN, Subscribe("y = 3"))


def cells(*cells: object) -> Interests:
    return Interests(altered=((KEY, bad(cells)),))


FINE = (Key(9, None), parse("y > 1"))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Interests(altered=((UNKNOWN, ((0, 1),)),)), "'q' takes back or changes"),
        (Interests(altered=((Key(1, "p"), ((0, 1),)),)), "'q' takes back or changes"),
        (Interests((FINE,), altered=((Key(9, None), ((0, 1),)),)), "'q' takes back or changes"),
        (cells((2, 1)), "has 2 cells, so there is none of number 2"),
        (cells((-1, 1)), "has 2 cells, so there is none of number -1"),
        (cells((0, 1), (7, 1)), "has 2 cells, so there is none of number 7"),
        (cells(("0", 1)), "so there is none of number 0"),
        (cells((0, None)), "a cell holds a value"),
        (cells((0, float("nan"))), "a cell holds a value"),
        (cells((0, [1])), "a cell cannot hold that"),
        (cells((0, 2**63)), "a cell cannot hold that"),
        (Interests((FINE,), (Key(2, None),), ((KEY, ((5, 1),)),)), "none of number 5"),
        (Interests((FINE, (UNKNOWN, evolving(parse("x < :p + t"), 0)))), "has parameters or vari"),
        (Interests((FINE, (UNKNOWN, evolving(parse("x < @v + t"), 0)))), "has parameters or vari"),
        (Interests(((UNKNOWN, evolving(parse("x < t"), bad("now"))),)), "does not say since when"),
        (Interests(((UNKNOWN, evolving(parse("x < t"), 10**400)),)), "does not say since when"),
        (Interests(((UNKNOWN, evolving(parse("x < t"), 0, bad("lazy"))),)), "does not say since"),
        (Interests(((UNKNOWN, evolving(bad("x < t"), 0)),)), "not for x < t since 0 us"),
        (Interests(((UNKNOWN, parse("x < t")),)), "whose values are known, not for x < t"),
        (Interests(((UNKNOWN, parse("x < @v")),)), "whose values are known, not for x < @v"),
        (Update("s", 9, {"n": 6}), "a broker cannot send Update"),
        (Cancel("s"), "a broker cannot send Cancel"),
        (InForce("s", 9), "a broker cannot send InForce"),
    ],
    ids=lambda each: str(each)[:80],
)  # fmt: skip
def test_what_a_neighbour_may_not_ask_for_or_change(message: Message, reason: str) -> None:
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
    assert "there is a way from 'a' to 'c' in the domain 'd' already" in refused.reason
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
    assert network.brokers["s"].around.domains["d"].master == "m"


@pytest.mark.parametrize(
    ("architecture", "request_", "reason"),
    [
        (Architecture.ACYCLIC, Connect("d", 1, master=True), "acyclic, so a broker that asks has"),
        (Architecture.HIERARCHICAL, Connect("d", 1), "so a broker that asks has a master"),
        (Architecture.GENERAL, Connect("d", -1), "not negative"),
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
    assert "new" in broker.around.domain_of


def test_only_the_refusal_of_the_request_itself_ends_it() -> None:
    broker = a_broker().broker
    ((_, request),) = broker.join("new", "d", 1)
    broker.handle(Refused(Interests(), "you are no neighbour"), "new", 50)
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
