"""Random runs on another substrate, and with brokers that handle updates or time wrongly.

Each of these brokers must be found by the deliveries, or the checks are worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tidegate.language.events import Event
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, wanted_form
from tidegate.matching.subscription import Subscription
from tidegate.routing.askers import NamedAsker
from tidegate.routing.broker import Broker
from tidegate.routing.clients import named_subscriptions
from tidegate.routing.messages import (
    Address,
    FilterDelta,
    InForce,
    MatchedVersion,
    Message,
    Outgoing,
    Peer,
)
from tidegate.routing.strategies import STRATEGIES
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.verifying.random_run import Mix, RandomRun
from tidegate.simulation.world import World

pytestmark = pytest.mark.slow

BY_FILTERS = [name for name, each in STRATEGIES.items() if not each.matches_links]


@pytest.mark.parametrize("routing", BY_FILTERS)
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
"""Few clients that change their filters all the time."""


def finds_in_deliveries(*texts: str, seeds: int = 60) -> bool:
    """Whether one of some runs has a problem with one of the texts."""
    return any(
        text in problem
        for seed in range(seeds)
        for problem in RandomRun(
            generate("random-tree", 6, seed), "subscription", seed, CHANGES
        ).problems()
        for text in texts
    )


def test_correct_brokers_have_no_problems() -> None:
    for seed in range(5):
        run = RandomRun(generate("random-tree", 6, seed), "subscription", seed, CHANGES)
        assert run.problems() == []


def test_a_broker_that_loses_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(broker: Broker, message: Message, sender: Address, now_us: int) -> Outgoing:
        if isinstance(message, FilterDelta):
            message = replace(message, updated=())
        return right(broker, message, sender, now_us)

    right: Callable[..., Outgoing] = Broker.handle
    monkeypatch.setattr(Broker, "handle", handle)
    assert finds_in_deliveries(LOST, WRONG)


def test_a_broker_that_leaves_a_gap_between_two_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a re-subscription does: the old filter is removed, and the new one arrives a little later.
    Confirmations wait for it."""

    def transmit(
        world: World, sender: Peer, receiver: Peer, message: Message, numbered: int | None = None
    ) -> None:
        assert numbered is None
        direction = world.directions.get((sender, receiver))
        if isinstance(message, FilterDelta) and message.updated and direction is not None:
            keys = [key for key, _ in message.updated]
            gone = replace(message, removed=(*message.removed, *keys), updated=())
            right(world, sender, receiver, gone)
            direction.last_arrival_us = max(direction.last_arrival_us, world.now_us) + 200_000
            items = world.sites[sender].broker.subscriptions.sent(receiver)
            message = FilterDelta(tuple((key, items[key]) for key in keys))
        right(world, sender, receiver, message)

    right: Callable[..., None] = World.transmit
    monkeypatch.setattr(World, "transmit", transmit)
    assert finds_in_deliveries(LOST)


def test_a_broker_with_a_wrong_origin_of_evolving_filters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def form(subscription: Subscription, before: WantedFilter | None) -> WantedFilter:
        found = wanted_form(subscription, before)
        return replace(found, origin_us=0) if isinstance(found, EvolvingFilter) else found

    monkeypatch.setattr(named_subscriptions, "wanted_form", form)
    assert finds_in_deliveries(LOST, WRONG)


def test_a_broker_that_confirms_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def confirm(
        _named: named_subscriptions.NamedSubscriptions, asker: NamedAsker, version: int
    ) -> Outgoing:
        return [(asker.client, InForce(asker.name, version))]

    monkeypatch.setattr(named_subscriptions.NamedSubscriptions, "confirm", confirm)
    assert finds_in_deliveries(LOST)


def test_a_broker_that_delivers_by_the_filters_that_others_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own clients receive what matches in the table, without regard to its variables."""

    def matched_version(
        known: named_subscriptions.NamedSubscriptions, asker: NamedAsker, _event: Event
    ) -> MatchedVersion:
        versions = {
            each.subscription.id: each.version for each in known.subscriptions_of(asker.client)
        }
        return MatchedVersion(asker.name, versions[asker.name])

    monkeypatch.setattr(named_subscriptions.NamedSubscriptions, "matched_version", matched_version)
    assert finds_in_deliveries(WRONG)
