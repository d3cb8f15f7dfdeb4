"""Violations are found: each test breaks one invariant of a world in which all hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.matching.summary.tables import NO_ENTRIES
from tidegate.routing import messages as m
from tidegate.routing.messages import Client, Validity
from tidegate.routing.summaries.exchange import SummaryExchange
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.verifying.summary_invariants import broken_summary_invariants
from tidegate.simulation.world import SilentClient, World


@pytest.fixture
def world() -> World:
    """A chain of three, b0 - b1 - b2: b0 and b2 send to b1."""
    world = World(generate("chain", 3), "summaries")
    world.admit(Client("ann"), SilentClient(), "b0")
    world.request(Client("ann"), m.Subscribe("x < 5"))
    world.request(Client("ann"), m.Subscribe("y < 5 + t", "one", version=1))
    world.run()
    return world


def exchange_of(world: World, broker: str) -> SummaryExchange:
    summaries = world.sites[broker].broker.summaries
    assert summaries is not None
    return next(iter(summaries.exchanges.values()))


def finds(world: World, problem: str) -> bool:
    return any(problem in each for each in broken_summary_invariants(world))


def test_all_invariants_hold(world: World) -> None:
    assert broken_summary_invariants(world) == []
    assert broken_summary_invariants(World(generate("chain", 3), "flooding")) == []


def test_a_filter_that_is_not_in_the_summary(world: World) -> None:
    summaries = world.sites["b0"].broker.summaries
    assert summaries is not None
    summaries.own._summary.remove("b0", min(summaries.own.numbers))
    assert finds(world, "b0: its summary misses")
    summaries.own.numbers.clear()
    assert finds(world, "b0: has [] in its summary, not [")


def test_a_summary_that_is_not_as_it_is_now(world: World) -> None:
    held = exchange_of(world, "b1").held
    held["b0"] = replace(held["b0"], tables=NO_ENTRIES)
    assert finds(world, "b1: holds of b0 a summary in which ['b0'] is not as it is now")


def test_a_window_that_is_not_as_it_is_now(world: World) -> None:
    held = exchange_of(world, "b1").held
    assert held["b0"].validity
    held["b0"] = replace(held["b0"], validity=(Validity("b0", 1, 2),))
    assert finds(world, "b1: holds of b0 the windows")


def test_a_summary_of_other_brokers(world: World) -> None:
    held = exchange_of(world, "b1").held
    held["b0"] = replace(held["b0"], brokers=frozenset({"b2"}))
    assert finds(world, "b1: holds of b0 the summary of ['b2'], not ")


def test_a_summary_that_is_not_there_or_left_over(world: World) -> None:
    held = exchange_of(world, "b1").held
    kept = held.pop("b0")
    assert finds(world, "b1: holds the summaries of ['b2'], not of ['b0', 'b2']")
    held["b0"] = kept
    exchange_of(world, "b0").held["b1"] = kept
    assert finds(world, "b0: holds the summaries of ['b1'], not of []")


def test_something_that_waits(world: World) -> None:
    exchange_of(world, "b0").note_changes(1)
    assert finds(world, "b0: its summary waits to be sent or acknowledged")


def test_a_drain_that_has_not_ended(world: World) -> None:
    summaries = world.sites["b0"].broker.summaries
    assert summaries is not None
    summaries.drains.start(list)
    assert finds(world, "b0: 1 drains have not ended")


def test_links_that_are_not_known(world: World) -> None:
    world.directions["b0", "b1"].is_up = False
    assert finds(world, "b0: knows the links")
