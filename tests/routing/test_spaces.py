"""Spaces in brokers: several side by side are like several networks, and clients see one each."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given

from support import strategies
from support.broker_network import Network, state_of
from tidegate.errors import SpaceError
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Periodic
from tidegate.language.filters import Filter, parse
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.spaces import Space
from tidegate.language.syntax import Node
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.routing.broker import Broker, BrokerLimits
from tidegate.routing.clients.client_state import ClientState
from tidegate.routing.messages import (
    Advertise,
    Client,
    Deliver,
    DeliverSequence,
    Message,
    Publication,
    Publish,
    Refused,
    Resume,
    Stamp,
    Subscribe,
    Suspend,
    Unadvertise,
    Unsubscribe,
    Update,
)
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.spaces import SPACE, BrokerSpaces, routed_event
from tidegate.routing.strategies import STRATEGIES, strategy

LINE = [("a", "b"), ("b", "c")]
TRIANGLE = [*LINE, ("c", "a")]
TRADES = Space("trades", {"symbol": str, "price": float, "x": int})
WEATHER = Space("weather", {"place": str, "price": float, "x": int})
NAMES = (None, "trades", "weather")


def line(routing: str = "subscription", **more: object) -> Network:
    spaces = [TRADES, WEATHER]
    return Network(LINE, routing, only_advertised=False, spaces=spaces, **more)  # type: ignore[arg-type]


def publish(network: Network, broker: str, space: str | None, **attributes: object) -> None:
    network.now_us += 1
    network.ask(broker, "pub", Publish(Event.of(attributes), space))
    network.run()


def in_spaces(network: Network, client: str) -> list[tuple[str | None, dict[str, object]]]:
    """The events that a client received, with the names of their spaces."""
    return [
        (each.publication.space, dict(each.publication.event.attributes))
        for each in network.received.get(client, ())
        if isinstance(each, Deliver)
    ]


def substrates_of(routing: str) -> tuple[str, ...]:
    """The substrates of a routing; link matching needs one that finds links."""
    if routing == "link-matching":
        return "naive", "columnar", "tree"
    return "poset", "columnar", "rete", "summary", "tree"


# -- side by side -------------------------------------------------------------------------------


@pytest.mark.parametrize("merging", [False, True])
@pytest.mark.parametrize(
    ("routing", "substrate"),
    [(routing, substrate) for routing in STRATEGIES for substrate in substrates_of(routing)],
)
def test_an_event_meets_the_subscriptions_of_its_space(
    routing: str, merging: bool, substrate: str
) -> None:
    network = line(routing, merging=merging, substrate=substrate)
    for space in NAMES:
        network.ask("a", "pub", Advertise("price is not null", space))
        network.ask("c", f"all of {space}", Subscribe("true", space=space))
        network.ask("c", f"cheap of {space}", Subscribe("price < 10", space=space))
        network.ask("b", f"named of {space}", Subscribe("price < :p", "n", {"p": 10}, space=space))
    network.run()
    for space in NAMES:
        publish(network, "a", space, price=9.0)
        publish(network, "a", space, price=11.0)
    for space in NAMES:
        name = space or ""
        both = [(name, {"price": 9.0}), (name, {"price": 11.0})]
        assert in_spaces(network, f"all of {space}") == both
        assert in_spaces(network, f"cheap of {space}") == both[:1]
        assert in_spaces(network, f"named of {space}") == both[:1]


def test_one_client_in_several_spaces_has_them_apart() -> None:
    """In one space the wide subscription would replace the narrow one."""
    network = line()
    network.ask("c", "ann", Subscribe("price < 10", space="trades"))
    network.ask("c", "ann", Subscribe("true"))
    network.ask("c", "ann", Subscribe("true", space="weather"))
    network.run()
    network.ask("c", "ann", Unsubscribe("true"))
    network.ask("c", "ann", Unsubscribe("true", "weather"))
    network.run()
    for space in NAMES:
        publish(network, "a", space, price=9.0)
    assert in_spaces(network, "ann") == [("trades", {"price": 9.0})]
    network.ask("c", "ann", Unsubscribe("price < 20", "trades"))
    network.run()
    assert not any(len(each.subscriptions.poset) for each in network.brokers.values())


def test_only_what_was_advertised_in_the_space_is_published() -> None:
    network = Network(LINE, "advertisement", spaces=[TRADES, WEATHER])
    network.ask("c", "ann", Subscribe("price > 0", space="trades"))
    network.ask("a", "pub", Advertise("price > 0", "trades"))
    network.run()
    publish(network, "a", "trades", price=1.0)
    publish(network, "a", "weather", price=1.0)
    assert in_spaces(network, "ann") == [("trades", {"price": 1.0})]
    (refused,) = network.received["pub"]
    assert isinstance(refused, Refused)
    assert "has not advertised such an event" in refused.reason
    (refused,) = network.ask("a", "pub", Unadvertise("price > 0", "weather"))
    assert isinstance(refused, Refused)
    assert network.ask("a", "pub", Unadvertise("price > 0", "trades")) == []
    network.run()
    assert not network.brokers["c"].subscriptions.sent("b")


@pytest.mark.parametrize("routing", STRATEGIES)
@pytest.mark.parametrize("architecture", [Architecture.ACYCLIC, Architecture.GENERAL])
def test_spaces_are_like_networks_of_their_own(routing: str, architecture: Architecture) -> None:
    """The same requests, at random, in one network with spaces and in one network for each."""
    links = LINE if architecture is Architecture.ACYCLIC else TRIANGLE
    for seed in range(15):
        random = Random(seed)
        spaces = [TRADES, WEATHER]
        shared = Network(links, routing, architecture, only_advertised=False, spaces=spaces)
        alone = {
            name: Network(links, routing, architecture, only_advertised=False) for name in NAMES
        }
        for name in NAMES:
            for network, space in ((shared, name), (alone[name], None)):
                network.ask("a", "pub", Advertise("x is not null", space))
                network.run()
        for _ in range(40):
            name, client = random.choice(NAMES), random.choice(["ann", "bob"])
            broker = {"ann": "b", "bob": "c"}[client]
            low = random.randrange(4)
            wanted = random.choice([f"x > {low}", f"x = {low}", "true", f"x < {low} or x > 3"])
            kind = random.choice(["subscribe", "subscribe", "publish", "publish", "unsubscribe"])
            for network, space in ((shared, name), (alone[name], None)):
                if kind == "publish":
                    network.ask("a", "pub", Publish(Event.of({"x": low}), space))
                elif kind == "subscribe":
                    network.ask(broker, client, Subscribe(wanted, space=space))
                else:
                    network.ask(broker, client, Unsubscribe(wanted, space))
                network.run()
        for client in ("ann", "bob"):
            for name in NAMES:
                found = [
                    event for space, event in in_spaces(shared, client) if space == (name or "")
                ]
                assert found == alone[name].delivered(client), (seed, client, name)
        assert not shared.refused


@pytest.mark.parametrize("routing", STRATEGIES)
def test_a_space_grows_while_brokers_have_it(routing: str) -> None:
    trades = Space("trades", {"symbol": str})
    network = Network(LINE, routing, only_advertised=False, spaces=[trades, WEATHER])
    for added in ({}, {"venue": str}):
        trades.add(added)
        network.ask("a", "pub", Advertise("venue = 'NYSE'", "trades"))
        network.ask("c", "ann", Subscribe("venue starts with 'N'", space="trades"))
        network.run()
        publish(network, "a", "trades", venue="NYSE")
        publish(network, "a", "trades", venue=7)
    assert in_spaces(network, "ann") == [("trades", {"venue": "NYSE"})]
    none = "space 'trades' has no attribute 'venue'; it has symbol"
    wrong = "attribute 'venue' is a string in space 'trades', not the integer 7"
    reasons = {
        client: [
            each.reason.split("\n")[0]
            for each in network.received[client]
            if isinstance(each, Refused)
        ]
        for client in ("ann", "pub")
    }
    assert reasons == {"ann": [none], "pub": [none, none, none, wrong]}


# -- subscriptions that change, patterns, moves ---------------------------------------------------


def test_a_named_subscription_is_updated_in_its_space() -> None:
    network, client = line(), ClientState()
    request = client.subscribe("n", "price < :p", {"p": 5}, now_us=1, space="trades")
    network.ask("c", "ann", request)
    network.run()
    network.ask("c", "ann", client.update("n", {"p": 10}, confirm=True))
    network.run()
    assert network.in_force("ann") == [("n", 2)]
    for space in NAMES:
        publish(network, "a", space, price=9.0)
    assert in_spaces(network, "ann") == [("trades", {"price": 9.0})]
    network.ask("c", "ann", client.update("n", filter="price > :p"))
    network.run()
    publish(network, "a", "trades", price=11.0)
    assert len(network.delivered("ann")) == 2
    assert [each.space for each in client.resubscribe()] == ["trades"]
    network.ask("c", "ann", client.unsubscribe(parse("true")))  # in the default space
    assert "n" in client
    network.ask("c", "ann", client.unsubscribe(parse("true"), "trades"))
    network.run()
    assert "n" not in client
    assert not any(len(each.subscriptions.poset) for each in network.brokers.values())


def test_an_evolving_filter_has_a_space() -> None:
    network = line()
    request = Subscribe("x < t", "n", evolve=Periodic(1.0), origin_us=0, space="trades")
    network.ask("c", "ann", request)
    network.run()
    network.now_us = 5_000_000
    for space in NAMES:
        publish(network, "a", space, x=3)
    assert in_spaces(network, "ann") == [("trades", {"x": 3})]


def test_a_pattern_has_a_space_and_its_client_gets_it_as_written() -> None:
    network = Network(LINE, "advertisement", spaces=[TRADES, WEATHER])
    for space in NAMES:
        network.ask("a", "pub", Advertise("x is not null", space))
    network.run()
    network.ask("c", "ann", Subscribe("x = 1 then x = 2 within 60 s", space="trades"))
    network.run()
    for x, space in ((1, "trades"), (2, "weather"), (2, None), (2, "trades")):
        publish(network, "a", space, x=x)
    network.wait()
    (match,) = network.received["ann"]
    assert isinstance(match, DeliverSequence)
    assert match.pattern == parse_pattern("x = 1 then x = 2 within 60 s")
    assert network.sequences("ann") == [[{"x": 1}, {"x": 2}]]
    assert {each.space for each in match.publications} == {"trades"}
    network.ask("c", "ann", Unsubscribe("x = 1 then x = 2 within 60 s", "trades"))
    network.run()
    assert not any(len(each.patterns) for each in network.brokers.values())


def test_a_client_that_moves_takes_its_spaces_along() -> None:
    network = line()
    network.ask("c", "ann", Subscribe("price < 10", space="trades"))
    network.ask("c", "ann", Subscribe("price < :p", "n", {"p": 5}, space="weather"))
    network.run()
    network.ask("c", "ann", Suspend())
    publish(network, "a", "trades", price=1.0)
    network.ask("a", "ann", Resume("c", 1))
    network.run()
    for space in NAMES:
        publish(network, "b", space, price=2.0)
    network.ask("a", "ann", Update("n", 1, {"p": 1}))
    network.run()
    publish(network, "b", "weather", price=2.0)
    assert in_spaces(network, "ann") == [
        ("trades", {"price": 1.0}),
        ("trades", {"price": 2.0}),
        ("weather", {"price": 2.0}),
    ]


def test_what_the_next_broker_refuses_is_returned_as_written() -> None:
    network = line()
    network.ask("c", "ann", Subscribe("price < 10", space="trades"))
    network.ask("c", "ann", Advertise("price < 10", "trades"))
    network.run()
    network.brokers["a"].limits = BrokerLimits(per_client_max=0)
    network.ask("c", "ann", Suspend())
    network.ask("a", "ann", Resume("c", 1))
    network.run()
    refused = [each.request for each in network.received["ann"] if isinstance(each, Refused)]
    assert refused == [
        Subscribe(parse("price < 10"), space="trades"),
        Advertise(parse_advertisement("price < 10"), "trades"),
    ]


def test_what_does_not_fit_at_the_next_broker_is_refused_there() -> None:
    """Brokers need not have the same spaces, and each answers for its own clients."""
    network = Network([], spaces=[TRADES, WEATHER])
    network.add("c")
    network._spaces = (Space("trades", {"symbol": str, "price": str}),)
    network.add("a")
    network.connect("a", "c")
    network.run()
    for request in (
        Subscribe("price < 10", space="trades"),
        Subscribe("symbol = 'IBM'", space="trades"),
        Subscribe("price < :p", "n", {"p": 5}, space="weather"),
        Subscribe("price < :p", "default", {"p": 5}),
        Advertise("price < 10", "trades"),
    ):
        assert network.ask("c", "ann", request) == []
    network.run()
    network.ask("c", "ann", Suspend())
    network.ask("a", "ann", Resume("c", 1))
    network.run()
    refused = [each for each in network.received["ann"] if isinstance(each, Refused)]
    assert [each.reason.split("\n")[0] for each in refused] == [
        "price is a string in space 'trades'; compare it with a string, in quotes, not a number",
        "price is a string in space 'trades'; compare it with a string, in quotes, not a number",
        "there is no space 'weather'; this broker has trades",
    ]
    assert [type(each.request) for each in refused] == [Subscribe, Advertise, Subscribe]
    for space in (None, "trades"):
        publish(network, "c", space, symbol="IBM", price=2.0)
    assert [space for space, _ in in_spaces(network, "ann")] == ["", "trades"]


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Subscribe("true", space="trade"), "there is no space 'trade'; did you mean 'trades'?"),
        (Subscribe("true", "m", space="x"), "there is no space 'x'; this broker has trades"),
        (Unsubscribe("true", "x"), "there is no space 'x'; this broker has trades"),
        (Advertise("true", "x"), "there is no space 'x'; this broker has trades"),
        (Unadvertise("true", "x"), "there is no space 'x'; this broker has trades"),
        (Publish(Event.of({"price": 1}), "x"), "there is no space 'x'; this broker has trades"),
        (Publish(Event.of({"price": 1}), 5), "there is no space 5; this broker has trades"),  # type: ignore[arg-type]
        (Publish(Event.of({"price": 1}), []), "there is no space []; this broker has trades"),  # type: ignore[arg-type]
        (Subscribe("x > 1 and prize < 10", space="trades"),
         "space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
         "  x > 1 and prize < 10\n            ^^^^^"),
        (Subscribe(parse("price = 'a'"), space="trades"),
         "price is a float in space 'trades'; compare it with a number, not a string\n"
         "  price = 'a'\n          ^^^"),
        (Subscribe("x > 1 then x like '1'", space="trades"),
         "`like` compares strings; x is an integer in space 'trades'\n"
         "  x > 1 then x like '1'\n             ^"),
        (Subscribe("price < :p", "m", {"p": "a"}, space="trades"),
         "price is a float in space 'trades'; compare it with a number, not :p, a string\n"
         "  price < :p\n          ^^"),
        (Update("n", 1, {"p": True}),
         "price is a float in space 'trades'; compare it with a number, not :p, a boolean\n"
         "  price < :p\n          ^^"),
        (Update("n", 1, filter="symbol > :p"),
         "symbol is a string in space 'trades'; compare it with a string, "
         "not :p, a number\n  symbol > :p\n           ^^"),
        (Subscribe("true or prize > 1", space="trades"),
         "space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
         "  true or prize > 1\n          ^^^^^"),
        (Subscribe("x > 1 then false and prize > 1", space="trades"),
         "space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
         "  x > 1 then false and prize > 1\n                       ^^^^^"),
        (Subscribe("true or prize > :p", "m", space="trades"),
         "space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
         "  true or prize > :p\n          ^^^^^"),
        (Update("n", 1, filter="true or prize > 1"),
         "space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
         "  true or prize > 1\n          ^^^^^"),
        (Unsubscribe("not prize is not null", "trades"),
         "space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
         "  not prize is not null\n      ^^^^^"),
        (Advertise("true or prize > 1", "trades"),
         "space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
         "  true or prize > 1\n          ^^^^^"),
        (Unadvertise("false and prize > 1", "trades"),
         "space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
         "  false and prize > 1\n            ^^^^^"),
        (Advertise("prize > 1", "trades"),
         "space 'trades' has no attribute 'prize' (did you mean 'price'?)\n"
         "  prize > 1\n  ^^^^^"),
        (Publish(Event.of({"price": "a"}), "trades"),
         "attribute 'price' is a float in space 'trades', not the string 'a'"),
        (Publish(Event.of({SPACE: "trades"})),
         "'tidegate.space' is set by brokers; the space of a request is its field `space`"),
        (Subscribe("tidegate.space = 'trades'"),
         "'tidegate.space' is set by brokers; the space of a request is its field `space`"),
        (Subscribe("tidegate.space = :p", "m", {"p": "trades"}),
         "'tidegate.space' is set by brokers; the space of a request is its field `space`"),
    ],
)  # fmt: skip
def test_requests_that_do_not_fit_are_refused_and_change_nothing(
    message: Message, reason: str
) -> None:
    broker = Broker("b", strategy("subscription"), spaces=[TRADES])
    ann = Client("ann")
    broker.handle(Subscribe("price < :p", "n", {"p": 1}, space="trades"), ann, now_us=1)
    broker.handle(Advertise("price < 1", "trades"), ann, now_us=1)
    before = state_of(broker)
    assert broker.handle(message, ann, now_us=1) == [(ann, Refused(message, reason))]
    assert state_of(broker) == before


def test_a_client_sends_its_filter_as_it_was_written() -> None:
    network, client = line(), ClientState()
    request = client.subscribe("n", "true or prize > 1", now_us=1, space="trades")
    (refused,) = network.ask("c", "ann", request)
    assert isinstance(refused, Refused)
    assert refused.reason.endswith("\n  true or prize > 1\n          ^^^^^")


def test_spaces_that_a_broker_cannot_have() -> None:
    with pytest.raises(SpaceError, match="two spaces have the name 'trades'; give them two names"):
        Broker("b", strategy("subscription"), spaces=[TRADES, WEATHER, Space("trades", {})])
    with pytest.raises(SpaceError, match="the spaces of a broker are Spaces, not str"):
        Broker("b", strategy("subscription"), spaces=["trades"])  # type: ignore[list-item]
    assert Broker("b", strategy("subscription"), spaces=[TRADES, TRADES]).spaces


def test_a_network_without_spaces_has_no_reserved_name_and_knows_no_space() -> None:
    broker = Broker("b", strategy("subscription"))
    ann = Client("ann")
    ((_, refused),) = broker.handle(Subscribe("true", space="trades"), ann, now_us=1)
    assert isinstance(refused, Refused)
    assert refused.reason == "there is no space 'trades'; this broker has none"
    assert broker.handle(Subscribe("tidegate.space = 'x'"), ann, now_us=1) == []
    ((_, delivered),) = broker.handle(Publish(Event.of({SPACE: "x"})), ann, now_us=1)
    assert isinstance(delivered, Deliver)
    assert delivered.publication.space is None


def test_a_filter_that_is_too_large_in_its_space_is_refused() -> None:
    limits = BrokerLimits(filters=Limits(cost_max=4))
    broker = Broker("b", strategy("subscription"), spaces=[TRADES], limits=limits)
    ann = Client("ann")
    assert broker.handle(Subscribe("x > 1", space="trades"), ann, now_us=1) == []
    for wanted in ("x > 1 and x < 5", "x > 1 and x < 5 then x > 3"):
        ((_, refused),) = broker.handle(Subscribe(wanted, space="trades"), ann, now_us=1)
        assert isinstance(refused, Refused)
        assert refused.reason.startswith("the filter costs 6 predicates, values and operations")
    ((_, refused),) = broker.handle(Advertise("x > 1 and x < 5", "trades"), ann, now_us=1)
    assert isinstance(refused, Refused)


@pytest.mark.parametrize("has_spaces", [False, True])
def test_brokers_with_and_without_spaces_do_not_connect(has_spaces: bool) -> None:
    network = Network([], spaces=[TRADES])
    network.add("a")
    network._spaces = ()
    network.add("b")
    one, other = ("a", "b") if has_spaces else ("b", "a")
    network.connect(one, other)
    (refused,) = network.refused
    assert refused.reason == (
        "'a' has spaces and 'b' has none; either all brokers of a network have spaces, or none has"
    )
    assert not network.brokers["a"].knows("b")
    assert not network.brokers["b"].knows("a")


# -- bound and unbound ----------------------------------------------------------------------------


@given(strategies.nodes())
def test_what_is_unbound_is_as_it_was_written(node: Node) -> None:
    wide = Limits(disjuncts_max=10**6, cost_max=10**6)
    spaces = BrokerSpaces([TRADES], wide)
    filter = Filter(node)
    for item in (filter, Pattern((filter, filter), 5.0)):
        for name in (None, "trades"):
            written, space = spaces.unbound(spaces.bound(item, name))
            assert written == item
            # `false` is the same in all spaces
            assert space == (None if str(filter) == "false" else name)


def test_a_bound_filter_prints_its_space() -> None:
    spaces = BrokerSpaces([TRADES], DEFAULT_LIMITS)
    assert str(spaces.bound(parse("x = 1 or x = 3"), "trades")) == (
        "tidegate.space = 'trades' and (x = 1 or x = 3)"
    )
    assert str(spaces.bound(parse("x = 1"), None)) == "tidegate.space = '' and x = 1"
    evolving = spaces.bound(EvolvingFilter(parse("x < t"), 5), "trades")
    assert str(evolving) == "tidegate.space = 'trades' and x < t since 5 us"
    assert str(spaces.bound(parse_advertisement("true"), "trades")) == "tidegate.space = 'trades'"


def test_an_event_has_its_space_only_while_it_is_matched() -> None:
    event = Event.of({"x": 1})
    stamp = Stamp("b", 0, 1)
    assert routed_event(Publication(event, stamp, "ann")) is event
    routed = routed_event(Publication(event, stamp, "ann", "trades"))
    assert routed.attributes == {"x": 1, SPACE: "trades"}
    assert event.attributes == {"x": 1}


def test_spaces_are_extended_all_or_none() -> None:
    mine = Space("a", {"x": int})
    spaces = BrokerSpaces([mine, Space("b", {"y": str})], DEFAULT_LIMITS)
    with pytest.raises(SpaceError, match="'y'"):
        spaces.extend([Space("a", {"z": int}), Space("c", {}), Space("b", {"y": int})])
    assert {each.name: dict(each.attributes) for each in spaces} == {
        "a": {"x": int},
        "b": {"y": str},
    }
    with pytest.raises(SpaceError, match="'z'"):  # twice in one call, with two types
        spaces.extend([Space("a", {"z": int}), Space("a", {"z": str})])
    spaces.extend([Space("a", {"z": int}), Space("c", {"x": str})])
    assert {each.name: dict(each.attributes) for each in spaces} == {
        "a": {"x": int, "z": int},
        "b": {"y": str},
        "c": {"x": str},
    }
    assert dict(mine.attributes) == {"x": int, "z": int}


def test_a_broker_without_spaces_gets_none_later() -> None:
    spaces = BrokerSpaces([], DEFAULT_LIMITS)
    spaces.extend([])
    with pytest.raises(SpaceError, match="began without spaces"):
        spaces.extend([Space("a", {})])
    assert not spaces
