"""Random runs on another substrate, and with brokers that are wrong about what changes and moves.

A check that cannot fail is worth nothing: each of these brokers is found out by what clients get.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tidegate.language.events import Event
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, wanted_form
from tidegate.matching.subscription import Subscription
from tidegate.routing.broker import Broker
from tidegate.routing.clients import named_subscriptions
from tidegate.routing.forwarding import NamedAsker
from tidegate.routing.messages import (
    Address,
    InForce,
    Interests,
    MatchedVersion,
    Message,
    Outgoing,
    Peer,
)
from tidegate.routing.strategies import STRATEGIES
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.verifying.random_run import Mix, RandomRun
from tidegate.simulation.world import World


@pytest.mark.parametrize("routing", STRATEGIES)
@pytest.mark.parametrize("topology", ["random-tree", "random-graph", "hierarchy"])
def test_another_substrate_delivers_the_same(topology: str, routing: str) -> None:
    for seed in range(2):
        mix = Mix(substrate="columnar", rounds=2)
        run = RandomRun(generate(topology, 3 + seed * 2, seed), routing, seed, mix)
        assert run.problems() == [], (topology, routing, seed)


# -- wrong brokers -------------------------------------------------------------------------------

LOST = "has missed"
WRONG = "times, not"
CHANGES = Mix(clients=3, rounds=2, actions=100, probes=4, failures=False, moves=False)
"""Few clients, who change what they ask for all the while."""


def finds_in_deliveries(*found: str, seeds: int = 60) -> bool:
    """Whether clients of some runs get too little or too much."""
    return any(
        what in problem
        for seed in range(seeds)
        for problem in RandomRun(
            generate("random-tree", 6, seed), "subscription", seed, CHANGES
        ).problems()
        for what in found
    )


def test_with_brokers_that_are_right_nothing_is_found() -> None:
    for seed in range(5):
        run = RandomRun(generate("random-tree", 6, seed), "subscription", seed, CHANGES)
        assert run.problems() == []


def test_a_broker_that_loses_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(broker: Broker, message: Message, sender: Address, now_us: int) -> Outgoing:
        if isinstance(message, Interests):
            message = replace(message, altered=())
        return right(broker, message, sender, now_us)

    right: Callable[..., Outgoing] = Broker.handle
    monkeypatch.setattr(Broker, "handle", handle)
    assert finds_in_deliveries(LOST, WRONG)


def test_a_broker_that_leaves_a_gap_between_two_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a re-subscription does: the old one is taken back, and a little later the new one comes;
    what is confirmed waits for that."""

    def carry(world: World, sender: Peer, receiver: Peer, message: Message) -> None:
        line = world.lines.get((sender, receiver))
        if isinstance(message, Interests) and message.altered and line is not None:
            keys = [key for key, _ in message.altered]
            gone = replace(message, unwanted=(*message.unwanted, *keys), altered=())
            right(world, sender, receiver, gone)
            line.arrived_at_us = max(line.arrived_at_us, world.now_us) + 200_000
            items = world.sites[sender].broker.subscriptions.sent(receiver)
            message = Interests(tuple((key, items[key]) for key in keys))
        right(world, sender, receiver, message)

    right: Callable[..., None] = World._carry
    monkeypatch.setattr(World, "_carry", carry)
    assert finds_in_deliveries(LOST)


def test_a_broker_that_is_wrong_about_since_when_filters_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def form(subscription: Subscription, before: WantedFilter | None) -> WantedFilter:
        found = wanted_form(subscription, before)
        return replace(found, origin_us=0) if isinstance(found, EvolvingFilter) else found

    monkeypatch.setattr(named_subscriptions, "standing_form", form)
    assert finds_in_deliveries(LOST, WRONG)


def test_a_broker_that_confirms_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def confirm(
        _claims: named_subscriptions.NamedSubscriptions, claim: NamedAsker, version: int
    ) -> Outgoing:
        return [(claim.client, InForce(claim.name, version))]

    monkeypatch.setattr(named_subscriptions.NamedSubscriptions, "confirm", confirm)
    assert finds_in_deliveries(LOST)


def test_a_broker_that_goes_by_what_others_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own clients get what matches in the table, whatever its variables are."""

    def judge(
        known: named_subscriptions.NamedSubscriptions, claim: NamedAsker, _event: Event
    ) -> MatchedVersion:
        return MatchedVersion(claim.name, known._named[claim.client][claim.name].version)

    monkeypatch.setattr(named_subscriptions.NamedSubscriptions, "judge", judge)
    assert finds_in_deliveries(WRONG)
