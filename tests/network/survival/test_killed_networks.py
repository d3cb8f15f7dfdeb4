"""Networks whose brokers and clients are killed again and again keep their promises."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random, SystemRandom

import pytest

from support.forked_processes import ForkServer, fork_server
from support.killed_network import LINE, RING, KilledNetwork, Plan

PLANS = {
    "one": Plan({"a": ""}, kills=4),
    "line": Plan(LINE, kills=8),
    "ring": Plan(RING, architecture="general", kills=8),
}


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    with fork_server() as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_twenty_kills(forks: ForkServer, tmp_path: Path, name: str) -> None:
    network = KilledNetwork(forks, tmp_path, PLANS[name], seed=1)
    assert network.run() == []
    inner = {"inner"} if len(PLANS[name].links) > 2 else set()
    assert set(network.killed) == {"edge", "publisher", "subscriber"} | inner


@pytest.mark.soak
def test_kills_for_hours(forks: ForkServer, tmp_path: Path) -> None:
    for run in range(500):
        seed, folder = SystemRandom().getrandbits(32), tmp_path / str(run)
        folder.mkdir()
        plan = drawn_plan(Random(seed))
        assert KilledNetwork(forks, folder, plan, seed).run() == [], f"seed {seed}, {plan}"
        shutil.rmtree(folder)


def drawn_plan(chance: Random) -> Plan:
    """A small network of some architecture and routing."""
    links, architecture = chance.choice(
        [
            (LINE, "acyclic"),
            (RING, "general"),
            ({"a": "", "b": "a"}, "acyclic"),
            ({"a": "", "b": "a", "c": "b", "d": "ca"}, "general"),
            ({"a": "", "b": "a", "c": "a"}, "hierarchical"),
        ]
    )
    routings = ["subscription", "flooding", "match-first", "link-matching"]
    return Plan(
        links,
        architecture,
        "subscription" if architecture == "hierarchical" else chance.choice(routings),
        kills=chance.choice((5, 10, 20)),
        events=chance.choice((100, 250)),
    )
