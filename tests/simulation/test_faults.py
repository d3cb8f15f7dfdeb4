from __future__ import annotations

import re

import pytest

from tidegate.errors import TidegateError
from tidegate.simulation.faults import Fault, FaultStep, parse_crash, parse_cut, parse_partition
from tidegate.simulation.overlays.generators import generate
from tidegate.simulation.world import World

CHAIN = generate("chain", 4)


def test_a_link_is_named_in_either_order() -> None:
    assert parse_cut("b1-b0@1s..2s", CHAIN) == Fault(("b0", "b1"), 1_000_000, 2_000_000)


def test_without_an_end_it_stays_down() -> None:
    fault = parse_crash("b1@500ms", CHAIN)
    assert list(fault.steps(CHAIN)) == [(500_000, FaultStep.CRASH, ("b1",))]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("b1", "'b1' has no time; write it as b3@2.5s..4s"),
        ("@1s", "has no time"),
        ("b9@1s", "there is no broker 'b9' in 'chain'"),
        ("b1@x", "'b1@x': 'x' is not a duration"),
        ("b1@2s..1s", "ends before it begins"),
    ],
)
def test_a_wrong_crash_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TidegateError, match=re.escape(reason)):
        parse_crash(text, CHAIN)


def test_an_unknown_link_is_refused() -> None:
    with pytest.raises(TidegateError, match="there is no link 'b0-b2' in 'chain'"):
        parse_cut("b0-b2@1s", CHAIN)


def test_a_partition_cuts_all_links_between_the_two_sides() -> None:
    isp = generate("isp24")
    cut = {frozenset(fault.names) for fault in parse_partition("west@1s..2s", isp)}
    west = {broker for broker, region in isp.regions.items() if region == "west"}
    assert cut == {
        frozenset((link.a, link.b)) for link in isp.links if len({link.a, link.b} & west) == 1
    }
    assert parse_partition("b0@1s", CHAIN) == (Fault(("b0", "b1"), 1_000_000),)
    assert len(parse_partition("b0,b2@1s", CHAIN)) == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("b0,b1,b2,b3@1s", "cuts no link of 'chain'"),
        ("b0,b9@1s", "there is no broker or region 'b9' in 'chain'; regions: none"),
        ("west", "'west' has no time; write it as east,b7@1s..2s"),
    ],
)
def test_a_wrong_partition_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TidegateError, match=re.escape(reason)):
        parse_partition(text, CHAIN)


def test_an_unknown_region_is_refused_with_those_there_are() -> None:
    isp = generate("isp24")
    regions = ", ".join(sorted(set(isp.regions.values())))
    reason = f"there is no broker or region 'wst' in 'isp24'; regions: {regions}"
    with pytest.raises(TidegateError, match=re.escape(reason)):
        parse_partition("wst@1s", isp)


@pytest.mark.parametrize("text", ["b1@1s..2s", "b1-b2@1s..2s"])
def test_in_the_end_all_are_connected_again(text: str) -> None:
    world = World(CHAIN, "subscription")
    fault = parse_cut(text, CHAIN) if "-" in text else parse_crash(text, CHAIN)
    for time_us, step, names in fault.steps(CHAIN):
        world.at(time_us, lambda step=step, names=names: step.apply(world, names))  # type: ignore[misc]
    world.run(1_500_000)
    assert "b1" not in world.sites["b2"].broker.domains.domain_of
    world.run()
    for link in CHAIN.links:
        assert link.b in world.sites[link.a].broker.domains.domain_of
        assert link.a in world.sites[link.b].broker.domains.domain_of
