from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.topology import Link, Topology
from tidegate.simulation.overlays.transit_stub import transit_stub


def kind(topology: Topology, link: Link) -> str:
    """Of which parts of the network the ends of a link are."""
    a, b = topology.regions[link.a], topology.regions[link.b]
    if a == b:
        return f"in {a[0]}"
    return "".join(sorted(a[0] + b[0]))


def test_a_hundred_sites() -> None:
    made = transit_stub()
    assert made.domains == {"overlay": Architecture.GENERAL}
    sizes = Counter(made.regions.values())
    assert sizes.pop("t0") == 4
    assert len(sizes) == 4 * 3
    assert sum(sizes.values()) == 4 * 3 * 8
    joints = Counter(
        end for link in made.links if kind(made, link) == "st" for end in (link.a, link.b)
    )
    assert [joints[f"t0.{i}"] for i in range(4)] == [3, 3, 3, 3]


def test_a_larger_network_has_more_backbones() -> None:
    regions = set(transit_stub(1000).regions.values())
    assert len([region for region in regions if region.startswith("t")]) == 5


@settings(max_examples=settings().max_examples // 4)
@given(st.integers(2, 400), st.integers(0, 2**32))
def test_the_way_between_backbones_is_the_longest(brokers: int, seed: int) -> None:
    made = transit_stub(brokers, seed)
    delays: dict[str, list[float]] = {}
    for link in made.links:
        delays.setdefault(kind(made, link), []).append(link.delay_s)
    order = [delays[each] for each in ("in s", "st", "in t", "tt") if each in delays]
    assert set(delays) <= {"in s", "st", "in t", "tt"}  # no link between stubs
    for shorter, longer in pairwise(order):
        assert max(shorter) < min(longer)


@settings(max_examples=settings().max_examples // 4)
@given(st.integers(2, 400), st.integers(0, 2**32))
def test_a_stub_has_one_link_to_a_backbone(brokers: int, seed: int) -> None:
    made = transit_stub(brokers, seed)
    joints = Counter(
        made.regions[end]
        for link in made.links
        if kind(made, link) == "st"
        for end in (link.a, link.b)
        if end.startswith("s")
    )
    stubs = {region for region in made.regions.values() if region.startswith("s")}
    assert joints == dict.fromkeys(stubs, 1)
