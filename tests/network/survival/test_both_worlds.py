"""The random runs of the simulator on brokers that listen: the same scripts, checked as there.

Brokers, sessions and sockets are real; only the clock is simulated. What a run checks is in
`simulation/verifying/random_run.py`: the state of all brokers against one computed from scratch,
the events of each round, probes against the oracle, and sequences of patterns.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import SystemRandom
from typing import Any, cast

import pytest

from support.socket_world import Bytes, SocketWorld, counted_bytes
from tidegate.routing.strategies import STRATEGIES
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.verifying.random_run import Mix, RandomRun
from tidegate.simulation.world import World

MIX = Mix(
    clients=5, rounds=2, actions=20, probes=5,
    failures=False, merging=False, only_advertised=False,
)  # fmt: skip
TOPOLOGIES = ("random-tree", "random-graph", "hierarchy")
CASES = [("random-tree", routing) for routing in STRATEGIES] + [
    ("random-graph", "subscription"),
    ("random-graph", "link-matching"),
    ("hierarchy", "subscription"),
]


def overlay(topology: str, seed: int, brokers: int = 4) -> Topology:
    """An overlay whose links cost the same, as those of brokers do that are told nothing else."""
    made = generate(topology, brokers, seed)
    return replace(made, links=tuple(replace(each, delay_s=0.001) for each in made.links))


def problems_on_sockets(topology: str, routing: str, seed: int, mix: Mix = MIX) -> list[str]:
    with counted_bytes() as counted:
        worlds: list[SocketWorld] = []

        def make(bytes: Bytes, topology: Topology, routing: str, seed: int, **_: Any) -> World:
            worlds.append(SocketWorld(topology, routing, seed, bytes))
            return cast(World, worlds[-1])

        try:
            run = RandomRun(overlay(topology, seed), routing, seed, mix, partial(make, counted))
            return run.problems()
        finally:
            for world in worlds:
                world.close()


@pytest.mark.slow
@pytest.mark.parametrize(("topology", "routing"), CASES)
def test_a_script_has_the_same_outcome_in_both_worlds(topology: str, routing: str) -> None:
    assert RandomRun(overlay(topology, 1), routing, 1, MIX).problems() == []
    assert problems_on_sockets(topology, routing, 1) == []


def test_a_broker_that_forgets_a_delivery_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the checks would be worth nothing."""
    from tidegate.network.server.deliveries.client_output import ClientOutput

    count = 0

    def add(output: ClientOutput, *arguments: Any) -> None:
        nonlocal count
        count += 1
        if count % 5:
            right(output, *arguments)

    right = ClientOutput.add
    monkeypatch.setattr(ClientOutput, "add", add)
    monkeypatch.setattr(ClientOutput, "send_at_once", lambda *_: set())  # all go the way of `add`
    found = problems_on_sockets("random-tree", "subscription", 1)
    assert any("has missed" in each or "0 times, not 1" in each for each in found)


@pytest.mark.soak
def test_many_scripts() -> None:
    for run in range(300):
        seed = SystemRandom().getrandbits(32)
        topology = TOPOLOGIES[run % len(TOPOLOGIES)]
        routings = ["subscription", "advertisement"] if topology == "hierarchy" else [*STRATEGIES]
        routing = routings[run % len(routings)]
        mix = replace(MIX, moves=run % 2 == 0, actions=60, rounds=3)
        assert problems_on_sockets(topology, routing, seed, mix) == [], f"{topology} {seed}"
