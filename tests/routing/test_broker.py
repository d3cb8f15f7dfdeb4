"""What a client sees of the service (Siena, 3), at one broker and at a few of them."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.broker_network import Network
from tidegate.routing.messages import (
    Accept,
    Depart,
    Refused,
    Resume,
    Suspend,
    Unadvertise,
    Unsubscribe,
)
from tidegate.routing.overlay.domains import Architecture

LINE = [("a", "b"), ("b", "c"), ("c", "d")]


def alone(**more: bool) -> Network:
    network = Network([], **more)  # type: ignore[arg-type]
    network.add("a")
    return network


# -- subscriptions ------------------------------------------------------------------------------


@pytest.mark.parametrize("routing", ["subscription", "advertisement"])
def test_an_unsubscription_never_carves_a_piece_out(routing: str) -> None:
    network = Network(LINE, routing, only_advertised=False)
    network.advertise("a", "pub", "x is not null")
    network.subscribe("d", "ann", "x > 0")
    network.run()
    (refused,) = network.ask("d", "ann", Unsubscribe("x > 5"))
    assert isinstance(refused, Refused)
    network.run()
    for x in (1, 9):
        network.publish("a", "pub", x=x)
    network.run()
    assert network.delivered("ann") == [{"x": 1}, {"x": 9}]


def test_an_unsubscription_cancels_all_that_it_covers_for_this_client_only() -> None:
    network = Network(LINE)
    for who, wanted in (("ann", "x = 1"), ("ann", "x = 2"), ("ann", "y = 1"), ("bob", "x = 1")):
        network.subscribe("d", who, wanted)
    network.run()
    assert network.ask("d", "ann", Unsubscribe("x is not null")) == []
    network.run()
    network.publish("a", "pub", x=1)
    network.publish("a", "pub", y=1)
    network.run()
    assert network.delivered("ann") == [{"y": 1}]
    assert network.delivered("bob") == [{"x": 1}]


def test_cancelling_a_wider_subscription_leaves_nothing_of_the_narrower_one_it_replaced() -> None:
    network = alone()
    network.subscribe("a", "ann", "x = 1")
    network.subscribe("a", "ann", "x > 0")
    network.ask("a", "ann", Unsubscribe("x > 0"))
    network.publish("a", "pub", x=1)
    assert network.delivered("ann") == []


def test_nothing_is_missed_when_a_narrow_filter_replaces_a_wide_one() -> None:
    for seed in range(30):
        random = Random(seed)
        network = Network(LINE)
        network.subscribe("d", "ann", "x = 1")
        network.subscribe("d", "bob", "x > 0")
        network.run(random)
        network.ask("d", "bob", Unsubscribe("x > 0"))
        for _ in range(5):
            network.publish("a", "pub", x=1)
            network.step(random)
        network.run(random)
        assert network.delivered("ann") == [{"x": 1}] * 5


def test_nothing_is_left_of_who_departs() -> None:
    network = Network(LINE, "advertisement")
    network.advertise("a", "pub", "x > 0")
    network.run()
    network.subscribe("d", "ann", "x = 1")
    network.subscribe("d", "ann", "x = 1 then x = 2")
    network.run()
    network.ask("d", "ann", Depart())
    network.ask("a", "pub", Depart())
    network.run()
    assert network.is_empty()


# -- the two semantics --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "routing", ["flooding", "match-first", "subscription", "advertisement", "link-matching"]
)
def test_only_what_was_advertised_is_delivered_if_so_chosen(routing: str) -> None:
    network = Network(LINE, routing, only_advertised=True)
    network.advertise("a", "pub", "x > 0 and x < 0 and y is not null")
    network.run()
    network.subscribe("d", "ann", "x is not null")
    network.run()
    network.publish("a", "pub", x=1, y=1)
    for event in ({"x": 0}, {"x": 1, "z": 1}):
        network.publish("a", "pub", **event)
    network.publish("a", "stranger", x=1)
    network.run()
    assert network.delivered("ann") == [{"x": 1, "y": 1}]
    reasons = [each.reason for each in network.received["pub"] if isinstance(each, Refused)]
    assert reasons == ["'pub' has not advertised such an event; advertise it first"] * 2
    assert "'stranger' has not advertised" in str(network.received["stranger"])


@pytest.mark.parametrize(
    "routing", ["flooding", "match-first", "subscription", "link-matching", "summaries"]
)
def test_advertisements_are_hints_otherwise(routing: str) -> None:
    network = Network(LINE, routing, only_advertised=False)
    network.advertise("a", "pub", "x > 0")
    network.subscribe("d", "ann", "y = 1")
    network.run()
    network.publish("a", "pub", y=1)
    network.publish("a", "stranger", y=1)
    network.run()
    assert network.delivered("ann") == [{"y": 1}] * 2


def test_each_routing_has_the_semantics_that_fits_by_default() -> None:
    assert Network([], "advertisement").add("a").only_advertised
    assert not Network([], "subscription").add("a").only_advertised


def test_what_is_no_longer_advertised_is_no_longer_published() -> None:
    network = Network(LINE, "advertisement")
    network.advertise("a", "pub", "x > 0")
    network.advertise("a", "pub", "y > 0")
    network.subscribe("d", "ann", "x > 0")
    network.subscribe("d", "ann", "y > 0")
    network.run()
    assert len(network.brokers["d"].subscriptions.sent("c")) == 2
    network.ask("a", "pub", Unadvertise("x is not null"))
    network.run()
    network.publish("a", "pub", x=1)
    network.publish("a", "pub", y=1)
    network.run()
    assert network.delivered("ann") == [{"y": 1}]
    wanted = [str(item) for item in network.brokers["d"].subscriptions.sent("c").values()]
    assert wanted == ["y > 0"]


def test_a_narrower_unadvertisement_takes_nothing_away() -> None:
    network = Network(LINE, "advertisement")
    network.advertise("a", "pub", "x > 0")
    network.subscribe("d", "ann", "x > 0")
    network.run()
    (refused,) = network.ask("a", "pub", Unadvertise("x > 5"))
    assert isinstance(refused, Refused)
    network.publish("a", "pub", x=9)
    network.run()
    assert network.delivered("ann") == [{"x": 9}]


def test_subscriptions_may_come_before_the_advertisement() -> None:
    network = Network(LINE, "advertisement")
    network.subscribe("d", "ann", "x > 0")
    network.run()
    assert not network.brokers["d"].subscriptions.sent("c")
    network.advertise("a", "pub", "x > 0")
    network.run()
    network.publish("a", "pub", x=1)
    network.run()
    assert network.delivered("ann") == [{"x": 1}]


# -- suspended ----------------------------------------------------------------------------------


def test_what_comes_for_the_suspended_waits_for_them() -> None:
    network = Network(LINE)
    network.subscribe("d", "ann", "x > 0")
    network.run()
    network.ask("d", "ann", Suspend())
    for x in (1, 2):
        network.publish("a", "pub", x=x)
    network.run()
    assert network.delivered("ann") == []
    network.ask("d", "ann", Resume())
    assert network.delivered("ann") == [{"x": 1}, {"x": 2}]
    network.publish("a", "pub", x=3)
    network.run()
    assert network.delivered("ann")[2:] == [{"x": 3}]


def test_the_suspended_can_still_unsubscribe() -> None:
    network = alone()
    network.subscribe("a", "ann", "x > 0")
    network.ask("a", "ann", Suspend())
    network.publish("a", "pub", x=1)
    network.ask("a", "ann", Unsubscribe("x > 0"))
    network.publish("a", "pub", x=2)
    network.ask("a", "ann", Resume())
    assert network.delivered("ann") == [{"x": 1}]


# -- neighbours ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "routing", ["flooding", "match-first", "subscription", "advertisement", "link-matching"]
)
def test_a_network_that_breaks_and_heals(routing: str) -> None:
    network = Network(LINE, routing)
    network.advertise("a", "pub", "x > 0")
    network.subscribe("d", "ann", "x > 0")
    network.run()
    network.cut("b", "c")
    network.run()
    if routing != "flooding":
        for name in "ab":
            assert len(network.brokers[name].subscriptions.poset) == 0
    network.publish("a", "pub", x=1)
    network.run()
    network.connect("c", "b")
    network.publish("a", "pub", x=2)
    network.run()
    assert network.delivered("ann") == [{"x": 2}]


def test_a_ring_goes_the_other_way_when_a_link_is_cut() -> None:
    network = Network([*LINE, ("d", "a")], architecture=Architecture.GENERAL)
    network.subscribe("d", "ann", "x > 0")
    network.run()
    for x, link in enumerate([("d", "a"), ("c", "d")], start=1):
        network.publish("a", "pub", x=x)
        network.run()
        network.cut(*link)
        network.run()
    assert network.delivered("ann") == [{"x": 1}, {"x": 2}]


def test_two_brokers_that_ask_each_other_at_once_are_linked() -> None:
    network = Network([])
    for one, other in (("a", "b"), ("b", "a")):
        network.add(other)
        network.take(one, network.add(one).join(other, "d", 1))
    network.subscribe("a", "ann", "x > 0")
    network.run()
    assert not network.refused
    network.publish("b", "pub", x=1)
    network.run()
    assert network.delivered("ann") == [{"x": 1}]
    for one, other in (("a", "b"), ("b", "a")):  # neither waits for an answer any more
        ((_, answer),) = network.brokers[one].handle(Accept("d", 1), other, network.now_us)
        assert isinstance(answer, Refused)


def test_who_leaves_in_order_leaves_nothing() -> None:
    network = Network(LINE)
    network.subscribe("d", "ann", "x > 0")
    network.run()
    network.take("d", network.brokers["d"].leave("c", network.now_us))
    network.run()
    for name in "abc":
        assert len(network.brokers[name].subscriptions.poset) == 0
    assert network.brokers["c"].domains.by_name["d"].neighbours == {"b": 1}


@settings(max_examples=settings().max_examples // 6)
@given(seed=st.integers(0, 2**32))
def test_links_that_come_and_go_in_a_general_graph(seed: int) -> None:
    """Once no message is on its way, each client that can be reached gets a match once."""
    random = Random(seed)
    names = "abcde"
    network = Network([], architecture=Architecture.GENERAL)
    for name in names:
        network.add(name)
        network.subscribe(name, f"at-{name}", "x > 0")
    for _ in range(12):
        one, other = random.sample(names, k=2)
        brokers = network.brokers
        if other in brokers[one].domains.domain_of:
            network.cut(one, other)
        elif not (brokers[one].knows(other) or brokers[other].knows(one)):
            network.take(one, brokers[one].join(other, "d", random.randrange(1, 4)))
        for _ in range(random.randrange(15)):
            network.step(random)
    network.run(random)
    graph = network.brokers["a"].domains.by_name["d"].graph
    network.publish("a", "pub", x=1)
    network.run(random)
    for name in names:
        reached = [{"x": 1}] if graph.reaches("a", name) else []
        assert network.delivered(f"at-{name}") == reached


PROGRAM = """
from support.broker_network import Network
network = Network([("a", "b"), ("a", "c"), ("a", "d"), ("d", "e")], "advertisement")
for name in network.brokers:
    network.advertise(name, f"pub-{name}", "x > 0 and y > 0")
    network.subscribe(name, f"ann-{name}", f"x > {ord(name)}")
    network.subscribe(name, f"bob-{name}", "x > 1 then y > 1 then x > 2")
    print(network.waiting)
network.run()
network.publish("e", "pub-e", x=1000, y=2)
print(network.waiting)
network.cut("a", "d")
print(network.waiting)
network.wait()
print(network.received)
"""


def test_nothing_depends_on_hashes() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
