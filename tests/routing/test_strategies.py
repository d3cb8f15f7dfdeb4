"""Where each strategy sends subscriptions and events; all strategies deliver the same."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.broker_network import Network
from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.routing.broker import Broker
from tidegate.routing.messages import Client, FilterDelta, Notify, Unsubscribe
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.strategies import STRATEGIES, strategy

LINE = [("a", "b"), ("b", "c"), ("c", "d")]
RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a"), ("b", "e")]
HIERARCHY = [("a", "r"), ("b", "r"), ("c", "a"), ("d", "a"), ("e", "b")]
WORLDS = {
    "acyclic": ([("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")], Architecture.ACYCLIC),
    "general": (RING, Architecture.GENERAL),
    "hierarchical": (HIERARCHY, Architecture.HIERARCHICAL),
    "tree taken for a graph": (LINE, Architecture.GENERAL),
}


def test_an_unknown_routing() -> None:
    with pytest.raises(
        RoutingError, match="there is no routing 'magic'; there are flooding, match"
    ):
        strategy("magic")


def traffic(network: Network, kind: type[FilterDelta] | type[Notify]) -> int:
    """How many messages of a type arrive until none is on its way."""
    count = 0
    while any(network.waiting.values()):
        link = next(link for link, messages in network.waiting.items() if messages)
        count += isinstance(network.waiting[link][0], kind)
        network.arrive(*link)
    return count


@pytest.mark.parametrize(
    ("routing", "subscriptions", "events"),
    [
        ("flooding", 0, 3),  # events everywhere
        ("match-first", 3, 1),  # from a to b only
        ("subscription", 3, 1),
        ("advertisement", 1, 1),  # subscriptions only towards a
        ("link-matching", 3, 1),
    ],
)
def test_what_travels_on_a_line(routing: str, subscriptions: int, events: int) -> None:
    network = Network(LINE, routing)
    network.advertise("a", "pub", "x > 0")
    network.run()
    network.subscribe("b", "ann", "x > 0")
    assert traffic(network, FilterDelta) == subscriptions
    network.publish("a", "pub", x=1)
    assert traffic(network, Notify) == events
    assert network.delivered("ann") == [{"x": 1}]


def test_events_without_subscribers_stay_at_their_broker_except_in_a_hierarchy() -> None:
    for routing in ("subscription", "match-first", "link-matching"):
        network = Network(LINE, routing)
        network.publish("a", "pub", x=1)
        assert traffic(network, Notify) == 0
    network = Network([("a", "b"), ("b", "c"), ("d", "c")], architecture=Architecture.HIERARCHICAL)
    network.publish("a", "pub", x=1)
    assert traffic(network, Notify) == 2  # to the root


def test_the_list_of_targets_is_split_by_next_hop() -> None:
    network = Network([("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")], "match-first")
    for name in "cde":
        network.subscribe(name, f"at-{name}", "x > 0")
    network.run()
    network.publish("a", "pub", x=1)
    seen: dict[tuple[str, str], frozenset[str] | None] = {}
    while any(network.waiting.values()):
        link = next(link for link, messages in network.waiting.items() if messages)
        message = network.waiting[link][0]
        assert isinstance(message, Notify)
        seen[link] = message.targets
        network.arrive(*link)
    assert seen == {
        ("a", "b"): frozenset("cde"),
        ("b", "c"): frozenset("c"),
        ("b", "d"): frozenset("de"),
        ("d", "e"): frozenset("e"),
    }


def hybrid(routing: str, inside: Architecture) -> Network:
    """Brokers a and b in one domain, c and d in another, and g in both."""
    network = Network([], routing)
    for name in "abcdg":
        broker = network.brokers[name] = Broker(name, strategy(routing), only_advertised=False)
        for domain, members in (("one", "abg"), ("two", "cdg")):
            if name in members:
                kind = inside if domain == "one" else Architecture.GENERAL
                chosen = strategy(routing)
                broker.add_domain(
                    Domain(
                        domain,
                        kind,
                        name,
                        tree_per_source=chosen.tree_per_source,
                        floods=not chosen.sends_subscriptions,
                    )
                )
    links = [("a", "g", "one"), ("b", "a", "one")]
    for one, other, domain in [*links, ("c", "g", "two"), ("d", "g", "two"), ("c", "d", "two")]:
        upward = domain == "one" and inside is Architecture.HIERARCHICAL
        network.take(one, network.brokers[one].join(other, domain, 1, as_client=upward))
        network.run()
    return network


FILTERS = ["x = 0", "x >= 1", "x <= 1", "x in (0, 2)", "y = 1", "x = 1 and y = 0", "true"]
ADVERTISEMENT = "x is not null and y is not null"


def check_deliveries(network: Network, random: Random) -> None:
    """Subscribe and publish at random; all clients must get what plain matching says."""
    names = list(network.brokers)
    for name in random.sample(names, k=3):
        network.advertise(name, f"pub-{name}", ADVERTISEMENT)
    publishers = [
        name for name in names
        if network.brokers[name].advertisements.nodes_of(Client(f"pub-{name}"))
    ]  # fmt: skip
    held: dict[tuple[str, str], list[str]] = {}
    for _ in range(random.randrange(1, 8)):
        where = random.choice(names)
        who = f"{random.choice(['ann', 'bob'])}-{where}"
        wanted = random.choice(FILTERS)
        network.subscribe(where, who, wanted)
        held.setdefault((where, who), []).append(wanted)
        network.step(random)
    for (where, who), texts in held.items():
        if random.random() < 0.4:
            gone = random.choice(texts)
            network.ask(where, who, Unsubscribe(gone))
            texts[:] = [text for text in texts if not parse(gone).covers(parse(text))]
    network.run(random)
    expected: dict[str, list[dict[str, object]]] = {who: [] for _, who in held}
    for _ in range(6):
        event: dict[str, object] = {"x": random.randrange(3), "y": random.randrange(2)}
        publisher = random.choice(publishers)
        network.publish(publisher, f"pub-{publisher}", **event)
        network.run(random)
        for (_, who), texts in held.items():
            if any(parse(text).matches(Event.of(event)) for text in texts):
                expected[who].append(event)
    assert {who: network.delivered(who) for _, who in held} == expected
    assert not network.refused


@pytest.mark.parametrize("routing", STRATEGIES)
@pytest.mark.parametrize("where", WORLDS)
@settings(max_examples=settings().max_examples // 8)
@given(seed=st.integers(0, 2**32))
def test_all_clients_get_what_matches_and_nothing_else(where: str, routing: str, seed: int) -> None:
    links, architecture = WORLDS[where]
    check_deliveries(Network(links, routing, architecture), Random(seed))


@pytest.mark.parametrize("routing", STRATEGIES)
@pytest.mark.parametrize("inside", Architecture)
@settings(max_examples=settings().max_examples // 12)
@given(seed=st.integers(0, 2**32))
def test_over_gateways_too(inside: Architecture, routing: str, seed: int) -> None:
    check_deliveries(hybrid(routing, inside), Random(seed))
