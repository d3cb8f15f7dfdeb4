from __future__ import annotations

from itertools import combinations
from math import hypot

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.drawing.positions import (
    GRAPH_BROKERS_MAX,
    HANGING_LEAVES_MAX,
    Positions,
    layout,
)
from tidegate.simulation.overlays.generators import TOPOLOGIES, generate
from tidegate.simulation.overlays.plain_networks import one_domain
from tidegate.simulation.overlays.topology import Topology

pytestmark = pytest.mark.slow

Point = tuple[float, float]


def crosses(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the lines a-b and c-d have a point in common that is an end of neither."""

    def side(p: Point, q: Point, r: Point) -> float:
        turn = (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])
        return 0 if abs(turn) < 1e-9 else turn

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


def crossings(topology: Topology, positions: Positions) -> int:
    return sum(
        crosses(positions[x.a], positions[x.b], positions[y.a], positions[y.b])
        for x, y in combinations(topology.links, 2)
    )


@pytest.mark.parametrize("name", list(TOPOLOGIES))
def test_every_broker_has_a_place_of_its_own(name: str) -> None:
    made = generate(name, seed=3)
    positions = layout(made)
    assert set(positions) == set(made.brokers)
    assert len(set(positions.values())) == len(made.brokers)


def test_the_same_overlay_has_the_same_places() -> None:
    made = generate("graphs-in-tree", 20)
    assert layout(made) == layout(made)


@settings(max_examples=settings().max_examples // 6)
@example("random-tree", 53, 53)
@given(
    st.sampled_from(["random-tree", "tree", "chain", "star"]), st.integers(1, 60), st.integers(0)
)
def test_links_of_trees_do_not_cross(name: str, brokers: int, seed: int) -> None:
    made = generate(name, brokers, seed % 2**60)
    assert crossings(made, layout(made)) == 0


def test_a_hierarchy_hangs_from_its_root() -> None:
    made = generate("trading20")
    positions = layout(made)
    assert positions["market"][1] == max(y for _, y in positions.values())
    assert all(positions[link.a][1] > positions[link.b][1] for link in made.links)


def test_a_wide_hierarchy_spreads_around_its_root() -> None:
    leaves = [f"leaf{i}" for i in range(HANGING_LEAVES_MAX + 1)]
    links = [("b0", leaf, 0.01) for leaf in leaves]
    made = one_domain("wide", ["b0", *leaves], links, Architecture.HIERARCHICAL)
    assert layout(made)["b0"] == (0, 0)


def test_a_chain_lies_flat() -> None:
    assert {round(y, 9) for _, y in layout(generate("chain")).values()} == {0}


def test_near_brokers_are_near() -> None:
    made = generate("transit-stub", seed=3)
    positions = layout(made)
    near: list[float] = []
    far: list[float] = []
    for a, b in combinations(made.brokers, 2):
        (ax, ay), (bx, by) = positions[a], positions[b]
        (near if made.regions[a] == made.regions[b] else far).append(hypot(ax - bx, ay - by))
    assert sum(near) / len(near) < 0.35 * sum(far) / len(far)


def test_positions_that_an_overlay_brings_are_kept() -> None:
    made = generate("isp24")
    assert layout(made) == made.positions


def test_a_large_graph_is_placed_like_a_tree() -> None:
    made = generate("random-graph", GRAPH_BROKERS_MAX + 1)
    radii = {round(hypot(x, y), 6) for x, y in layout(made).values()}
    assert radii == set(range(len(radii)))


def test_links_without_delay() -> None:
    made = generate("highway20")
    flat = Topology(
        "flat",
        made.brokers,
        tuple(type(x)(x.a, x.b, 0, x.domain) for x in made.links),
        made.domains,
    )
    assert len(set(layout(flat).values())) == 20
