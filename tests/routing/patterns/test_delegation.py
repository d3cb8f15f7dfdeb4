"""Patterns in a network: which broker finds which part, and that the matches are right."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.broker_network import BrokerHarness, Network
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.patterns.sequence_matcher import SequenceMatcher
from tidegate.language.values import from_us
from tidegate.routing.broker import Broker
from tidegate.routing.messages import (
    AdvertisementDelta,
    Client,
    Delegate,
    Deliver,
    Depart,
    Publish,
    Refused,
    Resume,
    Subscribe,
    Suspend,
    Undelegate,
    Unsubscribe,
)
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.patterns.delegation import LATENESS_US, LEVELS_MAX, PatternPart
from tidegate.routing.strategies import strategy

ANN = Client("ann")
TREE = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a")]
HIERARCHY = [("a", "r"), ("b", "r"), ("c", "a"), ("d", "b")]
WORLDS = {
    "acyclic": (TREE, Architecture.ACYCLIC),
    "general": (RING, Architecture.GENERAL),
    "hierarchical": (HIERARCHY, Architecture.HIERARCHICAL),
}


def harness(*advertised: tuple[str, str]) -> BrokerHarness:
    """Broker m with neighbours p and q, which have advertised something."""
    made = BrokerHarness(Broker("m", strategy("advertisement")), "p", "q")
    for peer, text in advertised:
        made.advertise(peer, parse_advertisement(text))
    return made


def delegated(harness: BrokerHarness) -> list[tuple[str, str, int]]:
    return [
        (str(peer), str(message.pattern), message.levels)
        for peer, message in harness.others
        if isinstance(message, Delegate)
    ]


# -- factoring ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("advertised", "parts"),
    [
        ([("p", "x > 0")], [PatternPart(0, 4, "p")]),
        ([("p", "x > 0"), ("q", "x > 0")], [PatternPart(i, i + 1, None) for i in range(4)]),
        ([("p", "x < 3"), ("q", "x >= 3")], [PatternPart(0, 2, "p"), PatternPart(2, 4, "q")]),
        (
            [("p", "x in (1, 2, 4)"), ("q", "x = 3")],
            [PatternPart(0, 2, "p"), PatternPart(2, 3, None), PatternPart(3, 4, None)],
        ),
        (
            [("p", "x in (2, 3)")],
            [PatternPart(0, 1, None), PatternPart(1, 3, "p"), PatternPart(3, 4, None)],
        ),
        ([], [PatternPart(i, i + 1, None) for i in range(4)]),
    ],
)
def test_parts_are_as_long_as_one_neighbour_has_all_of_them(
    advertised: list[tuple[str, str]], parts: list[PatternPart]
) -> None:
    pattern = parse_pattern("x = 1 then x = 2 then x = 3 then x = 4")
    patterns = harness(*advertised).broker.patterns
    assert patterns.factored(pattern, levels=1) == parts
    assert patterns.factored(pattern, levels=0) == [PatternPart(i, i + 1, None) for i in range(4)]


def test_events_of_a_client_of_this_broker_are_matched_here() -> None:
    it = harness(("p", "x > 0"))
    it.send(ANN, Subscribe("x = 1 then x = 2"))
    assert delegated(it) == [("p", "x = 1 then x = 2", LEVELS_MAX - 1)]
    it.broker.advertise(parse_advertisement("x = 2"), Client("pub"))
    assert it.broker.patterns.providers(parse("x = 2")) == {"p", None}
    assert it.broker.patterns.providers(parse("x = 1")) == {"p"}


def test_a_part_keeps_the_time_that_the_whole_may_take() -> None:
    it = harness(("p", "x > 0"))
    it.send(ANN, Subscribe("x = 1 then x = 2 then y = 1 within 9 s"))
    assert delegated(it) == [("p", "x = 1 then x = 2 within 9 s", LEVELS_MAX - 1)]


def test_patterns_are_factored_again_when_advertisements_change() -> None:
    it = harness(("p", "x > 0"))
    it.send(ANN, Subscribe("x = 1 then x = 2"))
    ((_, first),) = it.others
    assert isinstance(first, Delegate)

    it.advertise("q", parse_advertisement("x = 1"))
    assert Undelegate(first.number) in [message for _, message in it.others]
    assert it.filters["q"].texts() == ["x = 1"]
    assert sorted(it.filters["p"].texts()) == ["x = 1", "x = 2"]

    it.send("q", AdvertisementDelta((), (it.key_of("q", "x = 1"),)))
    assert delegated(it) == [("p", "x = 1 then x = 2", LEVELS_MAX - 1)]
    assert it.filters["q"].texts() == it.filters["p"].texts() == []


def test_the_same_pattern_has_one_monitor() -> None:
    it = harness(("p", "x > 0"))
    bob = Client("bob")
    it.send(ANN, Subscribe("x = 1 then x = 2"))
    it.send(bob, Subscribe("x = 1 then x = 2"))
    assert it.others == []
    assert len(it.broker.patterns) == 1
    it.send(ANN, Unsubscribe("x = 1 then x = 2"))
    assert it.others == []
    it.send(bob, Unsubscribe("x > 0 then x > 0"))  # covers it
    assert [type(message) for _, message in it.others] == [Undelegate]
    assert len(it.broker.patterns) == 0


def test_a_narrower_pattern_cancels_nothing() -> None:
    it = harness(("p", "x > 0"))
    it.send(ANN, Subscribe("x >= 1 then x = 2"))
    for text in (
        "x = 1 then x = 2",
        "x >= 1 then x = 2 within 5 s",
        "x >= 1 then x = 2 then y = 1",
    ):
        it.send(ANN, Unsubscribe(text))
        ((_, refused),) = it.others
        assert isinstance(refused, Refused)
        assert f"has no subscription that `{text}` covers" in refused.reason
    assert it.broker.patterns.patterns_of(ANN) == [parse_pattern("x >= 1 then x = 2")]


def test_what_a_lost_neighbour_delegated_ends() -> None:
    it = harness(("q", "x > 0"))
    it.send("p", Delegate(1, parse_pattern("x = 1 then x = 2"), 2))
    assert delegated(it) == [("q", "x = 1 then x = 2", 1)]
    sent = it.broker.link_lost("p", 2)
    assert [type(message) for receiver, message in sent if receiver == "q"][-1] is Undelegate
    assert len(it.broker.patterns) == 0


def test_what_was_delegated_to_a_lost_neighbour_is_matched_here() -> None:
    it = harness(("p", "x > 0"))
    it.send(ANN, Subscribe("x = 1 then x = 2"))
    sent = it.broker.link_lost("p", 2)
    assert "p" not in [receiver for receiver, _ in sent]
    assert sorted(it.poset()) == ["x = 1", "x = 2"]


# -- matches ------------------------------------------------------------------------------------


def sequences_network() -> Network:
    network = Network(TREE, "advertisement")
    network.advertise("e", "pub", "x > 0")
    network.run()
    return network


def test_two_patterns_that_share_a_part_both_match() -> None:
    network = sequences_network()
    network.advertise("c", "other", "y > 0")
    network.run()
    network.subscribe("a", "ann", "x = 1 then x = 2 then y = 1")
    network.subscribe("a", "bob", "x = 1 then x = 2 then y = 2")
    network.run()
    for x in (1, 2):
        network.publish("e", "pub", x=x)
    for y in (1, 2):
        network.publish("c", "other", y=y)
    network.wait()
    assert network.sequences("ann") == [[{"x": 1}, {"x": 2}, {"y": 1}]]
    assert network.sequences("bob") == [[{"x": 1}, {"x": 2}, {"y": 2}]]
    network.ask("a", "ann", Depart())
    network.run()
    network.publish("e", "pub", x=1)
    network.publish("e", "pub", x=2)
    network.publish("c", "other", y=2)
    network.wait()
    assert len(network.sequences("bob")) == 2


def test_a_pattern_with_the_same_part_twice_matches() -> None:
    network = sequences_network()
    network.advertise("c", "other", "y > 0")
    network.run()
    network.subscribe("a", "ann", "x = 1 then x = 2 then y = 1 then x = 1 then x = 2")
    network.run()
    for _ in range(2):
        network.publish("e", "pub", x=1)
        network.publish("e", "pub", x=2)
        network.publish("c", "other", y=1)
    network.wait()
    (found,) = network.sequences("ann")
    assert found == [{"x": 1}, {"x": 2}, {"y": 1}, {"x": 1}, {"x": 2}]


def test_events_count_in_the_order_of_publication_not_of_arrival() -> None:
    network = Network([("a", "b"), ("b", "c")])
    network.subscribe("b", "ann", "x = 1 then x = 2")
    network.run()
    network.publish("a", "pub-a", x=1)
    network.publish("c", "pub-c", x=2)
    network.arrive("c", "b")  # the one that was published later comes first
    network.wait()
    assert network.sequences("ann") == [[{"x": 1}, {"x": 2}]]


def test_a_match_waits_until_nothing_earlier_can_come() -> None:
    network = Network([])
    broker = network.add("a")
    network.subscribe("a", "ann", "x = 1 then x = 2")
    network.publish("a", "pub", x=1)
    network.publish("a", "pub", x=2)
    wait_us = LATENESS_US * (LEVELS_MAX + 1)
    assert broker.due_us == 2 + wait_us
    assert broker.wake(2 + wait_us) == []
    assert broker.due_us == 3 + wait_us
    assert len(broker.wake(3 + wait_us)) == 1
    assert broker.due_us is None


def test_only_what_is_published_after_the_subscription_counts() -> None:
    network = Network([])
    broker = network.add("a")
    network.subscribe("a", "ann", "x = 1 then x = 2")
    network.publish("a", "pub", x=1)
    network.now_us += 1
    network.subscribe("a", "bob", "x = 1 then x = 2")
    network.publish("a", "pub", x=2)
    network.wait()
    assert len(network.sequences("ann")) == 1
    assert network.sequences("bob") == []
    assert len(broker.patterns) == 1


def test_matches_are_kept_for_the_suspended() -> None:
    network = sequences_network()
    network.subscribe("a", "ann", "x = 1 then x = 2")
    network.run()
    network.ask("a", "ann", Suspend())
    network.publish("e", "pub", x=1)
    network.publish("e", "pub", x=2)
    network.wait()
    assert network.sequences("ann") == []
    network.ask("a", "ann", Resume())
    assert network.sequences("ann") == [[{"x": 1}, {"x": 2}]]


def test_a_pattern_of_one_step_is_a_filter() -> None:
    network = Network([])
    broker = network.add("a")
    network.ask("a", "ann", Subscribe(Pattern((parse("x = 1"),))))
    assert len(broker.patterns) == 0
    network.publish("a", "pub", x=1)
    assert isinstance(network.received["ann"][0], Deliver)


STEPS = ["x = 0", "x = 1", "x >= 1", "x in (0, 2)", "s = 'a'", "s = 'b'", "s is not null"]


@pytest.mark.parametrize("where", WORLDS)
@pytest.mark.parametrize("routing", ["subscription", "advertisement"])
@settings(max_examples=settings().max_examples // 4)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=4),
    within=st.sampled_from(["", " within 200 ms"]),
    seed=st.integers(0, 2**32),
)
def test_the_matches_are_those_of_the_matcher(
    where: str, routing: str, steps: list[str], within: str, seed: int
) -> None:
    """With publishers at several brokers, and monitors that find parts for each other."""
    random = Random(seed)
    links, architecture = WORLDS[where]
    network = Network(links, routing, architecture)
    names = list(network.brokers)
    publishers = {
        f"pub-{number}": (random.choice(names), random.choice(["x", "s"])) for number in range(3)
    }
    for publisher, (broker, attribute) in publishers.items():
        network.advertise(broker, publisher, f"{attribute} is not null")
    network.run(random)
    pattern = parse_pattern(" then ".join(steps) + within)
    network.ask(random.choice(names), "ann", Subscribe(pattern))
    network.run(random)
    matcher = SequenceMatcher(pattern)
    expected: list[list[dict[str, object]]] = []
    for _ in range(15):
        publisher = random.choice(list(publishers))
        broker, attribute = publishers[publisher]
        value = random.choice([0, 1, 2] if attribute == "x" else ["a", "b"])
        network.now_us += random.choice([10_000, 60_000])  # all within the lateness
        event = Event.of({attribute: value}, from_us(network.now_us))
        network.ask(broker, publisher, Publish(event))
        found = matcher.feed(event)
        expected += [[dict(each.attributes) for each in match] for match in found]
        for _ in range(random.randrange(5)):
            network.step(random)
    network.wait()
    assert network.sequences("ann") == expected
    assert network.delivered("ann") == []
