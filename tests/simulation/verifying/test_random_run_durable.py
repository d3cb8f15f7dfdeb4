"""Random runs with broken connections and with brokers that stop and come back.

The wrong brokers below must be found, or the checks are worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tidegate.routing.durability import durable_state, restoring
from tidegate.routing.durability.durable_state import (
    DurableKey,
    DurableRecord,
    DurableState,
    FilterKey,
    NamedKey,
)
from tidegate.routing.durability.link_session import LinkSession, SessionOpen
from tidegate.routing.forwarding import Forwarding
from tidegate.routing.messages import Key, Outgoing, Peer, Sync
from tidegate.routing.strategies import STRATEGIES
from tidegate.routing.waves import Waves
from tidegate.simulation import durable_sites
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.verifying.random_run import Mix, RandomRun

pytestmark = pytest.mark.slow

STOPS = Mix(durable=True, rounds=2, clients=5)
BREAKS = Mix(durable=True, rounds=2, clients=5, stops=False)
TOPOLOGIES = ("random-tree", "hierarchy", "random-graph", "graphs-in-tree")


def problems(routing: str, topology: str, seed: int, mix: Mix) -> list[str]:
    """The problems of one run."""
    brokers = 12 if topology == "graphs-in-tree" else 5
    return RandomRun(generate(topology, brokers, seed), routing, seed, mix).problems()


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("routing", STRATEGIES)
def test_brokers_come_back_with_all_they_need(routing: str, topology: str) -> None:
    assert problems(routing, topology, 1, STOPS) == []


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("routing", STRATEGIES)
def test_nothing_is_lost_on_connections_that_break(routing: str, topology: str) -> None:
    assert problems(routing, topology, 2, BREAKS) == []


@pytest.mark.parametrize("mix", [STOPS, BREAKS])
def test_tables_that_are_placed_when_they_settle_survive_as_well(mix: Mix) -> None:
    by_matcher = Mix(
        durable=True, rounds=2, clients=5, stops=mix.stops, substrate="columnar", merging=True
    )
    for topology in ("random-tree", "random-graph"):
        assert problems("subscription", topology, 3, by_matcher) == []


# -- wrong brokers --------------------------------------------------------------------------------


def finds(mix: Mix, *texts: str, routing: str = "subscription", seeds: int = 20) -> bool:
    """Whether one of some runs has a problem with one of the texts, or cannot go on."""
    for seed in range(seeds):
        try:
            found = problems(routing, "random-tree", seed, mix)
        except (ArithmeticError, AssertionError, LookupError):
            continue
        if any(text in problem for text in texts for problem in found):
            return True
    return False


def test_a_session_that_sends_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(session: LinkSession[Any], theirs: SessionOpen) -> list[tuple[int, Any]]:
        kept = right(session, theirs)
        for number, _ in kept:
            session.acknowledged(number)
        return []

    def take(session: LinkSession[Any], number: int) -> bool:
        session._taken = session._taken._replace(number=number)
        return True

    right: Callable[..., list[tuple[int, Any]]] = LinkSession.opened
    monkeypatch.setattr(LinkSession, "opened", opened)
    monkeypatch.setattr(LinkSession, "take", take)
    assert finds(BREAKS, "has missed", "was sent", "0 times, not 1")


def test_a_broker_that_forgets_the_filters_of_its_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_filters(broker: Any, state: DurableState, now_us: int) -> Outgoing:
        kept = {key: each for key, each in state.items() if not isinstance(key, FilterKey)}
        return right(broker, kept, now_us)

    right: Callable[..., Outgoing] = restoring.restore_state
    monkeypatch.setattr(durable_sites, "restore_state", without_filters)
    assert finds(STOPS, "was sent", "0 times, not 1")


def test_a_broker_that_forgets_the_subscriptions_of_its_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def record(broker: Any, key: DurableKey) -> DurableRecord | None:
        return None if isinstance(key, NamedKey) else right(broker, key)

    right: Callable[..., DurableRecord | None] = durable_state._record
    monkeypatch.setattr(durable_state, "_record", record)
    assert finds(STOPS, "computed from scratch", "0 times, not 1")


def test_a_broker_that_syncs_with_what_it_held_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes its neighbours to hold the same, whatever they say."""

    def as_before(broker: Any, _sync: Sync, peer: Peer) -> Outgoing:
        return right(broker, Sync(restoring.held_digest(broker, peer)), peer)

    right: Callable[..., Outgoing] = restoring.on_sync
    monkeypatch.setattr("tidegate.routing.broker.on_sync", as_before)
    assert finds(STOPS, "was sent", "0 times, not 1")


def test_a_broker_that_does_not_number_keys_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def number_anew(
        _table: Forwarding[Any], _peer: Peer, _ordered: Callable[[Mapping[Key, Any]], Any]
    ) -> None:
        pass

    monkeypatch.setattr(Forwarding, "number_anew", number_anew)
    assert finds(STOPS, "was sent", "0 times, not 1")


def test_a_neighbour_that_does_not_probe_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_restart(_waves: Waves, _peer: Peer) -> Outgoing:
        return []

    monkeypatch.setattr(Waves, "on_restart", on_restart)
    assert finds(STOPS, "waves have not come back")
