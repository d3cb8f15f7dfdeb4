"""What the papers say of their networks."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.paper_networks import (
    cwix24,
    gryphon,
    highway20,
    isp24,
    summaries13,
    trading20,
)


def test_gryphon() -> None:
    made = gryphon()
    assert (len(made.brokers), Counter(made.regions.values())) == (39, {"A": 13, "B": 13, "C": 13})
    assert made.domains == {"overlay": Architecture.GENERAL}
    roots = {made.link(*pair).delay_s for pair in ("AB", "BC", "AC")}
    assert roots == {0.065, 0.050, 0.075}
    assert {made.link("A", f"A.{i}").delay_s for i in (1, 2, 3)} == {0.025}
    assert {made.link("B.2", f"B.2.{i}").delay_s for i in (1, 2, 3)} == {0.010}
    lateral = [
        link
        for link in made.links
        if made.regions[link.a] != made.regions[link.b] and len(link.a) > 1
    ]
    assert [link.delay_s for link in lateral] == [0.050] * 3
    assert len(made.links) == 3 + 3 * 12 + 3


def test_an_event_in_gryphon_passes_up_to_six_brokers() -> None:
    """The paper counts matching steps over 1 to 6 hops."""
    assert nx.diameter(gryphon().graph()) + 1 == 6


def test_the_example_of_summaries() -> None:
    made = summaries13()
    assert made.domains == {"overlay": Architecture.ACYCLIC}
    by_degree: dict[int, list[int]] = {}
    for broker in made.brokers:
        by_degree.setdefault(len(made.neighbours(broker)), []).append(int(broker))
    assert by_degree == {1: [1, 3, 4, 6, 9, 12, 13], 2: [2, 7, 10], 3: [8, 11], 5: [5]}
    assert made.neighbours("1") == ("2",)  # 2 merges its summary with that of 1
    assert set(made.neighbours("2")) == {"1", "5"}  # and sends it to 5
    assert set(made.neighbours("7")) == {"5", "8"}  # 7 sends to 5 or 8
    assert set(made.neighbours("10")) == {"8", "11"}  # 10 to 8 or 11
    assert set(made.neighbours("8")) == {"7", "9", "10"}  # 8 merges those of 7, 9 and 10
    assert {"2", "6", "3", "4"} < set(made.neighbours("5"))  # 5 merges those of 2, 6, 3 and 4


def test_the_backbone() -> None:
    made = isp24()
    assert len(made.brokers) == 24
    assert set(made.positions) == set(made.regions) == set(made.brokers)
    assert made.domains == {"overlay": Architecture.GENERAL}
    assert nx.is_biconnected(made.graph())  # no city cuts off another
    # 4,130 km as the crow flies from San Francisco to New York: a little more over the network
    delay_s = nx.dijkstra_path_length(made.graph(), "San Francisco", "New York", weight="delay_s")
    assert 0.0206 < delay_s < 0.0225
    assert made.link("Seattle", "Portland").delay_s == pytest.approx(0.00117, abs=1e-4)


def test_the_other_backbone() -> None:
    made = cwix24()
    degrees = sorted(len(made.neighbours(each)) for each in made.brokers)
    assert degrees == [1] * 3 + [2] * 12 + [3] * 6 + [4] * 2 + [5]
    assert nx.is_connected(made.graph())
    assert made.neighbours("New York") == (
        "San Francisco", "Pennsauken", "Chicago", "Hartford", "Boston",
    )  # fmt: skip
    assert made.link("Orlando", "Jacksonville").delay_s == pytest.approx(0.001, abs=1e-4)


def test_highways() -> None:
    made = highway20()
    assert (len(made.brokers), {link.delay_s for link in made.links}) == (20, {0.010})
    assert made.domains == {"overlay": Architecture.GENERAL}
    assert not made.is_acyclic


def test_trading() -> None:
    made = trading20()
    assert (len(made.brokers), {link.delay_s for link in made.links}) == (20, {0.010})
    assert made.domains == {"overlay": Architecture.HIERARCHICAL}
    assert made.master("market") is None
    for broker in made.brokers:
        path = nx.shortest_path(made.graph(), "market", broker)
        if broker.startswith(("brokerage", "firm")):
            assert len(path) >= 3
        assert made.regions[broker] == (path[1] if len(path) > 1 else "market")
