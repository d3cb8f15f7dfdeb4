"""A client that moves while events flow misses none, gets none twice, and all in order."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.broker_network import Network
from tidegate.language.filters import parse
from tidegate.routing.broker import BrokerLimits
from tidegate.routing.clients.sessions import Sessions
from tidegate.routing.messages import (
    Advertise,
    Client,
    Depart,
    Missed,
    Refused,
    Release,
    Resume,
    Subscribe,
    Suspend,
    Unsubscribe,
)
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.strategies import STRATEGIES

ANN = Client("ann")
TREE = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a"), ("b", "e")]
HIERARCHY = [("a", "r"), ("b", "r"), ("c", "a"), ("d", "b")]
WORLDS = {
    "acyclic": (TREE, Architecture.ACYCLIC),
    "general": (RING, Architecture.GENERAL),
    "hierarchical": (HIERARCHY, Architecture.HIERARCHICAL),
}


def world(name: str, routing: str = "subscription") -> Network:
    links, architecture = WORLDS[name]
    return Network(links, routing, architecture, only_advertised=False)


class Publishers:
    """A publisher at each broker; the events of each are numbered."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.published: dict[str, list[int]] = {name: [] for name in network.brokers}

    def publish(self, broker: str) -> None:
        numbers = self.published[broker]
        numbers.append(len(numbers))
        self._network.publish(broker, f"pub-{broker}", source=broker, n=numbers[-1])

    def received_by(self, client: str) -> dict[str, list[int]]:
        """The numbers of the events that a client received from each publisher, in order."""
        numbers: dict[str, list[int]] = {name: [] for name in self.published}
        for event in self._network.delivered(client):
            number = event["n"]
            assert isinstance(number, int)
            numbers[str(event["source"])].append(number)
        return numbers


def some_steps(network: Network, publishers: Publishers, random: Random) -> None:
    for _ in range(random.randrange(12)):
        if random.random() < 0.4:
            publishers.publish(random.choice(list(network.brokers)))
        else:
            network.step(random)


def some_route(network: Network, random: Random) -> list[str]:
    """Some brokers, one after the other, maybe back and forth."""
    names = list(network.brokers)
    route = [random.choice(names)]
    for _ in range(random.randrange(1, 6)):
        route.append(random.choice([each for each in names if each != route[-1]]))
    return route


@pytest.mark.parametrize("routing", STRATEGIES)
@pytest.mark.parametrize("where", WORLDS)
@settings(max_examples=settings().max_examples // 10)
@given(seed=st.integers(0, 2**32), suspends=st.booleans())
def test_nothing_is_missed_or_comes_twice(
    where: str, routing: str, seed: int, suspends: bool
) -> None:
    random = Random(seed)
    network = world(where, routing)
    publishers = Publishers(network)
    for name in network.brokers:
        network.advertise(name, f"pub-{name}", "source is not null and n is not null")
    route = some_route(network, random)
    network.subscribe(route[0], "ann", "n >= 0")
    network.run(random)
    network.wait()
    for moves, (home, there) in enumerate(pairwise(route), 1):
        some_steps(network, publishers, random)
        if suspends:
            network.ask(home, "ann", Suspend())
            some_steps(network, publishers, random)
        network.ask(there, "ann", Resume(home, moves))  # it may not have arrived at home yet
    some_steps(network, publishers, random)
    network.run(random)
    assert publishers.received_by("ann") == publishers.published
    network.ask(route[-1], "ann", Depart())
    network.run(random)
    for name in network.brokers:
        network.ask(name, f"pub-{name}", Depart())
    network.run(random)
    assert network.is_empty()


@pytest.mark.parametrize("routing", STRATEGIES)
@pytest.mark.parametrize("where", WORLDS)
@settings(max_examples=settings().max_examples // 10)
@given(seed=st.integers(0, 2**32))
def test_the_events_of_a_publisher_that_moves_stay_in_order(
    where: str, routing: str, seed: int
) -> None:
    random = Random(seed)
    network = world(where, routing)
    route = some_route(network, random)
    network.advertise(route[0], "pub", "n is not null")
    for name in network.brokers:
        network.subscribe(name, f"at-{name}", "n >= 0")
    network.run(random)
    network.wait()
    published = 0
    for moves, here in enumerate(route):
        if moves:
            network.ask(here, "pub", Resume(route[moves - 1], moves))
        for _ in range(random.randrange(4)):
            network.publish(here, "pub", n=published)
            published += 1
        for _ in range(random.randrange(20)):
            network.step(random)
    network.run(random)
    for name in network.brokers:
        got = [event["n"] for event in network.delivered(f"at-{name}")]
        assert got == list(range(published))


def moved(network: Network) -> None:
    network.ask("a", "ann", Suspend())
    network.ask("e", "ann", Resume("a"))


def test_deliveries_kept_at_the_old_broker_come_first() -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n >= 0")
    network.run()
    network.ask("a", "ann", Suspend())
    network.publish("c", "pub", n=1)
    network.run()
    network.ask("e", "ann", Resume("a"))
    network.publish("e", "pub-e", n=2)
    assert network.delivered("ann") == []
    network.run()
    assert network.delivered("ann") == [{"n": 1}, {"n": 2}]
    assert ANN not in network.brokers["a"].sessions
    network.publish("c", "pub", n=3)
    network.run()
    assert network.delivered("ann") == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_what_the_client_had_at_its_old_broker_does_not_come_again_by_a_longer_path() -> None:
    network = Network([("a", "b"), ("b", "c"), ("c", "a")], architecture=Architecture.GENERAL)
    network.subscribe("b", "ann", "n >= 0")
    network.subscribe("c", "bob", "n >= 0")
    network.run()
    network.ask("c", "ann", Resume("b"))
    network.arrive("c", "a")  # a answers before the event
    network.publish("a", "pub", n=1)
    network.arrive("a", "b")
    assert network.delivered("ann") == [{"n": 1}]
    for link in (("c", "b"), ("b", "c"), ("a", "c")):
        network.arrive(*link)
    assert network.brokers["c"].subscriptions.nodes_of(ANN)
    network.run()  # the event comes to c now
    assert network.delivered("ann") == network.delivered("bob") == [{"n": 1}]


def test_what_was_handed_over_does_not_come_again_by_a_longer_path() -> None:
    network = Network([("a", "b"), ("b", "c"), ("c", "a")], architecture=Architecture.GENERAL)
    network.subscribe("b", "ann", "n >= 0")
    network.run()
    network.ask("b", "ann", Suspend())
    network.ask("c", "ann", Resume("b"))
    network.run_until(lambda: any(isinstance(each, Release) for each in network.waiting["c", "b"]))
    network.publish("a", "pub", n=1)  # to b and to c, and on the way to c it stays for a while
    late = network.waiting.pop(("a", "c"))
    network.run()
    assert network.delivered("ann") == [{"n": 1}]
    network.waiting["a", "c"] = late
    network.run()
    network.publish("a", "pub", n=2)
    network.run()
    assert network.delivered("ann") == [{"n": 1}, {"n": 2}]


def test_what_was_handed_over_does_not_come_again_two_brokers_further_either() -> None:
    links = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("c", "d"), ("b", "d")]
    network = Network(links, architecture=Architecture.GENERAL)
    network.subscribe("b", "ann", "n >= 0")
    network.run()
    network.ask("b", "ann", Suspend())
    network.ask("c", "ann", Resume("b", 1))
    network.run_until(lambda: any(isinstance(each, Release) for each in network.waiting["c", "b"]))
    network.publish("a", "pub", n=1)
    late = network.waiting.pop(("a", "c"))
    network.run()
    assert network.delivered("ann") == [{"n": 1}]
    network.ask("d", "ann", Resume("c", 2))  # c has not had the event yet, but ann has
    network.run_until(lambda: bool(network.brokers["d"].subscriptions.nodes_of(ANN)))
    network.waiting["a", "c"] = late
    network.run()
    assert network.delivered("ann") == [{"n": 1}]


def test_a_client_that_is_known_nowhere_starts_where_it_is() -> None:
    network = world("acyclic")
    network.ask("e", "ann", Resume("nowhere"))
    network.run()
    network.ask("d", "bob", Resume("a"))  # there is such a broker, but bob was never there
    network.run()
    for where, who in (("e", "ann"), ("d", "bob")):
        network.subscribe(where, who, "n = 1")
    network.run()
    network.publish("c", "pub", n=1)
    network.run()
    assert network.delivered("ann") == network.delivered("bob") == [{"n": 1}]


def test_requests_while_arriving_are_handled_on_arrival() -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n = 1")
    network.run()
    moved(network)
    assert network.ask("e", "ann", Subscribe("n = 2")) == []
    assert network.ask("e", "ann", Unsubscribe("n = 1")) == []
    assert network.ask("e", "ann", Subscribe("n >")) == []
    network.run()
    (refused,) = network.received["ann"]
    assert "n >" in str(refused)
    for n in (1, 2):
        network.publish("c", "pub", n=n)
    network.run()
    assert network.delivered("ann") == [{"n": 2}]


def test_who_departs_while_arriving_leaves_nothing() -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n = 1")
    network.run()
    moved(network)
    network.ask("e", "ann", Depart())
    network.run()
    assert network.is_empty()


def test_who_suspends_while_arriving_gets_it_when_it_resumes() -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n >= 0")
    network.run()
    network.ask("a", "ann", Suspend())
    network.publish("c", "pub", n=1)
    network.ask("e", "ann", Resume("a"))
    network.ask("e", "ann", Suspend())
    network.run()
    assert network.delivered("ann") == []
    network.ask("e", "ann", Resume())
    assert network.delivered("ann") == [{"n": 1}]


def test_a_client_can_come_back() -> None:
    network = world("general")
    network.subscribe("a", "ann", "n >= 0")
    network.run()
    network.ask("c", "ann", Resume("a"))
    network.run()
    network.ask("a", "ann", Resume("c"))
    network.publish("d", "pub", n=1)
    network.run()
    assert network.delivered("ann") == [{"n": 1}]
    assert ANN not in network.brokers["c"].sessions


@pytest.mark.parametrize("steps", range(0, 60, 4))
def test_a_client_can_come_back_before_it_has_arrived(steps: int) -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n >= 0")
    network.run()
    network.ask("a", "ann", Suspend())
    network.publish("c", "pub", n=1)
    network.ask("e", "ann", Resume("a", 1))
    network.ask("e", "ann", Subscribe("m >= 0"))
    network.ask("e", "ann", Suspend())
    for _ in range(steps):
        network.step()
    network.ask("a", "ann", Resume("e", 2))
    network.publish("c", "pub", n=2)
    network.run()
    network.publish("d", "pub", m=1)
    network.run()
    assert network.delivered("ann") == [{"n": 1}, {"n": 2}, {"m": 1}]
    assert ANN not in network.brokers["e"].sessions
    assert not network.brokers["e"].subscriptions.nodes_of(ANN)
    network.ask("a", "ann", Depart())
    network.run()
    assert network.is_empty()


def test_a_client_that_goes_back_and_forth_is_where_it_was_last() -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n >= 0")
    network.run()
    route = ["a", "e", "a", "c", "a", "e"]
    for moves, (home, there) in enumerate(pairwise(route), 1):
        network.ask(home, "ann", Suspend())
        network.ask(there, "ann", Resume(home, moves))
        network.ask(there, "ann", Subscribe(f"m = {moves}"))
    network.run()
    for name, broker in network.brokers.items():
        held = sorted(str(node.item) for node in broker.subscriptions.nodes_of(ANN))
        assert held == ([f"m = {n}" for n in range(1, 6)] + ["n >= 0"] if name == "e" else [])


def test_requests_behind_a_move_that_waits_are_not_forgotten() -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n = 1")
    network.run()
    network.ask("e", "ann", Resume("a", 1))
    network.ask("e", "ann", Depart())  # it begins anew, and what follows is for the new one
    network.ask("e", "ann", Subscribe("n = 2"))
    network.ask("c", "ann", Resume("e", 2))
    network.ask("c", "ann", Subscribe("n = 3"))
    network.ask("e", "ann", Resume("c", 3))
    network.ask("e", "ann", Subscribe("n = 4"))
    network.ask("e", "ann", Suspend())
    network.run()
    held = [str(node.item) for node in network.brokers["e"].subscriptions.nodes_of(ANN)]
    assert sorted(held) == ["n = 2", "n = 3", "n = 4"]
    network.publish("d", "pub", n=4)
    network.run()
    assert network.delivered("ann") == []  # suspended
    network.ask("e", "ann", Resume())
    assert network.delivered("ann") == [{"n": 4}]


def test_the_client_learns_what_the_new_broker_does_not_accept() -> None:
    network = Network(TREE, limits=BrokerLimits(per_client_max=2))
    network.brokers["a"].limits = BrokerLimits(per_client_max=3)
    for n in range(3):
        network.subscribe("a", "ann", f"n = {n}")
        network.advertise("a", "ann", f"n = {n}")
    network.run()
    moved(network)
    network.run()
    refused = [each for each in network.received["ann"] if isinstance(each, Refused)]
    assert [type(each.request) for each in refused] == [Subscribe, Advertise]
    assert str(refused[0].request) == str(Subscribe(parse("n = 2")))
    assert len(network.brokers["e"].subscriptions.nodes_of(ANN)) == 2
    assert not network.brokers["e"].sessions[ANN].is_arriving


def test_a_client_that_does_not_count_its_moves_cannot_come_where_it_is() -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n >= 0")
    (refused,) = network.ask("a", "ann", Resume("e"))
    assert "'ann' is at 'a' already" in str(refused)


def test_deliveries_dropped_at_the_old_broker_are_reported_at_the_new_one() -> None:
    network = world("acyclic")
    network.brokers["a"].sessions = Sessions(kept_max=1)
    network.subscribe("a", "ann", "n >= 0")
    network.run()
    network.ask("a", "ann", Suspend())
    for n in range(3):
        network.publish("c", "pub", n=n)
    network.run()
    network.ask("e", "ann", Resume("a"))
    network.run()
    assert network.received["ann"][0] == Missed(2)
    assert network.delivered("ann") == [{"n": 2}]


def test_a_client_that_departs_from_its_old_broker_meanwhile_still_arrives() -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n >= 0")
    network.run()
    moved(network)
    network.run_until(lambda: bool(network.brokers["e"].subscriptions.nodes_of(ANN)))
    network.ask("a", "ann", Depart())
    network.run()
    network.publish("c", "pub", n=1)
    network.run()
    assert network.delivered("ann") == [{"n": 1}]


@pytest.mark.parametrize("link", [("a", "b"), ("b", "d"), ("d", "e")], ids="-".join)
@pytest.mark.parametrize("steps", range(0, 48, 3))
def test_a_link_on_the_path_that_goes_down_does_not_hold_the_client_up(
    link: tuple[str, str], steps: int
) -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n >= 0")
    network.run()
    moved(network)
    for _ in range(steps):
        network.step()
    network.cut(*link)
    network.run()
    assert not network.brokers["e"].sessions[ANN].is_arriving
    network.subscribe("e", "ann", "n >= 0")
    network.publish("e", "pub", n=1)
    assert network.delivered("ann") == [{"n": 1}]
    assert [name for name, broker in network.brokers.items() if len(broker.moves)] == []


def test_a_third_broker_that_is_lost_before_the_client_has_arrived_is_not_answered() -> None:
    network = world("acyclic")
    network.subscribe("a", "ann", "n >= 0")
    network.run()
    network.ask("d", "ann", Resume("a"))
    network.ask("e", "ann", Resume("d"))
    network.arrive("e", "d")  # it has not arrived at d yet
    network.cut("d", "e")
    network.run()
    assert len(network.brokers["d"].moves) == len(network.brokers["e"].moves) == 0
    assert network.brokers["d"].subscriptions.nodes_of(ANN)
