"""When a wave is back, all brokers have handled what was sent before it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.broker_network import Network
from tidegate.routing.messages import Echo, Outgoing, Probe
from tidegate.routing.overlay.domains import Architecture

TREE = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")]


def start(network: Network, broker: str, back: list[str]) -> None:
    """Start a wave; its broker is appended to ``back`` when it is back."""

    def done() -> Outgoing:
        back.append(broker)
        return []

    network.take(broker, network.brokers[broker].start_wave(done))


def is_wanted_everywhere(network: Network) -> bool:
    return all(len(broker.subscriptions.poset) == 1 for broker in network.brokers.values())


@pytest.mark.parametrize(
    ("links", "architecture"), [(TREE, Architecture.ACYCLIC), (RING, Architecture.GENERAL)]
)
@given(seed=st.integers(0, 2**32))
def test_what_was_sent_before_is_in_force_when_the_wave_is_back(
    links: list[tuple[str, str]], architecture: Architecture, seed: int
) -> None:
    random = Random(seed)
    network = Network(links, architecture=architecture)
    back: list[str] = []
    network.subscribe("a", "ann", "x > 1")
    start(network, "a", back)
    while not back:
        assert network.step(random)
    assert is_wanted_everywhere(network)
    network.run()
    assert back == ["a"]
    assert all(len(broker.waves) == 0 for broker in network.brokers.values())


def test_a_wave_from_before_a_restart_is_not_taken_for_one_of_now() -> None:
    network = Network([("a", "b"), ("b", "c"), ("c", "d")])
    near = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]  # d gets nothing for a while

    def run_near() -> None:
        while any(network.waiting.get(link) for link in near):
            network.arrive(*next(link for link in near if network.waiting.get(link)))

    start(network, "a", [])
    run_near()
    network.cut("a", "b")
    del network.brokers["a"]
    network.now_us += 1
    network.take("a", network.add("a").join("b", "d", 1))
    run_near()
    network.subscribe("a", "ann", "x > 1")
    back: list[str] = []
    start(network, "a", back)
    run_near()
    assert not is_wanted_everywhere(network)
    assert back == []
    network.run()
    assert is_wanted_everywhere(network)
    assert back == ["a"]


def test_a_broker_alone_is_done_at_once() -> None:
    network = Network([])
    network.add("a")
    back: list[str] = []
    start(network, "a", back)
    assert back == ["a"]


def test_waves_of_several_brokers_do_not_mix() -> None:
    network = Network(TREE)
    back: list[str] = []
    for name in ("a", "e", "a"):
        start(network, name, back)
    network.run(Random(5))
    assert sorted(back) == ["a", "a", "e"]


def test_a_wave_does_not_wait_for_a_lost_neighbour() -> None:
    network = Network(TREE)
    back: list[str] = []
    start(network, "a", back)
    network.step()  # b has it, and has passed it on
    network.cut("b", "d")
    network.run()
    assert back == ["a"]
    assert all(len(broker.waves) == 0 for broker in network.brokers.values())


def test_a_wave_whose_sender_is_lost_is_forgotten() -> None:
    network = Network(TREE)
    back: list[str] = []
    start(network, "a", back)
    network.step()
    network.cut("a", "b")
    network.run()
    assert back == ["a"]  # nobody is left to wait for
    assert all(len(broker.waves) == 0 for broker in network.brokers.values())


def test_an_echo_that_nobody_waits_for_changes_nothing() -> None:
    network = Network(TREE)
    broker = network.brokers["b"]
    assert broker.handle(Echo("a", 77), "c", 1) == []
    assert len(broker.waves) == 0


def test_the_last_broker_answers_at_once() -> None:
    network = Network(TREE)
    assert network.brokers["c"].handle(Probe("a", 1), "b", 1) == [("b", Echo("a", 1))]
